#!/bin/bash
# Run every fuzzer of a build with libFuzzer for so many seconds, one after the other, and print what they did.
#
#     tests/fuzz/run.sh BUILD SECONDS [NAME…]
#
# What a fuzzer finds new goes to BUILD/tests/fuzz/found-NAME/, what makes it fail to crash-NAME-….
set -euo pipefail
build=$1/tests/fuzz
seconds=$2
shift 2
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
failed=0
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(ls "$corpus")

for name in "${names[@]}"; do
    log=$build/$name.txt
    mkdir -p "$build/found-$name"
    if "$build/fuzz_$name" -max_total_time="$seconds" -max_len=8192 -print_final_stats=1 \
        -artifact_prefix="$build/crash-$name-" "$build/found-$name" "$corpus/$name" >"$log" 2>&1; then
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
