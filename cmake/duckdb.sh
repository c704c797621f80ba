#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# DuckDB's library for the tests, into build/duckdb. Prints nothing if it is present, and fails if npm cannot download it;
# the tests that need it then say that they were skipped.
set -eu
cd "$(dirname "$0")/.."
pin=tests/duckdb/package-lock.json
[ ! -e build/duckdb/node_modules ] || ! cmp -s "$pin" build/duckdb/package-lock.json || exit 0
echo "Installing DuckDB's library"
rm -rf build/duckdb
mkdir -p build/duckdb
cp tests/duckdb/package.json "$pin" build/duckdb/
# The packages of other machines are left out by npm, and so is one that it cannot get.
npm ci --prefix build/duckdb --ignore-scripts --no-audit --no-fund >build/duckdb/log 2>&1 || true
for library in build/duckdb/node_modules/@duckdb/*/libduckdb.so; do
    [ ! -e "$library" ] || exit 0
done
cat build/duckdb/log
rm -rf build/duckdb
exit 1
