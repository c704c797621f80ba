# SPDX-License-Identifier: Apache-2.0
"""Recording without a framework."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import libannal as annal


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
