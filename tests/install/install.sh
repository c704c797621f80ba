#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh CMAKE BUILD SOURCE CC: programs of a user's, with pkg-config and with find_package().
set -eu
cmake=$1 build=$2 source=$3 CC=$4
export CC

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-install-XXXXXX")
trap 'rm -rf "$work"' EXIT

DESTDIR=$work/stage "$cmake" --install "$build" --prefix /usr/local >/dev/null
prefix=$work/stage/usr/local
[ -x "$prefix/bin/annal" ] || [ ! -e "$build/tools/annal" ] || {
    echo "the command was not installed"
    exit 1
}
for page in annal annal-verbs; do
    [ -n "$(find "$prefix" -name "$page.1")" ] || [ ! -e "$build/tools/annal" ] || {
        echo "the manual page $page was not installed"
        exit 1
    }
done
# With Doxygen: a page for every function, and what it leads to.
functions=
[ ! -d "$build/reference/man3" ] || functions=$(grep -o '^| .annal_[a-z0-9_]*' "$source/../../docs/api/README.md" | cut -c 4-)
for function in $functions; do
    page=$(find "$prefix" -name "$function.3")
    target=$(sed -n 's|^\.so man3/||p' "$page")
    grep -q "fB$function" "$(dirname "$page")/$target" || {
        echo "the manual page $function was not installed, or says nothing of it"
        exit 1
    }
done
extension=$("$prefix/bin/annal" version --extension)
[ "$(readlink -f "$extension")" = "$(find "$prefix" -name annal_sqlite.so)" ] || {
    echo "the extension was not installed where the command looks for it"
    exit 1
}
pc=$(find "$prefix" -name annal.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir annal)
[ -r "$(pkg-config --variable=sqlite_extension annal)" ] || {
    echo "annal.pc does not lead to the extension"
    exit 1
}

try() {
    echo "$1:"
    shift
    timeout 30 "$@" "$work/store"
    rm -rf "$work/store"
}

# shellcheck disable=SC2046,SC2086 # words on purpose
$CC ${CFLAGS:-} -o "$work/shared" "$source/user.c" $(pkg-config --cflags --libs annal)
try "pkg-config, shared" env LD_LIBRARY_PATH="$libdir" "$work/shared"

# shellcheck disable=SC2046,SC2086
$CC ${CFLAGS:-} -o "$work/static" "$source/user.c" $(pkg-config --cflags annal) \
    "$libdir/libannal.a" $(pkg-config --static --libs annal | sed 's/-lannal//')
try "pkg-config, static" "$work/static"
! objdump -p "$work/static" | grep -q 'NEEDED.*sqlite' || {
    echo "a program without an index is linked with SQLite"
    exit 1
}

mkdir "$work/package"
cp "$source/user.c" "$work/package"
cat >"$work/package/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C)
find_package(annal 0.2 REQUIRED)
add_executable(user user.c)
target_link_libraries(user annal::annal)
add_executable(user_shared user.c)
target_link_libraries(user_shared annal::annal_shared)
END
"$cmake" -S "$work/package" -B "$work/package/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
"$cmake" --build "$work/package/build" >/dev/null
try "find_package, static" "$work/package/build/user"
try "find_package, shared" "$work/package/build/user_shared"
