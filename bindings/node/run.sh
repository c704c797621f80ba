#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh VERSION [FILE…]: type-check the package and run its tests on this major version of Node. build.sh comes before.
# LIBANNAL_FULL=1: in their long form.
set -eu
cd "$(dirname "$0")/../.."
dev=$PWD/build/node/dev
version=$1
shift
node=$dev/node_modules/node-$version/bin/node
[ -x "$node" ] || node=$(command -v node) # npm has no Node for this machine

rm -rf "$dev/tests"
cp -r bindings/node/tests "$dev/tests"
cp bindings/node/README.md bindings/python/tests/names.tsv docs/node.md "$dev/tests/"
cd "$dev"
export LIBANNAL_TARBALL="$PWD/../dist" TMPDIR="${TMPDIR:-/tmp}"
PATH=$(dirname "$node"):$PATH
node_modules/.bin/tsc --project tests/tsconfig.json
[ $# -gt 0 ] || set -- tests/*.test.mjs
exec "$node" --expose-gc --test --test-timeout=60000 --test-reporter=dot "$@"
