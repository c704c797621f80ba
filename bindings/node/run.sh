#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh VERSION [FILE…]: type-check the package and run its tests on this major version of Node. Run build.sh first.
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
cp bindings/node/README.md bindings/python/tests/names.tsv bindings/python/tests/steps.tsv bindings/python/tests/meaning.json docs/node.md docs/node-frameworks.md "$dev/tests/"
cd "$dev"
export LIBANNAL_TARBALL="$PWD/../dist" TMPDIR="${TMPDIR:-/tmp}"
PATH=$(dirname "$node"):$PATH
export NO_COLOR=1
node_modules/.bin/tsc --project tests/tsconfig.json
node_modules/.bin/tsc --project tests/types/loose
suites=
if [ $# -eq 0 ]; then
    "$node" node_modules/vitest/vitest.mjs run --config tests/vitest.config.mjs >suites.log 2>&1 &
    suites=$!
    set -- tests/*.test.mjs
fi
"$node" --expose-gc --test --test-timeout=600000 --test-reporter=dot "$@"
[ -n "$suites" ] || exit 0
# A suite of others prints how many of its tests ran. One that was skipped is a failure.
if ! wait "$suites" || ! grep -E '^ +Tests +[0-9]+ passed \([0-9]+\)' suites.log; then
    cat suites.log
    exit 1
fi
