# SPDX-License-Identifier: Apache-2.0
"""The speed of the package, beside its alternatives, in one run.

    bench.py [--dir DIR] [--steps N] [--events N]

Each step of one is followed by the same step of the other, so that both meet the same disk and the same load. Every
write of both is durable when it returns, except in the columns "batch", where Annal's writes are durable within 10 ms.
A time is the time of an operation, in microseconds; the ratio is the other's time divided by Annal's.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from statistics import median
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libannal as annal
from libannal._core import ffi, lib, new_error

Times = defaultdict[str, float]


@contextmanager
def timed(times: Times, what: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    times[what] += time.perf_counter() - began


def show(title: str, times: Times, count: int, pairs: dict[str, tuple[str, str]]) -> None:
    print(f"\n{title}")
    for what, seconds in times.items():
        print(f"  {what:<34}{seconds / count * 1e6:>10.0f} us")
    for what, (ours, theirs) in pairs.items():
        mine = sum(seconds for name, seconds in times.items() if name.startswith(ours))
        other = sum(seconds for name, seconds in times.items() if name.startswith(theirs))
        print(f"  {what:<34}{other / mine:>10.2f} times")


def bench_append(directory: Path, count: int) -> None:
    spent: defaultdict[str, list[float]] = defaultdict(list)
    text = b'{"tool":"bash","input":"make test","call_id":"c-1"}'
    data = {"tool": "bash", "input": "make test", "call_id": "c-1"}
    with annal.open(directory / "append") as store:
        python, bare = store.session("python"), store.session("bare")
        for session in (python, bare):
            session.append("tool.called", data)
        kept = [ffi.from_buffer("char[]", b"tool.called"), ffi.from_buffer("char[]", text)]
        draft = ffi.new("annal_draft *", {"type": (kept[0], 11), "data": (kept[1], len(text))})
        out, err, writer = ffi.new("uint64_t *"), new_error(), bare._writer.pointer
        for _ in range(count):
            began = time.perf_counter()
            assert lib.annal_writer_append(writer, draft, 1, ffi.NULL, out, err) == 0
            between = time.perf_counter()
            python.append("tool.called", data)
            spent["annal_writer_append() of C"].append(between - began)
            spent["Session.append()"].append(time.perf_counter() - between)
    times: Times = defaultdict(float, {what: median(each) for what, each in spent.items()})
    show("Durable append, one writer, medians", times, 1, {"C's time by Python's": ("Session", "annal_writer")})


def bench_rows(directory: Path, count: int) -> None:
    with annal.open(directory / "rows") as store:
        session = store.session("s1")
        for begin in range(0, count, 10_000):
            session.append_many(
                [("tool.called", {"tool": "bash", "input": f"make {n}"}) for n in range(begin, begin + 10_000)],
                level="batch",
            )
        store.query().count()
        columns = "session_id, seq, timestamp, type"
        reads: dict[str, Callable[[], Any]] = {
            "session.arrow()": session.arrow,
            "query().arrow()": store.query().arrow,
            "sql(events).arrow()": lambda: store.sql(f"SELECT {columns} FROM events").arrow(),
            "sql(events with data).arrow()": lambda: store.sql(f"SELECT {columns}, data FROM events").arrow(),
            "for event in session": lambda: sum(1 for _ in session),
        }
        print(f"\n{count} events read")
        for what, read in reads.items():
            seconds = []
            for _ in range(3):
                began = time.perf_counter()
                read()
                seconds.append(time.perf_counter() - began)
            print(f"  {what:<34}{count / min(seconds):>12,.0f} rows/s")


def bench_langgraph(directory: Path, steps: int, message_bytes: int) -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.base.id import uuid6
    from langgraph.checkpoint.sqlite import SqliteSaver
    from libannal.langgraph import AnnalSaver

    times: Times = defaultdict(float)
    place = directory / f"langgraph-{message_bytes}"
    place.mkdir()
    with (
        annal.open(place / "sync") as store,
        annal.open(place / "batch") as other,
        SqliteSaver.from_conn_string(str(place / "sqlite.db")) as sqlite,
    ):
        savers = {"Annal": AnnalSaver(store), "batch": AnnalSaver(other, level="batch"), "SqliteSaver": sqlite}
        configs: dict[str, Any] = dict.fromkeys(savers, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        messages: list[dict[str, str]] = []
        version = None
        for step in range(steps):
            text = f"what was said in step {step} "
            messages.append({"role": "assistant", "content": text * (message_bytes // len(text))})
            version = savers["Annal"].get_next_version(version, None)
            for name, saver in savers.items():
                checkpoint = empty_checkpoint()
                checkpoint["id"] = str(uuid6(clock_seq=step))
                checkpoint["channel_values"] = {"messages": list(messages)}
                checkpoint["channel_versions"] = {"messages": version}
                metadata: Any = {"source": "loop", "step": step, "parents": {}}
                with timed(times, f"{name} put"):
                    configs[name] = saver.put(configs[name], checkpoint, metadata, {"messages": version})
                with timed(times, f"{name} get"):
                    found = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
                assert found and len(found.checkpoint["channel_values"]["messages"]) == step + 1
    show(
        f"LangGraph, {steps} steps whose state grows by {message_bytes} bytes each",
        times,
        steps,
        {
            "put, SqliteSaver by Annal": ("Annal put", "SqliteSaver put"),
            "put and get, SqliteSaver by Annal": ("Annal", "SqliteSaver"),
            "put and get, SqliteSaver by batch": ("batch", "SqliteSaver"),
        },
    )
    ours = sum(file.stat().st_size for file in (place / "sync").rglob("*") if file.is_file())
    theirs = (place / "sqlite.db").stat().st_size
    print(f"  space: {ours / 1e6:.1f} MB, SqliteSaver {theirs / 1e6:.1f} MB, {theirs / ours:.1f} times")


def bench_langgraph_threads(directory: Path, workers: int, steps: int) -> None:
    """A server with several conversations at once: each worker has its own thread of LangGraph."""
    from concurrent.futures import ThreadPoolExecutor

    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver
    from libannal.langgraph import AnnalSaver

    def converse(saver: Any, thread: str) -> None:
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        version = None
        for step in range(steps):
            version = saver.get_next_version(version, None)
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"messages": [{"role": "user", "content": "x" * 400}] * (step % 40)}
            checkpoint["channel_versions"] = {"messages": version}
            stored = saver.put(config, checkpoint, {"source": "loop", "step": step}, {"messages": version})
            saver.put_writes(stored, [("messages", step)], "task")
            config = stored
            assert saver.get_tuple({"configurable": {"thread_id": thread}})

    times: Times = defaultdict(float)
    place = directory / "langgraph-threads"
    place.mkdir()
    with annal.open(place / "store") as store, SqliteSaver.from_conn_string(str(place / "sqlite.db")) as sqlite:
        for turn in range(4):  # in turns, so that both meet the same load
            for name, saver in (("Annal", AnnalSaver(store)), ("SqliteSaver", sqlite)):
                with timed(times, f"{name} put, put_writes, get"), ThreadPoolExecutor(workers) as pool:
                    list(pool.map(lambda n: converse(saver, f"t-{turn}-{n}"), range(workers)))
    show(
        f"LangGraph, {workers} conversations at once",
        times,
        4 * workers * steps,
        {"SqliteSaver by Annal": ("Annal", "SqliteSaver")},
    )


async def bench_openai(directory: Path, turns: int) -> None:
    from agents import SQLiteSession
    from libannal.openai_agents import AnnalSession

    times: Times = defaultdict(float)
    with annal.open(directory / "openai") as store:
        sqlite = SQLiteSession("user", directory / "openai.db")
        sessions: dict[str, Any] = {
            "Annal": AnnalSession("user", store),
            "batch": AnnalSession("other", store, level="batch"),
            "SQLiteSession": sqlite,
        }
        for turn in range(turns):
            items = [{"role": role, "content": f"{role} in turn {turn} " * 20} for role in ("user", "assistant")]
            for name, session in sessions.items():
                with timed(times, f"{name} add_items"):
                    await session.add_items(items)
                with timed(times, f"{name} get_items(20)"):
                    assert len(await session.get_items(limit=20)) == min(20, 2 * turn + 2)
        sqlite.close()
    show(
        f"OpenAI Agents SDK, {turns} turns",
        times,
        turns,
        {
            "SQLiteSession by Annal": ("Annal", "SQLiteSession"),
            "SQLiteSession by batch": ("batch", "SQLiteSession"),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=".", help="on the disk to measure")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--events", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="annal-bench-") as name:
        directory = Path(name)
        bench_append(directory, options.steps)
        bench_rows(directory, options.events)
        for message_bytes in (200, 2000):
            bench_langgraph(directory, options.steps, message_bytes)
        bench_langgraph_threads(directory, 8, options.steps // 10)
        asyncio.run(bench_openai(directory, options.steps))


if __name__ == "__main__":
    main()
