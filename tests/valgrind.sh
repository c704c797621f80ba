#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh BUILD: the suites of the library and the corpora of the fuzzers under memcheck, in a build without sanitizers,
# one for each core. Children that a test forks are not checked: most exist to be killed. Neither are the suites of the
# command, which only fork, and the suites of crashes, which open thousands of stores; the address sanitizer checks them all.
set -eu
export ANNAL_TEST_QUICK=1

if [ "$1" = --one ]; then
    build=$2 name=$3 folder=${3%%.*}
    case $name in
    fuzz_*) set -- "$build/tests/fuzz/$name" "tests/fuzz/corpus/${name#fuzz_}" 100 ;;
    *) set -- "$build/tests/$folder/test_$folder" "${name#*.}" ;;
    esac
    report=$(mktemp)
    trap 'rm -f "$report"' EXIT
    if CK_FORK=no timeout 1500 valgrind --quiet --error-exitcode=9 --leak-check=full \
        --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes \
        "$@" >"$report" 2>&1; then
        echo "$name: no errors. $(grep 'Checks:' "$report" || true)"
        exit 0
    fi
    cat "$report"
    echo "$name: valgrind found errors, or the tests failed"
    exit 255 # the others need not begin
fi

ctest --test-dir "$1" --show-only | sed -n 's/^ *Test *#[0-9]*: //p' |
    grep -E '^(journal|artifact|index|packs|snapshot|replay|replay_logs|golden)[.]|^fuzz_' |
    xargs -n 1 -P "$(nproc)" "$0" --one "$1"
