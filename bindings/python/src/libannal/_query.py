# SPDX-License-Identifier: Apache-2.0
"""Events by session, seq, time and type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ._core import DAMAGE, END, Slice, Slices, Time, bound, check, natural, ffi, lib, new_error
from ._errors import Corrupt
from ._event import Event
from ._table import BATCH_BYTES, BATCH_ROWS, BLOCK_BYTES, Table, event_batch, event_schema, growing, read_block

if TYPE_CHECKING:
    import pyarrow

    from ._store import Store


@dataclass(frozen=True)
class Filter:
    """An annal_filter and the memory to which it points."""

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
            "since_us": bound(since),
            "until_us": bound(until),
            "from_seq": natural(from_seq, "from_seq"),
            "to_seq": natural(to_seq, "to_seq"),
            "limit": natural(limit, "limit"),
            "descending": descending,
            "where": condition.value,
        },
    )
    return Filter(raw, (names, patterns, condition))


class Query:
    """A query of events: each iteration runs it again, and reads the answer in parts."""

    def __init__(self, store: Store, filter_: Filter) -> None:
        self._store = store
        self._filter = filter_

    def __iter__(self) -> Iterator[Event]:
        """Events of a single session by seq, of several sessions by time. Raises `Corrupt` at a damaged event."""
        for table in self._tables(growing(), BLOCK_BYTES):
            yield from table.events(self._store)

    def _tables(self, sizes: Iterator[int], size_bytes: int) -> Iterator[Table]:
        """Tables of at most the given numbers of events."""
        store, out, err = self._store, ffi.new("annal_query **"), new_error()
        with store._gate:
            check(lib.annal_query_open(store._indexed(), self._filter.raw, out, err), err)
            handle = store._own(out[0], lib.annal_query_close)
        try:
            status = 0
            while status != END:
                with store._gate:
                    status, table = read_block(
                        lib.libannal_table_read_query, handle.pointer, next(sizes), size_bytes
                    )
                damaged = table.pop_event() if status == DAMAGE else None
                yield table
                if damaged is not None:
                    raise Corrupt(f"event {damaged[1]} of session '{damaged[0]}' is damaged")
        finally:
            handle.close()

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pyarrow.RecordBatch]:
        """The events as batches of Arrow of at most `rows` rows; memory does not grow with the answer.

        The columns are session_id, seq, timestamp, type, id, cause, and data as JSON text. Needs pyarrow (the extra
        "arrow"). Raises `Corrupt` at a damaged event.
        """
        return (event_batch(table) for table in self._tables(repeat(rows), BATCH_BYTES) if len(table))

    def arrow(self) -> pyarrow.Table:
        """All events as one table of Arrow; as `batches()`."""
        import pyarrow

        return pyarrow.Table.from_batches(self.batches(), event_schema())

    def count(self) -> int:
        """The number of events that it would return, without reading them."""
        out, err = ffi.new("uint64_t *"), new_error()
        with self._store._gate:
            index = self._store._indexed()
            check(lib.annal_query_count(index, self._filter.raw, out, ffi.NULL, err), err)
        return int(out[0])
