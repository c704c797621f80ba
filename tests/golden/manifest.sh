#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Check that the golden files are unchanged: every file of DIR is in its MANIFEST, with this hash.
#
#     manifest.sh DIR             check
#     manifest.sh --write DIR     once, when DIR is created
set -euo pipefail
list() {
    (cd "$1" && find . -type f ! -name MANIFEST -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}
if [ "$1" = --write ]; then
    [ ! -e "$2/MANIFEST" ] || { echo "$2 has a manifest: golden files are never rewritten" >&2; exit 1; }
    list "$2" >"$2/MANIFEST"
else
    list "$1" | diff "$1/MANIFEST" - || { echo "$1: golden files are never rewritten" >&2; exit 1; }
fi
