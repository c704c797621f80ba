#!/bin/sh
# symbols.sh LIBANNAL.A LIBANNAL.SO [ANNAL_SQLITE.SO]: no global mutable state, and nothing shown that is not public.
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

# The extension shows its entry alone, and takes SQLite from whoever loads it.
[ -n "${3:-}" ] || exit 0
shown=$({
    nm --dynamic --defined-only "$3" | awk '$3 != "sqlite3_annalsqlite_init" && $3 !~ /asan/ { print $3 }'
    nm --dynamic --undefined-only "$3" | awk '$2 ~ /^(sqlite3|annal)_/ { print $2 " (undefined)" }'
    objdump -p "$3" | grep libsqlite3
} || true)
[ -z "$shown" ] || {
    echo "symbols of the extension that do not belong there:"
    echo "$shown"
    exit 1
}
