#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# manual.sh ANNAL-MANUAL: docs/annal.1 is what the tables of the verbs and tools/manual/annal.1.in say.
set -eu
cd "$(dirname "$0")/.."

page=$(mktemp)
trap 'rm -f "$page"' EXIT
"$1" <tools/manual/annal.1.in >"$page"
diff -u docs/annal.1 "$page" || {
    echo "the manual page is not what the tables of the verbs say: make man"
    exit 1
}
