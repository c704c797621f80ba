#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# instructions.sh BUILD [--record]: how many instructions an event takes on each hot path, under callgrind, against
# the bounds in instructions.txt. More than 5 % above a bound is a failure. --record writes the bounds again.
# Exit status 77: this machine cannot count instructions.
set -euo pipefail
program=$1/tests/bench/instructions
bounds=$(dirname "$0")/instructions.txt
record=${2:-}

command -v valgrind >/dev/null || {
    echo "there is no valgrind"
    exit 77
}
[ "$(uname -m)" = x86_64 ] || {
    echo "the bounds are those of x86_64"
    exit 77
}

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-instructions-XXXXXX")
trap 'rm -rf "$work"' EXIT

# count PATH: instructions an event, to $work/PATH.count.
count() {
    valgrind --tool=callgrind --collect-atstart=no --toggle-collect="hot_$1" --toggle-collect="hot_$1_sync" \
        --callgrind-out-file="$work/$1.out" "$program" "$work/$1" "$1" >"$work/$1.events" 2>"$work/$1.log" || {
        cat "$work/$1.log"
        return 1
    }
    # The counted ones, of all threads.
    awk -v events="$(cat "$work/$1.events")" '/^(totals|summary):/ { sum = $2 } END { printf "%d\n", sum / events }' \
        "$work/$1.out" >"$work/$1.count"
}

paths="append bulk index query read replay"
# shellcheck disable=SC2086 # words on purpose
set -- $paths
while [ $# -gt 0 ]; do # two at a time
    count "$1" & first=$!
    second=
    [ $# -lt 2 ] || { count "$2" & second=$!; }
    wait "$first"
    [ -z "$second" ] || wait "$second"
    shift $(($# < 2 ? 1 : 2))
done

if [ "$record" = --record ]; then
    {
        sed -n '/^#/p' "$bounds"
        for path in $paths; do
            echo "$path $(cat "$work/$path.count")"
        done
    } >"$work/new"
    cp "$work/new" "$bounds"
    cat "$bounds"
    exit 0
fi

status=0
for path in $paths; do
    now=$(cat "$work/$path.count")
    bound=$(awk -v path="$path" '$1 == path { print $2 }' "$bounds")
    verdict=fine
    if [ -z "$bound" ]; then
        verdict="has no bound" status=1
    elif [ $((now * 100)) -gt $((bound * 105)) ]; then
        verdict="MORE than 5 % above" status=1
    elif [ $((now * 100)) -lt $((bound * 90)) ]; then
        verdict="a tenth below: record it with tests/bench/instructions.sh BUILD --record"
    fi
    printf '%-8s %8d instructions an event, bound %8s: %s\n' "$path" "$now" "${bound:-none}" "$verdict"
done
exit $status
