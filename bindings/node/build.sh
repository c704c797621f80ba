#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh: build the addon and pack it: build/node/dist/libannal-VERSION.tgz, and the same unpacked where the tests find it,
# build/node/dev/node_modules/libannal. Ends with 77 if npm cannot download the needed packages.
# build.sh --packages: only fetch them.
# LIBANNAL_BUILT: a build directory of the library (build/release), whose libannal.a is used instead of building it again.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/build/node
pin=bindings/node/tests/package-lock.json

if ! cmp -s "$pin" "$work/dev/package-lock.json" || [ ! -e "$work/dev/installed" ]; then
    rm -rf "${work:?}/dev"
    mkdir -p "$work/dev"
    cp bindings/node/tests/package.json "$pin" "$work/dev/"
    npm ci --prefix "$work/dev" --ignore-scripts --no-audit --no-fund >"$work/npm.log" 2>&1 || {
        cat "$work/npm.log"
        echo "SKIPPED: npm cannot get what building the Node package needs"
        exit 77
    }
    touch "$work/dev/installed"
fi
[ "${1:-}" != --packages ] || exit 0

tree=$work/${LIBANNAL_BUILT:+fast}
[ -n "${LIBANNAL_BUILT:-}" ] || tree=$work/whole
cmake -G Ninja -S bindings/node -B "$tree" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DNODE_API_HEADERS="$work/dev/node_modules/node-api-headers/include" \
    -DLIBANNAL_BUILT="${LIBANNAL_BUILT:+$root/$LIBANNAL_BUILT}" >"$work/cmake.log" || {
    cat "$work/cmake.log"
    exit 1
}
cmake --build "$tree" --target node

case $(uname -m) in
x86_64) machine=x64 ;;
aarch64) machine=arm64 ;;
*) machine=$(uname -m) ;;
esac
libc=glibc
[ ! -e "/lib/ld-musl-$(uname -m).so.1" ] || libc=musl
package=$work/package
place=$package/prebuilds/linux-$machine-$libc
rm -rf "${package:?}/lib"
mkdir -p "$place" "$work/dist"
cp -r bindings/node/lib "$package/"
cp bindings/node/package.json bindings/node/README.md LICENSE NOTICE "$package/"
strip --strip-unneeded -o "$place/annal.node" "$tree/annal.node"

rm -f "$work"/dist/*.tgz
(cd "$package" && npm pack --silent --pack-destination "$work/dist" >/dev/null)
installed=$work/dev/node_modules/libannal
rm -rf "$installed"
mkdir -p "$installed"
tar -xzf "$work"/dist/libannal-*.tgz -C "$installed" --strip-components=1
