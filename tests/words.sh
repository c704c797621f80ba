#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of tests are sentences, without ids of documents that are not in the tree; what users read (texts of the product,
# pages) has none of the words that the project wore out; and each source names its license.
set -eu
cd "$(dirname "$0")/.."

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

grep -rnE --include='*.c' 'START_TEST\(([a-z]+_)?[a-z]{1,2}[0-9]+_' tests >>"$bad" || true

worn='\b(stands?|stood|anew|for ever|whoever|to be had|(is|are) told|(it|and) is none|is none (of|that))\b'
grep -rnE --include='*.[ch]' --include='*.sql' --include='*.py' "\"[^\"]*$worn" \
    journal index snapshot replay tools bindings >>"$bad" || true
grep -nE "$worn" README.md docs/*.md docs/packs/*.md docs/api/*.md tools/manual/annal.1.in |
    grep -v 'decisions/[-0-9a-z]*\.md' >>"$bad" || true

grep -rL --include='*.[ch]' --include='*.sql' --include='*.py' --include='*.sh' --include='*.ts' --include='*.tsx' \
    --exclude-dir=data --exclude-dir=node_modules --exclude-dir='v[0-9]*' 'SPDX-License-Identifier: Apache-2.0' \
    journal index snapshot replay tools bindings cmake docs tests | sed 's/$/: no line "SPDX-License-Identifier"/' >>"$bad" || true

[ ! -s "$bad" ] || {
    echo "names of tests with ids, worn-out words, or no license: write subject, verb, object, and the usual word"
    cat "$bad"
    exit 1
}
