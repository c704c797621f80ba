# SPDX-License-Identifier: Apache-2.0
"""A session of the OpenAI Agents SDK that keeps its items in a store (the extra "openai-agents").

    from libannal.openai_agents import AnnalSession

    with annal.open("store") as store:
        await Runner.run(agent, "Hello", session=AnnalSession("user 42", store))

Items are events, appended as one and durable. Removing items (pop_item(), clear_session()) is an event, too: they are
no longer in the conversation, and stay in the history; `Session.delete()` removes it permanently.
"""

from __future__ import annotations

from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from ._await import in_thread
from ._errors import Conflict
from ._event import Draft, Event
from ._named import Folded, Named, name_of
from ._session import Session
from ._store import Level, Store


_LONG = 1024  # events


class _Items(Folded):
    """The current items, oldest first, each as its event."""

    def reset(self) -> None:
        self.items: list[Event] = []

    def apply(self, event: Event) -> None:
        if event.type == "item.added":
            self.items.append(event)
        elif event.type == "item.removed":
            if self.items and self.items[-1].seq == event.data["seq"]:
                self.items.pop()
        elif event.type == "items.cleared":
            self.items = [item for item in self.items if item.seq > event.data["seq"]]


    def begun(self) -> bool:
        return self.seems_long() or self.refresh()

    def seems_long(self) -> bool:
        """Whether nothing of the session was read yet, and reading all of it takes a while. Checks that its name is
        right.

        Events of level batch are not in the journal yet, so that this has to be remembered.
        """
        return (
            not self.seq
            and self.level == "sync"
            and self.session.last_seq > _LONG
            and name_of(self.session) == list(self.parts)
        )

    def latest(self, count: int) -> list[Event]:
        """The latest items, oldest first, read from the end: earlier items are not read."""
        if count <= 0:
            return []
        if not self.seems_long():
            self.refresh()
            return self.items[-count:]
        found: list[Event] = []
        removed, cleared = set(), 0
        for event in reversed(self.session):
            if event.seq <= cleared or len(found) == count:
                break
            if event.type == "item.added" and event.seq not in removed:
                found.append(event)
            elif event.type == "item.removed":
                removed.add(event.data["seq"])
            elif event.type == "items.cleared":
                cleared = max(cleared, event.data["seq"])
        return found[::-1]


class AnnalSession:
    """A conversation in a store: a session of the Agents SDK. The caller keeps the store.

    `session_id` may be any string; `annal_session` is its session of the store. With `level="batch"` nothing waits for
    the disk, and items are durable within the store's batch_ms.
    """

    session_id: str
    session_settings: SessionSettings | None
    _kind: type[_Items] = _Items

    def __init__(
        self,
        session_id: str,
        store: Store,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        level: Level = "sync",
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or {})
        self._named = Named(store, "openai-agents", self._kind, level)
        self._items = cast(_Items, self._named.get(session_id))

    @property
    def annal_session(self) -> Session:
        """The session of the store."""
        return self._items.session

    def _get(self, limit: int | None) -> list[TResponseInputItem]:
        count = resolve_session_limit(limit, self.session_settings)
        with self._items.lock:
            if count is None:
                self._items.refresh()
            found = self._items.items if count is None else self._items.latest(count)
            # Each caller receives a copy: an item is a dict that it may change.
            return [cast(TResponseInputItem, item.read()) for item in found]

    def _add(self, items: list[TResponseInputItem]) -> None:
        if items:
            self._items.append(*(Draft("item.added", _plain(item)) for item in items))

    def _pop(self) -> TResponseInputItem | None:
        with self._items.lock:
            while True:
                end = self._items.session.last_seq
                found = self._items.latest(1)
                if not found:
                    return None
                end = self._items.seq or end
                try:
                    self._items.append(Draft("item.removed", {"seq": found[0].seq}), expected_seq=end)
                except Conflict:
                    continue  # another caller added or removed items in the meantime
                return cast(TResponseInputItem, found[0].read())

    def _clear(self) -> None:
        with self._items.lock:
            if self._items.refresh() and self._items.items:
                self._items.append(Draft("items.cleared", {"seq": self._items.items[-1].seq}))

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[TResponseInputItem]:
        """The latest `limit` items, oldest first; None: as in the settings, 0: none."""
        if self._items.lock.acquire(blocking=False):
            try:
                if self._items.seq:  # so that little is left to read
                    return self._get(limit)
            finally:
                self._items.lock.release()
        return await in_thread(self._get, limit)

    async def add_items(self, items: list[TResponseInputItem], *, wrapper: Any = None) -> None:
        """Add items: all of them, or none; durable when it returns."""
        await in_thread(self._add, items)

    async def pop_item(self, *, wrapper: Any = None) -> TResponseInputItem | None:
        """Remove the most recent item, and return it. Two callers never receive the same item."""
        return await in_thread(self._pop)

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Remove all items."""
        await in_thread(self._clear)


def _plain(item: Any) -> Any:
    """An item as JSON; some of the SDK's items are models of pydantic."""
    return item.model_dump(exclude_unset=True) if hasattr(item, "model_dump") else item
