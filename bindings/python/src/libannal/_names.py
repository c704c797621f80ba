# SPDX-License-Identifier: Apache-2.0
"""Ids of sessions for names of other libraries.

Thread ids, namespaces and project keys may hold any character, and an id of a session only [A-Za-z0-9._-]. One rule
makes an id of any strings, the same in every language; `tests/names.tsv` has examples.

1. The slug: the strings, joined by "."; each run of bytes (of UTF-8) that an id cannot have becomes one "-"; "." and
   "-" at the beginning are dropped; at most 120 bytes; "x" if nothing is left.
2. "."
3. 16 hex digits: the lower 64 bits of XXH3-128 over the strings, each after its length in bytes as 4 bytes,
   big-endian.

If two names have the same id, the first event of the session distinguishes them: it has the unchanged name.
"""

from __future__ import annotations

import re

from ._core import encode, ffi, lib

_SLUG_BYTES = 120
_OTHER = re.compile(rb"[^A-Za-z0-9._-]+")


def name(*parts: str) -> str:
    """The id of the session that belongs to these strings.

    >>> import libannal as annal
    >>> annal.name("langgraph", "thread 1")
    'langgraph.thread-1.496d7bb202509a5d'
    """
    encoded = [encode(part) for part in parts]
    slug = _OTHER.sub(b"-", b".".join(encoded)).lstrip(b".-")[:_SLUG_BYTES] or b"x"
    framed = b"".join(len(part).to_bytes(4, "big") + part for part in encoded)
    return f"{slug.decode()}.{lib.libannal_hash(ffi.from_buffer('char[]', framed), len(framed)):016x}"
