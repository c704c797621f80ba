#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# symbols.sh LIBANNAL.A LIBANNAL.SO ANNAL [ANNAL_SQLITE.SO]: no global mutable state, nothing shown that is not public, and
# no library linked that few need.
set -eu

# .data.rel.ro is constant: pointers that the loader fills in. __odr_asan is the sanitizer's own.
mutable=$(objdump -t "$1" | grep -E ' \.(t?data|t?bss)[.[:space:]]' |
    grep -v -e '\.data\.rel\.ro' -e ' d  ' -e __odr_asan || true)
[ -z "$mutable" ] || {
    echo "variables that outlive a call:"
    echo "$mutable"
    exit 1
}

shown=$(nm --dynamic --defined-only "$2" | awk '$3 !~ /^annal_[a-z]/ && $3 !~ /asan/ { print $3 }')
[ -z "$shown" ] || {
    echo "symbols of the shared library that are not public:"
    echo "$shown"
    exit 1
}

# Every library that the loader loads costs time at each start: tools/load/library.h.
needed=$(objdump -p "$2" "$3" | awk '$1 == "NEEDED" { print $2 }' |
    grep -vE '^lib(annal|sqlite3|zstd|xxhash|md|utf8proc|m|c|pthread|[atu]b?san|gcc_s|rt|dl)\.so|^ld-linux' || true)
[ -z "$needed" ] || {
    echo "libraries that not every verb needs:"
    echo "$needed"
    exit 1
}

# The extension exports only its entry point, and uses the SQLite of its host.
[ -n "${4:-}" ] || exit 0
shown=$({
    nm --dynamic --defined-only "$4" | awk '$3 != "sqlite3_annalsqlite_init" && $3 !~ /asan/ { print $3 }'
    nm --dynamic --undefined-only "$4" | awk '$2 ~ /^(sqlite3|annal)_/ { print $2 " (undefined)" }'
    objdump -p "$4" | grep libsqlite3
} || true)
[ -z "$shown" ] || {
    echo "symbols of the extension that do not belong there:"
    echo "$shown"
    exit 1
}
