# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed in the middle of an adapter's calls.

    killed.py ADAPTER ROUNDS SEED DIRECTORY

In each round a child examines what earlier children left, and continues there: it makes calls, and reports each
acknowledgement. At some moment it is killed with SIGKILL. Acknowledged calls must be found; others are complete or
absent. Children are forked from here, where no store is ever open.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import libannal as annal


class Plain:
    """Pairs of events, appended as one."""

    def __init__(self, store: annal.Store) -> None:
        self.session = store.session("s1")

    def done(self) -> int:
        numbers = [event.data for event in self.session]
        assert numbers == list(range(len(numbers))) and len(numbers) % 2 == 0
        return len(numbers) // 2

    def call(self, number: int) -> None:
        self.session.append_many([("a", 2 * number), ("a", 2 * number + 1)])


class Runs:
    """Runs with a tool; one that was killed is deleted and made again."""

    def __init__(self, store: annal.Store) -> None:
        self.store = store

    def done(self) -> int:
        ended = 0
        while (session := self.store.session(f"run-{ended}")).exists():
            if session[-1].type != "session.ended":
                break
            assert "tool.returned" in [event.type for event in session]
            ended += 1
        return ended

    def call(self, number: int) -> None:
        if (half := self.store.session(f"run-{number}")).exists():
            half.delete()
        with annal.run(f"run-{number}", store=self.store, session=f"run-{number}") as run:
            with run.tool("bash", {"n": number}) as call:
                call.output = number


class LangGraph:
    """A thread whose state grows: a checkpoint, and a write on top of it."""

    def __init__(self, store: annal.Store) -> None:
        from libannal.langgraph import AnnalSaver

        self.saver = AnnalSaver(store)
        self.config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}

    def done(self) -> int:
        found = self.saver.get_tuple(self.config)
        if found is None:
            return 0
        numbers = found.checkpoint["channel_values"]["numbers"]
        assert numbers == list(range(len(numbers)))
        older = list(self.saver.list(self.config, limit=3))
        assert [len(one.checkpoint["channel_values"]["numbers"]) for one in older] == [
            len(numbers) - n for n in range(len(older))
        ]
        assert all(one.pending_writes for one in older[1:])
        if not found.pending_writes:  # it was killed between the two: LangGraph would run the task again
            self.saver.put_writes(found.config, [("numbers", len(numbers))], "task")
        self.last = found
        return len(numbers)

    def call(self, number: int) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        version = self.last.checkpoint["channel_versions"]["numbers"] if number else None
        version = self.saver.get_next_version(version, None)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"numbers": list(range(number + 1))}
        checkpoint["channel_versions"] = {"numbers": version}
        config = self.last.config if number else self.config
        stored = self.saver.put(config, checkpoint, {"source": "loop", "step": number}, {"numbers": version})
        self.saver.put_writes(stored, [("numbers", number)], "task")
        self.last = self.saver.get_tuple(stored)  # type: ignore[assignment]


class OpenAI:
    """Turns of two items; every third call takes one back and gives it again."""

    def __init__(self, store: annal.Store) -> None:
        from libannal.openai_agents import AnnalSession

        self.session = AnnalSession("user", store)

    def done(self) -> int:
        items: Any = asyncio.run(self.session.get_items())
        if len(items) % 2:  # it was killed between pop_item() and add_items()
            asyncio.run(self.session.add_items([item(len(items))]))
            items.append(item(len(items)))
        assert items == [item(n) for n in range(len(items))]
        return len(items) // 2

    def call(self, number: int) -> None:
        async def turn() -> None:
            await self.session.add_items([item(2 * number), item(2 * number + 1)])
            if number % 3 == 0:
                await self.session.add_items([await self.session.pop_item()])  # type: ignore[list-item]

        asyncio.run(turn())


def item(number: int) -> Any:
    return {"role": "user" if number % 2 == 0 else "assistant", "content": str(number)}


class Claude:
    """Two lines of a transcript, and one of a sub-agent."""

    def __init__(self, store: annal.Store) -> None:
        from libannal.claude_agent import AnnalSessionStore

        self.transcripts = AnnalSessionStore(store)
        self.key: Any = {"project_key": "p/q", "session_id": "s"}

    def done(self) -> int:
        async def look() -> int:
            lines: Any = await self.transcripts.load(self.key) or []
            assert [line["uuid"] for line in lines] == [str(n) for n in range(len(lines))] and len(lines) % 2 == 0
            listed = await self.transcripts.list_sessions("p/q")
            assert len(listed) == (1 if lines else 0)
            return len(lines) // 2

        return asyncio.run(look())

    def call(self, number: int) -> None:
        async def add() -> None:
            lines: Any = [{"type": "user", "uuid": str(2 * number + n)} for n in range(2)]
            await self.transcripts.append({**self.key, "subpath": f"subagents/{number % 5}"}, lines)
            await self.transcripts.append(self.key, lines)

        asyncio.run(add())


class Adk:
    """Events that change the state of the app, the user and the session alike."""

    def __init__(self, store: annal.Store) -> None:
        from libannal.google_adk import AnnalSessionService

        self.service = AnnalSessionService(store)
        self.name: Any = {"app_name": "app", "user_id": "user"}

    def done(self) -> int:
        async def look() -> int:
            self.session: Any = await self.service.get_session(**self.name, session_id="s")
            if self.session is None:
                self.session = await self.service.create_session(**self.name, session_id="s")
            count = len(self.session.events)
            assert self.session.state == ({key: count - 1 for key in ("app:n", "user:n", "n")} if count else {})
            return count

        return asyncio.run(look())

    def call(self, number: int) -> None:
        from google.adk.events.event import Event
        from google.adk.events.event_actions import EventActions

        changes = EventActions(state_delta={"app:n": number, "user:n": number, "n": number})
        asyncio.run(self.service.append_event(self.session, Event(author="agent", actions=changes)))


class Pydantic:
    """A step, a tool that is recorded before and after, and a snapshot of a history that grows."""

    def __init__(self, store: annal.Store) -> None:
        from libannal.pydantic_ai import AnnalStepStore

        self.steps = AnnalStepStore(store)

    def done(self) -> int:
        async def look() -> int:
            found = await self.steps.latest_snapshot(run_id="r")
            count = len(found.messages) if found else 0
            open_ = [effect.tool_call_id for effect in await self.steps.list_unresolved_tool_effects(run_id="r")]
            assert open_ in ([], [str(count)])  # the call during which the process was killed
            assert len(await self.steps.list_events(run_id="r")) in (count, count + 1)
            return count

        return asyncio.run(look())

    def call(self, number: int) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart
        from pydantic_ai_harness.step_persistence import ContinuableSnapshot, StepEvent, ToolEffectRecord

        async def step() -> None:
            key = str(number)
            await self.steps.append_event(
                StepEvent(run_id="r", kind="tool_call_started", step_index=number, idempotency_key=key)
            )
            for status in ("started", "completed"):
                await self.steps.record_tool_effect(
                    ToolEffectRecord(tool_call_id=key, tool_name="t", run_id="r", status=status)  # type: ignore[arg-type]
                )
            messages: Any = [ModelRequest(parts=[UserPromptPart(content=str(n))]) for n in range(number + 1)]
            await self.steps.save_snapshot(
                ContinuableSnapshot(run_id="r", step_index=number, messages=messages, idempotency_key=f"{number}:a")
            )

        asyncio.run(step())


class OTel:
    """A span of a tool: two events, as one."""

    def __init__(self, store: annal.Store) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor

        from libannal.opentelemetry import AnnalSpanExporter

        self.session = store.session("talk")
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(AnnalSpanExporter(store)))
        self.tracer = provider.get_tracer("test")

    def done(self) -> int:
        types = [event.type for event in self.session]
        assert types == ["tool.called", "tool.returned"] * (len(types) // 2)
        return len(types) // 2

    def call(self, number: int) -> None:
        what = {"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "talk"}
        with self.tracer.start_as_current_span(f"tool {number}", attributes=what):
            pass


ADAPTERS: dict[str, Callable[[annal.Store], Any]] = {
    "plain": Plain,
    "runs": Runs,
    "langgraph": LangGraph,
    "openai": OpenAI,
    "claude": Claude,
    "adk": Adk,
    "pydantic": Pydantic,
    "otel": OTel,
}


def child(adapter: str, path: str, acknowledged: int, pipe: int, calls: int) -> None:
    with annal.open(path) as store:
        work = ADAPTERS[adapter](store)
        done = work.done()
        if done < acknowledged:
            raise AssertionError(f"{acknowledged} calls were acknowledged, and {done} are there")
        for number in range(done, done + calls):
            work.call(number)
            os.write(pipe, (number + 1).to_bytes(8, "big"))


def one_round(adapter: str, path: str, acknowledged: int, calls: int, delay: float | None) -> int:
    """Fork a child, and kill it after `delay` seconds from its first acknowledgement on; how much is acknowledged now."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reads)
            child(adapter, path, acknowledged, writes, calls)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        heard = pipe.read(8)
        if heard and delay is not None:
            time.sleep(delay)
            os.kill(pid, signal.SIGKILL)
        heard += pipe.read()
    _, status = os.waitpid(pid, 0)
    if status not in (0, signal.SIGKILL):
        raise SystemExit(f"a child ended with {status}")
    return max([acknowledged, *numbers(heard)])


def numbers(heard: bytes) -> Iterator[int]:
    for begin in range(0, len(heard) - 7, 8):
        yield int.from_bytes(heard[begin : begin + 8], "big")


def main() -> None:
    adapter, rounds, seed, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    chance, acknowledged, killed = random.Random(seed), 0, 0
    with annal.open(os.path.join(directory, "warm")) as store:  # so that all is imported before the first fork
        ADAPTERS[adapter](store).done()
    for turn in range(rounds):
        if turn % 50 == 0:  # a new store, so that looking at it stays quick
            path, acknowledged = os.path.join(directory, f"store-{turn}"), 0
        acknowledged = one_round(adapter, path, acknowledged, 10_000, chance.uniform(0, 0.03))
        killed += 1
        if turn % 50 == 49 or turn == rounds - 1:
            acknowledged = one_round(adapter, path, acknowledged, 1, None)
    print(f"{adapter}: {killed} killed")


if __name__ == "__main__":
    main()
