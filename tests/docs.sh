#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs.sh COMMAND BUILD CC: the examples of the pages work, and their names and links exist. Every C example compiles, the
# journal in format.md proves itself to the program beside it, and every command of README.md and guide.md runs.
set -eu
command=$1 build=$2 CC=$3
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-docs-XXXXXX")
trap 'rm -rf "$work"' EXIT

# block PAGE LANGUAGE N: the Nth block of a page in that language.
block() {
    awk -v fence="\`\`\`$2" -v n="$3" '
        /^```/ { inside = !inside && $0 == fence && ++met == n; if ($0 != "```") next }
        inside { print }' "docs/$1"
}

compile() {
    # shellcheck disable=SC2086 # words on purpose
    "$CC" ${CFLAGS:-} -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$work/$1" "$work/$1.c" \
        -Ijournal/include -Iindex/include -Isnapshot/include -Ireplay/include \
        -L"$build" -lannal -lxxhash -Wl,-rpath,"$build"
}

block format.md c 1 >"$work/check.c"
block format.md jsonl 1 >"$work/journal"
compile check
"$work/check" <"$work/journal"
sed '3s/make/mAke/' "$work/journal" | "$work/check" >"$work/out" || true
grep -q "^line 3 does" "$work/out"

# Other shells may be missing; their commands are not ours to test.
cat >"$work/missing" <<'END'
command -v jq >/dev/null || jq() { cat; }
command -v sqlite3 >/dev/null || sqlite3() { :; }
[ -x /usr/bin/python3 ] || python3() { :; }
END
# DuckDB's library may be missing, too.
for library in "$PWD"/build/duckdb/node_modules/@duckdb/*/libduckdb.so; do
    [ -n "${ANNAL_DUCKDB:-}" ] || [ ! -e "$library" ] || export ANNAL_DUCKDB="$library"
done
[ -n "${ANNAL_DUCKDB:-}" ] || {
    echo "SKIPPED: the commands with --format parquet: no DuckDB here: run cmake/duckdb.sh" >&2
    # shellcheck disable=SC2016 # words on purpose
    echo 'annal() { case " $* " in *" --format parquet "*) ;; *) command annal "$@" ;; esac; }' >>"$work/missing"
}
# They load code with sanitizers, without having sanitizers themselves; only AddressSanitizer can be preloaded.
case ${CFLAGS:-} in
*thread*) echo 'sqlite3() { :; }; python3() { :; }' ;;
*address*)
    libasan=$("$CC" -print-file-name=libasan.so)
    for program in sqlite3 /usr/bin/python3; do
        [ -z "$(command -v $program)" ] ||
            echo "${program##*/}() { ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$libasan command $program \"\$@\"; }"
    done
    ;;
*) echo 'python3() { /usr/bin/python3 "$@"; }' ;;
esac >>"$work/missing"
mkdir "$work/bin"
ln -s "$command" "$work/bin/annal"

# run PAGE [DIR]: its commands for the shell, in DIR and in a store of its own; a tail that would wait without end is
# killed at the end.
run() {
    rm -rf "$work/first"
    cp "$work/missing" "$work/commands"
    awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1" |
        sed 's/^\(annal tail .*\) --follow/\1/' >>"$work/commands"
    (cd "${2:-.}" && PATH=$work/bin:$PATH TMPDIR=$work ANNAL_STORE=$work/first sh -eu "$work/commands") >"$work/out" 2>&1 || {
        echo "$1:"
        tail -n 20 "$work/out"
        exit 1
    }
}
run README.md
run docs/guide.md
block packs.md sql 1 >"$work/tools_per_day.sql"
block packs.md sql 2 >"$work/tasks.sql"
block packs.md sql 3 >"$work/chores.sql"
block packs.md text 1 >"$work/tools_per_day.test"
block packs.md text 2 >"$work/chores.test"
run docs/packs.md "$work"
for page in docs/packs/*.md; do
    run "$page"
done

# section PAGE HEADING: its lines.
section() {
    awk -v heading="## $2" '/^## /{ inside = index($0, heading) == 1 } inside' "docs/packs/$1.md"
}

# spans: what is in backquotes, one a line.
spans() {
    # shellcheck disable=SC2016 # backquotes on purpose
    grep -oE '`[^`]+`' | tr -d '`'
}

# pack_page PAGE PACK...: the page has each verb of these packs and its event, and no event that they do not handle.
pack_page() {
    page=$1
    shift
    for folder; do
        cat index/packs/"$folder"/*.sql*
    done >"$work/pack"
    sed -nE 's/^-- verb ([^ ]+) ([^ ]+) .*/\1 \2/p' "$work/pack" >"$work/verbs"
    section "$page" Verbs | spans | tr ' ' '\n' >"$work/words" || true
    while read -r noun verb; do
        grep -qx -e "$noun" "$work/words" && grep -qx -e "$verb" "$work/words" ||
            echo "docs/packs/$page.md: annal $noun $verb is missing"
    done <"$work/verbs"
    section "$page" Verbs | spans | sed -nE 's/^annal ([a-z]+) ([a-z-]+).*/\1 \2/p' | while read -r noun verb; do
        ! grep -q -e "^$noun " "$work/verbs" || grep -qx -e "$noun $verb" "$work/verbs" ||
            echo "docs/packs/$page.md: there is no annal $noun $verb"
    done
    # In the first column; `.deleted` after `project.created` is project.deleted.
    section "$page" Events | grep '^| ' | cut -d'|' -f2 | spans |
        awk '/^\./ { sub(/\..*/, "", last); $0 = last $0 } { print; last = $0 }' | sort -u >"$work/types"
    sed -nE 's/^-- (on|fill) //p' "$work/pack" | sed -E 's/ (guarded|reads) .*//' | tr -s ', ' '\n' | sort -u >"$work/handled"
    sed -nE 's/^-- verb .* appends ([^ ]+) .*/\1/p' "$work/pack" | sort -u | comm -23 - "$work/types" |
        sed "s|^|docs/packs/$page.md: this event is missing: |"
    comm -23 "$work/types" "$work/handled" | sed "s|^|docs/packs/$page.md: no pack handles this event: |"
}
# A page is about the packs in its title. Lists of packs link each page.
{
    for folder in index/packs/*/; do
        pack=$(basename "$folder")
        grep -lE "^# Packs? (.* )?$pack( |$)" docs/packs/*.md >/dev/null || echo "docs/packs/$pack.md is missing"
        grep -q "^| \`$pack/\` |" index/packs/README.md || echo "index/packs/README.md: $pack is missing"
    done
    for path in docs/packs/*.md; do
        page=$(basename "$path" .md)
        [ "$page" != README ] || continue
        # shellcheck disable=SC2046 # words on purpose
        pack_page "$page" $(sed -nE '1{s/^# Packs? //; s/ and / /g; p; q; }' "$path")
        for list in docs/packs.md docs/packs/README.md; do
            grep -q "($page.md)\|(packs/$page.md)" "$list" || echo "$list: $page.md is missing"
        done
    done
    # Names of tables of other packs have a point.
    echo 1 | "$command" append run-1 --type n --store "$work/core" >/dev/null
    "$command" schema --store "$work/core" | sed -nE 's/^([a-z_]+) +(table|view|virtual) +/\1 /p' | sort >"$work/tables"
    # shellcheck disable=SC2016 # backquotes on purpose
    section core Columns | sed -nE 's/^\| `([^`]+)` \| `([^`]+)` \|$/\1 \2/p' | sort | comm -23 - "$work/tables" |
        sed 's/^/docs\/packs\/core.md: annal schema has other columns: /'
    section core Tables | spans | sort -u >"$work/words"
    cut -d' ' -f1 "$work/tables" | comm -23 - "$work/words" | sed 's/^/docs\/packs\/core.md: this table is missing: /'
} >"$work/out"
[ ! -s "$work/out" ] || {
    cat "$work/out"
    exit 1
}

n=1
while block guide.md c $n >"$work/example.c" && [ -s "$work/example.c" ]; do
    compile example
    "$work/example" "$work/store" >/dev/null
    n=$((n + 1))
done
[ $n -gt 1 ]

block reducers.md c 1 >"$work/reducers.c"
compile reducers
block reducers.md jsonl 1 | "$command" --store "$work/second" append run-1 >"$work/out"
"$work/reducers" "$work/second" run-1 >"$work/out"
block reducers.md text 1 | cmp - "$work/out"

# The shell waits for a lock only with a timeout.
grep '^sqlite3 ' docs/packs/prose.md >"$work/shells"
if grep -v '\.timeout 5000' "$work/shells"; then
    echo "docs/packs/prose.md: this command of the shell needs .timeout 5000"
    exit 1
fi

folders="journal index snapshot replay tools bindings tests"
# npm puts pages of its own below tools/serve/web.
# shellcheck disable=SC2086 # words on purpose
find docs $folders README.md -name node_modules -prune -o -name '*.md' -print >"$work/pages"
# shellcheck disable=SC2016,SC2086 # words and backquotes on purpose
xargs cat <"$work/pages" |
    grep -oE '`((journal|index|snapshot|replay|tools|tests|docs)/[a-z0-9_/-]+\.(c|h|sql|md|sh)|annal_?_[a-z0-9_]+\(\))`' |
    tr -d '`()' | sort -u | while read -r name; do
    case $name in
    */*) [ -e "$name" ] || echo "there is no $name" ;;
    *) grep -rqw --include='*.[ch]' "$name" $folders || echo "nothing is called $name" ;;
    esac
done >"$work/out"
# Pages that other pages lead to.
while read -r page; do
    grep -oE '\]\([^):#]+' "$page" | sed 's/^](//' | sort -u | while read -r target; do
        [ "$target" = https ] || [ -e "$(dirname "$page")/$target" ] || echo "$page leads to $target, which is not there"
    done
done <"$work/pages" >>"$work/out"
# The tests that failures.md and limits.md name: words with three underscores or more.
# shellcheck disable=SC2016 # backquotes on purpose
grep -ohE '`[a-z0-9]+(_[a-z0-9]+){3,}`' docs/failures.md docs/limits.md | tr -d '`' | sort -u |
    while read -r name; do
        grep -rq --include='*.c' "START_TEST($name)" tests ||
            grep -qx "== $(echo "$name" | tr _ ' ')" tests/packs/cases/*.test tests/commands/*.test || echo "there is no test $name"
    done >>"$work/out"
[ ! -s "$work/out" ] || {
    cat "$work/out"
    exit 1
}
