#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# functions.sh >README.md: the public functions by header, from the headers, in the order in which annal.h lists these.
set -eu
cd "$(dirname "$0")/../.."

cat <<'END'
# The functions of the library

`docs/api/functions.sh` generates this page from the public headers, and a test compares the two.
The header of a function says what it promises. `make reference` writes HTML pages of the headers,
and with Doxygen `make install` installs manual pages: `man annal_store_open`. The
[guide](../guide.md) has examples.
END
for name in base.h $(sed -n 's/^ \*   <annal\/\([a-z_\/]*\.h\)>.*/\1/p' replay/include/annal/annal.h); do
    for header in */include/annal/"$name"; do
        printf '%s\n' "$header"
    done
done | xargs awk -f docs/api/functions.awk
