#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh: build the wheel, and install it into a virtual environment with all that its tests need, build/python/venv.
# install.sh --packages: only what its tests need.
# PYTHON: the interpreter; default: python3. LIBANNAL_BUILT: a build directory of the library (build/release), whose
# libannal.a is taken instead of building it once more.
set -eu
cd "$(dirname "$0")/../.."
work=$PWD/build/python
requirements=bindings/python/tests/requirements.txt

[ -x "$work/venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$work/venv"
if ! cmp -s "$requirements" "$work/venv/requirements.txt"; then
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$work/venv/"
fi
[ "${1:-}" != --packages ] || exit 0
PATH=$work/venv/bin:$PATH

rm -rf "$work/dist"
pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --config-settings="build-dir=$work/{wheel_tag}" \
    --config-settings="cmake.define.LIBANNAL_BUILT=${LIBANNAL_BUILT:+$PWD/$LIBANNAL_BUILT}" \
    -w "$work/dist" bindings/python
pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$work"/dist/*.whl
