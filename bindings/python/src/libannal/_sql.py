# SPDX-License-Identifier: Apache-2.0
"""Rows: the answer of a SELECT, as tuples, dicts, an Arrow table or a frame of pandas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from ._core import STOP, Slice, check, ffi, lib, new_error
from ._errors import Invalid
from ._table import Table, Value, stopped, take_columns, take_row

if TYPE_CHECKING:
    import pandas
    import pyarrow

Row = tuple[Value, ...]


class Rows(Sequence[Row]):
    """Rows of a SELECT, all in memory: a sequence of tuples that knows its `columns`.

    The tuples are built when the first is used; `arrow()` needs none.
    """

    def __init__(self, table: Table) -> None:
        self.columns = tuple(table.names)
        """The names of the columns."""
        self._table = table
        self._made: list[Row] | None = None

    @property
    def _rows(self) -> list[Row]:
        if self._made is None:
            self._made = self._table.rows()
        return self._made

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<Rows {', '.join(self.columns)}: {len(self)}>"

    def dicts(self) -> list[dict[str, Value]]:
        """The rows as dicts by column name."""
        return [dict(zip(self.columns, row)) for row in self]

    def arrow(self) -> pyarrow.Table:
        """The rows as a table of Arrow; needs pyarrow (the extra "arrow").

        Nothing is copied: its arrays are the memory to which SQLite's answer was written. Integers with reals become
        reals; other columns with several types raise `Invalid`.
        """
        import pyarrow

        arrays = [self._table.array(index) for index in range(len(self.columns))]
        return pyarrow.Table.from_arrays(arrays, names=list(self.columns))

    def pandas(self) -> pandas.DataFrame:
        """The rows as a frame; needs pandas (the extra "pandas")."""
        import pandas

        return pandas.DataFrame.from_records(self._rows, columns=list(self.columns))


class _Params:
    """Values of Python as an array of annal_value."""

    def __init__(self, params: Sequence[object]) -> None:
        self.kept: list[Any] = []
        self.array = ffi.new("annal_value[]", len(params))
        for index, param in enumerate(params):
            self._set(self.array[index], index, param)

    def _set(self, raw: Any, index: int, param: object) -> None:
        if param is None:
            raw.kind = lib.ANNAL_VALUE_NULL
        elif isinstance(param, int):
            raw.kind = lib.ANNAL_VALUE_INTEGER
            try:
                raw.integer = int(param)
            except OverflowError:
                raise Invalid(f"parameter {index + 1} has more than 64 bits") from None
        elif isinstance(param, float):
            raw.kind = lib.ANNAL_VALUE_REAL
            raw.real = param
        elif isinstance(param, (str, bytes)):
            raw.kind = lib.ANNAL_VALUE_TEXT if isinstance(param, str) else lib.ANNAL_VALUE_BLOB
            kept = Slice(param)
            self.kept.append(kept)
            raw.bytes = kept.value
        else:
            raise Invalid(f"parameter {index + 1} is of type {type(param).__name__}, which SQLite does not have")


def run_sql(
    call: Callable[..., int], sql: str, params: Sequence[object], session: str = ""
) -> Rows:
    """Run a SELECT through `call`, which is annal_index_sql() or annal_state_sql() without its first argument."""
    values, name = _Params(params), Slice(session)
    options = ffi.new(
        "annal_sql_options *",
        {
            "params": values.array,
            "param_count": len(params),
            "columns": take_columns,
            "session": name.value,
        },
    )
    table, err = Table(), new_error()
    status = check(call(Slice(sql).value, options, take_row, table.raw, err), err)
    if status == STOP:
        raise stopped()
    return Rows(table)
