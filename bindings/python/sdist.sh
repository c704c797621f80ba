#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sdist.sh: the source distribution, build/python/dist/libannal-VERSION.tar.gz: this folder, and the library in annal/.
# Needs the virtual environment of test.sh.
set -eu
cd "$(dirname "$0")/../.."
work=$PWD/build/python
tree=$work/sdist

rm -rf "$tree"
mkdir -p "$tree/annal" "$work/dist"
git ls-files bindings/python | sed 's|^bindings/python/||' | tar -C bindings/python -cf - -T - | tar -C "$tree" -xf -
git ls-files CMakeLists.txt CMakePresets.json cmake docs/api journal index snapshot replay | tar -cf - -T - |
    tar -C "$tree/annal" -xf -
cd "$tree"
"$work/venv/bin/python" -c "
from scikit_build_core.build import build_sdist
print(build_sdist('$work/dist'))"
