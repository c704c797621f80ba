#!/bin/sh
# test.sh [PYTEST ARGUMENTS]: build the wheel and install it (install.sh), and run the tests against it, with mypy. All of
# it is in build/python. The short form: LIBANNAL_BUILT=build/release test.sh -m 'not long'
set -eu
cd "$(dirname "$0")"
./install.sh

work=$(cd ../.. && pwd)/build/python
PATH=$work/venv/bin:$PATH
mypy --cache-dir "$work/mypy"
exec pytest -q -o cache_dir="$work/pytest" "$@"
