# SPDX-License-Identifier: Apache-2.0
"""Appends and queries in an event loop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest

import libannal as annal

FULL = os.environ.get("LIBANNAL_FULL") == "1"

HOLD = """
import libannal as annal, signal, sys
store = annal.open(sys.argv[1])
store.session("held").append("held")
list(store.sql("SELECT 1"))  # when this process is stopped, it keeps the session, and not the tables, too
print("held", flush=True)
signal.pause()
"""


async def longest_stall(done: asyncio.Event) -> float:
    """The longest time by which the loop was late, in seconds."""
    worst = 0.0
    while not done.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        worst = max(worst, time.perf_counter() - began - 0.001)
    return worst


def test_10000_coroutines_append_beside_a_stopped_process_and_the_loop_goes_on(path: Path) -> None:
    count = 10_000 if FULL else 1000

    async def main() -> float:
        with annal.open(path, wait_ms=1000) as store:
            done = asyncio.Event()
            watching = asyncio.create_task(longest_stall(done))
            held = asyncio.create_task(store.session("held").aappend("mine"))
            seqs = await asyncio.gather(*(store.session(f"s{n % 50}").aappend("a", {"n": n}) for n in range(count)))
            done.set()
            worst = await watching
            with pytest.raises(annal.Busy):
                await held
            assert max(seqs) == count // 50
            found = [event.data["n"] async for event in store.aquery(types="a", sessions="s7")]
            assert found == list(range(7, count, 50))
            assert (await store.asql("SELECT count(*) FROM events WHERE type = ?1", "a"))[0] == (count,)
            return worst

    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        gc.disable()
        worst = asyncio.run(main())
        print(f"the longest stall of the loop: {worst * 1000:.1f} ms")
        assert worst < 1  # a busy machine stalls by itself; one wait for the stopped process would be 1 s
    finally:
        gc.enable()
        holder.kill()
        holder.wait()


def test_a_turn_of_the_loop_answers_some_appends(store: annal.Store) -> None:
    from libannal._async import _TURN, Appender, _Turns

    async def main() -> list[int]:
        turns, loop = _Turns(Appender()), asyncio.get_running_loop()
        futures: list[asyncio.Future[int]] = [loop.create_future() for _ in range(10 * _TURN)]
        for begin in range(0, len(futures), 250):  # of several threads, all in one turn
            loop.call_soon_threadsafe(turns.answer, [(future, 1) for future in futures[begin : begin + 250]])
        done = [0]
        while done[-1] < len(futures):
            await asyncio.sleep(0)
            done.append(sum(future.done() for future in futures))
        return done

    done = asyncio.run(main())
    assert max(after - before for before, after in zip(done, done[1:])) <= _TURN


def test_an_asynchronous_append_is_durable_and_exact(path: Path) -> None:
    async def main() -> None:
        with annal.open(path) as store:
            session = store.session("s1")
            assert await session.aappend("a", {"n": 1}, id="one") == 1
            assert await session.aappend("a", {"n": 1}, id="one") == 1
            with pytest.raises(annal.Conflict):
                await session.aappend("b", expected_seq=0)
            with pytest.raises(annal.Invalid):
                await session.aappend("b", cause=1.5)  # type: ignore[arg-type]
            mixed = await asyncio.gather(
                session.aappend("c", expected_seq=1), session.aappend("BAD"), session.aappend("d"), return_exceptions=True
            )
            assert mixed[0] == 2 and isinstance(mixed[1], annal.Invalid) and mixed[2] == 3
            assert await session.aappend("e", level="batch") == 4
            cancelled = asyncio.create_task(session.aappend("f"))
            await asyncio.sleep(0)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            late = [asyncio.create_task(session.aappend("g")) for _ in range(100)]
            await asyncio.sleep(0)
        answers = await asyncio.gather(*late, return_exceptions=True)
        assert all(isinstance(answer, (int, annal.Closed)) for answer in answers)
        with annal.open(path) as store:
            kept = [event.type for event in store.session("s1")]
            assert kept[:4] == ["a", "c", "d", "e"]
            assert kept.count("g") == sum(isinstance(answer, int) for answer in answers)

    asyncio.run(main())


def ended(loops: list[weakref.ref[asyncio.AbstractEventLoop]]) -> bool:
    """Whether the loops are freed, as soon as no thread settles their appends any more."""
    for _ in range(200):
        gc.collect()
        if not any(loop() for loop in loops):
            return True
        time.sleep(0.01)
    return False


def test_a_store_keeps_no_loop_that_has_ended(path: Path) -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def append(count: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await asyncio.gather(*(store.session("s1").aappend("a", n) for n in range(count)))

    async def leave() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        for n in range(1000):
            asyncio.ensure_future(store.session("s1").aappend("a", n))
        await asyncio.sleep(0)

    with annal.open(path) as store:
        asyncio.run(append(3))
        assert ended(loops)
        asyncio.run(leave())  # hundreds of appends were not begun
        asyncio.run(append(1))
        assert ended(loops)
