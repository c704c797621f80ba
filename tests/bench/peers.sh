#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# peers.sh DIR: build LMDB and SQLite, newer than Debian's, and Turso into DIR, with files for pkg-config in
# DIR/lib/pkgconfig, for make bench PEERS=new. A version that was built before is kept. If one cannot be built, print why
# in one line: Debian's is then used, or Turso is left out.
#
# LMDB comes in the source package of the Python package lmdb, SQLite in the crate libsqlite3-sys, Turso in the crate
# turso_sdk_kit, which takes some minutes of processor time.
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
turso=0.8.3
turso_hash=819a17926d04dbeb5b03f00cdab6ed7351bbb6778d00840364b9af62bca02914

# describe NAME VERSION HEADERS: the file for pkg-config. The library's name differs from Debian's, so that no program
# loads the other.
describe() {
    cat >"lib/pkgconfig/$1.pc" <<END
Name: $1
Description: $1 for annal-bench
Version: $2
Cflags: -I$dir/$3
Libs: -L$dir/lib -l$1-bench -Wl,-rpath,$dir/lib
END
}

# build NAME VERSION SOURCES [FLAG…]: the library from its sources, whose headers are beside them.
build() {
    name=$1 version=$2 sources=$3
    shift 3
    # shellcheck disable=SC2086 # words on purpose
    cc -O2 -w -shared -fPIC -Wl,-soname,"lib$name-bench.so" -o "lib/lib$name-bench.so" "$@" $sources -lpthread -lm || return
    describe "$name" "$version" "$(dirname "${sources%% *}")"
}

# vendor NAME VERSION: a crate into NAME/vendor, with what it needs.
vendor() {
    mkdir -p "$1" || return
    : >"$1/lib.rs"
    cat >"$1/Cargo.toml" <<END
[package]
name = "peers"
version = "0.1.0"
[lib]
path = "lib.rs"
[dependencies]
$1 = "=$2"
END
    cargo vendor -q --manifest-path "$1/Cargo.toml" "$1/vendor" >/dev/null
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
    vendor libsqlite3-sys "$sqlite_crate" || return
    from=libsqlite3-sys/vendor/libsqlite3-sys/sqlite3
    echo "$sqlite_hash  $from/sqlite3.c" | sha256sum -c --quiet || return
    build sqlite3 "$sqlite" "$from/sqlite3.c" -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_COLUMN_METADATA \
        -DSQLITE_ENABLE_DBSTAT_VTAB
}

# With the crates that its own Cargo.lock names.
build_turso() {
    vendor turso_sdk_kit "$turso" || return
    from=turso_sdk_kit/vendor/turso_sdk_kit
    grep -q "\"package\":\"$turso_hash\"" "$from/.cargo-checksum.json" || {
        echo "turso_sdk_kit $turso is not what it was"
        return 1
    }
    CARGO_TARGET_DIR=turso_sdk_kit/target cargo build -q --release --locked --manifest-path "$from/Cargo.toml" || return
    cp turso_sdk_kit/target/release/libturso_sdk_kit.so lib/libturso-bench.so || return
    rm -rf turso_sdk_kit/target
    describe turso "$turso" "$from"
}

cmp -s "$script" built-by || rm -f lib/pkgconfig/*.pc
for name in lmdb sqlite turso; do
    other="Debian's is used instead"
    case $name in
    lmdb) module=lmdb title="LMDB $lmdb" ;;
    sqlite) module=sqlite3 title="SQLite $sqlite" ;;
    turso) module=turso title="Turso $turso" other="it is left out" ;;
    esac
    [ ! -e "lib/pkgconfig/$module.pc" ] || continue
    "build_$name" >"$name.log" 2>&1 || echo "peers.sh: $title is missing, $other: $(tail -n 1 "$name.log")"
done
cp "$script" built-by
