# SPDX-License-Identifier: Apache-2.0
"""Annal: the event store for AI-agent sessions, in your process.

    import libannal as annal

    with annal.open("store") as store:
        session = store.session("s1")
        session.append("tool.called", {"tool": "bash"})  # durable now
        for event in session:
            print(event.seq, event.type, event.data)
"""

from ._core import Time
from ._errors import (
    Busy,
    Closed,
    Conflict,
    Corrupt,
    DiskFailed,
    DiskFull,
    Error,
    Invalid,
    IOFailed,
    LimitExceeded,
    NoMemory,
    NotFound,
    ReadOnly,
    Refused,
    SQLError,
    Unknown,
    Unsupported,
)
from ._event import Draft, Event
from ._native import ffi as _ffi
from ._native import lib as _lib
from ._names import name
from ._query import Query
from ._recovery import OpenCall, OpenTurn, Recovery
from ._run import Call, Run, current_run, record, run
from ._session import Artifact, Damage, Session, SessionInfo
from ._sql import Row, Rows
from ._state import State
from ._step import StepFailed
from ._store import Format, Found, Hit, Level, Pack, Store, open
from ._table import Value
from ._tail import Tail

__version__: str = _ffi.string(_lib.annal_version()).decode()
"""The version of the library that is linked in."""

__all__ = [
    "Artifact",
    "Busy",
    "Call",
    "Closed",
    "Conflict",
    "Corrupt",
    "Damage",
    "DiskFailed",
    "DiskFull",
    "Draft",
    "Error",
    "Event",
    "Format",
    "Found",
    "Hit",
    "IOFailed",
    "Invalid",
    "Level",
    "LimitExceeded",
    "NoMemory",
    "NotFound",
    "OpenCall",
    "OpenTurn",
    "Pack",
    "Query",
    "ReadOnly",
    "Recovery",
    "Refused",
    "Row",
    "Rows",
    "Run",
    "SQLError",
    "Session",
    "SessionInfo",
    "State",
    "StepFailed",
    "Store",
    "Tail",
    "Time",
    "Unknown",
    "Unsupported",
    "Value",
    "current_run",
    "name",
    "open",
    "record",
    "run",
]
