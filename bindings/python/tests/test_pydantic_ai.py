# SPDX-License-Identifier: Apache-2.0
"""The step store of pydantic-ai's harness."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path

import pytest

import libannal as annal

pytest.importorskip("pydantic_ai_harness")

from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart  # noqa: E402
from pydantic_ai.models.test import TestModel  # noqa: E402
from pydantic_ai_harness.step_persistence import (  # noqa: E402
    ContinuableSnapshot,
    InMemoryStepStore,
    RunRecord,
    StepEvent,
    StepPersistence,
    StepStore,
    ToolEffectRecord,
    continue_run,
)

from libannal.pydantic_ai import AnnalStepStore  # noqa: E402


def messages(count: int) -> list[ModelMessage]:
    time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    asked = [ModelRequest(parts=[UserPromptPart(content=f"é {n}", timestamp=time)]) for n in range(count)]
    answered = [ModelResponse(parts=[TextPart(content=f"{n}")], timestamp=time) for n in range(count)]
    return [message for pair in zip(asked, answered) for message in pair]


def snapshot(step: int, count: int, **more: object) -> ContinuableSnapshot:
    return ContinuableSnapshot(run_id="r1", step_index=step, messages=messages(count), **more)  # type: ignore[arg-type]


async def work(store: StepStore) -> list[object]:
    """Every command and query of a store."""
    time = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    for n, (run, parent, talk) in enumerate((("r1", None, "A"), ("r/2", "r1", "A"), ("r3", "r1", "B"))):
        await store.register_run(
            RunRecord(
                run_id=run,
                parent_run_id=parent,
                conversation_id=talk,
                metadata={"n": str(n)},
                started_at=time - datetime.timedelta(seconds=n),
            )
        )
    for key in ("k1", "k2", "k1", None):
        await store.append_event(
            StepEvent(run_id="r1", kind="run_started", step_index=1, timestamp=time, idempotency_key=key)
        )
    for step, count, state, key in ((1, 1, "complete", "0:a"), (2, 2, "interrupted", "1:a"), (1, 1, "complete", "0:a")):
        await store.save_snapshot(snapshot(step, count, state=state, idempotency_key=key, timestamp=time))
    effects = [("c1", "started"), ("c2", "started"), ("c1", "completed")]
    for call, status in effects:
        await store.record_tool_effect(
            ToolEffectRecord(tool_call_id=call, tool_name="t", run_id="r1", status=status, started_at=time)  # type: ignore[arg-type]
        )
    return [
        await store.get_run(run_id="r/2"),
        await store.get_run(run_id="none"),
        await store.list_runs(),
        await store.list_runs(parent_run_id="r1"),
        await store.list_runs(parent_run_id="r1", conversation_id="B"),
        await store.list_events(run_id="r1"),
        await store.list_events(run_id="none"),
        await store.latest_snapshot(run_id="r1"),
        await store.latest_snapshot(run_id="r1", include_interrupted=True),
        await store.latest_snapshot(run_id="none"),
        await store.get_tool_effect(run_id="r1", tool_call_id="c1"),
        await store.get_tool_effect(run_id="r1", tool_call_id="none"),
        await store.list_unresolved_tool_effects(run_id="r1"),
    ]


def test_it_answers_what_the_store_in_memory_answers(path: Path) -> None:
    async def main() -> None:
        expected = await work(InMemoryStepStore())
        with annal.open(path) as store:
            ours = AnnalStepStore(store)
            assert isinstance(ours, StepStore)
            assert await work(ours) == expected
        with annal.open(path) as store:  # and again after the process
            ours = AnnalStepStore(store)
            assert await ours.list_runs() == expected[2]
            assert await ours.latest_snapshot(run_id="r1", include_interrupted=True) == expected[8]
            assert await ours.list_unresolved_tool_effects(run_id="r1") == expected[12]

    asyncio.run(main())


def test_a_history_that_grows_costs_what_is_new(store: annal.Store) -> None:
    async def main() -> None:
        ours = AnnalStepStore(store)
        for step in range(1, 60):
            await ours.save_snapshot(snapshot(step, step))
        assert len((await ours.latest_snapshot(run_id="r1")).messages) == 118  # type: ignore[union-attr]
        session = store.session(annal.name("pydantic-ai", "r1"))
        sizes = [len(event.json) for event in session if event.type == "snapshot.saved"]
        assert max(sizes[2:]) < 2 * min(sizes[2:])

    asyncio.run(main())


def test_snapshots_are_bounded_and_a_complete_one_stays(store: annal.Store) -> None:
    async def main() -> None:
        ours = AnnalStepStore(store, max_snapshots_per_run=2)
        for step, state in enumerate(("complete", "complete", "interrupted", "interrupted", "interrupted")):
            await ours.save_snapshot(snapshot(step, 1, state=state))
        found = await ours.list_snapshots(run_id="r1", include_interrupted=True)
        assert [one.step_index for one in found] == [1, 3, 4]
        assert [one.step_index for one in await ours.list_snapshots(run_id="r1")] == [1]
        with pytest.raises(ValueError, match="max_snapshots_per_run"):
            AnnalStepStore(store, max_snapshots_per_run=0)

    asyncio.run(main())


def test_an_agent_continues_its_session(store: annal.Store) -> None:
    async def main() -> None:
        ours = AnnalStepStore(store)
        agent = Agent(TestModel(), capabilities=[StepPersistence(store=ours)])

        @agent.tool_plain
        def add(a: int, b: int) -> int:
            return a + b

        await agent.run("How much is 1 + 2?")
        (run,) = await ours.list_runs()
        kinds = [event.kind for event in await ours.list_events(run_id=run.run_id)]
        assert kinds[0] == "run_started" and kinds[-1] == "run_completed" and "tool_call_completed" in kinds
        assert await ours.list_unresolved_tool_effects(run_id=run.run_id) == []
        history = await continue_run(ours, run_id=run.run_id)
        assert len((await agent.run("And 3?", message_history=history)).all_messages()) > len(history)

    asyncio.run(main())
