# SPDX-License-Identifier: Apache-2.0
"""The session store of the Claude Agent SDK, judged by the suite that its wheel has."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk.testing import run_session_store_conformance  # noqa: E402

import libannal as annal  # noqa: E402
from libannal.claude_agent import AnnalSessionStore  # noqa: E402

KEY = {"project_key": "/home/me/project", "session_id": "5f4c"}


def test_the_sdks_conformance_suite_passes_with_nothing_skipped(tmp_path: Path) -> None:
    opened: list[annal.Store] = []

    def fresh(numbers: Iterator[int] = itertools.count()) -> AnnalSessionStore:
        opened.append(annal.open(tmp_path / str(next(numbers))))
        return AnnalSessionStore(opened[-1])

    asyncio.run(run_session_store_conformance(fresh))
    assert len(opened) == 15  # one to look at, and one for each contract
    for store in opened:
        store.close()


def test_a_line_with_a_uuid_is_stored_once_even_by_two_processes(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as one, annal.open(path) as two:
            first, second = AnnalSessionStore(one), AnnalSessionStore(two)
            line = {"type": "user", "uuid": "u1", "n": 1}
            await first.append(KEY, [line])  # type: ignore[arg-type, list-item]
            await second.append(KEY, [line, {"type": "user", "uuid": "u2"}])  # type: ignore[arg-type, list-item]
            await first.append(KEY, [{"type": "title"}, {"type": "title"}])  # type: ignore[arg-type, list-item]
            found = await second.load(KEY)  # type: ignore[arg-type]
            assert found is not None
            assert [entry.get("uuid") for entry in found] == ["u1", "u2", None, None]

    asyncio.run(main())


def test_a_deleted_transcript_is_in_no_file(path: Path) -> None:
    with annal.open(path) as store:
        asyncio.run(AnnalSessionStore(store).append(KEY, [{"type": "a secret"}]))  # type: ignore[arg-type, list-item]
        asyncio.run(AnnalSessionStore(store).delete(KEY))  # type: ignore[arg-type]
    assert not any(b"a secret" in file.read_bytes() for file in path.rglob("*") if file.is_file())
