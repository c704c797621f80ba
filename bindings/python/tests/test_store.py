# SPDX-License-Identifier: Apache-2.0
"""Opening and closing, questions, states, packs."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import libannal as annal


def test_a_missing_store_is_not_found(path: Path) -> None:
    with pytest.raises(annal.NotFound, match="store"):
        annal.open(path, create=False)
    with pytest.raises(LookupError):
        annal.open(path, read_only=True)


def test_a_closed_store_says_so(path: Path) -> None:
    store = annal.open(path)
    session = store.session("s1")
    session.append("a")
    events, tail, state = iter(session), session.tail(), session.state()
    store.close()
    store.close()
    for call in (
        lambda: session.append("a"),
        lambda: next(events),
        lambda: tail.next(0),
        state.json,
        store.sessions,
        lambda: list(store.query()),
        lambda: store.sql("SELECT 1"),
    ):
        with pytest.raises(annal.Closed, match="closed"):
            call()


def test_a_store_that_is_forgotten_is_closed(path: Path) -> None:
    store = annal.open(path)
    session = store.session("s1")
    session.append("a", level="batch")
    with pytest.warns(ResourceWarning):
        del store, session
        gc.collect()
    with annal.open(path) as store:
        assert len(store.session("s1")) == 1


def test_read_only(path: Path, store: annal.Store) -> None:
    store.session("s1").append("a")
    with annal.open(path, read_only=True) as reader:
        assert len(reader.session("s1")) == 1
        assert len(reader.sql("SELECT seq FROM events")) == 1
        with pytest.raises(annal.IOFailed):
            reader.session("s1").append("a")


def test_query(store: annal.Store) -> None:
    for name in ("s1", "s2"):
        store.session(name).append_many([("tool.called", {"n": n}) for n in range(300)])
        store.session(name).append("run.ended", {"n": -1})
    assert store.query().count() == 602
    assert len(list(store.query(types="tool.*"))) == 600
    assert [event.session for event in store.query(types=["run.ended"], descending=True)] == ["s2", "s1"]
    assert [event.seq for event in store.query(sessions="s2", from_seq=7, to_seq=9)] == [7, 8, 9]
    assert [event.data["n"] for event in store.query(sessions="s1", where="data->>'$.n' > 297")] == [298, 299]
    middle = store.session("s2")[0].ts
    assert store.query(since=middle).count() + store.query(until=middle).count() == 602
    with pytest.raises(annal.SQLError):
        list(store.query(where="no such thing"))
    assert store.query(since=0).count() == 602 and store.query(until=0).count() == 0
    question = store.query(limit=1)
    assert list(question) == list(question)


def test_ranges_are_half_open(store: annal.Store) -> None:
    session = store.session("s1")
    moments = ["2026-10-24T00:00:00Z", "2026-10-25T00:00:00Z", "2026-10-26T00:00:00Z", "2099-01-01T00:00:00Z"]
    for moment in moments:
        session.append("note.added", {"text": "tide"}, ts=moment)
    bounds = [None, *moments, None]
    for ask in (lambda **range_: store.query(**range_).count(), lambda **range_: len(store.search("tide", **range_))):
        counts = [ask(since=since, until=until) for since, until in zip(bounds, bounds[1:])]
        assert counts == [0, 1, 1, 1, 1]


def test_sql(store: annal.Store) -> None:
    store.session("s1").append_many([("tool.called", {"n": n}) for n in range(3)])
    rows = store.sql("SELECT seq, data->>'$.n' AS n FROM events WHERE seq > ?1", 1)
    assert rows.columns == ("seq", "n")
    assert list(rows) == [(2, 1), (3, 2)] and rows[-1] == (3, 2) and len(rows) == 2
    assert rows.dicts()[0] == {"seq": 2, "n": 1}
    values = (None, 7, 2.5, "é", b"\x00\xff", True)
    assert store.sql("SELECT ?1, ?2, ?3, ?4, ?5, ?6", *values)[0] == values
    assert store.sql("SELECT 1 AS x WHERE 0").columns == ("x",)
    for wrong in ("SELEC", "DELETE FROM sessions"):
        with pytest.raises(annal.SQLError):
            store.sql(wrong)
    for bad in (2**63, object()):
        with pytest.raises(annal.Invalid):
            store.sql("SELECT ?1", bad)


def test_sql_as_arrow_and_pandas(store: annal.Store) -> None:
    pytest.importorskip("pyarrow")
    store.session("s1").append_many([("tool.called", {"n": n}) for n in range(3)])
    table = store.sql("SELECT seq, type, NULL AS missing FROM events").arrow()
    assert table.num_rows == 3 and table.column_names == ["seq", "type", "missing"]
    assert store.sql("SELECT 1 AS a, 2 AS b WHERE 0").arrow().column_names == ["a", "b"]
    pytest.importorskip("pandas")
    assert store.sql("SELECT seq FROM events").pandas()["seq"].sum() == 6


def test_ctrl_c_ends_a_select_with_many_rows(store: annal.Store) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            store.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 40000000) SELECT i FROM n")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 10
    assert len(store.sql("SELECT 1")) == 1


def test_search(store: annal.Store) -> None:
    store.session("s1").append("message.added", {"role": "user", "content": "Where is the Café?"})
    store.session("s2").append("message.added", {"role": "assistant", "content": "the cafe is closed"})
    assert {hit.session for hit in store.search("cafe the")} == {"s1", "s2"}
    (hit,) = store.search("cafe", role="user")
    assert (hit.session, hit.seq, hit.role) == ("s1", 1, "user")
    assert [hit.session for hit in store.search(["the cafe is"])] == ["s2"]
    assert [hit.session for hit in store.search(expression="cafe NOT closed")] == ["s1"]
    with pytest.raises(annal.Invalid):
        store.search("")


def test_find(store: annal.Store) -> None:
    store.session("s1").append("message.added", {"role": "user", "content": "Where is the Café?"})
    store.session("s2").append("message.added", {"role": "assistant", "content": "the cafe is closed"})
    best, other = store.find("was the cafe closing?")
    assert (best.session, best.why) == ("s2", "cafe in 1 event, closing in 1; 2 of 2 in event 1")
    assert [(hit.session, hit.seq) for hit in best.places] == [("s2", 1)]
    assert other.session == "s1" and other.score < best.score and other.events == 1
    assert [found.session for found in store.find("cafe", role="user")] == ["s1"]
    with pytest.raises(annal.Invalid):
        store.find("")


def test_states(store: annal.Store) -> None:
    session = store.session("s1")
    session.append_many([("tool.called", {"call_id": "c", "tool": "bash"}), ("tool.returned", {"call_id": "c"})])
    before, after = session.state(at=1), session.state()
    assert (before.seq, after.seq) == (1, 2)
    assert before.json()["tool_calls"][0]["status"] == "called"
    assert after.sql("SELECT status FROM tool_calls WHERE call_id = ?1", "c")[0] == ("returned",)
    assert before.hash() != after.hash() and session.state(at=2).hash() == after.hash()
    assert any(change["path"] == "/tool_calls/0/status" for change in before.diff(after))
    assert session.state(at=session[0].ts).seq >= 1
    with pytest.raises(annal.NotFound):
        session.state(at=3)


PACK = """-- pack tasks   version 1   database tasks.db
CREATE TABLE tasks (session_id TEXT, id TEXT, taken_by TEXT, PRIMARY KEY (session_id, id));

-- on task.added
INSERT INTO tasks (session_id, id) VALUES (:session, $id);

-- on task.claimed   guarded "the task is not open, or somebody else has it"
UPDATE tasks SET taken_by = $by WHERE session_id = :session AND id = $id AND taken_by IS NULL;

-- forget
DELETE FROM tasks WHERE session_id = :session;
"""


def test_a_guard_refuses_with_its_sentence(path: Path, store: annal.Store) -> None:
    packs = path / "packs"
    packs.mkdir(exist_ok=True)
    (packs / "tasks.sql").write_text(PACK)
    session = store.session("s1")
    session.append("task.added", {"id": "t1"})
    session.append("task.claimed", {"id": "t1", "by": "a"})
    with pytest.raises(annal.Refused, match="the task is not open, or somebody else has it"):
        session.append("task.claimed", {"id": "t1", "by": "b"})
    assert store.sql("SELECT taken_by FROM tasks")[0] == ("a",)
    assert len(session) == 2
    assert {pack.name for pack in store.packs()} == {"core", "tasks"}


def test_built_in_packs(store: annal.Store) -> None:
    with pytest.raises(annal.NotFound):
        store.enable_pack("no-such-pack")
    store.enable_pack("agentweaver")
    assert "agentweaver" in {pack.name for pack in store.packs()}
    store.disable_pack("agentweaver")


def test_errors_travel_between_processes() -> None:
    error = pickle.loads(pickle.dumps(annal.IOFailed("no space", 28)))
    assert (type(error), str(error), error.os_errno) == (annal.IOFailed, "no space", 28)
    busy = pickle.loads(pickle.dumps(annal.Busy("taken")))
    assert isinstance(busy, TimeoutError) and str(busy) == "taken"


def test_many_threads_append_to_one_session(store: annal.Store) -> None:
    session = store.session("s1")

    def work(thread: int) -> None:
        for n in range(25):
            session.append("a", {"thread": thread, "n": n}, level="batch")

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.sync()
    seen: dict[int, int] = {}
    for event in session:
        assert seen.get(event.data["thread"], -1) == event.data["n"] - 1
        seen[event.data["thread"]] = event.data["n"]
    assert len(session) == 400


def test_close_waits_for_calls_of_other_threads(path: Path) -> None:
    store = annal.open(path)
    session, stopped, appended = store.session("s1"), [], [0]

    def work() -> None:
        try:
            while True:
                session.append("a", level="batch")
                appended[0] += 1
        except annal.Closed:
            stopped.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while appended[0] < 20:
        time.sleep(0.001)
    store.close()
    for thread in threads:
        thread.join()
    assert len(stopped) == 4


# Python warns of fork() beside threads since 3.12; the keeper is one.
FORK = "ignore:This process:DeprecationWarning"


def run(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-W", FORK, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def test_a_child_of_fork_gets_a_message_that_says_what_to_do(path: Path) -> None:
    out = run(
        """if True:
        import os, sys, libannal as annal
        annal.open(sys.argv[1]).close()
        pid = os.fork()
        if pid == 0:
            with annal.open(sys.argv[1]) as own:
                own.session("s2").append("b")
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        store = annal.open(sys.argv[1])
        session = store.session("s1")
        session.append("a")
        tail = session.tail()
        pid = os.fork()
        if pid == 0:
            for call in (lambda: session.append("a"), lambda: tail.next(0), lambda: annal.open(sys.argv[1])):
                try:
                    call()
                except annal.Error as error:
                    print(type(error).__name__, error)
            store.close()
            del tail, session
            sys.stdout.flush()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        session.append("a")
        print(store.sessions(), len(session))
        store.close()
        """,
        path,
    )
    assert out.count("was opened by the parent of this process") == 2 and "['s1', 's2'] 2" in out
    assert "Unsupported a store was open when this process was forked" in out


@pytest.mark.long
def test_processes_that_are_spawned_share_a_store(path: Path, store: annal.Store) -> None:
    store.session("s1").append("a")
    with ProcessPoolExecutor(4, get_context("spawn")) as pool:
        assert sorted(pool.map(append_in_process, [str(path)] * 8, range(8))) == list(range(8))
    assert len(store.session("s2")) == 8


def append_in_process(path: str, n: int) -> int:
    with annal.open(path) as store:
        store.session("s2").append("b", n)
    return n


def test_open_stores_are_closed_at_the_end_of_the_interpreter(path: Path) -> None:
    run(
        """if True:
        import sys, threading, libannal as annal
        store = annal.open(sys.argv[1])
        session = store.session("s1")
        session.append("a", level="batch")
        tail = store.tail(from_now=True)
        threading.Thread(target=lambda: list(tail), daemon=True).start()
        def work():
            while True:
                session.append("a", level="batch")
        threading.Thread(target=work, daemon=True).start()
        """,
        path,
    )
    with annal.open(path) as store:
        assert len(store.session("s1")) >= 1
        assert store.session("s1").verify() == []


@pytest.mark.long
def test_memory_does_not_grow(store: annal.Store) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    session = store.session("s1")
    session.append_many([("a", {"n": n, "text": "x" * 100}) for n in range(2000)])

    def work(rounds: int) -> None:
        for _ in range(rounds):
            assert sum(1 for _ in session) == 2000
            store.sql("SELECT data FROM events LIMIT 1000")
            session.state().close()

    work(3)
    gc.collect()
    before = resident()
    work(12)
    gc.collect()
    assert resident() - before < 8 << 20


def test_a_strict_store_refuses_fields_that_do_not_fit_their_type(path: Path) -> None:
    with annal.open(path, strict=True) as store:
        session = store.session("s1")
        for type, data, words in (
            ("tool.called", {"call_id": "c", "tool": "bash", "inputt": {}}, '"inputt" is not a field'),
            ("tool.called", {"call_id": "c"}, '"tool" is missing'),
            ("agent.turn.usage", {"input_tokens": "many"}, '"input_tokens" is of kind text'),
            ("message.added", ["hello"], "not an object"),
        ):
            with pytest.raises(annal.Invalid, match=f"{type}: .*{words}"):
                session.append(type, data)
            with pytest.raises(annal.Invalid, match=words):
                session.append_many([("run.noted", {}), (type, data)])
            with pytest.raises(annal.Invalid, match=words):
                asyncio.run(session.aappend(type, data))
        assert not session.exists()
        with annal.run("agent", store=store, session="s2") as run:
            run.message("user", "hello")
            with run.tool("bash", {"command": "make"}) as call:
                call.output = "ok"
            run.usage(input_tokens=1, output_tokens=2, model="m", cost_usd=0.1)
            run.step("load", lambda: [1])
            with pytest.raises(ValueError):
                run.step("fail", lambda: int("x"), retries=1)
        with pytest.raises(annal.Invalid), annal.run("agent", store=store, session="s3") as run:
            run.usage(inputtokens=1)
        assert session.append("my.own", {"anything": 1}) == 1
        assert store.session("s1", strict=False).append("tool.called", {"tool": 1}) == 2


def test_a_read_only_store_is_an_exception_of_its_own(path: Path) -> None:
    annal.open(path).close()
    with annal.open(path, read_only=True) as store:
        with pytest.raises(annal.ReadOnly) as caught:
            store.session("s1").append("a")
        assert isinstance(caught.value, annal.IOFailed) and caught.value.status == -15
