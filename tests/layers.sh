#!/bin/sh
# Nothing looks up: a quoted include is the folder's own or journal/base/, and each third-party header
# has one home. (Public headers of other folders are kept in order by their CMakeLists.txt.)
set -eu
cd "$(dirname "$0")/.."

bad=$(mktemp)
trap 'rm -f "$bad"' EXIT
includes() {
    grep -rnE --include='*.[ch]' "^ *# *include *$1" journal index snapshot replay tools 2>/dev/null
}

for folder in journal index snapshot replay tools; do
    includes '"' | grep "^$folder/" |
        grep -v -e "include *\"$folder/" -e 'include *"journal/base/' >>"$bad" || true
done
includes '<sqlite3.*\.h>' | grep -v '^index/' >>"$bad" || true
includes '<zstd.*\.h>' | grep -v -e '^snapshot/' -e '^journal/artifact/frame\.c:' -e '^tools/import/unzst\.c:' >>"$bad" || true
includes '<sha2.*\.h>' | grep -v '^journal/base/sha256\.c:' >>"$bad" || true
includes '<xxh.*\.h>' | grep -v '^journal/base/hash\.c:' >>"$bad" || true
includes '<archive.*\.h>' | grep -v '^tools/export/tar\.c:' >>"$bad" || true
includes '<msgpack.*\.h>' | grep -v '^journal/base/msgpack\.c:' >>"$bad" || true

[ ! -s "$bad" ] || {
    echo "includes that do not belong where they stand:"
    cat "$bad"
    exit 1
}
