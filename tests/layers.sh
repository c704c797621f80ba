#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No folder includes a header of a folder above it. A quoted include names a header of its own folder, of journal/base/, or of
# the sys/ of a folder below; between the rooms of a folder it goes down. Each third-party header is included in a single
# place. (CMakeLists.txt limits the public headers of other folders.)
set -eu
cd "$(dirname "$0")/.."

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT
includes() {
    grep -rnE --include='*.[ch]' "^ *# *include *$1" journal index snapshot replay tools 2>/dev/null
}

below='journal/base'
for folder in journal index snapshot replay tools; do
    includes '"' | grep "^$folder/" | grep -vE "include *\"($folder|$below)/" >>"$bad" || true
    below="$below|$folder/sys"
done

# uses ROOM ROOM…: the first may include what is in itself and in the others, of the rooms of its folder.
uses() {
    room=$1
    pattern=$(printf '|%s/[^/"]*"' "$@")
    includes '"' | grep "^$room/[^/]*:" | grep "include *\"${room%%/*}/" |
        grep -vE "include *\"(${pattern#|}|journal/base/|${room%%/*}/sys/)" >>"$bad" || true
}
uses journal
uses journal/sys
uses journal/base
uses journal/artifact
uses index index/db index/follow index/pack index/search
uses index/sys
uses index/db
uses index/follow index/db
uses index/pack index index/db index/follow
uses index/guard index index/db index/follow index/pack
uses index/query index index/db index/follow
uses index/state index index/db index/pack
uses index/search index index/db index/follow index/query
uses index/import index/db
uses index/backup index index/pack
uses index/packs/memory index/packs
uses index/packs/agentweaver index/packs
uses index/packs/lionagi index/packs
uses index/packs
uses tools/load
uses tools/cli
uses tools/show tools/cli
uses tools/manual tools/cli
uses tools/plot tools/cli tools/show
uses tools/source tools/cli
uses tools/import tools/cli tools/show tools/source
uses tools/export tools/cli tools/show tools/source tools/otlp
uses tools/verbs tools/cli tools/show
uses tools/report tools/cli tools/show tools/plot tools/export tools/import tools/source
uses tools/append tools/cli
uses tools/otlp tools/cli
uses tools/mcp tools/cli tools/show
uses tools/acp tools/cli tools/show
uses tools/serve tools/append tools/otlp tools/mcp tools/cli tools/show tools/export tools/import tools/report
uses tools/ship tools/cli tools/export tools/show
uses tools/cmd tools/append tools/cli tools/show tools/plot tools/source tools/import tools/export tools/report tools/ship

# Bindings include installed headers and their own. Where the process has a second SQLite, they set the locks of ours; and they
# hash names.
grep -rnE --include='*.[ch]' '^ *# *include *["<]' bindings |
    grep -vE -e '^bindings/python/native/(locks|name)\.c:' -e '^bindings/node/tests/failing_sync\.c:' -e '^bindings/node/native/[a-z_]+\.[ch]:[0-9]+:#include <(node_api|pthread|poll|signal|unistd|sys/(eventfd|stat))\.h>' -e 'include *<(annal/[a-z_/]+|std[a-z]+|string)\.h>' -e 'include *"native\.h"' >>"$bad" || true

includes '<sqlite3.*\.h>' | grep -v '^index/' >>"$bad" || true
includes '<zstd.*\.h>' |
    grep -v -e '^snapshot/' -e '^journal/artifact/artifact_frame\.c:' -e '^tools/import/unzst\.c:' -e '^tools/source/copies_zstd\.c:' \
        -e '^index/import/import_functions\.c:' >>"$bad" || true
includes '<sha2.*\.h>' | grep -v '^journal/base/sha256\.c:' >>"$bad" || true
includes '<xxh.*\.h>' | grep -v '^journal/base/hash\.c:' >>"$bad" || true
includes '<loaded/archive\.h>' | grep -v -e '^tools/export/tar\.c:' -e '^tools/import/archive\.c:' >>"$bad" || true
includes '<loaded/zlib\.h>' | grep -v '^tools/otlp/gzip\.c:' >>"$bad" || true
includes '<loaded/mhd\.h>' | grep -v '^tools/serve/http\.c:' >>"$bad" || true
includes '<loaded/nats\.h>' | grep -v '^tools/ship/nats' >>"$bad" || true
includes '<loaded/curl\.h>' | grep -v '^tools/ship/curl_handle\.h:' >>"$bad" || true
includes '<loaded/pq\.h>' | grep -v '^tools/ship/postgres\.h:' >>"$bad" || true
includes '<msgpack.*\.h>' | grep -v '^journal/base/msgpack\.c:' >>"$bad" || true

# Headers of journal/ do not show the whole store, and the commit and what is below it do not see it.
includes '"journal/store\.h"' |
    grep -E '^journal/([a-z_]+\.h|(checkpoint|commit|commit_stop|events_dir|failure|failure_late|keeper_wake|level_os|metrics|recover|session|session_file|slot_log|torn_tail|wakeup_page)\.c):' >>"$bad" || true

# One function opens SQLite, so that each connection is restricted.
grep -rnE --include='*.[ch]' 'sqlite3_open(_v2|16)?\(' journal index snapshot replay tools bindings |
    grep -vE '^index/db/connect\.c:|: \*' >>"$bad" || true

[ ! -s "$bad" ] || {
    echo "includes or calls that do not belong in their file:"
    cat "$bad"
    exit 1
}
