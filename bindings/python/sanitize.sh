#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sanitize.sh [PYTEST ARGUMENTS]: the tests with a package that was built with the address and undefined sanitizers, in
# Python's development mode. Needs the virtual environment of install.sh; the package is in build/python/sanitized.
set -eu
cd "$(dirname "$0")/../.."
work=$PWD/build/python
PATH=$work/venv/bin:$PATH

rm -rf "$work/sanitized"
pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings="build-dir=$work/sanitizing-{wheel_tag}" --config-settings=cmake.build-type=Debug \
    --config-settings=cmake.define.ANNAL_SANITIZE=address,undefined --config-settings=install.strip=false \
    -w "$work/sanitized" bindings/python
pip install --quiet --disable-pip-version-check --no-deps --target "$work/sanitized" "$work"/sanitized/*.whl

cd bindings/python
# Python itself leaves memory to the end of the process. Python's own allocator would hide what is freed too early.
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:quarantine_size_mb=4 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc
export PYTHONPATH="$work/sanitized"
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    exec python -X dev -m pytest -q -o cache_dir="$work/pytest" "$@"
