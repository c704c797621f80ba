# SPDX-License-Identifier: Apache-2.0
"""Events and drafts."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._core import Time, data, microseconds, moment, natural, text
from ._core import encode as utf8
from ._errors import Invalid
from ._json import dumps, loads

if TYPE_CHECKING:
    from ._store import Store

_UNREAD: Any = object()
_TS_ZERO = -(2**63) + 1  # ANNAL_TS_ZERO: 1970 itself, because 0 means now


class Event:
    """One fact of a session.

    `seq` counts 1, 2, 3, … without gaps; `ts_us` is UTC in microseconds since 1970 (order is by seq, never by
    time); `type` is dotted lower case; `id` is the caller's name for the event, or ""; `cause` is
    "session:seq" of the event that caused it, or "".

    >>> import libannal as annal, tempfile
    >>> with annal.open(tempfile.mkdtemp()) as store:
    ...     seq = store.session("s1").append("tool.called", {"tool": "bash"})
    ...     store.session("s1")[0].data["tool"]
    'bash'
    """

    __slots__ = ("_value", "cause", "id", "json", "seq", "session", "store", "ts_us", "type")

    session: str
    seq: int
    ts_us: int
    type: str
    id: str
    cause: str
    json: bytes
    """The data exactly as in the journal (of a msgpack journal: converted)."""

    store: Store | None
    """The store from which it was read."""

    def __init__(
        self, session: str, seq: int, ts_us: int, type: str, id: str, cause: str, json: bytes, store: Store | None = None
    ) -> None:
        self.session = session
        self.seq = seq
        self.ts_us = ts_us
        self.type = type
        self.id = id
        self.cause = cause
        self.json = json
        self.store = store
        self._value = _UNREAD

    @classmethod
    def read_from(cls, session: str, raw: Any, store: Store) -> Event:
        """The event of an annal_event."""
        return cls(
            session, raw.seq, raw.ts_us, text(raw.type), text(raw.id), text(raw.cause), data(raw.data), store
        )

    @property
    def data(self) -> Any:
        """The data as Python values. It is read once, and shared by all callers."""
        if self._value is _UNREAD:
            self._value = loads(self.json)
        return self._value

    def read(self) -> Any:
        """The data as Python values of the caller's own, read again."""
        return loads(self.json)

    def output(self) -> Any:
        """The output of a tool in a tool.returned or tool.failed; None if it has none.

        If a pack of the store moved it into an artifact because of its length, `data` has `output_ref` instead, and the
        output is read from there. Raises `NotFound`, `Corrupt`.
        """
        data = self.data if isinstance(self.data, dict) else {}
        ref = data.get("output_ref")
        if "output" in data or not isinstance(ref, dict):
            return data.get("output")
        if self.store is None:
            raise Invalid(f"event {self.ref} does not belong to an open store")
        place = str(ref.get("path", "")).split("/")
        session = place[1] if len(place) == 3 and place[0] == "artifacts" else self.session
        content = self.store.session(session).get_artifact(str(ref.get("sha256")))
        kind = ref.get("media_type")
        if kind == "application/json":
            return loads(content)
        return content.decode() if kind == "text/plain" else content

    @property
    def ts(self) -> datetime:
        """The time, in UTC."""
        return moment(self.ts_us)

    @property
    def ref(self) -> str:
        """ "session:seq", as a later event names it in `cause`."""
        return f"{self.session}:{self.seq}"

    def __repr__(self) -> str:
        return f"<Event {self.ref} {self.type}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("session", "seq", "ts_us", "type", "id", "cause", "json")
        )

    def __hash__(self) -> int:
        return hash((self.session, self.seq))


@dataclass(frozen=True)
class Draft:
    """An event that has no seq yet: an argument of `Session.append_many()`.

    `data` is anything that JSON can express, or bytes that are JSON already. With an `id` it is appended exactly once.
    `ts` is for imports; without it the event has the time of its append.
    """

    type: str
    data: Any = None
    id: str | None = None
    cause: str | int | Event | None = None
    ts: Time | None = None


_HEAD = struct.Struct("=QQQQq")  # libannal_draft


def flat(
    session: str, type: str, data: Any, id: str | None, cause: str | int | Event | None, ts: Time | None
) -> tuple[bytes, bytes]:
    """A draft for `libannal_append()`: its head, and its bytes."""
    type_, text_ = utf8(type), dumps(data, stable=id is not None)
    id_ = cause_ = b""
    if id is not None:
        if not id:
            raise Invalid("an id of an event must not be empty")
        id_ = utf8(id)
    if cause is not None:
        if isinstance(cause, int):
            cause = f"{session}:{natural(cause, 'a seq that is a cause')}"
        cause_ = utf8(cause.ref if isinstance(cause, Event) else cause)
    ts_us = 0 if ts is None else microseconds(ts) or _TS_ZERO
    return _HEAD.pack(len(type_), len(text_), len(id_), len(cause_), ts_us), b"".join((type_, text_, id_, cause_))


def flat_drafts(session: str, drafts: Iterable[Draft]) -> tuple[bytes, bytes]:
    """As `flat()`, of several drafts: their heads, and their bytes."""
    pairs = [flat(session, draft.type, draft.data, draft.id, draft.cause, draft.ts) for draft in drafts]
    return b"".join([head for head, _ in pairs]), b"".join([content for _, content in pairs])
