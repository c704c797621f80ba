#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# headers.sh CC CXX: every public header compiles alone, and once more, in C and (where there is a compiler) in C++.
set -eu
CC=$1 CXX=$2
cd "$(dirname "$0")/../.."

includes=$(printf -- '-I%s ' */include)
failed=0
for header in */include/annal/*.h */include/annal/*/*.h; do
    name=${header#*/include/}
    text=$(printf '#include <%s>\n#include <%s>' "$name" "$name")
    # shellcheck disable=SC2086 # words on purpose
    echo "$text" | "$CC" -x c -std=c11 -Wall -Wextra -Wpedantic -Wstrict-prototypes -Werror $includes -fsyntax-only - || failed=1
    # shellcheck disable=SC2086 # words on purpose
    [ -z "$CXX" ] ||
        echo "$text" | "$CXX" -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror $includes -fsyntax-only - || failed=1
done
exit $failed
