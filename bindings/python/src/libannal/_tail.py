# SPDX-License-Identifier: Apache-2.0
"""Follow sessions live."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._core import DAMAGE, END, Resource, Slice, Slices, Time, check, natural, ffi, lib, microseconds, new_error, text
from ._errors import Closed
from ._event import Event

if TYPE_CHECKING:
    from ._store import Store

_SLICE_MS = 200  # a wait is cut into pieces of this length, so that Ctrl-C and close() take effect soon


class Tail(Resource):
    """Events of sessions, live: an iterator, and an asynchronous one.

    `for event in tail` waits for the next event without end; `async for` does so in the event loop, by a descriptor
    that the loop polls, without a thread, and ends when the tail or its store is closed. `next(timeout)` gives up. One thread at a time; others wait for it. After
    `close()` its named cursor stays where `commit()` left it.
    """

    def __init__(self, store: Store, pointer: Any) -> None:
        super().__init__(store._own(pointer, lib.annal_tail_close), threading.Lock())
        self._store = store
        self._raw = ffi.new("annal_event *")
        self._waiting: set[Any] = set()  # futures of coroutines that wait for an event
        store._tails.add(self)

    def close(self) -> None:
        """Free it; iterations end. A second time does nothing."""
        super().close()
        self._wake()

    def _wake(self) -> None:
        """Let coroutines that wait look again, and find the tail closed."""
        for ready in list(self._waiting):
            try:
                ready.get_loop().call_soon_threadsafe(_set, ready)
            except RuntimeError:
                pass  # the loop was closed

    def _look(self, timeout_ms: int) -> Event | None:
        err = new_error()
        with self._lock, self._store._gate:
            tail = self._handle.pointer
            while True:
                status = check(lib.annal_tail_next(tail, timeout_ms, self._raw, err), err)
                if status == END:
                    return None
                if status != DAMAGE:
                    return Event.read_from(text(lib.annal_tail_session(tail)), self._raw, self._store)

    def next(self, timeout: float | None = None) -> Event | None:
        """The next event; None if no event is appended within `timeout` seconds. A timeout of None waits without end.

        Damaged bytes of a journal are skipped: `Session.verify()` lists them. A tail of a single session raises
        `Conflict` when its journal was replaced or deleted: open a new one.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS if until is None else int((until - time.monotonic()) * 1000)
            event = self._look(max(0, min(left, _SLICE_MS)))
            if event is not None or (until is not None and time.monotonic() >= until):
                return event

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self.next()
        assert event is not None
        return event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        try:
            event = self._look(0)
            while event is None:
                await self._readable()
                event = self._look(0)
            return event
        except Closed:
            raise StopAsyncIteration from None

    async def _readable(self) -> None:
        """Return when there may be something new. If it is cancelled, it leaves nothing in the loop."""
        import asyncio  # a program without a loop does not pay for it

        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        self._waiting.add(ready)  # before the tail is used: close() wakes it, or fileno() finds the tail closed
        descriptor = -1
        try:
            with self._lock:
                descriptor = os.dup(self._descriptor())  # stays open if the tail is closed
            loop.add_reader(descriptor, _set, ready)
            await ready
        finally:
            self._waiting.discard(ready)
            if descriptor >= 0:
                if not loop.is_closed():
                    loop.remove_reader(descriptor)
                os.close(descriptor)

    def fileno(self) -> int:
        """A descriptor that is readable if there may be something new: for poll, epoll, select.

        Call `next(0)` until it returns None before each wait.
        """
        with self._lock:
            return self._descriptor()

    def _descriptor(self) -> int:
        """The descriptor. The caller holds the lock, so that it stays open."""
        out, err = ffi.new("int *"), new_error()
        with self._store._gate:
            check(lib.annal_tail_fd(self._handle.pointer, out, err), err)
        return int(out[0])

    def commit(self) -> None:
        """Confirm that every event that this tail returned is processed: its named cursor continues after them.

        Durable when it returns. Raises `Invalid` if the tail has no cursor.
        """
        err = new_error()
        with self._lock, self._store._gate:
            check(lib.annal_tail_commit(self._handle.pointer, err), err)


def _set(ready: Any) -> None:
    if not ready.done():
        ready.set_result(None)


def open_tail(
    store: Store,
    sessions: str | Sequence[str] | None,
    *,
    types: str | Sequence[str] | None,
    from_seq: int,
    since: Time | None,
    last: int,
    from_now: bool,
    cursor: str,
) -> Tail:
    names, patterns, name = Slices(sessions), Slices(types), Slice(cursor)
    options = ffi.new(
        "annal_tail_options *",
        {
            "sessions": names.array,
            "session_count": names.count,
            "types": patterns.array,
            "type_count": patterns.count,
            "from_seq": natural(from_seq, "from_seq"),
            "from_us": 0 if since is None else microseconds(since),
            "last": natural(last, "last"),
            "from_now": from_now,
            "cursor": name.value,
        },
    )
    out, err = ffi.new("annal_tail **"), new_error()
    with store._gate:
        check(lib.annal_tail_open(store._pointer, options, out, err), err)
        return Tail(store, out[0])


__all__ = ["Closed", "Tail"]
