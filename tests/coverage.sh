#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh BUILD: run the tests of a build with --coverage, then say what of journal/ they reach: lines and
# branches of each file, and the lines that have a branch which no test takes.
set -eu
build=$1
find "$build" -name '*.gcda' -delete
memory=${TMPDIR:-/dev/shm} # nothing that fails there asks for a power cut

# A test that fails is the business of make test; what it reached counts all the same.
# Programs that run as another user cannot write their counts, and print a message about it: a few tests of the command
# fail because of that.
export CK_FORK=no GCOV_ERROR_FILE=/dev/null CK_MAX_MSG_SIZE=1000000
ctest --test-dir "$build" --output-on-failure --parallel 2 \
    --tests-regex '^(journal|crash|power|index|snapshot|replay|replay_logs|tools)[.]' || echo "coverage.sh: not every test passed"
TMPDIR=$memory CK_RUN_SUITE=faults ANNAL_FAULTS=calls "$build/tests/crash/test_faults" || echo "coverage.sh: not every fault is borne"

# An assertion that fails ends the process: its other branch is a bug of ours, and has no test.
report() {
    gcovr --root . --filter journal/ --exclude-branches-by-pattern '.*ANNAL_ASSERT\(.*' "$@" "$build/journal"
}
report --txt "$build/lines.txt"
report --branches --txt "$build/branches.txt"
cat "$build/lines.txt" "$build/branches.txt"
echo "journal/: $(awk '/^TOTAL/ { print $4 }' "$build/lines.txt") of lines, $(awk '/^TOTAL/ { print $4 }' \
    "$build/branches.txt") of branches; docs/testing.md says what is left out, and why"
