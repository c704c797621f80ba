#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What make test-cluster needs of PyPI, into build/cluster. Says nothing when it is there.
set -eu
cd "$(dirname "$0")/../.."
wanted=tests/ship/requirements.txt
! cmp -s $wanted build/cluster/requirements.txt || exit 0
echo "Installing servers and readers for the tests of shipping"
python3 -m venv build/cluster
build/cluster/bin/pip install --quiet --disable-pip-version-check -r $wanted
cp $wanted build/cluster/
