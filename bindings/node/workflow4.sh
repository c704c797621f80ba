#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# workflow4.sh: the tests of the World of the Workflow SDK with the packages of 4.x, which most people have. Run build.sh
# first. Ends with 77 if npm cannot download them.
set -eu
cd "$(dirname "$0")/../.."
dev=$PWD/build/node/dev
place=$PWD/build/node/workflow4
node=$dev/node_modules/node-22/bin
mkdir -p "$place"
echo '{ "private": true }' >"$place/package.json"
npm install --prefix "$place" --legacy-peer-deps --ignore-scripts --no-audit --no-fund workflow@4.8.9 @workflow/world@4.5.0 \
    @workflow/world-local@4.4.1 @workflow/errors@4.2.1 >"$place/npm.log" 2>&1 || {
    cat "$place/npm.log"
    echo "SKIPPED: npm cannot get the Workflow SDK 4"
    exit 77
}
rm -rf "$place/node_modules/libannal" "$place/tests" "$place/workflows"
cp -r "$dev/node_modules/libannal" "$place/node_modules/"
mkdir "$place/tests" "$place/workflows"
cp bindings/node/tests/helpers.mjs bindings/node/tests/workflow.test.mjs "$place/tests/"
cp bindings/node/tests/workflow4/server.mjs "$place/"
cp bindings/node/tests/workflow4/fly.ts "$place/workflows/"
cd "$place"
PATH=$node:$PATH
node --test --test-timeout=600000 --test-reporter=dot tests/workflow.test.mjs
node_modules/.bin/workflow build >build.log 2>&1 || {
    cat build.log
    exit 1
}
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
node server.mjs "$store" 2>server.log || {
    cat server.log
    exit 1
}
