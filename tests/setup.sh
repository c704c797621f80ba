#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# setup.sh: on a system without apt-get, cmake/setup.sh prints nothing if everything exists; otherwise it names what is
# missing and the commands of three systems that install it, and fails. tests/bench/peers.sh prints a line for each library
# that it cannot build, and succeeds.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/tmp}/annal-setup-XXXXXX")
trap 'rm -rf "$work"' EXIT

# with_only 'PROGRAM…' COMMAND…: run it with these programs and no others.
with_only() {
    rm -rf "${work:?}/bin"
    mkdir "$work/bin"
    for program in $1; do
        ln -s "$(command -v "$program")" "$work/bin/$program"
    done
    shift
    PATH=$work/bin /bin/sh "$@" >"$work/out" 2>&1
}

# without_apt PROGRAM…
without_apt() {
    with_only "$*" cmake/setup.sh
}

fail() {
    echo "setup.sh: $1; it printed:"
    cat "$work/out"
    exit 1
}

without_apt cat cmake ninja cc pkg-config sqlite3 python3 || fail "it fails where everything exists"
[ ! -s "$work/out" ] || fail "it is not silent where everything exists"

! without_apt cat cmake || fail "it succeeds without a compiler"
for words in ' ninja cc pkg-config sqlite3 python3 ' ' msgpack-c$' 'dnf install ' 'pacman -S ' 'apk add ' 'use the image'; do
    grep -q -e "$words" "$work/out" || fail "it does not name '$words'"
done
! grep -q '^ .*cmake ninja cc' "$work/out" || fail "it names cmake, which exists"

with_only 'mkdir realpath cmp rm tail cat cp' tests/bench/peers.sh "$work/peers" || fail "peers.sh fails without pip and cargo"
[ "$(grep -c '^peers.sh: .* is missing, .*not found$' "$work/out") of $(wc -l <"$work/out")" = '3 of 3' ] ||
    fail "peers.sh does not print a line for each library that is missing"
