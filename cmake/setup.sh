#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the Debian packages that are missing. Says nothing when none is.
#   setup.sh       what building and testing need
#   setup.sh ci    what .ci/run needs besides
#   setup.sh model      what make model needs besides
#   setup.sh coverage   what make coverage needs besides
#   setup.sh reference  what make reference needs besides
#   setup.sh python     what make test-python needs besides
#   setup.sh web        what make web and make test-web need besides
#   setup.sh bench      what make bench compares with
#   setup.sh cluster    what make test-cluster needs besides
set -eu

packages="cmake ninja-build gcc libc6-dev pkg-config
    libsqlite3-dev libzstd-dev libxxhash-dev libmsgpack-dev libmd-dev libutf8proc-dev libarchive-dev libmicrohttpd-dev zlib1g-dev
    libpq-dev libcurl4-openssl-dev libnats-dev check libyajl-dev"
ci_packages="ccache git g++ clang libclang-rt-dev clang-format shellcheck valgrind spin python3 sqlite3 fish zsh doxygen postgresql"
bench_packages="liblmdb-dev librocksdb-dev libhiredis-dev redis-server nats-server postgresql"

case ${1:-} in
ci) packages="$packages $ci_packages" ;;
model) packages="$packages spin" ;;
coverage) packages="$packages gcovr" ;;
reference) packages="$packages doxygen" ;;
python) packages="$packages python3-venv python3-dev" ;;
web)
    packages="$packages chromium fonts-inter"
    # Where Node is not Debian's, npm comes with it.
    command -v npm >/dev/null || packages="$packages nodejs npm"
    ;;
bench) packages="$packages $bench_packages" ;;
cluster) packages="$packages $ci_packages python3-venv nats-server pgbouncer libfaketime" ;;
esac

missing=
for package in $packages; do
    state=$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null || true)
    # A machine with several architectures answers once for each.
    case $state in
    installed*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=sudo
else
    echo "annal: these Debian packages are missing, and this user is neither root nor may use sudo:$missing" >&2
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
