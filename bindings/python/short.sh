#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# short.sh: the tests in their short form: with the library as build/release has it, without those that are marked long, and
# without mypy, which takes minutes where it has no cache. About 20 seconds on two cores.
set -eu
cd "$(dirname "$0")"
LIBANNAL_BUILT=build/release ./install.sh

work=$(cd ../.. && pwd)/build/python
PATH=$work/venv/bin:$PATH
exec pytest -q -m 'not long' -o cache_dir="$work/pytest"
