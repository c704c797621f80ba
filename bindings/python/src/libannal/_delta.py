"""A value as what differs from the one before it: what a state that grows costs.

Such a value begins as the last one did, but for a count near the beginning, and has something new at its end:
`result = old[:begin] + inserted + old[begin + skipped:][:copied] + tail`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

_HEADER = 9  # a count of msgpack has at most so many bytes
_MATCH = 24  # so many equal bytes are no accident


def _common(old: memoryview, new: memoryview) -> int:
    """How many bytes at the beginning are the same."""
    low, high = 0, min(len(old), len(new))
    if old[:high] == new[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle
    return low


def encode(old: bytes, new: bytes) -> list[Any] | None:
    """The difference as JSON has it; None if it is not less than half of the value."""
    before, after = memoryview(old), memoryview(new)
    begin = _common(before, after)
    best = (0, 0, 0)  # copied, skipped of old, inserted of new
    for skipped in range(_HEADER):
        for inserted in range(_HEADER):
            left, right = before[begin + skipped :], after[begin + inserted :]
            if len(left) < _MATCH or left[:_MATCH] != right[:_MATCH]:
                continue
            copied = _common(left, right)
            if copied > best[0]:
                best = (copied, skipped, inserted)
    copied, skipped, inserted = best
    tail = new[begin + inserted + copied :]
    if 2 * (inserted + len(tail)) >= len(new):
        return None
    return [begin, b64encode(new[begin : begin + inserted]).decode(), skipped, copied, b64encode(tail).decode()]


def decode(old: bytes, difference: list[Any]) -> bytes:
    """The value that `encode()` was given."""
    begin, inserted, skipped, copied, tail = difference
    at = begin + skipped
    return old[:begin] + b64decode(inserted) + old[at : at + copied] + b64decode(tail)
