#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the packages of Debian or Ubuntu that are missing. Says nothing when none is. Elsewhere it says what to install.
#   setup.sh       what building and testing need
#   setup.sh --list     these packages
#   setup.sh ci    what .ci/run needs besides
#   setup.sh model      what make model needs besides
#   setup.sh coverage   what make coverage needs besides
#   setup.sh reference  what make reference needs besides
#   setup.sh python     what make test-python needs besides
#   setup.sh node       what make node needs besides
#   setup.sh web        what make web and make test-web need besides
#   setup.sh bench      what make bench compares with
#   setup.sh cluster    what make test-cluster needs besides
#   setup.sh systems    what tests/systems.sh needs besides
set -eu

packages="cmake ninja-build gcc libc6-dev pkg-config
    libsqlite3-dev libzstd-dev libxxhash-dev libmsgpack-dev libmd-dev libutf8proc-dev libarchive-dev libmicrohttpd-dev zlib1g-dev
    libpq-dev libcurl4-openssl-dev libnats-dev check libyajl-dev sqlite3 python3"
ci_packages="ccache git g++ clang libclang-rt-dev clang-format shellcheck valgrind spin fish zsh doxygen postgresql"
bench_packages="liblmdb-dev librocksdb-dev libhiredis-dev redis-server nats-server postgresql"

case ${1:-} in
--list)
    # shellcheck disable=SC2086 # words on purpose
    echo $packages
    exit
    ;;
ci) packages="$packages $ci_packages" ;;
model) packages="$packages spin" ;;
coverage) packages="$packages gcovr" ;;
reference) packages="$packages doxygen" ;;
python) packages="$packages python3-venv python3-dev" ;;
node | web)
    [ "$1" = node ] || packages="$packages chromium fonts-inter"
    # A Node that is not Debian's contains npm.
    command -v npm >/dev/null || packages="$packages nodejs npm"
    ;;
bench) packages="$packages $bench_packages" ;;
cluster) packages="$packages $ci_packages python3-venv nats-server pgbouncer libfaketime" ;;
systems) packages="$packages debootstrap debian-archive-keyring clang" ;;
esac

# Ubuntu 22.04 has 3.37.
check_sqlite() {
    pkg-config --atleast-version=3.40 sqlite3 || {
        echo "annal: SQLite $(pkg-config --modversion sqlite3) is too old: 3.40 or later is needed. Install its autoconf source" \
            "package below /usr/local (README.md, Where it runs), or use the image that Containerfile makes." >&2
        exit 1
    }
}

# Without apt-get: succeed if the programs and the header of each package are installed.
check_elsewhere() {
    lacking=
    for program in cmake ninja cc pkg-config sqlite3 python3; do
        command -v "$program" >/dev/null || lacking="$lacking $program"
    done
    for module in sqlite3 libzstd libxxhash libmd libutf8proc libarchive libmicrohttpd zlib check yajl; do
        pkg-config --exists "$module" 2>/dev/null || lacking="$lacking $module"
    done
    # A header is enough; its module was renamed in 6.0.
    { pkg-config --exists msgpack-c || pkg-config --exists msgpack ||
        echo '#include <msgpack/pack.h>' | cc -E -; } >/dev/null 2>&1 || lacking="$lacking msgpack-c"
    [ -n "$lacking" ] || {
        check_sqlite
        exit 0
    }
    cat >&2 <<END
annal: this system has no apt-get, so nothing was installed. What is missing, as programs and modules of pkg-config:
   $lacking
and, for annal ship, the headers of libpq, libcurl and NATS, if you do not have them. Install them:
    Fedora   dnf install cmake ninja-build gcc pkgconf python3 sqlite sqlite-devel libzstd-devel xxhash-devel msgpack-devel libmd-devel
             utf8proc-devel libarchive-devel libmicrohttpd-devel zlib-devel libpq-devel libcurl-devel check-devel yajl-devel
    Arch     pacman -S cmake ninja gcc pkgconf python sqlite zstd xxhash msgpack-c libmd libutf8proc libarchive libmicrohttpd zlib
             postgresql-libs curl check yajl
    Alpine   apk add build-base cmake samurai pkgconf python3 bash sqlite sqlite-dev zstd-dev xxhash-dev msgpack-c-dev libmd-dev utf8proc-dev
             libarchive-dev libmicrohttpd-dev zlib-dev libpq-dev curl-dev check-dev yajl-dev
These three were not tried. On macOS and Windows, and where this does not work, use the image: README.md, Where it runs.
END
    exit 1
}

command -v apt-get >/dev/null || check_elsewhere

missing=
for package in $packages; do
    state=$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true)
    # A machine with several architectures answers once for each.
    case $state in
    installed*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || {
    check_sqlite
    exit 0
}

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=sudo
else
    echo "annal: packages are missing, and this user is neither root nor may use sudo. Ask an administrator to run:" >&2
    echo "    apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

echo "Installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # words on purpose
{
    $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends $missing
} >"$log" 2>&1 || {
    cat "$log" >&2
    echo "annal: apt-get could not install:$missing" >&2
    exit 1
}
check_sqlite
