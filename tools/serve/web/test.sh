#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Test the page in Debian's Chromium with the given `annal`: test.sh ANNAL [short | long]. Exit status 77: Node is too old.
set -eu
ANNAL=$(realpath "$1")
export ANNAL
cd "$(dirname "$0")"
./build.sh --check
case ${2:-short} in
short) node --test --test-reporter=spec test/model.test.mjs test/page.test.mjs test/places.test.mjs test/looks.test.mjs ;;
long) ALL_SIZES=1 node --test --test-reporter=spec test/long.test.mjs test/looks.test.mjs ;;
esac
