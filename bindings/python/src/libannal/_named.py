# SPDX-License-Identifier: Apache-2.0
"""Shared code of the adapters: a session for a name of another library, whose events are folded once and then followed.
"""

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
    """A session that belongs to a name, and the meaning of its events, in memory.

    Its first own event has the unchanged name. `refresh()` reads events that were appended since; if the session was
    deleted and began again, it reads all of it. Hold `lock` from there until the answer is complete.
    """

    def __init__(self, session: Session, parts: tuple[str, ...], level: Level = "sync") -> None:
        self.session = session
        self.parts = parts
        self.level = level
        self.lock = threading.RLock()
        self._file = b""
        self._seq = 0
        self._appended = 0
        self._named: tuple[str, ...] = ()
        self.reset()

    @abstractmethod
    def reset(self) -> None:
        """Forget everything."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Apply one event."""

    def refresh(self) -> bool:
        """Read the new events; False if the session does not exist."""
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
        if self._appended > max(self._seq, info.last_seq):
            self._write_out()  # events of level batch, beside another caller: they are not in the journal yet
            info = self.session._info()
        if info.fork_seq and info.last_seq == info.fork_seq:
            self._finish_fork(info.last_seq)
        if info.last_seq > self._seq:
            for event in self.session.events(self._seq + 1):
                self._take(event)
        if self._named != self.parts and self._named:
            raise Conflict(f"session '{self.session.id}' does not belong to {self.parts!r}")
        return self._seq > 0

    def _write_out(self) -> None:
        """Return when all events that were appended are in the journal."""
        try:
            self.session.sync()
        except (IOFailed, Unknown):
            self._forget(b"")
            raise

    def begun(self) -> bool:
        """Whether the session exists. An adapter that need not read the session for that overrides it."""
        return self.refresh()

    @property
    def seq(self) -> int:
        """The last event that was read."""
        return self._seq

    def _finish_fork(self, last_seq: int) -> None:
        """Finish a fork: a process died after it forked this session, and before the fork had a name of its own."""
        try:
            self.session._report([self.naming()], expected_seq=last_seq)
        except Conflict:
            pass  # another process did it

    def _forget(self, file: bytes) -> None:
        self._file, self._seq, self._appended, self._named = file, 0, 0, ()
        self.reset()

    def _take(self, event: Event) -> None:
        if event.type == NAMED:
            self._named = tuple(event.data["name"])
        else:
            self.apply(event)
        self._seq = event.seq

    def append(self, *drafts: Draft, expected_seq: int | None = None) -> None:
        """Append as one, at the level of the adapter, after the event with the name if the session is new.

        The events that were read before and these events are up to date, if no other process appended in between.
        """
        written = [Draft(draft.type, dumps(draft.data, stable=False)) for draft in drafts]
        with self.lock:
            while not self._seq and not self.begun():
                try:
                    self.session._report([self.naming(), *self.birth(), *written], expected_seq=0)
                    return
                except Conflict:
                    continue  # another process began it
        try:
            first = self.session._report(written, expected_seq=expected_seq, level=self.level)
        except (IOFailed, Unknown):
            with self.lock:
                self._forget(b"")  # perhaps events of level batch were never written: read the existing ones
            raise
        if first == 1:  # it was deleted in the meantime, and began again
            self.session._report([self.naming()])
            return
        with self.lock:
            self._appended = first + len(written) - 1
            if first == self._seq + 1:
                now_us = time.time_ns() // 1000
                for seq, draft in enumerate(written, first):
                    self._take(Event(self.session.id, seq, now_us, draft.type, "", "", draft.data, self.session.store))

    def naming(self) -> Draft:
        return Draft(NAMED, {"name": list(self.parts)})

    def birth(self) -> list[Draft]:
        """The events that follow the name in a new session."""
        return []


class Named:
    """The sessions of one adapter in a store: their names begin with the adapter's name."""

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
                if len(self._known) >= 256:  # sessions that are needed again are read again
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
    """The strings to which a session belongs; [] if the session does not exist, or belongs to none."""
    try:
        first = session._info().fork_seq + 1
    except NotFound:
        return []
    for event in session.events(first, first + 1):
        if event.type == NAMED:
            return [str(part) for part in event.data["name"]]
    return []


def copy_out(store: Store, fork: Session) -> None:
    """Make a fork an independent session, so that its parent can be deleted."""
    spare = store.session(name("copying", fork.id))
    if spare.exists():
        spare.delete()
    fork.copy(spare.id)
    fork.delete()
    finish_copy(store, fork)


def finish_copy(store: Store, session: Session) -> None:
    """Run the last step of copy_out(), also after a process died in it: the spare copy is complete once the fork is
    deleted.
    """
    spare = store.session(name("copying", session.id))
    if not spare.exists():
        return
    if session.exists():
        if session.info().forked_from is not None:
            return  # not replaced yet
        if len(session) < len(spare):
            session.delete()
    if not session.exists():
        spare.copy(session.id)
    spare.delete()


def delete(store: Store, session: Session) -> None:
    """Delete a session permanently; forks that need it are copied first."""
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
