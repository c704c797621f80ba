"""JSON in and out.

It is always written by the standard library, so that the same value has the same bytes wherever it is written:
events with an id are compared by them. It is read by orjson if that is installed, which is faster.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, cast

from ._errors import Invalid

try:
    orjson: Any = import_module("orjson")
except ImportError:
    orjson = None

_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: Any) -> bytes:
    """One JSON value as UTF-8 without white space; bytes are taken as JSON that is written already."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    try:
        return _encoder.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"data cannot be written as JSON: {error}") from error


def loads(text: bytes) -> Any:
    """The value of JSON text."""
    if orjson is not None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # an integer of more than 64 bits, for instance
    return json.loads(text)


def loads_object(text: bytes) -> dict[str, Any]:
    """The value of JSON text that is known to be an object."""
    return cast("dict[str, Any]", loads(text))
