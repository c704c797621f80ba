#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build the page into dist/. With --check, build into a temporary directory and compare it with the committed dist/. With
# --packages, only fetch what building needs. Exit status 77: no suitable Node is installed.
set -eu
cd "$(dirname "$0")"

node -e 'const [a, b] = process.versions.node.split(".").map(Number);
process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null || {
    echo "building the page needs Node 20.19 or newer, which is not installed" >&2
    exit 77
}
if [ ! -e node_modules ] || ! cmp -s package-lock.json node_modules/.from; then
    npm ci --ignore-scripts --no-audit --no-fund --silent
    cp package-lock.json node_modules/.from
fi
[ "${1:-}" != --packages ] || exit 0
npx tsc --noEmit
if [ "${1:-}" = --check ]; then
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    npx vite build --logLevel warn --outDir "$made" --emptyOutDir
    diff -rq "$made" dist || {
        echo "tools/serve/web/dist differs from a build of its sources: run 'make web' and commit it" >&2
        exit 1
    }
    bytes=$(cat dist/index.html dist/app.js dist/app.css dist/icon.svg | gzip -9 | wc -c)
    [ "$bytes" -le 122880 ] || {
        echo "the page is $bytes bytes compressed; 120 KiB are allowed" >&2
        exit 1
    }
else
    npx vite build --logLevel warn
fi
