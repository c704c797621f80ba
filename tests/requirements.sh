#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# requirements.sh COMMAND: every requirement has exactly one row in requirements.md, and what a row names in
# backquotes is there: files and folders, functions, tests, verbs.
set -eu
command=$1
cd "$(dirname "$0")/.."
page=tests/requirements.md

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-requirements-XXXXXX")
trap 'rm -rf "$work"' EXIT

# The ids of the five documents and of the brief.
for range in B-9 G-50 L-63 T-33 P-43 A-87; do
    i=1
    while [ $i -le "${range#*-}" ]; do
        echo "${range%-*}-$i"
        i=$((i + 1))
    done
done | sort >"$work/ids"
sed -n 's/^| \([A-Z]-[0-9]*\) | .*/\1/p' "$page" | sort >"$work/rows"
comm -23 "$work/ids" "$work/rows" | sed 's/$/ has no row/' >"$work/out"
comm -13 "$work/ids" "$work/rows" | sed 's/$/ is no requirement, or has two rows/' >>"$work/out"
awk -F' \\| ' '/^\| [A-Z]-[0-9]+ / && length($3) < 4 { print $1 " says nowhere where" }' "$page" >>"$work/out"

{
    grep -rhoE --include='*.c' 'START_TEST\([a-z0-9_]+\)' tests | sed 's/.*(\(.*\))/\1/'
    sed -n 's/^== //p' tests/packs/cases/*.test tests/commands/*.test | tr ' ' '_'
} | sort -u >"$work/tests"
folders="journal index snapshot replay tools tests docs"
# What is in backquotes, one a line: a path has a slash, a test three underscores, a verb begins with annal.
# shellcheck disable=SC2016 # backquotes on purpose
grep -E '^\| [A-Z]-[0-9]' "$page" | grep -oE '`[^`]+`' | tr -d '`' | sort -u >"$work/named"
while read -r name; do
    case $name in
    "annal "*)
        # shellcheck disable=SC2086 # words on purpose
        set -- ${name#annal }
        second=${2:-}
        [ "${second#-}" = "$second" ] || second=
        "$command" help "$1" ${second:+"$second"} >"$work/help" 2>&1 || {
            # A verb of one word: the second is an operand that its help knows.
            "$command" help "$1" >"$work/help" 2>&1 && grep -qw -e "$second" "$work/help" ||
                echo "there is no verb '$name'"
        }
        for word; do
            [ "${word#--}" = "$word" ] || grep -q -e "$word" "$work/help" || echo "no $word in '$name'"
        done
        ;;
    */*)
        path=${name%/}
        case ${path%%/*} in
        journal | index | snapshot | replay | tools | tests | docs | cmake)
            [ -e "$path" ] || echo "there is no $name" ;;
        esac
        ;;
    *"()")
        # shellcheck disable=SC2086 # words on purpose
        grep -rqw --include='*.[ch]' "${name%()}" $folders || echo "nothing is called $name"
        ;;
    *_*_*_*)
        grep -qxF "$name" "$work/tests" || grep -rqw --include='*.sql' "$name" index/packs ||
            echo "there is no test $name"
        ;;
    esac
done <"$work/named" >>"$work/out"

[ ! -s "$work/out" ] || {
    cat "$work/out"
    exit 1
}
