#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of the functions is what the headers say, every function has a comment, and all of them fit one page.
set -eu
cd "$(dirname "$0")/.."

page=$(mktemp)
trap 'rm -f "$page"' EXIT
docs/api/functions.sh >"$page"
diff -u docs/api/README.md "$page" || {
    echo "the page is not what the headers say: docs/api/functions.sh >docs/api/README.md"
    exit 1
}
count=$(grep -c '^| `annal_' "$page")
[ "$count" -le 125 ] || {
    echo "$count public functions: 125 are what one can look over"
    exit 1
}
