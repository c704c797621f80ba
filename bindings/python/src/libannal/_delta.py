# SPDX-License-Identifier: Apache-2.0
"""A value as its difference from the previous value: the cost of a state that grows.

Such a value begins like the previous one, except for a count near the beginning, and has something new at its end:
`result = old[:begin] + inserted + old[begin + skipped:][:copied] + tail`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core import ffi, lib


def encode(old: bytes, new: bytes, pack: Callable[[bytes], Any]) -> list[Any] | None:
    """The difference in JSON, with bytes as `pack` writes them; None if it is at least half as long as the value."""
    out = ffi.new("libannal_delta *")
    lib.libannal_delta_find(old, len(old), new, len(new), out)
    begin, inserted, skipped, copied = out.begin, out.inserted, out.skipped, out.copied
    tail = new[begin + inserted + copied :]
    if 2 * (inserted + len(tail)) >= len(new):
        return None
    return [begin, pack(new[begin : begin + inserted]), skipped, copied, pack(tail)]


def decode(old: bytes, difference: list[Any], unpack: Callable[[Any], bytes]) -> bytes:
    """The value that was passed to `encode()`."""
    begin, inserted, skipped, copied, tail = difference
    at = begin + skipped
    view = memoryview(old)
    return b"".join((view[:begin], unpack(inserted), view[at : at + copied], unpack(tail)))
