# SPDX-License-Identifier: Apache-2.0
"""Misuse is refused with a sentence, and a value is the same with and without orjson."""

from __future__ import annotations

import copy
import enum
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import libannal as annal
from libannal import _json

WRONG: list[tuple[str, Callable[[annal.Store, annal.Session], Any]]] = [
    ("a seq that is a cause", lambda store, s: s.append("a", cause=-1)),
    ("a str is needed, not float", lambda store, s: s.append("a", cause=1.5)),
    ("a str is needed, not int", lambda store, s: s.append("a", id=7)),
    ("a str is needed, not NoneType", lambda store, s: s.append(None)),
    ("a str is needed, not int", lambda store, s: s.append(7, id="x")),
    ("not one str", lambda store, s: s.append_many("abc")),
    ("not one dict", lambda store, s: s.append_many({"type": "a"})),
    ("not one Draft", lambda store, s: s.append_many(annal.Draft("a"))),
    ("not str: 'ab'", lambda store, s: s.append_many(["ab"])),
    ("is not a draft", lambda store, s: s.append_many([("a", 1, 2, 3, 4, 5)])),
    ("is not a draft", lambda store, s: s.append_many([{"kind": "a"}])),
    ("limit is an integer", lambda store, s: store.query(limit=-1)),
    ("from_seq is an integer", lambda store, s: store.query(from_seq=2**64)),
    ("limit is an integer", lambda store, s: store.search("x", limit=-1)),
    ("last is an integer", lambda store, s: store.tail(last=-1)),
    ("at is an integer", lambda store, s: s.state(at=-1)),
    ("at is an integer", lambda store, s: s.fork("f", at=-1)),
    ("expected_seq is an integer", lambda store, s: s.append("a", expected_seq=-1)),
    ("expected_seq is an integer", lambda store, s: s.append("a", expected_seq="1")),
    ("a time is a datetime", lambda store, s: store.query(since=1.5)),
    ("at most 64 bits", lambda store, s: s.append("a", ts=2**70)),
    ("a str is needed, not int", lambda store, s: store.session(5)),
    ("a sequence of str", lambda store, s: store.query(types=5)),
    ("a str is needed, not int", lambda store, s: store.query(types=[5])),
    ("a str is needed, not int", lambda store, s: store.sql(5)),
    ("batch_ms is at most", lambda store, s: annal.open(store.path, batch_ms=2**40)),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_misuse_is_invalid_and_appends_nothing(number: int, store: annal.Store) -> None:
    session = store.session("s1")
    session.append("first")
    sentence, call = WRONG[number]
    with pytest.raises(annal.Invalid, match=sentence):
        call(store, session)
    assert store.sessions() == ["s1"] and len(session) == 1


def test_a_cause_may_be_a_seq_of_the_session(session: annal.Session) -> None:
    seq = session.append("a")
    session.append("b", cause=seq)
    session.append_many([annal.Draft("c", cause=seq), ("d", {}, None, session[0])])
    assert [event.cause for event in session] == ["", "s1:1", "s1:1", "s1:1"]


def test_handles_are_neither_copied_nor_pickled(store: annal.Store) -> None:
    session = store.session("s1")
    session.append("a")
    for handle in (store, session, store.tail(), session.state()):
        for take in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                take(handle)
    session.append("b")
    assert len(session) == 2


class Colour(enum.Enum):
    RED = "red"


VALUES: list[Any] = [
    2**64,
    -(2**200),
    2**63 - 1,
    [2**63, {"n": 10**30}],
    1e300,
    0.1,
    "12345678901234567890123",
    uuid.UUID(int=7),
    {"id": uuid.UUID(int=7), "colour": Colour.RED},
    {1: "a", None: "b"},
    "\u00e9\u2028\x00",
    (1, 2),
    True,
    None,
]
REFUSED: list[Any] = [float("nan"), float("inf"), [float("nan")], b"\xff".decode("latin-1").encode("utf-16", "surrogatepass"), {1, 2}, object(), "\ud800"]


def test_a_value_is_the_same_with_and_without_orjson(store: annal.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("orjson")
    found = []
    for module in (_json.orjson, None):
        monkeypatch.setattr(_json, "orjson", module)
        session = store.session("with" if module else "without")
        for value in VALUES:
            session.append("value", value)
            session.append("value", {"id": 1, "value": value}, id=f"{len(session)}")
        for value in REFUSED:
            with pytest.raises(annal.Invalid):
                session.append("value", value)
        found.append([(event.data, type(event.data)) for event in session])
        assert session[0].data == 2**64 and isinstance(session[0].data, int)
    assert found[0] == found[1]
    monkeypatch.setattr(_json, "orjson", None)
    assert [event.data for event in store.session("with")] == [data for data, _ in found[0]]


def test_a_large_output_stays_in_data_unless_a_pack_moves_it(path: Path) -> None:
    with annal.open(path) as store:
        session = store.session("s1")
        session.append("tool.returned", {"call_id": "c1", "output": "z" * 500_000})
        assert session[0].data["output"] == session[0].output() == "z" * 500_000
        (path / "packs").mkdir(exist_ok=True)
        limits = "-- pack limits   version 1   database limits.db\n-- artifact tool.returned   output   over 1000\n"
        (path / "packs" / "limits.sql").write_text(limits)
        session.append("tool.returned", {"call_id": "c2", "output": "z" * 2000})
        session.append("tool.returned", {"call_id": "c3", "output": [1, "z" * 2000]})
        session.append("tool.returned", {"call_id": "c4"})
        assert "output" not in session[1].data and session[1].data["output_ref"]["bytes"] == 2000
        assert session[1].output() == "z" * 2000 and session[2].output() == [1, "z" * 2000]
        assert session[3].output() is None and session.fork("f")[1].output() == "z" * 2000
        with store.tail("s1", from_seq=2) as tail:
            assert next(tail).output() == "z" * 2000
        assert [len(event.output() or "") for event in store.query(types="tool.*", sessions="s1")][1:] == [2000, 2, 0]
