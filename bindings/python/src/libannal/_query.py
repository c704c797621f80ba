"""Events by session, seq, time and type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._core import DAMAGE, END, Slice, Slices, Time, check, ffi, lib, microseconds, new_error, text
from ._errors import Corrupt
from ._event import Event

if TYPE_CHECKING:
    from ._store import Store

BATCH = 128  # events that are read in one visit to the library


@dataclass(frozen=True)
class Filter:
    """An annal_filter and what it points at."""

    raw: Any
    kept: tuple[Any, ...]


def events_filter(
    *,
    sessions: str | Sequence[str] | None,
    types: str | Sequence[str] | None,
    since: Time | None,
    until: Time | None,
    from_seq: int,
    to_seq: int,
    where: str,
    limit: int,
    descending: bool,
) -> Filter:
    names, patterns, condition = Slices(sessions), Slices(types), Slice(where)
    raw = ffi.new(
        "annal_filter *",
        {
            "sessions": names.array,
            "session_count": names.count,
            "types": patterns.array,
            "type_count": patterns.count,
            "since_us": 0 if since is None else microseconds(since),
            "until_us": 0 if until is None else microseconds(until),
            "from_seq": from_seq,
            "to_seq": to_seq,
            "limit": limit,
            "descending": descending,
            "where": condition.value,
        },
    )
    return Filter(raw, (names, patterns, condition))


class Query:
    """A question about events: each iteration asks it again, and reads the answer bit by bit."""

    def __init__(self, store: Store, filter_: Filter) -> None:
        self._store = store
        self._filter = filter_

    def __iter__(self) -> Iterator[Event]:
        """Events of one session by seq, of several by time. Raises `Corrupt` at an event that is damaged."""
        store, out, err = self._store, ffi.new("annal_query **"), new_error()
        with store._gate:
            check(lib.annal_query_open(store._indexed(), self._filter.raw, out, err), err)
            handle = store._own(out[0], lib.annal_query_close)
        try:
            session, raw = ffi.new("annal_slice *"), ffi.new("annal_event *")
            status, size = 0, 1
            while status != END:
                batch: list[Event] = []
                with store._gate:
                    query = handle.pointer
                    for _ in range(size):
                        status = check(lib.annal_query_next(query, session, raw, err), err)
                        if status != 0:
                            break
                        batch.append(Event(text(session[0]), raw))
                yield from batch
                if status == DAMAGE:
                    raise Corrupt(f"event {raw.seq} of session '{text(session[0])}' is damaged")
                size = min(2 * size, BATCH)
        finally:
            handle.close()

    def count(self) -> int:
        """How many events it would return, without reading them."""
        out, err = ffi.new("uint64_t *"), new_error()
        with self._store._gate:
            index = self._store._indexed()
            check(lib.annal_query_count(index, self._filter.raw, out, ffi.NULL, err), err)
        return int(out[0])
