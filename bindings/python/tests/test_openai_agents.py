# SPDX-License-Identifier: Apache-2.0
"""The session of the OpenAI Agents SDK, alone and under its Runner with a model that answers from a list."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner  # noqa: E402
from agents.items import ModelResponse  # noqa: E402
from agents.memory import Session, SessionSettings  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: E402

import libannal as annal  # noqa: E402
from libannal.openai_agents import AnnalSession  # noqa: E402


def item(text: str) -> Any:
    return {"role": "user", "content": text}


def test_it_is_a_session_of_the_sdk(store: annal.Store) -> None:
    assert isinstance(AnnalSession("a", store), Session)


def test_items_are_added_limited_taken_back_and_cleared(store: annal.Store) -> None:
    async def main() -> None:
        session = AnnalSession("user/42; DROP TABLE", store)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items([])
        assert store.sessions() == []
        await session.add_items([item(str(n)) for n in range(5)], wrapper=None)
        assert await session.get_items() == [item(str(n)) for n in range(5)]
        assert await session.get_items(2) == [item("3"), item("4")]
        assert await session.get_items(0) == [] and len(await session.get_items(99)) == 5
        assert await session.pop_item() == item("4")
        (await session.get_items())[0]["content"] = "changed"
        assert await AnnalSession("user/42; DROP TABLE", store).get_items() == [item(str(n)) for n in range(4)]
        limited = AnnalSession("user/42; DROP TABLE", store, session_settings=SessionSettings(limit=1))
        assert await limited.get_items() == [item("3")] and len(await limited.get_items(2)) == 2
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items([item("ünïcode 🦀")])
        assert await session.get_items() == [item("ünïcode 🦀")]
        types = [event.type for event in session.annal_session]
        assert types[-5:] == ["turn.rolled_back", "items.cleared", "turn.completed", "turn.started", "message.added"]

    asyncio.run(main())


def test_an_item_of_reasoning_with_a_role_returns_unchanged(store: annal.Store) -> None:
    async def main() -> None:
        items: list[Any] = [
            {"type": "reasoning", "role": "assistant", "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "reasoning", "id": "rs_1", "role": "assistant", "summary": [], "content": "Hm."},
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Yes."}]},
        ]
        await AnnalSession("a", store).add_items(items)
        assert await AnnalSession("a", store).get_items() == items

    asyncio.run(main())


def test_a_caller_sees_its_own_items_of_level_batch_beside_another_caller(path: Path) -> None:
    async def main() -> None:
        with annal.open(path, batch_ms=60_000) as store:
            mine, other = AnnalSession("a", store, level="batch"), AnnalSession("a", store, level="batch")
            await mine.add_items([item("1")])
            await mine.add_items([item("2")])
            await other.add_items([item("3")])
            assert (await other.get_items())[-1] == item("3")
            assert await mine.get_items() == [item("1"), item("2"), item("3")]
            await mine.add_items([item("4")])
            assert await mine.get_items(1) == [item("4")]

    asyncio.run(main())


def test_two_processes_never_pop_the_same_item(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as one, annal.open(path) as two:
            sessions = [AnnalSession("s", one), AnnalSession("s", two)]
            await sessions[0].add_items([item(str(n)) for n in range(20)])
            popped = await asyncio.gather(*(sessions[n % 2].pop_item() for n in range(20)))
            assert sorted(int(one["content"]) for one in popped if one) == list(range(20))  # type: ignore[typeddict-item, misc]
            assert await sessions[1].pop_item() is None

    asyncio.run(main())


class Echo(Model):
    """Says how many items it was given."""

    async def get_response(self, *arguments: Any, **options: Any) -> ModelResponse:
        given = options["input"]
        text = f"{len(given) if isinstance(given, list) else 1} items"
        content = [ResponseOutputText(annotations=[], text=text, type="output_text")]
        message = ResponseOutputMessage(
            id="m", content=content, role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError


def test_the_runner_of_the_sdk_remembers_a_conversation(path: Path) -> None:
    agent, config = Agent(name="echo", model=Echo()), RunConfig(tracing_disabled=True)

    async def ask(text: str) -> str:
        with annal.open(path) as store:
            result = await Runner.run(agent, text, session=AnnalSession("user", store), run_config=config)
            return str(result.final_output)

    assert asyncio.run(ask("one")) == "1 items"
    assert asyncio.run(ask("two")) == "3 items"
    assert asyncio.run(ask("three")) == "5 items"


def test_a_cancelled_call_has_ended_when_the_cancellation_arrives(store: annal.Store) -> None:
    async def main() -> None:
        session = AnnalSession("user", store)
        await session.add_items([{"role": "user", "content": "0"}])
        for number in range(1, 30):
            adding = asyncio.ensure_future(session.add_items([{"role": "user", "content": str(number)}]))
            await asyncio.sleep(0)
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            before = session.annal_session.last_seq
            await asyncio.sleep(0.001)
            assert session.annal_session.last_seq == before

    asyncio.run(main())


def test_the_latest_items_of_a_long_conversation_are_read_from_its_end(path: Path) -> None:
    async def main() -> None:
        numbers: list[int] = []
        with annal.open(path) as store:
            session, chance = AnnalSession("user", store), random.Random(1)
            for number in range(700):
                numbers += [number, number]
                await session.add_items([{"role": "user", "content": str(number)}] * 2)
                for _ in range(chance.randrange(3) if number % 7 == 0 else 0):
                    await session.pop_item()
                    numbers.pop()
                if number == 300:
                    await session.clear_session()
                    numbers.clear()
        with annal.open(path) as store:
            session = AnnalSession("user", store)
            for limit in (1, 5, 40, 0):
                found: Any = await session.get_items(limit=limit)
                assert [int(item["content"]) for item in found] == numbers[len(numbers) - limit :]
            popped: Any = await session.pop_item()
            assert int(popped["content"]) == numbers.pop()
            await session.add_items([{"role": "user", "content": "new"}])
            assert [item["content"] for item in await session.get_items(limit=2)] == [str(numbers[-1]), "new"]  # type: ignore[typeddict-item]
            assert session._items.seq == 0  # nothing before them was read
            found = await session.get_items()
            assert [item["content"] for item in found] == [*map(str, numbers), "new"]

    asyncio.run(main())
