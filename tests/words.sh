#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Check the words of the tree. Names of tests are sentences without ids of documents that are not in the tree. Texts for
# users have none of the worn-out words below. No file has more hits of fifteen habits of phrasing in 1,000 words than
# words.txt records, and names in backquotes exist (words.pl). Each source names its license. Pages have 100 columns, and
# texts of help 80.
#
# usage: words.sh [table|lower [PREFIX...]|list FILE...]
#        table: words and hits by group of text; list: the hits in FILE
#        lower: lower the recorded numbers, of files whose names begin with PREFIX
set -eu
cd "$(dirname "$0")/.."

habits() {
    find . \( -name .git -o -name 'build*' -o -name node_modules -o -name dist \) -prune -o -type f -print |
        sed 's,^\./,,' | perl tests/words.pl tests/words.txt "$@"
}
[ $# -eq 0 ] || {
    habits "$@"
    exit
}

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT

grep -rnE --include='*.c' 'START_TEST\(([a-z]+_)?[a-z]{1,2}[0-9]+_' tests >>"$bad" || true

worn='\b(stands?|stood|anew|for ever|whoever|to be had|(is|are) told|(it|and) is none|is none (of|that))\b'
grep -rnE --include='*.[ch]' --include='*.sql' --include='*.py' "\"[^\"]*$worn" \
    journal index snapshot replay tools bindings >>"$bad" || true
grep -nE "$worn" README.md docs/*.md docs/packs/*.md docs/api/*.md tools/manual/annal.1.in tools/help/*.txt |
    grep -v 'decisions/[-0-9a-z]*\.md' >>"$bad" || true

grep -rL --include='*.[ch]' --include='*.sql' --include='*.py' --include='*.sh' --include='*.ts' --include='*.tsx' \
    --exclude-dir=data --exclude-dir=node_modules --exclude-dir='v[0-9]*' 'SPDX-License-Identifier: Apache-2.0' \
    journal index snapshot replay tools bindings cmake docs tests | sed 's/$/: no line "SPDX-License-Identifier"/' >>"$bad" || true

# Markdown has at most 100 columns, except in tables and code.
# shellcheck disable=SC2016 # variables of perl
find . \( -name .git -o -name 'build*' -o -name node_modules -o -name dist -o -path ./tests/data \) -prune -o -name '*.md' -print0 |
    xargs -0 perl -CSD -ne '
        $code = 0 if $. == 1;
        $code = !$code if /^\s*```/;
        print "$ARGV:$.: more than 100 columns\n" if !$code && !/^\s*\|/ && length > 101;
        close ARGV if eof' >>"$bad" || true

# The help of a verb has at most 80 columns (tools.args checks the text that is printed).
# shellcheck disable=SC2016 # variables of perl
perl -CSD -ne 'print "$ARGV:$.: ", length() - 1, " columns, more than 80\n" if length > 81; close ARGV if eof' \
    tools/help/*.txt >>"$bad" || true

habits >>"$bad" || true

[ ! -s "$bad" ] || {
    echo "write subject, verb, object, and the usual word; 'tests/words.sh list FILE' shows the hits in a file"
    cat "$bad"
    exit 1
}
