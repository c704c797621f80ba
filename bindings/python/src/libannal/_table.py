# SPDX-License-Identifier: Apache-2.0
"""Rows as columns that C has filled. Values of Python and arrays of Arrow are built from them, arrays without a copy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from ._core import STOP, check, ffi, lib, new_error
from ._errors import Invalid, NoMemory
from ._event import Event

if TYPE_CHECKING:
    import pyarrow

    from ._store import Store

Value = int | float | str | bytes | None
"""A value in a column of SQLite."""

INTEGER, REAL, TEXT, BLOB = (
    1 << kind
    for kind in (lib.ANNAL_VALUE_INTEGER, lib.ANNAL_VALUE_REAL, lib.ANNAL_VALUE_TEXT, lib.ANNAL_VALUE_BLOB)
)
NULL = 1 << lib.ANNAL_VALUE_NULL
_KINDS = {INTEGER: "integers", REAL: "reals", TEXT: "text", BLOB: "blobs"}

_stopped = threading.local()


def _on_error(_kind: object, error: BaseException, _trace: object) -> None:
    _stopped.error = error


@ffi.def_extern(name="libannal_on_pause", error=STOP, onerror=_on_error)  # type: ignore[untyped-decorator]
def _pause() -> int:
    return 0  # the interpreter has run, and handled signals


def stopped() -> BaseException:
    """The reason why a callback of C ended its call: an exception raised in a pause, or no memory."""
    error: BaseException | None = _stopped.__dict__.pop("error", None)
    return error if error is not None else NoMemory("the rows of a SELECT")


take_columns = ffi.addressof(lib, "libannal_table_columns")
take_row = ffi.addressof(lib, "libannal_table_row")

BLOCK_ROWS, BLOCK_BYTES = 2048, 1 << 20  # maximum of events, and of their data, that become objects at once
BATCH_ROWS, BATCH_BYTES = 65_536, 32 << 20  # the same for a batch of Arrow


class Table:
    """A block of rows, in memory of C that is freed with the last object that refers to it."""

    def __init__(self) -> None:
        self.raw = ffi.gc(lib.libannal_table_new(), lib.libannal_table_free)
        if not self.raw:
            raise NoMemory("a table of rows")

    def __len__(self) -> int:
        return int(self.raw.rows)

    @property
    def names(self) -> list[str]:
        columns = self.raw.columns
        return [
            ffi.string(columns[index].name).decode("utf-8", "replace") for index in range(self.raw.column_count)
        ]

    def _buffer(self, pointer: Any, size: int) -> memoryview:
        if not size:
            return memoryview(b"")
        # ffi.gc: the buffer keeps its source alive, and that keeps the table.
        return memoryview(ffi.buffer(ffi.gc(pointer, lambda _pointer, _table=self.raw: None), size))

    def _numbers(self, column: Any, code: Literal["q", "d"] = "q") -> Any:
        return self._buffer(column.numbers, 8 * (len(self) + 1)).cast(code)

    def values(self, index: int) -> list[Any]:
        """A column as values of Python."""
        column = self.raw.columns[index]
        if column.seen in (INTEGER, REAL):
            return self._numbers(column, "q" if column.seen == INTEGER else "d")[1:].tolist()  # type: ignore[no-any-return]
        content = bytes(self._buffer(column.bytes, column.bytes_len))
        ends = self._numbers(column).tolist()
        if column.seen == TEXT:
            if content.isascii():
                text = content.decode("ascii")
                return [text[begin:end] for begin, end in pairwise(ends)]
            return [str(content[begin:end], "utf-8", "replace") for begin, end in pairwise(ends)]
        if column.seen == BLOB:
            return [content[begin:end] for begin, end in pairwise(ends)]
        return list(self._mixed(column, content, ends[1:]))

    def _mixed(self, column: Any, content: bytes, numbers: list[int]) -> Iterator[Value]:
        end = 0
        reals = self._numbers(column, "d")[1:]
        for row, kind in enumerate(ffi.unpack(column.kinds, len(self)) if len(self) else ()):
            bit = 1 << kind
            if bit == NULL:
                yield None
            elif bit == INTEGER:
                yield numbers[row]
            elif bit == REAL:
                yield reals[row]
            else:
                begin, end = end, numbers[row]
                yield str(content[begin:end], "utf-8", "replace") if bit == TEXT else content[begin:end]

    def pop_event(self) -> tuple[str, int]:
        """Remove the last row, an event's: returns its session and seq."""
        found = self.values(0)[-1], self.values(1)[-1]
        self.raw.rows -= 1
        return found

    def rows(self) -> list[tuple[Value, ...]]:
        return list(zip(*(self.values(index) for index in range(self.raw.column_count))))

    # ---- Arrow ----

    def array(self, index: int) -> pyarrow.Array:
        """A column as an array of Arrow, which points into this table. Raises `Invalid` if it has several types."""
        import pyarrow

        column, rows = self.raw.columns + index, len(self)
        seen = column.seen & ~NULL
        if not seen:
            return pyarrow.nulls(rows)
        if seen not in _KINDS and seen != INTEGER | REAL:
            kinds = " and ".join(what for bit, what in _KINDS.items() if seen & bit)
            name = self.names[index]
            raise Invalid(f"column '{name}' has {kinds}, and a column of Arrow one type: use CAST in the SELECT")
        valid = None
        if column.seen & NULL:
            valid = pyarrow.allocate_buffer((rows + 7) // 8)
            lib.libannal_column_valid(column, rows, ffi.cast("uint8_t *", valid.address))
        if seen == INTEGER | REAL:
            reals = pyarrow.allocate_buffer(8 * rows)
            lib.libannal_column_reals(column, rows, ffi.cast("double *", reals.address))
            return pyarrow.Array.from_buffers(pyarrow.float64(), rows, [valid, reals])
        numbers = pyarrow.py_buffer(self._buffer(column.numbers, 8 * (rows + 1)))
        if seen in (INTEGER, REAL):
            type_ = pyarrow.int64() if seen == INTEGER else pyarrow.float64()
            return pyarrow.Array.from_buffers(type_, rows, [valid, numbers.slice(8)])
        type_ = pyarrow.large_string() if seen == TEXT else pyarrow.large_binary()
        content = pyarrow.py_buffer(self._buffer(column.bytes, column.bytes_len))
        return pyarrow.Array.from_buffers(type_, rows, [valid, numbers, content])

    def events(self, store: Store, session: str | None = None) -> list[Event]:
        """The rows as events; `session`: the session of all of them."""
        if not len(self):
            return []
        sessions, seqs, times, types, ids, causes = (self.values(index) for index in range(6))
        content = self.raw.columns[6]
        data = bytes(self._buffer(content.bytes, content.bytes_len))
        return [
            Event(session or other, seq, time, type_, id_, cause, data[begin:end], store)
            for other, seq, time, type_, id_, cause, (begin, end) in zip(
                sessions, seqs, times, types, ids, causes, pairwise(self._numbers(content).tolist())
            )
        ]


def event_batch(table: Table) -> pyarrow.RecordBatch:
    """A table of events as a batch of Arrow."""
    import pyarrow

    schema = event_schema()
    if not len(table):
        return pyarrow.RecordBatch.from_pylist([], schema)
    arrays = [table.array(index).view(field.type) for index, field in enumerate(schema)]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def event_schema() -> pyarrow.Schema:
    """The columns of a batch of events."""
    import pyarrow

    text = pyarrow.large_string()
    return pyarrow.schema(
        [
            ("session_id", text),
            ("seq", pyarrow.int64()),
            ("timestamp", pyarrow.timestamp("us", tz="UTC")),
            ("type", text),
            ("id", text),
            ("cause", text),
            ("data", text),
        ]
    )


def growing() -> Iterator[int]:
    """Sizes of blocks: small ones first, for callers that read few events."""
    size = 16
    while True:
        yield size
        size = min(2 * size, BLOCK_ROWS)


def read_block(read: Callable[..., int], *arguments: Any) -> tuple[int, Table]:
    """Call libannal_table_read_…() with a table of its own: returns its status, and that table."""
    table, err = Table(), new_error()
    status = check(read(table.raw, *arguments, err), err)
    return status, table
