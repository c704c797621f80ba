# SPDX-License-Identifier: Apache-2.0
"""Values as differences: any two values, and what a growing one costs."""

from __future__ import annotations

import random
from base64 import b64decode, b64encode

from libannal import _delta


def test_encoded_values_are_decoded_unchanged() -> None:
    random.seed(7)
    for _ in range(3000):
        old = random.choice([b"ab", b"\xdc\x00", b""]) * random.randrange(60) + random.randbytes(random.randrange(80))
        new = bytearray(old)
        for _ in range(random.randrange(3)):
            place = random.randrange(len(new) + 1)
            new[place : place + random.randrange(4)] = random.randbytes(random.randrange(5))
        new += random.randbytes(random.randrange(30))
        difference = _delta.encode(old, bytes(new), b64encode)
        assert difference is None or _delta.decode(old, difference, b64decode) == bytes(new)


def test_a_growing_list_costs_what_is_new() -> None:
    body = b"".join(b"\xa5%05d" % n for n in range(1000))
    old, new = b"\xdc\x03\xe8" + body, b"\xdc\x03\xe9" + body + b"\xa5 more"
    difference = _delta.encode(old, new, b64encode)
    assert difference is not None and len(str(difference)) < 60
    assert _delta.decode(old, difference, b64decode) == new
