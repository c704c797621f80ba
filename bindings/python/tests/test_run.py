# SPDX-License-Identifier: Apache-2.0
"""Recording without a framework."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import libannal as annal


def test_a_run_outside_of_its_block_is_refused(store: annal.Store) -> None:
    run = annal.run("job", store=store)
    with pytest.raises(annal.Invalid, match="a run begins with its block"):
        run.step("a", lambda: 1)
    with pytest.raises(annal.Invalid, match="a run begins with its block"):
        run.message("user", "hi")
    assert not hasattr(run, "other")


def test_a_run_is_a_session_that_the_tables_understand(store: annal.Store) -> None:
    with annal.run("triage", store=store) as run:
        run.message("user", "Is it green?")
        with run.tool("bash", {"command": "make"}) as call:
            call.output = "ok"
        with pytest.raises(ZeroDivisionError), run.tool("divide"):
            1 / 0  # noqa: B018
        run.usage(input_tokens=120, output_tokens=7, model="m")
        with annal.run("helper") as helper:
            assert annal.current_run() is helper
        assert annal.current_run() is run
    assert annal.current_run() is None
    rows = store.sql("SELECT id, agent_id, parent_session_id, status, input_tokens FROM sessions").dicts()
    by_agent = {row["agent_id"]: row for row in rows}
    assert by_agent["triage"]["status"] == "ended" and by_agent["triage"]["input_tokens"] == 120
    assert by_agent["helper"]["parent_session_id"] == run.session.id
    calls = run.session.state().sql("SELECT tool, status FROM tool_calls ORDER BY seq")
    assert list(calls) == [("bash", "returned"), ("divide", "failed")]
    assert run.session[3].cause == run.session[2].ref


def test_a_run_that_fails_says_why(path: Path) -> None:
    with pytest.raises(KeyError), annal.run("broken", store=path) as run:
        raise KeyError("x")
    with annal.open(path) as store:
        ended = store.session(run.session.id)[-1]
        assert (ended.type, ended.data["status"], ended.data["error"]["type"]) == ("session.ended", "failed", "KeyError")
    with pytest.raises(annal.Invalid, match="needs a store"), annal.run("nowhere"):
        pass


def test_recorded_functions_are_tool_calls_of_the_run_that_they_are_in(store: annal.Store) -> None:
    @annal.record
    def add(a: int, b: object) -> int:
        return a

    @annal.record(name="later")
    async def wait(a: int) -> int:
        await asyncio.sleep(0)
        return a

    @annal.record(store=store)
    async def agent(n: int) -> int:
        return add(n, object()) + await wait(n)

    async def main() -> list[int]:
        return list(await asyncio.gather(*(agent(n) for n in range(5))))

    assert add(1, 2) == 1  # outside of a run: not recorded
    assert asyncio.run(main()) == [0, 2, 4, 6, 8]
    assert len(store.sessions()) == 5
    for session in store:
        called = [event.data for event in session if event.type == "tool.called"]
        assert [data["tool"] for data in called] == ["add", "later"]
        assert called[0]["input"]["a"] == called[1]["input"]["a"] and "object" in called[0]["input"]["b"]


def test_a_run_that_exists_is_continued_only_on_request(store: annal.Store) -> None:
    with annal.run("job", store=store, session="job-1") as run:
        assert run.recovery is None
        run.message("user", "Pay.")
        run.append("turn.started", {"turn_id": "t1"})
        run.tool("pay", {"amount": 7}, call_id="c1").__enter__()
        run._steps  # noqa: B018
    with pytest.raises(annal.Conflict, match="resume=True"), annal.run("job", store=store, session="job-1"):
        pass
    with pytest.raises(annal.Invalid, match="needs the id"):
        annal.run("job", store=store, resume=True)
    with annal.run("job", store=store, session="job-1", resume=True) as run:
        assert run.recovery is not None and run.recovery.last_user is not None
        assert run.recovery.last_user.data["content"] == "Pay." and run.recovery.last_assistant is None
        (turn,), (call,) = run.recovery.turns, run.recovery.calls
        assert turn.turn_id == "t1" and (call.call_id, call.tool, call.input) == ("c1", "pay", {"amount": 7})
        with run.reopen(call) as reopened:
            reopened.output = "7 paid"
        run.append("turn.completed", {"turn_id": "t1"})
    types = [event.type for event in run.session]
    assert types.count("session.created") == 1 and types.count("tool.called") == 1
    result = next(event for event in run.session if event.type == "tool.returned")
    assert result.cause == f"job-1:{call.seq}" and result.data["output"] == "7 paid"
    recovery = run.session.recovery()
    assert (recovery.calls, recovery.turns, recovery.seq, recovery.status) == ([], [], len(run.session), "ended")
    with pytest.raises(annal.NotFound):
        store.session("none").recovery()
