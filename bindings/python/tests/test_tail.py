# SPDX-License-Identifier: Apache-2.0
"""Following sessions live, in threads and in an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

import libannal as annal


def test_history_first_then_live(store: annal.Store) -> None:
    session = store.session("s1")
    session.append("a")
    with store.tail() as tail:
        assert next(tail).type == "a"
        assert tail.next(0) is None
        timer = threading.Timer(0.05, lambda: session.append("b"))
        timer.start()
        event = tail.next(10)
        timer.join()
        assert event is not None and (event.session, event.seq, event.type) == ("s1", 2, "b")
        began = time.monotonic()
        assert tail.next(0.3) is None
        assert 0.25 < time.monotonic() - began < 3


def test_a_tail_starts_at_the_requested_event(store: annal.Store) -> None:
    session = store.session("s1")
    session.append_many([("tool.called", n) for n in range(5)])
    session.append("run.ended")
    assert next(session.tail(from_seq=4)).seq == 4
    assert next(store.tail(last=2)).seq == 5
    assert next(store.tail(types="run.*")).seq == 6
    assert session.tail(from_now=True).next(0) is None
    with pytest.raises(annal.Invalid):
        session.tail(from_seq=4, last=2)


def test_a_named_cursor_continues_at_its_position(path: Path, store: annal.Store) -> None:
    session = store.session("s1")
    session.append_many([("a", n) for n in range(4)])
    with store.tail(cursor="worker") as tail:
        assert [next(tail).seq, next(tail).seq] == [1, 2]
        with pytest.raises(annal.Busy):
            store.tail(cursor="worker")
        tail.commit()
        next(tail)
    with store.tail(cursor="worker") as tail:
        assert next(tail).seq == 3
    with store.tail() as tail, pytest.raises(annal.Invalid):
        tail.commit()


def test_an_event_loop_follows_without_a_thread_of_ours(store: annal.Store) -> None:
    session = store.session("s1")
    session.append("a")

    async def read(count: int) -> list[int]:
        seqs = []
        with session.tail() as tail:
            async for event in tail:
                seqs.append(event.seq)
                if len(seqs) == count:
                    return seqs
        return seqs

    async def main() -> list[list[int]]:
        readers = [asyncio.create_task(read(20)) for _ in range(30)]
        await asyncio.sleep(0.05)
        for _ in range(19):
            await asyncio.to_thread(session.append, "b", level="batch")
        return await asyncio.wait_for(asyncio.gather(*readers), 20)

    assert asyncio.run(main()) == [list(range(1, 21))] * 30


def test_a_cancelled_wait_loses_nothing(store: annal.Store) -> None:
    session = store.session("s1")

    async def main() -> None:
        with session.tail() as tail:
            for n in range(10):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(tail.__anext__(), 0.01)
                session.append("a", n, level="os")
                assert (await asyncio.wait_for(tail.__anext__(), 10)).data == n

    asyncio.run(main())


def test_closing_the_store_ends_a_waiting_tail(path: Path) -> None:
    store = annal.open(path)
    tail = store.tail()
    ended: list[str] = []

    def wait() -> None:
        try:
            next(tail)
        except annal.Closed:
            ended.append("closed")

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    store.close()
    thread.join(10)
    assert ended == ["closed"]


@pytest.mark.parametrize("what", ["tail", "store"])
def test_an_asynchronous_iteration_ends_when_the_tail_or_its_store_is_closed(path: Path, what: str) -> None:
    async def main() -> None:
        store = annal.open(path)
        tail = store.tail(from_now=True)
        seen = []

        async def follow() -> None:
            async for event in tail:
                seen.append(event.type)

        following = asyncio.create_task(follow())
        await asyncio.sleep(0.05)
        store.session("s1").append("a")
        await asyncio.sleep(0.1)
        (tail if what == "tail" else store).close()
        await asyncio.wait_for(following, 5)
        assert seen == ["a"]
        with pytest.raises(annal.Closed):
            tail.next(0)
        async for _ in tail:
            raise AssertionError("it is closed")
        store.close()

    asyncio.run(main())


def test_a_tail_that_is_closed_between_two_looks_ends_its_iteration(store: annal.Store) -> None:
    async def main() -> None:
        tail = store.tail(from_now=True)
        tail.fileno()
        look = tail._look

        def close_after(timeout_ms: int) -> None:
            look(timeout_ms)
            tail.close()

        tail._look = close_after  # type: ignore[method-assign, assignment]
        async for _ in tail:
            raise AssertionError("it is closed")

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_wait_that_its_loop_cannot_end_leaves_no_descriptor(store: annal.Store) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with store.tail(from_now=True) as tail:
        tail.fileno()
        before = count()
        loop = asyncio.new_event_loop()
        waiting = tail.__anext__()
        task = loop.create_task(waiting)  # type: ignore[arg-type, var-annotated]
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()
        with pytest.raises(RuntimeError):
            task.cancel()  # the loop calls nothing any more
        waiting.close()  # type: ignore[attr-defined]
        assert count() == before

        async def refused() -> None:
            def add_reader(*_: object) -> None:
                raise NotImplementedError

            asyncio.get_running_loop().add_reader = add_reader  # type: ignore[method-assign, assignment]
            with pytest.raises(NotImplementedError):
                await tail.__anext__()
            assert not tail._waiting

        for _ in range(3):
            asyncio.run(refused())
        assert count() == before
