#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run every fuzzer of a build with libFuzzer for SECONDS, one after the other, and print the results.
#
#     tests/fuzz/run.sh BUILD SECONDS [NAME…]
#
# New inputs of a fuzzer are kept in $ANNAL_FUZZ_CORPUS/NAME/ (~/.cache/annal-fuzz), where the next run begins; an input that
# makes it fail is written to BUILD/tests/fuzz/crash-NAME-…. SEED=N makes the same choices again on the same corpus; without it
# the clock chooses. tests/fuzz/keep.sh copies inputs that reach new code into the tree.
set -euo pipefail
build=$1/tests/fuzz
kept=${ANNAL_FUZZ_CORPUS:-$HOME/.cache/annal-fuzz}
seed=${SEED:-$(date +%s)}
seconds=$2
shift 2
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
failed=0
echo "SEED=$seed"
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(ls "$corpus")

for name in "${names[@]}"; do
    log=$build/$name.txt
    mkdir -p "$kept/$name"
    if "$build/fuzz_$name" -max_total_time="$seconds" -max_len=8192 -seed="$((seed % 4294967296))" -print_final_stats=1 \
        -artifact_prefix="$build/crash-$name-" "$kept/$name" "$corpus/$name" >"$log" 2>&1; then
        outcome=sound
    else
        outcome="FAILED, see $log"
        failed=1
    fi
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    cover=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
    printf '%-10s %12s executions  %-12s %s\n' "$name" "${executions:-?}" "$cover" "$outcome"
done
exit $failed
