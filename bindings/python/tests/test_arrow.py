# SPDX-License-Identifier: Apache-2.0
"""Rows and events as columns: tuples, tables of Arrow, frames."""

from __future__ import annotations

import gc
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import libannal as annal

pyarrow = pytest.importorskip("pyarrow")

COLUMNS = ["session_id", "seq", "timestamp", "type", "id", "cause", "data"]


def test_every_type_of_sqlite_and_missing_values(store: annal.Store) -> None:
    select = """SELECT * FROM (VALUES (1, 1, 'é', x'00ff', NULL), (NULL, 2.5, '', x'', NULL),
                                      (3, NULL, NULL, NULL, NULL), (4, -1, 'abc', x'01', NULL))"""
    rows = store.sql(select)
    table = rows.arrow()
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "large_string", "large_binary", "null"]
    assert [tuple(row.values()) for row in table.to_pylist()] == list(rows)
    assert rows[1] == (None, 2.5, "", b"", None) and rows[0][1] == 1
    table.validate(full=True)


def test_a_column_with_several_types_is_one_for_tuples_only(store: annal.Store) -> None:
    rows = store.sql("SELECT column1 AS mixed FROM (VALUES (1), ('é'), (x'00'), (NULL), (2.5), ('z'))")
    assert [row[0] for row in rows] == [1, "é", b"\x00", None, 2.5, "z"]
    with pytest.raises(annal.Invalid, match="column 'mixed' has integers and reals and text and blobs"):
        rows.arrow()
    with pytest.raises(annal.Invalid, match="CAST"):
        store.sql("SELECT 'a' UNION ALL SELECT x'00'").arrow()


def test_arrays_outlive_their_rows_and_their_store(path: Path) -> None:
    with annal.open(path) as store:
        store.session("s1").append_many([("a", {"n": n}) for n in range(1000)])
        table = store.sql("SELECT seq, data FROM events").arrow()
        events = store.session("s1").arrow()
    del store
    gc.collect()
    assert table.column("seq").to_pylist() == list(range(1, 1001))
    assert events.column("data")[999].as_py() == '{"n":999}'


def test_events_as_a_table(store: annal.Store) -> None:
    session = store.session("s1")
    session.append_many([annal.Draft("a", {"n": n, "é": "ü"}, id=f"id-{n}") for n in range(100)])
    session.append("b", None, cause=session[0])
    store.session("s2").append("b", "text")
    for table in (session.arrow(), store.query(sessions="s1").arrow()):
        assert table.column_names == COLUMNS
        assert table.to_pylist() == [
            {
                "session_id": "s1",
                "seq": event.seq,
                "timestamp": event.ts,
                "type": event.type,
                "id": event.id,
                "cause": event.cause,
                "data": event.json.decode(),
            }
            for event in session
        ]
    assert session.arrow(3, 5).column("seq").to_pylist() == [3, 4, 5]
    assert store.session("none").arrow().num_rows == 0
    assert store.query(types="none").arrow().column_names == COLUMNS
    batches = list(store.query().batches(rows=30))
    assert [batch.num_rows for batch in batches] == [30, 30, 30, 12]
    assert batches[-1].column(0).to_pylist()[-1] == "s2"


def test_events_are_read_across_several_blocks(store: annal.Store) -> None:
    session = store.session("s1")
    session.append_many([("a", "x" * (300 << 10)) for _ in range(12)])  # some blocks of 1 MiB
    session.append_many([("a", n) for n in range(5000)])
    assert [event.seq for event in session] == list(range(1, 5013))
    assert [event.seq for event in store.query()] == list(range(1, 5013))
    assert [event.seq for event in session.events(10, 15)] == [10, 11, 12, 13, 14, 15]
    assert [event.seq for event in reversed(session)] == list(range(5012, 0, -1))


def test_damaged_events_are_not_in_a_table(path: Path) -> None:
    with annal.open(path) as store:
        session = store.session("s1")
        session.append_many([("a", {"n": n}) for n in range(50)])
        assert store.query().count() == 50
    (journal,) = path.rglob("s1.jsonl")
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'{"n":20}', b'{"n":21}', 1))
    with annal.open(path) as store:
        session, found = store.session("s1"), []
        assert len(list(session.events(on_damage=found.append))) == 49
        assert [damage.seq for damage in found] == [21]
        for read in (session.arrow, store.query().arrow, lambda: list(store.query()), lambda: list(session)):
            with pytest.raises(annal.Corrupt, match="event 21 of session 's1'"):
                read()


def test_the_command_writes_parquet_with_the_module_of_duckdb_for_python(path: Path) -> None:
    module = pytest.importorskip("_duckdb").__file__
    command = Path(__file__).parents[3] / "build/release/tools/annal"
    library = Path(str(sysconfig.get_config_var("LIBDIR"))) / str(sysconfig.get_config_var("INSTSONAME"))
    if not command.exists() or ".so" not in library.name or not library.exists():
        pytest.skip("it needs the command, and the library of this Python")
    import pyarrow.parquet

    with annal.open(path) as store:
        session = store.session("s1")
        session.append("a", {"text": "é"}, id="one")
        session.append("b", cause=1)
    written = path.parent / "events.parquet"
    sql = "SELECT session_id, seq, id, cause, data FROM events ORDER BY seq"
    subprocess.run(
        [command, "--store", path, "sql", sql, "--format", "parquet", "--to", written],
        env=os.environ | {"ANNAL_DUCKDB": str(module), "LD_LIBRARY_PATH": str(library.parent)},
        check=True,
    )
    rows = pyarrow.parquet.read_table(written).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("s1", 1, "one", None, '{"text":"é"}'), ("s1", 2, None, "s1:1", "null")]
