"""What the adapters share: a session for a name of others, its events folded once and then followed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator

from ._errors import Conflict, NotFound
from ._event import Draft, Event
from ._names import name
from ._session import Session
from ._store import Store

NAMED = "session.named"


class Folded(ABC):
    """A session that belongs to a name, and what its events mean, in memory.

    Its first own event has the name as it is. `refresh()` reads what others appended since; if the session was
    deleted and began again, everything. Hold `lock` from there until the answer is made.
    """

    def __init__(self, session: Session, parts: tuple[str, ...]) -> None:
        self.session = session
        self.parts = parts
        self.lock = threading.RLock()
        self._file = ""
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
            info = self.session.info()
        except NotFound:
            self._forget("")
            finish_copy(self.session.store, self.session)
            if not self.session.exists():
                return False
            info = self.session.info()
        if info.file != self._file:
            finish_copy(self.session.store, self.session)
            info = self.session.info()
            self._forget(info.file)
        if info.forked_from is not None and info.last_seq == info.fork_seq:
            self._finish_fork(info.last_seq)
        if info.last_seq > self._seq:
            for event in self.session.events(self._seq + 1):
                self._take(event)
        if self._named != self.parts and self._named:
            raise Conflict(f"session '{self.session.id}' does not belong to {self.parts!r}")
        return self._seq > 0

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

    def _forget(self, file: str) -> None:
        self._file, self._seq, self._named = file, 0, ()
        self.reset()

    def _take(self, event: Event) -> None:
        if event.type == NAMED:
            self._named = tuple(event.data["name"])
        else:
            self.apply(event)
        self._seq = event.seq

    def append(self, *drafts: Draft) -> None:
        """Append as one, durable, after the event with the name if the session is new."""
        with self.lock:
            while not self._seq and not self.refresh():
                try:
                    self.session.append_many([self.naming(), *drafts], expected_seq=0)
                    return
                except Conflict:
                    continue  # another process began it
        if self.session.append_many(drafts).start == 1:  # it was deleted meanwhile, and began again
            self.session.append_many([self.naming()])

    def naming(self) -> Draft:
        return Draft(NAMED, {"name": list(self.parts)})


class Named:
    """The sessions of one adapter in a store: those whose name begins with its own."""

    def __init__(self, store: Store, adapter: str, kind: type[Folded]) -> None:
        self.store = store
        self.adapter = adapter
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
                known = self._known[parts] = self._kind(session, (self.adapter, *parts))
            return known

    def all(self) -> Iterator[tuple[str, ...]]:
        """The names that have a session, without the adapter's own."""
        for session in self.store.sessions():
            if session.startswith(self.adapter):
                parts = self._name_of(self.store.session(session))
                if parts and parts[0] == self.adapter and session == name(*parts):
                    yield tuple(parts[1:])

    @staticmethod
    def _name_of(session: Session) -> list[str]:
        try:
            first = session.info().fork_seq + 1
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
