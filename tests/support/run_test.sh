#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run_test.sh PROGRAM: a test that hangs, is killed, or leaves processes and files does not block CTest or the next run.
set -euo pipefail
program=$1
mark=$$.$RANDOM # in the command line of each process that is started here
work=$TMPDIR
failed=0

expect() { # expect WHAT GOT WANTED
    [ "$2" = "$3" ] || {
        echo "$1: '$2', not '$3'"
        failed=1
    }
}

# Waits for a reader of the output, as CTest does.
status_of() {
    "$program" "$@" 2>&1 | cat >"$work/out"
    echo "${PIPESTATUS[0]}"
}

running() {
    local count=1 end=$((SECONDS + 30)) # a killed process may still be listed
    while [ "$count" != 0 ] && [ $SECONDS -lt $end ]; do
        count=$(grep -las "[l]ives.$mark" /proc/[0-9]*/cmdline | wc -l || true)
    done
    echo "$count"
}

# The script is the test: it starts a child that would live for ten minutes, also in a session of its own.
# shellcheck disable=SC2016 # words on purpose
lives='sh -c "sleep 600; :" "lives.$0" & setsid sh -c "sleep 600; :" "lives.$0" & '

expect "a test that passes" "$(status_of 60 sh -c 'exit 0')" 0
expect "the line that says what it cost" "$(grep -cx 'run_test: [0-9.]* s of processor time' "$work/out")" 1
expect "the status of a test" "$(status_of 60 sh -c 'exit 77')" 77
# shellcheck disable=SC2016
expect "a test that a signal ends" "$(status_of 60 sh -c 'kill -SEGV $$')" 139
expect "a test that leaves children" "$(status_of 60 sh -c "$lives" "$mark")" 0
expect "children of a test that ended" "$(running)" 0
expect "a test that hangs" "$(status_of 1 sh -c "$lives wait" "$mark")" 99
expect "children of a test that hung" "$(running)" 0
expect "the list of its processes" "$(grep -c 'run_test: process .*(sh)' "$work/out")" 3

# Killed by CTest, and by hand.
for target in outer keeper; do
    "$program" 60 sh -c "$lives echo begun; wait" "$mark" >"$work/out" &
    outer=$!
    until grep -q begun "$work/out"; do sleep 0.01; done
    case $target in
    outer) kill -KILL $outer ;;
    keeper) # the list of children may lack one while another process ends
        child=
        until [ -n "$child" ]; do child=$(tr -d ' ' <"/proc/$outer/task/$outer/children"); done
        kill -KILL "$child"
        ;;
    esac
    wait $outer 2>/dev/null || true
    expect "children when the $target process was killed" "$(running)" 0
done

# shellcheck disable=SC2016
expect "a test that fails" "$(status_of 60 sh -c 'mkdir -m 0 "$TMPDIR/x"; exit 1')" 1
left=$(sed -n "s/^run_test: the test left '\(.*\)'$/\1/p" "$work/out")
[ -d "$left/x" ] || expect "what a test that fails left" "$left" "a directory"
"$program" 60 sh -c 'echo begun; sleep 600' >"$work/out" &
outer=$!
until grep -q begun "$work/out"; do sleep 0.01; done
"$program" --clean
expect "directories of the test that runs" "$(find "$work" -mindepth 1 -maxdepth 1 -name 'annal-*' | wc -l)" 1
kill $outer
exit $failed
