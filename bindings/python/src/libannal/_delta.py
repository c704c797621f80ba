"""A value as what differs from the one before it: what a state that grows costs.

Such a value begins as the last one did, but for a count near the beginning, and has something new at its end:
`result = old[:begin] + inserted + old[begin + skipped:][:copied] + tail`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

_HEADER = 9  # a count of msgpack has at most so many bytes
_MATCH = 24  # so many equal bytes are no accident


def _common(old: bytes, new: bytes, left: int = 0, right: int = 0) -> int:
    """How many bytes are the same, from `left` in old and `right` in new on."""
    low, high = 0, min(len(old) - left, len(new) - right)
    if old[left : left + high] == new[right : right + high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if old[left + low : left + middle] == new[right + low : right + middle]:
            low = middle
        else:
            high = middle
    return low


def encode(old: bytes, new: bytes) -> list[Any] | None:
    """The difference as JSON has it; None if it is not less than half of the value."""
    begin = _common(old, new)
    best = (0, 0, 0)  # copied, skipped of old, inserted of new
    for skipped in range(_HEADER):
        for inserted in range(_HEADER):
            left, right = begin + skipped, begin + inserted
            if len(old) - left < _MATCH or old[left : left + _MATCH] != new[right : right + _MATCH]:
                continue
            copied = _common(old, new, left, right)
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
