#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [FILE…]: build the package with a library of its own, and run the tests on each version of Node that it supports.
set -eu
cd "$(dirname "$0")"
./build.sh || exit $?
for version in 22 24 26; do
    ./run.sh "$version" "$@"
done
