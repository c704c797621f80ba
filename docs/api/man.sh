#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# man.sh FROM TO: of the pages that Doxygen made, those with a name of ours. The page of a header gets one too: annal_store.h.
set -eu
from=$1 to=$2

rm -rf "$to"
mkdir -p "$to"
for page in "$from"/*.h.3; do
    name=$(basename "$page")
    [ "$name" = annal.h.3 ] || name=annal_$name
    header=$(sed -n 's/^\.TH "\([^"]*\)".*/\1/p' "$page")
    sed "s|^\.SH SYNOPSIS|&\n.nf\n#include <$header>\n.fi|" "$page" >"$to/$name"
done
for page in "$from"/annal_*.3; do
    sed '/^\.so man3\/annal\.h\.3/!s|^\.so man3/\(.*\.h\.3\)|.so man3/annal_\1|' "$page" >"$to/$(basename "$page")"
done
