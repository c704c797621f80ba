#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh ANNAL: annal serve --streams, judged by the conformance suite and by the client of Durable Streams. Needs node and npm.
set -eu
annal=$(realpath "$1")
tests=$(cd "$(dirname "$0")" && pwd)
work=$tests/../../build/streams
mkdir -p "$work"
cd "$work"
cp "$tests/package.json" "$tests/run.mjs" "$tests/suite.test.mjs" .
npm install --ignore-scripts --no-audit --no-fund --silent
node run.mjs "$annal" "$tests/expected.yml"
