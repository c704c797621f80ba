# SPDX-License-Identifier: Apache-2.0
"""Branches, turns and usage of the OpenAI Agents SDK's sessions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import libannal as annal

pytest.importorskip("agents")

from libannal.openai_branches import AnnalBranchedSession  # noqa: E402


def said(*texts: str) -> Any:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text} for n, text in enumerate(texts)]


def used(tokens: int) -> Any:
    details = SimpleNamespace(cached_tokens=1)
    usage = SimpleNamespace(
        requests=1, input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1, input_tokens_details=details
    )
    return SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage))


def test_a_branch_is_a_fork_with_its_own_future(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as store:
            session = AnnalBranchedSession("user/42", store)
            await session.add_items(said("one", "1", "two", "2", "three", "3"))
            branch = await session.create_branch_from_turn(2, "other")
            assert (branch, session.current_branch) == ("other", "other")
            assert await session.get_items() == said("one", "1")
            await session.add_items(said("new", "n"))
            assert [item["content"] for item in await session.get_items(branch_id="main")][2] == "two"  # type: ignore[typeddict-item]
            assert store.session(annal.name("openai-agents", "user/42", "branch", "other")).info().fork_seq == 6
            listed = [(one["branch_id"], one["message_count"], one["user_turns"]) for one in await session.list_branches()]
            assert listed == [("main", 6, 3), ("other", 4, 2)]
            await session.switch_to_branch("main")
            assert await session.pop_item() == said("x", "3")[1]
            await session.create_branch_from_content("THREE")
            assert await session.get_items() == said("one", "1", "two", "2")
        with annal.open(path) as store:
            again = AnnalBranchedSession("user/42", store)
            assert len(await again.list_branches()) == 3
            await again.switch_to_branch("other")
            assert (await again.get_items())[-2:] == said("new", "n")

    asyncio.run(main())


def test_names_are_used_once_and_branches_are_deleted_for_good(store: annal.Store) -> None:
    async def main() -> None:
        session = AnnalBranchedSession("user", store)
        await session.add_items(said("one", "1"))
        for wrong in ((2, "x"), (0, "x"), (1, " "), (1, "main")):
            with pytest.raises(ValueError):
                await session.create_branch_from_turn(*wrong)
        await session.create_branch_from_turn(1, "a")
        with pytest.raises(ValueError, match="force"):
            await session.delete_branch("a")
        other = AnnalBranchedSession("user", store)
        await other.switch_to_branch("a")
        await session.delete_branch("a", force=True)
        assert session.current_branch == "main" and len(store.sessions()) == 1
        await other.add_items(said("two"))  # its branch is gone: it is in main again
        assert await session.get_items() == said("one", "1", "two")
        for gone in ("a", "never"):
            with pytest.raises(ValueError, match="does not exist"):
                await session.switch_to_branch(gone)
        await session.switch_to_branch("main")
        with pytest.raises(ValueError, match="already been used"):
            await session.create_branch_from_turn(1, "a")
        made = {await session.create_branch_from_turn(1) for _ in (1, 2) if not session._switch("main").branches.get("")}
        assert len(made) == 2
        await session.clear_session()
        assert await session.list_branches() == [] and len(store.sessions()) == 1

    asyncio.run(main())


def test_turns_tools_and_usage(store: annal.Store) -> None:
    async def main() -> None:
        session = AnnalBranchedSession("user", store)
        await session.store_run_usage(used(1))  # the branch has no turn yet
        assert await session.get_session_usage() is None
        await session.add_items(said("first " * 30, "1"))
        await session.store_run_usage(used(10))
        call: Any = {"type": "function_call", "name": "add", "namespace": "sums", "call_id": "c"}
        await session.add_items([*said("second"), call, call, {"type": "shell_call"}])  # type: ignore[list-item]
        await session.store_run_usage(used(20))
        turns = await session.get_conversation_turns()
        assert [turn["turn"] for turn in turns] == [1, 2] and turns[0]["content"].endswith("...")
        assert [turn["turn"] for turn in await session.find_turns_by_content("SECOND")] == [2]
        assert await session.get_tool_usage() == [("sums.add", 2, 2), ("shell_call", 1, 2)]
        assert (await session.get_conversation_by_turns())[1] == [
            {"type": "user", "tool_name": None},
            {"type": "assistant", "tool_name": None},
        ]
        await session.create_branch_from_turn(2, "b")
        await session.add_items(said("other"))
        await session.store_run_usage(used(30))
        usage: Any = await session.get_turn_usage()
        assert [(turn["user_turn_number"], turn["input_tokens"]) for turn in usage] == [(1, 10), (2, 30)]
        one: Any = await session.get_turn_usage(2)
        assert one["input_tokens_details"] == {"cached_tokens": 1} and await session.get_turn_usage(3) == {}
        assert await session.get_session_usage("main") == {
            "requests": 2, "input_tokens": 30, "output_tokens": 2, "total_tokens": 32, "total_turns": 2
        }
        total = await session.get_session_usage()
        assert total and (total["input_tokens"], total["total_turns"]) == (60, 3)

    asyncio.run(main())
