# SPDX-License-Identifier: Apache-2.0
"""Many threads, processes and tasks on one store; calls that are cancelled; processes that are killed; memory.

LIBANNAL_FULL=1 makes each as large as tests/check_long.sh wants it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import libannal as annal

FULL = os.environ.get("LIBANNAL_FULL") == "1"
HERE = Path(__file__).parent


def test_64_threads_use_one_store(store: annal.Store) -> None:
    count, failures = 200 if FULL else 6, []
    shared = store.session("shared")

    def work(thread: int) -> None:
        try:
            own = store.session(f"own-{thread}")
            for n in range(count):
                own.append("a", {"n": n}, level="batch")
                shared.append("b", {"thread": thread, "n": n}, level="batch" if n % 3 else "sync")
                if n % 5 == 0:
                    assert store.sql("SELECT count(*) FROM events WHERE session_id = ?1", own.id)[0][0] <= n + 1
                    assert own[-1:] == [] or own[-1].data["n"] <= n
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store.sync()
    assert len(shared) == 64 * count
    assert store.query(types="a").count() == 64 * count
    last: dict[int, int] = {}
    for event in shared:
        assert last.get(event.data["thread"], -1) == event.data["n"] - 1
        last[event.data["thread"]] = event.data["n"]


def append_many(path: str, process: int, count: int) -> int:
    with annal.open(path) as store:
        own = store.session(f"p-{process}")
        for n in range(count):
            own.append("a", {"n": n})
            if n % 5 == 0:
                store.session("shared").append("b", {"process": process, "n": n})
                store.sql("SELECT count(*) FROM events")
    return process


@pytest.mark.long
def test_8_processes_use_one_store(path: Path, store: annal.Store) -> None:
    count = 400 if FULL else 10
    with ProcessPoolExecutor(8, get_context("spawn")) as pool:
        done = pool.map(append_many, [str(path)] * 8, range(8), [count] * 8)
        assert sorted(done) == list(range(8))
    assert all(len(store.session(f"p-{process}")) == count for process in range(8))
    assert len(store.session("shared")) == 8 * len(range(0, count, 5))
    assert all(session.verify() == [] for session in store)


def test_1000_tasks_use_one_store(store: annal.Store) -> None:
    pytest.importorskip("agents")
    from libannal.openai_agents import AnnalSession

    rounds = 10 if FULL else 1

    async def main() -> None:
        seen = 0
        tail = store.tail(types="message.added", from_now=True)

        async def follow() -> None:
            nonlocal seen
            async for _ in tail:
                seen += 1
                if seen == 2000 * rounds:
                    return

        async def talk(number: int) -> None:
            session = AnnalSession(f"user {number % 100}", store, level="batch")
            for _ in range(rounds):
                await session.add_items([{"role": "user", "content": f"{number}"}, {"role": "assistant", "content": "x"}])
                items: Any = await session.get_items()
                assert any(item["content"] == f"{number}" for item in items)

        following = asyncio.create_task(follow())
        await asyncio.gather(*(talk(number) for number in range(1000)))
        await asyncio.wait_for(following, 60)
        tail.close()

    asyncio.run(main())
    assert store.query(types="message.added").count() == 2000 * rounds


def scenes(store: annal.Store) -> dict[str, Callable[[int], Awaitable[Any]]]:
    """Every method of the adapters that is awaited, with a number that its call may use."""
    from claude_agent_sdk.types import SessionKey
    from google.adk.events.event import Event
    from langgraph.checkpoint.base import empty_checkpoint
    from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

    from libannal.claude_agent import AnnalSessionStore
    from libannal.google_adk import AnnalSessionService
    from libannal.langgraph import AnnalSaver
    from libannal.openai_agents import AnnalSession
    from libannal.pydantic_ai import AnnalStepStore

    saver, items, transcripts = AnnalSaver(store), AnnalSession("user", store), AnnalSessionStore(store)
    service, steps = AnnalSessionService(store), AnnalStepStore(store)
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
    key: SessionKey = {"project_key": "p", "session_id": "s"}
    adk: Any = {"app_name": "app", "user_id": "user"}

    async def listed(_: int) -> list[Any]:
        return [one async for one in saver.alist({"configurable": {"thread_id": "t"}}, limit=5)]

    async def add_event(_: int) -> Any:
        session = await service.get_session(**adk, session_id="s")
        if session is None:
            session = await service.create_session(**adk, session_id="s")
        return await service.append_event(session, Event(author="agent"))

    return {
        "aput": lambda n: saver.aput(config, empty_checkpoint(), {"step": n}, {}),
        "aput_writes": lambda n: saver.aput_writes(config, [("ch", n)], str(n)),
        "aget_tuple": lambda _: saver.aget_tuple({"configurable": {"thread_id": "t"}}),
        "alist": listed,
        "acopy_thread": lambda n: saver.acopy_thread("t", f"copy-{n}"),
        "adelete_thread": lambda n: saver.adelete_thread(f"copy-{n - 1}"),
        "aprune": lambda _: saver.aprune(["t"]),
        "add_items": lambda n: items.add_items([{"role": "user", "content": str(n)}, {"role": "user", "content": str(n)}]),
        "get_items": lambda _: items.get_items(limit=5),
        "pop_item": lambda _: items.pop_item(),
        "append": lambda n: transcripts.append(key, [{"type": "user", "uuid": str(n)}]),  # type: ignore[list-item]
        "load": lambda _: transcripts.load(key),
        "list_sessions": lambda _: transcripts.list_sessions("p"),
        "append_event": add_event,
        "adk_list": lambda _: service.list_sessions(app_name="app"),
        "register_run": lambda n: steps.register_run(RunRecord(run_id=str(n))),
        "step": lambda n: steps.append_event(StepEvent(run_id="r", kind="run_started", step_index=n)),
        "snapshot": lambda n: steps.save_snapshot(ContinuableSnapshot(run_id="r", step_index=n, messages=[])),
        "effect": lambda n: steps.record_tool_effect(
            ToolEffectRecord(tool_call_id=str(n), tool_name="t", run_id="r", status="started")
        ),
        "list_runs": lambda _: steps.list_runs(),
    }


def test_a_cancelled_call_leaves_everything_usable(store: annal.Store) -> None:
    for needed in ("langgraph", "agents", "claude_agent_sdk", "google.adk", "pydantic_ai_harness"):
        pytest.importorskip(needed)
    chance, rounds = random.Random(1), 200 if FULL else 6

    async def main() -> None:
        calls = scenes(store)
        cancelled = 0
        for number in range(rounds):
            for name, call in calls.items():
                task = asyncio.ensure_future(call(number))
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                if chance.random() < 0.5:
                    await asyncio.sleep(chance.uniform(0, 0.002))
                cancelled += task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass
                except annal.Conflict as error:
                    assert name in ("acopy_thread", "append_event"), error
        assert cancelled > rounds * len(calls) // 3
        for name, call in calls.items():  # the work of the thread has ended, and nothing is held
            await asyncio.wait_for(call(rounds), 30)

    asyncio.run(main())
    for session in store:
        assert session.verify() == []


IN_SHORT = ("plain", "langgraph")
OTHERS = ("runs", "openai", "claude", "adk", "pydantic", "otel")


@pytest.mark.parametrize("adapter", [*IN_SHORT, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_acknowledged_calls_survive_sigkill(adapter: str, tmp_path: Path) -> None:
    needs = {
        "langgraph": "langgraph",
        "openai": "agents",
        "claude": "claude_agent_sdk",
        "adk": "google.adk",
        "pydantic": "pydantic_ai_harness",
        "otel": "opentelemetry.sdk",
    }
    pytest.importorskip(needs.get(adapter, "libannal"))
    rounds = 500 if FULL else 3
    seed = os.environ.get("SEED", "1")
    command = [sys.executable, str(HERE / "killed.py"), adapter, str(rounds), seed, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{adapter}: {rounds} killed" in done.stdout


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.long
def test_memory_stays_flat(store: annal.Store) -> None:
    """In full: a million appends and reads."""
    times = 100 if FULL else 2

    def work(turns: int) -> None:
        for _ in range(turns):
            session = store.session("s1")
            for n in range(1000):
                session.append("a", {"n": n, "text": "x" * 50}, level="batch")
            store.sync()
            seen = sum(1 for _ in session.events(max(1, session.last_seq - 7000)))
            assert seen > 0
            for n in range(500):
                store.session("s1").events(n + 1, n + 2)
                assert len(store.sql("SELECT ?1, ?2", n, "text")) == 1
            store.session("s1").arrow(max(1, session.last_seq - 500))

    work(times)
    gc.collect()
    before = resident()
    work(times)
    gc.collect()
    assert resident() - before < (32 << 20 if FULL else 8 << 20)


def test_the_agent_of_the_page_survives_its_kills(tmp_path: Path) -> None:
    """1,000 kills with LIBANNAL_FULL=1."""
    page = HERE.parent / "docs" / "agents.md"
    kills, seed = (1000 if FULL else 12), os.environ.get("SEED", "1")
    subprocess.run([sys.executable, HERE / "resumed.py", page, str(kills), seed, tmp_path], check=True)
