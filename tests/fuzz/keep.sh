#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# keep.sh BUILD: take over into tests/fuzz/corpus/ those inputs of up to 1,024 bytes that fuzzers of a build found
# (run.sh keeps them in $ANNAL_FUZZ_CORPUS) and that reach code which the corpus does not.
set -euo pipefail
build=$1/tests/fuzz
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
kept=${ANNAL_FUZZ_CORPUS:-$HOME/.cache/annal-fuzz}
for found in "$kept"/*/; do
    name=$(basename "$found")
    before=$(find "$corpus/$name" -type f | wc -l)
    "$build/fuzz_$name" -merge=1 -max_len=1024 "$corpus/$name" "$found" >"$build/$name.txt" 2>&1 || {
        cat "$build/$name.txt" >&2
        exit 1
    }
    echo "$name: $(($(find "$corpus/$name" -type f | wc -l) - before)) more inputs"
done
