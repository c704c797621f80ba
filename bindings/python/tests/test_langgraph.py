# SPDX-License-Identifier: Apache-2.0
"""The checkpointer, judged by LangGraph's own conformance suite, and tests for what the suite leaves out."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")

from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint  # noqa: E402
from langgraph.checkpoint.conformance import checkpointer_test, validate  # noqa: E402

import libannal as annal  # noqa: E402
from libannal.langgraph import AnnalSaver  # noqa: E402


class SyncSaver(AnnalSaver):
    """The synchronous methods, by the names under which the suite calls the others."""

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        for item in self.list(config, **options):
            yield item

    async def aput(self, *arguments: Any) -> Any:
        return self.put(*arguments)

    async def aput_writes(self, *arguments: Any, **options: Any) -> None:
        self.put_writes(*arguments, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Any, **options: Any) -> None:
        self.prune(thread_ids, **options)

    async def aget_delta_channel_history(self, **options: Any) -> Any:
        return self.get_delta_channel_history(**options)


@pytest.mark.parametrize("kind", [AnnalSaver, SyncSaver])
def test_langgraphs_conformance_suite_passes_in_full(kind: type[AnnalSaver], tmp_path: Path) -> None:
    @checkpointer_test(name="AnnalSaver")
    async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
        with annal.open(tempfile.mkdtemp(dir=tmp_path)) as store:
            yield kind(store)

    report = asyncio.run(validate(saver))
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert report.passed_all() and report.conformance_level() == "FULL"


def test_every_async_method_has_its_own_body() -> None:
    for name, method in inspect.getmembers(AnnalSaver, inspect.isfunction):
        if name.startswith("a") and hasattr(AnnalSaver, name[1:]):
            assert method.__qualname__.startswith(("AnnalSaver", "BaseCheckpointSaver.aget")), name


def put(saver: AnnalSaver, thread: str, text: str, parent: Any = None) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": [text]}
    version = saver.get_next_version(None, None)
    checkpoint["channel_versions"] = {"messages": version}
    config = parent or {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return saver.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"messages": version})


def value(saver: AnnalSaver, thread: str) -> Any:
    found = saver.get_tuple({"configurable": {"thread_id": thread}})
    return found and found.checkpoint["channel_values"]["messages"]


def test_two_processes_see_each_others_checkpoints(path: Path) -> None:
    with annal.open(path) as one, annal.open(path) as two:
        first, second = AnnalSaver(one), AnnalSaver(two)
        config = put(first, "thread/1", "a")
        assert value(second, "thread/1") == ["a"]
        put(second, "thread/1", "b", config)
        assert value(first, "thread/1") == ["b"]
        first.delete_thread("thread/1")
        assert value(second, "thread/1") is None
        put(second, "thread/1", "c")
        assert value(first, "thread/1") == ["c"]
        assert [item.checkpoint["channel_values"]["messages"] for item in first.list(None)] == [["c"]]


def test_a_copied_thread_is_a_fork_and_outlives_its_source(store: annal.Store) -> None:
    saver = AnnalSaver(store)
    put(saver, "source", "secret")
    saver.copy_thread("source", "copy")
    fork = store.session(annal.name("langgraph", "copy"))
    assert fork.info().forked_from == annal.name("langgraph", "source")
    saver.delete_thread("source")
    assert value(saver, "source") is None and value(saver, "copy") == ["secret"]
    assert fork.info().forked_from is None
    assert store.sessions() == [fork.id]
    saver.delete_thread("copy")
    assert store.sessions() == []


def test_a_copy_that_was_interrupted_is_finished(store: annal.Store) -> None:
    saver = AnnalSaver(store)
    put(saver, "source", "a")
    store.session(annal.name("langgraph", "source")).fork(annal.name("langgraph", "copy"))
    assert value(saver, "copy") == ["a"]
    assert {item.config["configurable"]["thread_id"] for item in saver.list(None)} == {"source", "copy"}


def test_a_state_that_grows_costs_what_is_new(path: Path, store: annal.Store) -> None:
    saver, version, config = AnnalSaver(store), None, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    messages: list[str] = []
    for step in range(200):
        messages.append(f"message {step} " + "x" * 200)
        version = saver.get_next_version(version, None)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": version}
        metadata: Any = {"source": "loop", "step": step, "parents": {}}
        config = saver.put(config, checkpoint, metadata, {"messages": version})  # type: ignore[arg-type, assignment]
        if step % 50 == 0:
            saver = AnnalSaver(store)
    written = sum(len(event.json) for event in store.session(annal.name("langgraph", "t")))
    assert written < sum(220 * step for step in range(200)) / 10
    found = [item.checkpoint["channel_values"]["messages"] for item in AnnalSaver(store).list(config={"configurable": {"thread_id": "t"}})]
    assert found == [messages[:count] for count in range(200, 0, -1)]


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_copy_whose_source_goes_survives_a_process_that_dies_in_it(store: annal.Store, steps: int) -> None:
    saver = AnnalSaver(store)
    put(saver, "source", "a")
    saver.copy_thread("source", "copy")
    fork = store.session(annal.name("langgraph", "copy"))
    spare = fork.copy(annal.name("copying", fork.id))
    if steps >= 2:
        fork.delete()
    if steps >= 3:
        spare.copy(fork.id)
    assert value(AnnalSaver(store), "copy") == ["a"]
    AnnalSaver(store).delete_thread("source")
    assert value(AnnalSaver(store), "copy") == ["a"] and store.sessions() == [fork.id]


def test_two_names_with_the_same_id_are_distinguished(store: annal.Store) -> None:
    put(AnnalSaver(store), "a", "mine")
    store.session(annal.name("langgraph", "a")).append("session.named", {"name": ["langgraph", "b"]})
    with pytest.raises(annal.Conflict, match="does not belong"):
        value(AnnalSaver(store), "a")


def test_checkpoints_that_put_acknowledged_survive_a_kill(path: Path) -> None:
    code = """if True:
        import os, sys, signal, libannal as annal
        sys.path.insert(0, sys.argv[2])
        from test_langgraph import put, AnnalSaver
        saver = AnnalSaver(annal.open(sys.argv[1]))
        for n in range(20):
            put(saver, "t", str(n))
            print(n, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(Path(__file__).parent)], capture_output=True, text=True
    )
    assert done.stdout.split()[-1] == "19", done.stderr
    with annal.open(path) as store:
        assert value(AnnalSaver(store), "t") == ["19"]
        assert len(list(AnnalSaver(store).list({"configurable": {"thread_id": "t"}}))) == 20


def test_a_superseded_owner_is_refused_and_writes_nothing(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as store:
            reader = AnnalSaver(store)
            first = await AnnalSaver(store).aclaim_write_ownership("t")
            begun = await asyncio.to_thread(put, first, "t", "c1")
            await first.aput_writes(begun, [("ch", "first")], "task")
            await first.aput_writes(begun, [("ch", "again")], "task")  # the same task: no refusal, and no second write
            second = await AnnalSaver(store).aclaim_write_ownership("t")
            tip = await asyncio.to_thread(put, second, "t", "c2", begun)
            await second.aput_writes(begun, [("__resume__", "second")], "task")
            before = store.session(annal.name("langgraph", "t")).last_seq
            for _ in range(2):
                with pytest.raises(annal.Conflict, match="claimed by another owner") as refused:
                    put(first, "t", "c3", begun)
                assert getattr(refused.value, "is_stale_write_owner_error")
                with pytest.raises(annal.Conflict, match="claimed by another owner"):
                    await first.aput_writes(begun, [("__resume__", "first")], "task")
            assert store.session(annal.name("langgraph", "t")).last_seq == before
            found = reader.get_tuple({"configurable": {"thread_id": "t"}})
            assert found and found.config == tip
            found = reader.get_tuple(begun)
            assert found and found.pending_writes == [("task", "__resume__", "second"), ("task", "ch", "first")]
            put(first, "other", "c1")  # it has claimed one thread, and no other
            put(reader, "t", "c4", tip)  # only claimed features are tested

    asyncio.run(main())
