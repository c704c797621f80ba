#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test.sh [PYTEST ARGUMENTS]: build the wheel and install it (install.sh), and run the tests against it, with mypy. All of
# it is in build/python. short.sh is the short form.
set -eu
cd "$(dirname "$0")"
./install.sh

work=$(cd ../.. && pwd)/build/python
PATH=$work/venv/bin:$PATH
mypy --cache-dir "$work/mypy"
exec pytest -q -o cache_dir="$work/pytest" "$@"
