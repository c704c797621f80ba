#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# systems.sh [SYSTEM…]: whether README's commands do what it says on other systems. Needs root, debootstrap, which it
# installs, and some 3 GB in build/systems.
#
#   debian-13, debian-12, ubuntu-24.04, ubuntu-22.04
#           a root with nothing but the base system, make, git and Python. As root in ~/src/annal: make demo, which installs
#           what is missing. As a user in "~/my code/annal": make demo, make test, make install, a program with the
#           installed library, and the Python package.
#   clang   builds with warnings as errors: clang -O0 and -O2, gcc -O2
#   gcc     gcc 13 and 14 of Debian 13, each -O0 and -O2, warnings as errors, and the suites of journal/ and golden/
#   aarch64 a build for 64-bit ARM, with the suites of journal/ and golden/ under qemu
#   container  the steps of Containerfile in a root
#
# Without SYSTEM: debian-13, clang, gcc, aarch64 and container. PHASES='root user install python' are the phases to run. A root
# with a failure is kept. Compilers use their own ccache, build/systems/ccache.
set -euo pipefail
cd "$(dirname "$0")/.."

top=$PWD
roots=$top/build/systems
phases=${PHASES:-root user install python}

[ "$(id -u)" = 0 ] || {
    echo "systems.sh: only root can make the root of another system" >&2
    exit 77
}
cmake/setup.sh systems
mkdir -p "$roots/ccache"
chmod 777 "$roots/ccache"

# within ROOT COMMAND…: in a namespace of its own, so that no mount outlives the command.
within() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare --mount --fork --pid --kill-child sh -c 'root=$1 cache=$2 && shift 2
        mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
        mkdir -p "$root/var/cache/ccache" && mount --bind "$cache" "$root/var/cache/ccache"
        exec chroot "$root" env HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_DIR=/var/cache/ccache CCACHE_UMASK=000 CCACHE_NOHASHDIR=1 \
            "$@"' sh "$1" "$roots/ccache" "${@:2}"
}

# as_user ROOT SCRIPT: in the user's clone.
as_user() {
    within "$1" su -w CMAKE_C_COMPILER_LAUNCHER,CCACHE_DIR,CCACHE_UMASK,CCACHE_NOHASHDIR - tester \
        -c "set -eu; cd \"\$HOME/my code/annal\"; export CCACHE_BASEDIR=\"\$PWD\"; $2"
}

# base NAME: the base system of NAME, made once: $roots/base-NAME.
base() {
    local to=$roots/base-$1 from=() words=(--variant=minbase "--include=ca-certificates,make,git,python3,ccache")
    [ ! -e "$to/made" ] || return 0
    rm -rf "$to"
    case $1 in
    debian-12) from=(bookworm "$to") ;;
    debian-13) from=(trixie "$to") ;;
    ubuntu-*)
        # A package of Debian 13 contains its keys.
        base debian-13
        within "$roots/base-debian-13" sh -c 'apt-get update -qq && apt-get install -y -qq ubuntu-keyring' >/dev/null
        words+=(--components="main,universe" --keyring="$roots/base-debian-13/usr/share/keyrings/ubuntu-archive-keyring.gpg")
        from=(noble "$to" http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy)
        [ "$1" != ubuntu-22.04 ] || from[0]=jammy
        ;;
    *)
        echo "systems.sh: there is no system '$1'" >&2
        exit 2
        ;;
    esac
    debootstrap "${words[@]}" "${from[@]}" >"$to.log"
    touch "$to/made"
}

# copy_tree DIRECTORY: what a clone has.
copy_tree() {
    mkdir -p "$1"
    git ls-files --cached --others --exclude-standard -z | tar --null --ignore-failed-read -cf - -T - | tar -C "$1" -xf -
}

# fresh NAME [AS]: $root, a copy of the base system with the tree in the two places.
fresh() {
    base "$1"
    root=$roots/${2:-$1}
    rm -rf "$root"
    cp -a "$roots/base-$1" "$root"
    cp /etc/resolv.conf "$root/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
    chroot "$root" useradd --create-home --shell /bin/bash tester
    copy_tree "$root/root/src/annal"
    copy_tree "$root/home/tester/my code/annal"
    chroot "$root" chown -R tester: /home/tester
}

run_phase() {
    echo "== $1: $2"
    case $2 in
    root)
        [ "$1" != ubuntu-22.04 ] || sqlite "$root"
        # shellcheck disable=SC2016 # the shell in the root expands
        within "$root" sh -c 'cd ~/src/annal && export CCACHE_BASEDIR="$PWD" && make demo'
        ;;
    user) as_user "$root" 'make demo && make test' ;;
    install)
        # shellcheck disable=SC2016 # the user's shell expands
        as_user "$root" 'make install prefix="$HOME/in stall"
            export PKG_CONFIG_PATH="$(dirname "$(find "$HOME/in stall" -name annal.pc)")"
            eval "cc -o user tests/install/user.c $(pkg-config --cflags --libs annal)"
            eval "export LD_LIBRARY_PATH=$(pkg-config --variable=libdir annal)" # some escape the blank
            ./user "$HOME/store"
            eval "cc -o user tests/install/user.c $(pkg-config --static --cflags --libs annal | sed s/-lannal/-l:libannal.a/)"
            ./user "$HOME/store 2"'
        ;;
    python)
        within "$root" sh -c 'cd ~/src/annal && cmake/setup.sh python'
        as_user "$root" "make test-python TESTS=\"-m 'not long'\""
        ;;
    esac
}

# sqlite ROOT: follow the README for a too old SQLite, with the sources of Debian 13.
sqlite() {
    local work=$roots/sqlite
    if [ ! -e "$work/made" ]; then
        base debian-13
        rm -rf "$work"
        mkdir -p "$work"
        echo "deb-src http://deb.debian.org/debian trixie main" >"$roots/base-debian-13/etc/apt/sources.list.d/source.list"
        within "$roots/base-debian-13" sh -c 'apt-get update -qq && apt-get install -y -qq dpkg-dev &&
            cd /opt && apt-get source --download-only -qq sqlite3' >/dev/null
        tar -C "$work" --strip-components=1 -xf "$roots"/base-debian-13/opt/sqlite3_*.orig.tar.xz
        touch "$work/made"
    fi
    cp -a "$work" "$1/root/sqlite"
    within "$1" sh -c 'apt-get update -qq && apt-get install -y -qq gcc libc6-dev tcl && cd /root/sqlite &&
        ./configure --prefix=/usr/local --disable-tcl CFLAGS="-O2 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_COLUMN_METADATA" &&
        make && make install && ldconfig' >/dev/null
}

clang() {
    local flags
    for flags in 'clang -O0' 'clang -O2' 'gcc -O2'; do
        echo "== $flags"
        # shellcheck disable=SC2086 # words on purpose
        set -- $flags
        cmake -S . -B "build/systems/$1$2" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$1" -DCMAKE_C_FLAGS="$2" \
            -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
        cmake --build "build/systems/$1$2"
    done
}

gcc() {
    fresh debian-13 gcc
    within "$root" sh -c 'cd ~/src/annal && cmake/setup.sh && apt-get install -y -qq --no-install-recommends gcc-13 gcc-14' >/dev/null
    local version flags
    for version in 13 14; do
        for flags in -O0 -O2; do
            echo "== gcc-$version $flags"
            # shellcheck disable=SC2016 # the shell in the root expands
            within "$root" sh -c 'set -eu
                cd ~/src/annal && export CCACHE_BASEDIR="$PWD"
                cmake -S . -B "build/$1$2" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_C_COMPILER=$1" "-DCMAKE_C_FLAGS=$2" \
                    -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
                cmake --build "build/$1$2"
                ctest --test-dir "build/$1$2" --output-on-failure -R "^(journal|golden)[.]"' sh "gcc-$version" "$flags"
        done
    done
}

aarch64() {
    fresh debian-13 aarch64
    # shellcheck disable=SC2016
    within "$root" sh -c 'set -eu
        dpkg --add-architecture arm64
        apt-get update -qq
        cd ~/src/annal
        cross=$(cmake/setup.sh --list | tr " " "\n" | grep -- "-dev$\|^check$" | grep -v libc6-dev)
        apt-get install -y -qq --no-install-recommends cmake ninja-build pkg-config gcc gcc-aarch64-linux-gnu qemu-user \
            libc6-dev-arm64-cross $(printf "%s:arm64 " $cross) >/dev/null
        cmake --preset bench --toolchain cmake/aarch64.cmake
        cmake --build --preset bench --target annal_command test_journal test_golden
        ctest --preset bench -R "^(journal|golden)[.]"'
}

# The stages of Containerfile, each in a root of its own; what the first has made is taken to the second.
container() {
    fresh debian-13 container
    copy_tree "$root/src"
    tests/containerfile.py Containerfile 1 >"$root/root/steps.sh"
    within "$root" env CCACHE_BASEDIR=/src bash /root/steps.sh
    rm -rf "$roots/image"
    mv "$root/image" "$roots/image"
    fresh debian-13 container
    mv "$roots/image" "$root/image"
    tests/containerfile.py Containerfile 2 >"$root/root/steps.sh"
    within "$root" env CCACHE_BASEDIR=/src bash /root/steps.sh
}

[ $# -gt 0 ] || set -- debian-13 clang gcc aarch64 container
for system; do
    began=$SECONDS
    case $system in
    clang | gcc | aarch64 | container) "$system" ;;
    *)
        fresh "$system"
        for phase in $phases; do
            run_phase "$system" "$phase"
        done
        ;;
    esac
    [ "$system" = clang ] || rm -rf "$root"
    echo "== $system: passed in $((SECONDS - began)) s"
done
