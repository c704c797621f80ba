#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peers.sh DIR: build LMDB and SQLite, newer than Debian's, into DIR, with files for pkg-config in DIR/lib/pkgconfig, for
# make bench PEERS=new. A version that was built before is kept. If one cannot be built, print why in one line; Debian's
# is then used.
#
# LMDB comes in the source package of the Python package lmdb, SQLite in the crate libsqlite3-sys.
set -eu
mkdir -p "$1/lib/pkgconfig"
script=$(realpath "$0")
cd "$1"
dir=$(pwd)

lmdb=1.0.2
lmdb_package=3.0.0
lmdb_hash=06dda0723545e14d56ac7dcd6f582d9922c2ed5e16f1c3f8d0e670a96ec2ee65
sqlite=3.54.1
sqlite_crate=0.40.0
sqlite_hash=0c657666d819f261cc4007526ad57e1669de9949df7a8ea847aa284a2bf0ee52

# build NAME VERSION SOURCES [FLAG…]: the library from its sources, whose headers are beside them, and its file for
# pkg-config. Its name differs from Debian's, so that no program loads the other.
build() {
    name=$1 version=$2 sources=$3
    shift 3
    # shellcheck disable=SC2086 # words on purpose
    cc -O2 -w -shared -fPIC -Wl,-soname,"lib$name-bench.so" -o "lib/lib$name-bench.so" "$@" $sources -lpthread -lm || return
    cat >"lib/pkgconfig/$name.pc" <<END
Name: $name
Description: $name for annal-bench
Version: $version
Cflags: -I$dir/$(dirname "${sources%% *}")
Libs: -L$dir/lib -l$name-bench -Wl,-rpath,$dir/lib
END
}

build_lmdb() {
    python3 -m pip download -q "lmdb==$lmdb_package" --no-deps --no-binary :all: -d . || return
    echo "$lmdb_hash  lmdb-$lmdb_package.tar.gz" | sha256sum -c --quiet || return
    tar xzf "lmdb-$lmdb_package.tar.gz" || return
    from=lmdb-$lmdb_package/lib1
    build lmdb "$lmdb" "$from/mdb.c $from/midl.c"
}

# With what Annal needs of SQLite, which is then this one too.
build_sqlite() {
    mkdir -p crate || return
    : >crate/lib.rs
    cat >crate/Cargo.toml <<END
[package]
name = "peers"
version = "0.1.0"
[lib]
path = "lib.rs"
[dependencies]
libsqlite3-sys = "=$sqlite_crate"
END
    cargo vendor -q --manifest-path crate/Cargo.toml crate/vendor >/dev/null || return
    from=crate/vendor/libsqlite3-sys/sqlite3
    echo "$sqlite_hash  $from/sqlite3.c" | sha256sum -c --quiet || return
    build sqlite3 "$sqlite" "$from/sqlite3.c" -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_COLUMN_METADATA \
        -DSQLITE_ENABLE_DBSTAT_VTAB
}

cmp -s "$script" built-by || rm -f lib/pkgconfig/*.pc
for name in lmdb sqlite; do
    case $name in
    lmdb) module=lmdb title="LMDB $lmdb" ;;
    sqlite) module=sqlite3 title="SQLite $sqlite" ;;
    esac
    [ ! -e "lib/pkgconfig/$module.pc" ] || continue
    "build_$name" >"$name.log" 2>&1 ||
        echo "peers.sh: $title is missing, Debian's is used instead: $(tail -n 1 "$name.log")"
done
cp "$script" built-by
