# SPDX-License-Identifier: Apache-2.0
"""What the adapters share: a session for a name of others, its events folded once and then followed."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from ._core import ffi
from ._errors import Conflict, IOFailed, NotFound, Unknown
from ._event import Draft, Event
from ._json import dumps
from ._names import name
from ._session import Session
from ._store import Level, Store

NAMED = "session.named"


class Folded(ABC):
    """A session that belongs to a name, and what its events mean, in memory.

    Its first own event has the name as it is. `refresh()` reads what others appended since; if the session was
    deleted and began again, everything. Hold `lock` from there until the answer is made.
    """

    def __init__(self, session: Session, parts: tuple[str, ...], level: Level = "sync") -> None:
        self.session = session
        self.parts = parts
        self.level = level
        self.lock = threading.RLock()
        self._file = b""
        self._seq = 0
        self._named: tuple[str, ...] = ()
        self.reset()

    @abstractmethod
    def reset(self) -> None:
        """Forget everything."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """What one event means."""

    def refresh(self) -> bool:
        """Bring it up to date; False if there is no such session."""
        try:
            info = self.session._info()
        except NotFound:
            self._forget(b"")
            finish_copy(self.session.store, self.session)
            if not self.session.exists():
                return False
            info = self.session._info()
        if ffi.string(info.file) != self._file:
            finish_copy(self.session.store, self.session)
            info = self.session._info()
            self._forget(ffi.string(info.file))
        if info.fork_seq and info.last_seq == info.fork_seq:
            self._finish_fork(info.last_seq)
        if info.last_seq > self._seq:
            for event in self.session.events(self._seq + 1):
                self._take(event)
        if self._named != self.parts and self._named:
            raise Conflict(f"session '{self.session.id}' does not belong to {self.parts!r}")
        return self._seq > 0

    def begun(self) -> bool:
        """Whether there is such a session. An adapter that need not read it for that says so in another way."""
        return self.refresh()

    @property
    def seq(self) -> int:
        """The last event that was read."""
        return self._seq

    def _finish_fork(self, last_seq: int) -> None:
        """A process died after it forked this session, and before the fork had a name of its own."""
        try:
            self.session.append_many([self.naming()], expected_seq=last_seq)
        except Conflict:
            pass  # another one did it

    def _forget(self, file: bytes) -> None:
        self._file, self._seq, self._named = file, 0, ()
        self.reset()

    def _take(self, event: Event) -> None:
        if event.type == NAMED:
            self._named = tuple(event.data["name"])
        else:
            self.apply(event)
        self._seq = event.seq

    def append(self, *drafts: Draft, expected_seq: int | None = None) -> None:
        """Append as one, at the level of the adapter, after the event with the name if the session is new.

        What was read before and this together are up to date, if nobody else appended in between.
        """
        written = [Draft(draft.type, dumps(draft.data, stable=False)) for draft in drafts]
        with self.lock:
            while not self._seq and not self.begun():
                try:
                    self.session.append_many([self.naming(), *written], expected_seq=0)
                    return
                except Conflict:
                    continue  # another process began it
        try:
            first = self.session.append_many(written, expected_seq=expected_seq, level=self.level).start
        except (IOFailed, Unknown):
            with self.lock:
                self._forget(b"")  # perhaps something of level batch never happened: read what there is
            raise
        if first == 1:  # it was deleted meanwhile, and began again
            self.session.append_many([self.naming()])
            return
        with self.lock:
            if first == self._seq + 1:
                now_us = time.time_ns() // 1000
                for seq, draft in enumerate(written, first):
                    self._take(Event(self.session.id, seq, now_us, draft.type, "", "", draft.data))

    def naming(self) -> Draft:
        return Draft(NAMED, {"name": list(self.parts)})


class Named:
    """The sessions of one adapter in a store: those whose name begins with its own."""

    def __init__(self, store: Store, adapter: str, kind: type[Folded], level: Level = "sync") -> None:
        self.store = store
        self.adapter = adapter
        self.level = level
        self._kind = kind
        self._lock = threading.Lock()
        self._known: dict[tuple[str, ...], Folded] = {}

    def get(self, *parts: str) -> Folded:
        with self._lock:
            known = self._known.get(parts)
            if known is None:
                if len(self._known) >= 256:  # what is asked for again is read again
                    self._known.pop(next(iter(self._known)))
                session = self.store.session(name(self.adapter, *parts))
                known = self._known[parts] = self._kind(session, (self.adapter, *parts), self.level)
            return known

    def all(self) -> Iterator[tuple[str, ...]]:
        """The names that have a session, without the adapter's own."""
        for session in self.store.sessions():
            if session.startswith(self.adapter):
                parts = name_of(self.store.session(session))
                if parts and parts[0] == self.adapter and session == name(*parts):
                    yield tuple(parts[1:])



def name_of(session: Session) -> list[str]:
    """The strings that a session belongs to; [] if there is no such session, or it belongs to none."""
    try:
        first = session._info().fork_seq + 1
    except NotFound:
        return []
    for event in session.events(first, first + 1):
        if event.type == NAMED:
            return [str(part) for part in event.data["name"]]
    return []


def copy_out(store: Store, fork: Session) -> None:
    """Make a fork a session of its own, so that what it was made from can be deleted."""
    spare = store.session(name("copying", fork.id))
    if spare.exists():
        spare.delete()
    fork.copy(spare.id)
    fork.delete()
    finish_copy(store, fork)


def finish_copy(store: Store, session: Session) -> None:
    """What copy_out() does last, again if a process died in it: the spare copy is whole once the fork is gone."""
    spare = store.session(name("copying", session.id))
    if not spare.exists():
        return
    if session.exists():
        if session.info().forked_from is not None:
            return  # nothing was replaced yet
        if len(session) < len(spare):
            session.delete()
    if not session.exists():
        spare.copy(session.id)
    spare.delete()


def delete(store: Store, session: Session) -> None:
    """Delete a session for good; forks that need it get their own copy first."""
    try:
        session.delete()
    except NotFound:
        return
    except Conflict:
        for other in store.sessions():
            candidate = store.session(other)
            if candidate.info().forked_from == session.id:
                copy_out(store, candidate)
        session.delete()


__all__ = ["Folded", "Named", "copy_out", "delete"]
