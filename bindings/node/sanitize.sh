#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sanitize.sh: the tests of the addon on Node 22, with the addon and the library built with the address and undefined
# sanitizers. Run build.sh first; the package then contains the sanitized addon.
set -eu
cd "$(dirname "$0")/../.."
dev=$PWD/build/node/dev
cmake -G Ninja -S bindings/node -B build/node/sanitized -DCMAKE_BUILD_TYPE=Debug -DANNAL_SANITIZE=address,undefined \
    -DNODE_API_HEADERS="$dev/node_modules/node-api-headers/include" >build/node/cmake.log
cmake --build build/node/sanitized --target node
for place in "$dev"/node_modules/libannal/prebuilds/*/; do
    cp build/node/sanitized/annal.node "$place"
done

rm -rf "$dev/tests"
cp -r bindings/node/tests "$dev/tests"
cd "$dev"
set -- tests/session.test.mjs tests/store.test.mjs tests/tail.test.mjs tests/loads.test.mjs
# V8 leaves memory to the end of the process.
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    exec node_modules/node-22/bin/node --expose-gc --test --test-timeout=600000 --test-reporter=dot "$@"
