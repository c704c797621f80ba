# SPDX-License-Identifier: Apache-2.0
"""Appends and queries in an event loop, which never waits for the disk or for another process.

Appends of coroutines wait in a list for each session. A thread takes the list of a session, appends all of it at level
batch, and syncs once: so many coroutines share a sync, within a session and, because the library groups what several
threads append, between sessions. A session that another process keeps blocks its own list only. In one turn of the loop
only some appends are prepared, and some answered, so that thousands of coroutines that begin at once, or whose events become
durable at once, do not stop it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from ._await import in_thread
from ._errors import Closed
from ._event import Event
from ._table import BLOCK_BYTES, growing

if TYPE_CHECKING:
    from collections.abc import Generator

    from ._table import Table
    from ._query import Query
    from ._session import Session

_THREADS = 64  # sessions that wait for other processes at the same time before others wait, too
_GROUP = 512  # appends that share a sync

_TURN = 100  # appends that are prepared, and appends that are answered, in one turn of the loop

_Wanted = tuple[asyncio.AbstractEventLoop, "asyncio.Future[int]", Callable[..., int], bool]
_Answer = tuple["asyncio.Future[int]", Any]  # a seq or an exception
_Prepared = tuple["Session", Callable[..., int], bool]  # the call takes a level; whether the event is synced


class _Turns:
    """The appends of a loop, of which each turn of the loop prepares some and answers some."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._count = 0
        self._later: deque[tuple[asyncio.Future[int], Callable[[], _Prepared]]] = deque()
        self._answers: deque[_Answer] = deque()
        self._is_due = False

    def append(self, prepare: Callable[[], _Prepared]) -> asyncio.Future[int]:
        loop = asyncio.get_running_loop()  # it is not kept: an ended loop must not stay alive
        future: asyncio.Future[int] = loop.create_future()
        if self._later or self._count >= _TURN:
            self._later.append((future, prepare))
            return future
        self._begin(future, prepare)
        self._schedule()
        return future

    def answer(self, answers: list[_Answer]) -> None:
        """Give futures their answers, in this turn of the loop or a later one. Called in the thread of the loop."""
        self._answers.extend(answers)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _begin(self, future: asyncio.Future[int], prepare: Callable[[], _Prepared]) -> None:
        self._count += 1
        if future.done():
            return  # it was cancelled
        try:
            session, call, is_sync = prepare()
            self._appender._submit(future.get_loop(), future, session, call, is_sync)
        except Exception as error:
            future.set_exception(error)

    def _turn(self) -> None:
        self._is_due = False
        self._count = 0
        while self._later and self._count < _TURN:
            self._begin(*self._later.popleft())
        for _ in range(min(_TURN, len(self._answers))):
            _settle(*self._answers.popleft())
        if self._count or self._answers:
            self._schedule()


class Appender:
    """The appends of coroutines to the sessions of a store."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Wanted]] = {}  # by session, while a thread works on it
        self._pool: ThreadPoolExecutor | None = None
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()

    def append(self, prepare: Callable[[], _Prepared]) -> asyncio.Future[int]:
        """Append what `prepare()` returns, in a thread; the future has the seq when the event is durable."""
        loop = asyncio.get_running_loop()
        turns = self._turns.get(loop)
        if turns is None:
            for ended in [other for other in self._turns if other.is_closed()]:
                del self._turns[ended]  # appends that were left over refer to their loop
            turns = self._turns[loop] = _Turns(self)
        return turns.append(prepare)

    def _submit(
        self,
        loop: asyncio.AbstractEventLoop,
        future: asyncio.Future[int],
        session: Session,
        call: Callable[..., int],
        is_sync: bool,
    ) -> None:
        with self._lock:
            waiting = self._waiting.get(session.id)
            if waiting is not None:
                waiting.append((loop, future, call, is_sync))
                return
            self._waiting[session.id] = [(loop, future, call, is_sync)]
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_THREADS, "libannal-append")
            pool = self._pool
        pool.submit(self._work, session)

    def _work(self, session: Session) -> None:
        while True:
            with self._lock:
                waiting = self._waiting[session.id]
                group = waiting[:_GROUP]
                del waiting[:_GROUP]
                if not group:
                    del self._waiting[session.id]
                    return
            answers = _append_group(session, group)
            loops: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
            for (loop, future, _, _), answer in zip(group, answers):
                loops.setdefault(loop, []).append((future, answer))
            for loop, found in loops.items():
                try:
                    loop.call_soon_threadsafe(self._turns[loop].answer, found)
                except (KeyError, RuntimeError):
                    pass  # the loop was closed

    def close(self) -> None:
        """Return when no thread works any more; later appends begin new threads, which find the store closed."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


def _append_group(session: Session, group: list[_Wanted]) -> list[Any]:
    """Append, and sync once; the answer of each is a seq or an exception."""
    answers: list[Any] = []
    for _, future, call, is_sync in group:
        try:
            answers.append(call("batch" if is_sync else None))
        except BaseException as error:
            answers.append(error)
    if any(is_sync and isinstance(answer, int) for (_, _, _, is_sync), answer in zip(group, answers)):
        try:
            session.sync()
        except BaseException as error:
            answers = [
                error if is_sync and isinstance(answer, int) else answer
                for (_, _, _, is_sync), answer in zip(group, answers)
            ]
    return answers


def _settle(future: asyncio.Future[int], answer: Any) -> None:
    if future.done():
        return  # it was cancelled; the event is appended all the same
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


async def read_query(query: Query) -> AsyncIterator[Event]:
    """The events of a query, read in threads."""
    tables: Iterator[Table] = query._tables(growing(), BLOCK_BYTES)
    try:
        while (table := await in_thread(next, tables, None)) is not None:
            for event in table.events(query._store):
                yield event
    finally:
        await in_thread(cast("Generator[Table]", tables).close)


__all__ = ["Appender", "Closed", "read_query"]
