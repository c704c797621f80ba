#!/bin/sh
# valgrind.sh BUILD: every test program of a build without sanitizers, under memcheck, one a core. What a
# test forks is left alone: it mostly exists to be killed.
# The crash tests do nothing but fork, and count on the speed of what they kill: they are left out. So are
# those of power cuts and of faults, which open thousands of stores, all of them in the address sanitizer's
# run too.
set -eu
export ANNAL_TEST_QUICK=1

if [ "$1" = --one ]; then
    program=$2
    name=${program##*/}
    set -- "$program"
    case $name in fuzz_*) set -- "$program" "tests/fuzz/corpus/${name#fuzz_}" 100 ;; esac
    report=$(mktemp)
    trap 'rm -f "$report"' EXIT
    if CK_FORK=no timeout 3600 valgrind --quiet --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes \
        "$@" >"$report" 2>&1; then
        echo "$name: no errors. $(grep 'Checks:' "$report" || true)"
        exit 0
    fi
    cat "$report"
    echo "$name: valgrind found errors, or the tests failed"
    exit 255 # the others need not begin
fi

for program in "$1"/tests/*/test_* "$1"/tests/fuzz/fuzz_*; do
    case ${program##*/} in test_crash | test_power | test_faults) continue ;; esac
    [ ! -f "$program" ] || [ ! -x "$program" ] || printf '%s\n' "$program"
done | xargs -n 1 -P "$(nproc)" "$0" --one
