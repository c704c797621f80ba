#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh ANNAL [SEED]: annal acp with 100 kills and 3,000 damaged messages, and with the official client and an official agent.
# Needs node, npm and python3.
set -eu
annal=$(realpath "$1")
tests=$(cd "$(dirname "$0")" && pwd)
work=$tests/../../build/acp
mkdir -p "$work"
cd "$work"
cp "$tests/package.json" .
npm install --ignore-scripts --no-audit --no-fund --silent
"$tests/acp.py" "$annal" 100 3000 "${2:-1}"
node "$tests/sdk.mjs" "$annal"
