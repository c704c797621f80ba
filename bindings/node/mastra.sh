#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mastra.sh: Mastra's own tests of memory and workflows on the adapter, with Node 22. They are not on npm: MASTRA is a clone of
# mastra-ai/mastra, of the version that tests/package.json names. Run build.sh first. Ends with 77 without MASTRA.
set -eu
cd "$(dirname "$0")/../.."
suites=${MASTRA:+$MASTRA/stores/_test-utils/src}
if [ ! -d "${suites:-/nowhere}/domains/memory" ]; then
    echo "SKIPPED: set MASTRA to a clone of mastra-ai/mastra, whose stores/_test-utils has the tests"
    exit 77
fi
suites=$(cd "$suites" && pwd)
dev=$PWD/build/node/dev
place=$dev/mastra
rm -rf "$place"
mkdir "$place"
cp -r "$suites" "$place/suites"
cp bindings/node/tests/mastra/* "$place/"
cd "$dev"
PATH=$dev/node_modules/node-22/bin:$PATH
NO_COLOR=1 exec node node_modules/vitest/vitest.mjs run --config mastra/vitest.config.mjs
