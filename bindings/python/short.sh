#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# short.sh: the tests in their short form: with the library of build/release, without tests that are marked long, and without
# mypy, which takes minutes without its cache. About 20 seconds on two cores.
set -eu
cd "$(dirname "$0")"
LIBANNAL_BUILT=build/release ./install.sh

work=$(cd ../.. && pwd)/build/python
PATH=$work/venv/bin:$PATH
exec pytest -q -m 'not long' -o cache_dir="$work/pytest"
