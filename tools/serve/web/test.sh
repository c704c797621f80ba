#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Test the page in Debian's Chromium with the given `annal`: test.sh ANNAL [short | long]. Exit status 77: Node is too old.
set -eu
ANNAL=$(realpath "$1")
export ANNAL
cd "$(dirname "$0")"
./build.sh --check
case ${2:-short} in
short)
    # Two browsers side by side, since each test mostly waits.
    beside=$(mktemp)
    trap 'rm -f "$beside"' EXIT
    node --test --test-reporter=spec test/model.test.mjs test/places.test.mjs test/looks.test.mjs >"$beside" 2>&1 &
    failed=0
    node --test --test-reporter=spec test/page.test.mjs || failed=1
    wait $! || failed=1
    cat "$beside"
    exit $failed
    ;;
long) ALL_SIZES=1 node --test --test-reporter=spec test/long.test.mjs test/looks.test.mjs ;;
esac
