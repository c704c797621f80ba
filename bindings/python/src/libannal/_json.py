# SPDX-License-Identifier: Apache-2.0
"""JSON in and out, by orjson if that is installed.

Two events with the same id are compared by their bytes. So the data of an event with an id is always written by the
standard library: the same value has the same bytes wherever it is written. (A float, for instance, may differ.)
"""

from __future__ import annotations

import json
from enum import Enum
from importlib import import_module
from typing import Any, cast
from uuid import UUID

from ._errors import Invalid

try:
    orjson: Any = import_module("orjson")
except ImportError:
    orjson = None

# The standard library handles what orjson refuses or writes in another way.
_AS_STANDARD = (
    0
    if orjson is None
    else orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def _default(value: object) -> Any:
    """The JSON of values that orjson knows and the standard library does not."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_default)

# orjson reads integers of more than 64 bits as floats. Texts with so many digits in a row are left to the standard library.
_DIGITS = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_LONG = b"0" * 19


def dumps(value: Any, stable: bool = True) -> bytes:
    """One JSON value as UTF-8 without white space; bytes are taken as JSON that is written already."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if orjson is not None and not stable:
        try:
            text: bytes = orjson.dumps(value, None, _AS_STANDARD)
        except TypeError:
            text = b"null"
        if b"null" not in text:  # which it also writes for a NaN
            return text
    try:
        return _encoder.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"data cannot be written as JSON: {error}") from error


def loads(text: bytes) -> Any:
    """The value of JSON text."""
    if orjson is not None and _LONG not in text.translate(_DIGITS):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # half a surrogate pair, for instance
    return json.loads(text)


def loads_object(text: bytes) -> dict[str, Any]:
    """The value of JSON text that is known to be an object."""
    return cast("dict[str, Any]", loads(text))
