# SPDX-License-Identifier: Apache-2.0
"""Appending to a session, and reading it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

import libannal as annal


def fill(session: annal.Session, count: int) -> None:
    session.append_many([("tool.called", {"n": n}) for n in range(1, count + 1)])


def test_the_next_process_reads_an_append(path: Path) -> None:
    with annal.open(path) as store:
        assert store.session("s1").append("tool.called", {"tool": "bäsh"}) == 1
    with annal.open(path, create=False) as store:
        (event,) = store.session("s1")
        assert (event.seq, event.type, event.data) == (1, "tool.called", {"tool": "bäsh"})
        assert store.sessions() == ["s1"] and "s1" in store and "s2" not in store


def test_several_events_are_appended_as_one(session: annal.Session) -> None:
    seqs = session.append_many(
        [annal.Draft("a.b", {"n": 1}), ("a.c", [1, None, 2.5]), {"type": "a.d", "data": "x", "id": "i"}]
    )
    assert seqs == range(1, 4)
    assert [event.data for event in session] == [{"n": 1}, [1, None, 2.5], "x"]
    assert session.append_many([]) == range(0)
    with pytest.raises(annal.Invalid):
        session.append_many([("good", 1), ("NOT GOOD", 2)])
    assert len(session) == 3


def test_an_id_makes_an_append_exactly_once(session: annal.Session) -> None:
    assert session.append("a", {"x": 1}, id="one") == 1
    assert session.append("b", {}) == 2
    assert session.append("a", {"x": 1}, id="one") == 1
    with pytest.raises(annal.Conflict, match="one"):
        session.append("a", {"x": 2}, id="one")


def test_an_expected_seq_refuses_who_does_not_know_the_end(session: annal.Session) -> None:
    assert session.append("a", expected_seq=0) == 1
    with pytest.raises(annal.Conflict):
        session.append("a", expected_seq=0)
    assert session.append("a", expected_seq=1) == 2


def test_levels(session: annal.Session) -> None:
    for level in ("sync", "batch", "os"):
        session.append("a", {"level": level}, level=level)  # type: ignore[arg-type]
    session.sync()
    assert [event.data["level"] for event in session] == ["sync", "batch", "os"]
    with pytest.raises(annal.Invalid, match="not a level"):
        session.append("a", level="soon")  # type: ignore[arg-type]


def test_times_and_causes(session: annal.Session) -> None:
    when = datetime(2026, 1, 6, 7, 24, 0, 123456, timezone.utc)
    session.append("a", ts=when)
    session.append("b", cause=session[0], ts="2026-01-07T00:00:00Z")
    session.append("c", ts=0)
    assert session[0].ts == when
    assert session[1].cause == "s1:1" and session[1].ts.day == 7
    assert session[2].ts_us == 0
    with pytest.raises(annal.Invalid, match="zone"):
        session.append("a", ts=datetime(2026, 1, 6))


def test_a_session_is_a_sequence(session: annal.Session) -> None:
    assert list(session) == [] and len(session) == 0 and session[:] == [] and list(reversed(session)) == []
    fill(session, 1000)
    seqs = list(range(1, 1001))
    assert [event.seq for event in session] == seqs
    assert [event.seq for event in reversed(session)] == seqs[::-1]
    for part in (
        slice(None),
        slice(-10, None),
        slice(3, 9, 2),
        slice(9, 3, -1),
        slice(None, None, -7),
        slice(-3, 2),
        slice(990, 5000),
    ):
        assert [event.seq for event in session[part]] == seqs[part], part
    assert session[0].seq == 1 and session[-1].seq == 1000 and session[-1000].seq == 1
    for place in (1000, -1001):
        with pytest.raises(IndexError):
            session[place]
    assert [event.seq for event in session.events(998)] == [998, 999, 1000]
    assert [event.seq for event in session.events(5, 7)] == [5, 6, 7]


def test_data_is_any_json(session: annal.Session) -> None:
    values = [None, True, -(2**63), 1e-300, "𝄞\u2028\"\\", [], {}, {"ключ": [{}]}, 2**64 - 1]
    for value in values:
        session.append("a", value)
    session.append("a", b'{"written":  1}')
    assert [event.data for event in session] == [*values, {"written": 1}]
    assert session[-1].json == b'{"written":  1}'
    for bad in (float("nan"), {1, 2}, "\ud800", b"{", {"x": object()}):
        with pytest.raises(annal.Invalid):
            session.append("a", bad)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(annal.Invalid):
        session.append("a", deep)
    assert len(session) == len(values) + 1


def test_msgpack_journals(path: Path) -> None:
    with annal.open(path, format="msgpack") as store:
        session = store.session("s1")
        session.append("a", {"x": [1, 2.5]})
        assert session.info().format == "msgpack"
        assert session[0].data == {"x": [1, 2.5]}


def test_a_fork_has_the_history_and_its_own_future(session: annal.Session) -> None:
    fill(session, 5)
    child = session.fork("s2", at=3)
    assert child.append("b") == 4
    assert [event.type for event in child] == ["tool.called"] * 3 + ["b"]
    assert child.info().forked_from == "s1" and child.info().fork_seq == 3
    assert [event.seq for event in reversed(child)] == [4, 3, 2, 1]
    with pytest.raises(annal.Conflict):
        session.fork("s2")
    with pytest.raises(annal.Conflict, match="fork"):
        session.delete()
    with pytest.raises(annal.NotFound):
        session.fork("s3", at=77)


def test_a_deleted_session_is_gone(store: annal.Store, session: annal.Session) -> None:
    fill(session, 3)
    session.delete()
    assert not session.exists() and store.sessions() == []
    with pytest.raises(annal.NotFound):
        session.delete()
    assert session.append("a") == 1


def test_damage_is_reported_and_skipped(path: Path) -> None:
    with annal.open(path) as store:
        fill(store.session("s1"), 9)
    journal = path / "events" / "s1.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"n":5', b'"n":6'))
    with annal.open(path) as store:
        session = store.session("s1")
        with pytest.raises(annal.Corrupt, match="event 5"):
            list(session)
        damage: list[annal.Damage] = []
        assert [event.seq for event in session.events(on_damage=damage.append)] == [1, 2, 3, 4, 6, 7, 8, 9]
        assert [place.seq for place in damage] == [5]
        assert [place.seq for place in session.verify()] == [5]


def test_artifacts(session: annal.Session) -> None:
    content = bytes(range(256)) * 1000
    artifact = session.put_artifact(content)
    session.append("tool.returned", {"output": artifact.ref()})
    assert session.get_artifact(artifact.sha256) == content
    with pytest.raises(annal.NotFound):
        session.get_artifact("0" * 64)
    with pytest.raises(annal.LimitExceeded):
        session.get_artifact(artifact.sha256, bytes_max=10)


@pytest.mark.parametrize("bad", ["", ".x", "a/b", "x" * 201, "\x00", "\ud800"])
def test_an_id_that_is_not_a_file_name_is_refused(store: annal.Store, bad: str) -> None:
    with pytest.raises(annal.Invalid):
        store.session(bad)


def test_a_pack_of_ones_own_in_the_past(store: annal.Store, path: Path) -> None:
    (path / "packs").mkdir(exist_ok=True)
    file = path / "packs" / "tickets.sql"
    text = """-- pack tickets   version 1   database tickets.db
CREATE TABLE tickets (session_id TEXT, user TEXT, PRIMARY KEY (session_id, user)) WITHOUT ROWID;
-- on ticket.opened
INSERT INTO tickets VALUES (:session, $user);
-- on ticket.closed
DELETE FROM tickets WHERE session_id = :session AND user = $user;
"""
    file.write_text(text)
    session = store.session("s1")
    session.append_many([("ticket.opened", {"user": "ada"}), ("ticket.closed", {"user": "ada"})])
    for pack in ("tickets", file):
        with session.state(at=1, pack=pack) as before, session.state(pack=pack) as after:
            assert list(before.sql("SELECT user FROM tickets")) == [("ada",)]
            assert list(after.sql("SELECT user FROM tickets")) == []
            assert before.diff(after) != []
    with pytest.raises(annal.NotFound, match="none.sql"):
        session.state(pack="none")
    file.write_text(text.replace("INSERT", "INSRT"))
    with pytest.raises(annal.SQLError):
        session.state(pack="tickets")
