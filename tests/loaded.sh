#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# loaded.sh RUNS [REPEATS]: the tests of make test RUNS times beside four busy processes and a busy disk, then each test
# that waits for other processes or threads (label timed) REPEATS times in a row. None may fail or hang.
#
# Needs build/dev. The outcome of each run is a line; what a run with a failure printed stays in build/loaded.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=$1 repeats=${2:-$1}
log=build/loaded
failed=0

mkdir -p $log
for _ in 1 2 3 4; do
    (while :; do :; done) &
done
(while :; do
    dd if=/dev/zero of=$log/busy bs=1M count=256 conv=fsync status=none
done) &
# shellcheck disable=SC2046 # words on purpose
trap 'kill $(jobs -p); rm -f $log/busy' EXIT

run() { # run NAME ARGUMENT…
    local name=$1 began=$SECONDS outcome=passed
    shift
    ctest --preset dev "$@" >"$log/$name.txt" 2>&1 || outcome=FAILED failed=1
    printf '%-12s %5d s  %s %s\n' "$name" $((SECONDS - began)) $outcome \
        "$(sed -n 's/^\t *[0-9]* - \(.*\)/\1/p' "$log/$name.txt" | tr '\n' ' ')"
    [ $outcome = FAILED ] || rm "$log/$name.txt"
}

for i in $(seq "$runs"); do
    run "run-$i" -LE '^check$'
done
[ "$repeats" = 0 ] || run repeats -L '^timed$' --repeat "until-fail:$repeats"
exit $failed
