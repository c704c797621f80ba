#!/bin/sh
# valgrind.sh BUILD: every test program of a build without sanitizers, under memcheck. What a test forks
# is left alone: it mostly exists to be killed.
# The crash tests do nothing but fork, and count on the speed of what they kill: they are left out. So are
# those of power cuts and of faults, which open thousands of stores, all of them in the address sanitizer's
# run too.
set -eu
export ANNAL_TEST_QUICK=1
build=$1
report=$(mktemp)
trap 'rm -f "$report"' EXIT

under() {
    name=$(basename "$1")
    if CK_FORK=no timeout 1800 valgrind --quiet --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes \
        "$@" >"$report" 2>&1; then
        echo "$name: no errors. $(grep 'Checks:' "$report" || true)"
    else
        cat "$report"
        echo "$name: valgrind found errors, or the tests failed"
        exit 1
    fi
}

for program in "$build"/tests/*/test_*; do
    case ${program##*/} in test_crash | test_power | test_faults) continue ;; esac
    [ ! -f "$program" ] || [ ! -x "$program" ] || under "$program"
done
for program in "$build"/tests/fuzz/fuzz_*; do
    [ ! -x "$program" ] || under "$program" "tests/fuzz/corpus/${program##*/fuzz_}" 100
done
