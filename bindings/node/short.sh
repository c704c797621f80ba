#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# short.sh [FILE…]: the tests in their short form, on Node 22, with the library of build/release. About 20 seconds.
set -eu
cd "$(dirname "$0")"
export LIBANNAL_BUILT=build/release
./build.sh || exit $?
exec ./run.sh 22 "$@"
