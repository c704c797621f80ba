#!/bin/sh
# test.sh [PYTEST ARGUMENTS]: build the wheel, install it into a virtual environment of its own, and run the tests
# against it, with mypy. All of it is in build/python. PYTHON: the interpreter; default: python3.
set -eu
cd "$(dirname "$0")/../.."
work=$PWD/build/python
requirements=bindings/python/tests/requirements.txt

[ -x "$work/venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$work/venv"
if ! cmp -s "$requirements" "$work/venv/requirements.txt"; then
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$work/venv/"
fi
PATH=$work/venv/bin:$PATH

rm -rf "$work/dist"
pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings="build-dir=$work/{wheel_tag}" -w "$work/dist" bindings/python
pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$work"/dist/*.whl

cd bindings/python
mypy --cache-dir "$work/mypy"
exec pytest -q -o cache_dir="$work/pytest" "$@"
