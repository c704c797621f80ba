# SPDX-License-Identifier: Apache-2.0
"""A session of the OpenAI Agents SDK that keeps its items in a store (the extra "openai-agents").

    from libannal.openai_agents import AnnalSession

    with annal.open("store") as store:
        await Runner.run(agent, "Hello", session=AnnalSession("user 42", store))

Items are events, appended as one and durable: messages, calls of tools and their results are events of the core pack, and
what the user says begins a turn. Removing items (pop_item(), clear_session()) is an event, too: they are no longer in the
conversation, and stay in the history; `Session.delete()` removes it permanently.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from ._await import in_thread
from ._errors import Conflict
from ._event import Draft, Event
from ._meaning import ENDS, Told
from ._named import Named, name_of
from ._session import Session
from ._store import Level, Store


_LONG = 1024  # events


# The members of a call that are its tool and its input; without a name the type is the name of the tool.
_CALLS: dict[str, tuple[str | None, str]] = {
    "function_call": ("name", "arguments"),
    "custom_tool_call": ("name", "input"),
    "computer_call": (None, "action"),
    "local_shell_call": (None, "action"),
    "shell_call": (None, "action"),
    "apply_patch_call": (None, "operation"),
}
# What the SDK gives to the model as the output of a call that failed.
_FAILED = (
    "An error occurred while running the tool. Please try again. Error: ",
    "An error occurred while parsing tool arguments. Please try again with valid JSON. Error: ",
    "Tool execution was not approved.",
)
_OURS = ("item", "tool")


def _tell(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """An item as an event: its type, and the item with the names of the core pack for its members."""
    kind, made = item.get("type"), {"id": f"~{os.urandom(4).hex()}"}
    if any(name in item for name in _OURS) or item.get("id", "") is None or str(item.get("id", "")).startswith("~"):
        return "item.added", item
    if kind != "reasoning" and isinstance(item.get("role"), str) and "content" in item:
        return "message.added", {**made, **item, "item": True}
    if kind == "reasoning" and "content" not in item and "role" not in item and isinstance(item.get("summary"), list):
        renamed = {"content" if name == "summary" else name: value for name, value in item.items()}
        return "message.added", {**made, **renamed, "role": "assistant", "item": True}
    if not isinstance(item.get("call_id"), str):
        return "item.added", item
    if kind in _CALLS:
        tool, input_ = _CALLS[kind]
        names = {tool: "tool", input_: "input"}
        if input_ in item and (input_ == "input" or "input" not in item) and (tool is None or tool in item):
            renamed = {names.get(name, name): value for name, value in item.items()}
            renamed.setdefault("tool", kind.removesuffix("_call"))
            return "tool.called", {**renamed, "item": True}
    elif str(kind).endswith("_call_output"):
        output = item.get("output")
        failed = isinstance(output, str) and output.startswith(_FAILED)
        return "tool.failed" if failed else "tool.returned", {**item, "item": True}
    return "item.added", item


def _item_of(type: str, data: dict[str, Any]) -> dict[str, Any]:
    """The item of an event."""
    if type == "item.added":
        return data
    kind, gone = data.get("type"), {"item"}
    names: dict[str, str] = {}
    if str(data.get("id", "")).startswith("~"):
        gone.add("id")
    if isinstance(data["item"], dict):  # by the Node package, with the names that the item has
        names = {name: given for name, given in data["item"].items() if given is not None}
        gone |= {name for name, given in data["item"].items() if given is None}
    elif type == "tool.called":
        tool, input_ = _CALLS[str(kind)]
        names["input"] = input_
        if tool is None:
            gone.add("tool")
        else:
            names["tool"] = tool
    elif kind == "reasoning":
        names["content"] = "summary"
        gone.add("role")
    return {names.get(name, name): value for name, value in data.items() if name not in gone}


class Item:
    """An item of a conversation, and its event."""

    __slots__ = ("_data", "event", "seq")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.seq = event.seq
        self._data: Any = None

    @property
    def data(self) -> Any:
        """The item. It is read once, and shared by all callers."""
        if self._data is None:
            self._data = _item_of(self.event.type, self.event.data)
        return self._data

    @property
    def ts(self) -> datetime:
        return self.event.ts

    def read(self) -> Any:
        """The item as objects of the caller's own."""
        return _item_of(self.event.type, self.event.read())


_TYPES = frozenset(("item.added", "message.added", "tool.called", "tool.returned", "tool.failed"))


def _is_item(event: Event) -> bool:
    return event.type == "item.added" or event.type in _TYPES and bool(event.data.get("item"))


class _Items(Told):
    """The current items, oldest first."""

    agent = "openai-agents"
    counts_tokens = False

    def reset(self) -> None:
        super().reset()
        self.items: list[Item] = []

    def apply(self, event: Event) -> None:
        if event.type in ("turn.started", *ENDS):
            self.hear(event)
        elif _is_item(event):
            self.items.append(Item(event))
        elif event.type == "item.removed":
            if self.items and self.items[-1].seq == event.data["seq"]:
                self.items.pop()
        elif event.type == "items.cleared":
            self.items = [item for item in self.items if item.seq > event.data["seq"]]

    def drafts(self, items: Iterable[Any]) -> list[Draft]:
        """The events of new items: a message of the user begins a turn, and an answer at the end ends it."""
        found, open_turn = [], self.open_turn
        kind = ""
        data: dict[str, Any] = {}
        for item in items:
            kind, data = _tell(_plain(item))
            if kind == "message.added" and data["role"] == "user":
                if open_turn is not None:
                    found.append(Draft("turn.completed", {"turn_id": open_turn, "reason": "next_turn"}))
                open_turn = str(data["id"])
                found.append(Draft("turn.started", {"turn_id": open_turn}))
            found.append(Draft(kind, data))
        if open_turn is not None and kind == "message.added" and data["role"] == "assistant":
            if data.get("type") != "reasoning":
                found.append(Draft("turn.completed", {"turn_id": open_turn}))
        return found

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

    def latest(self, count: int) -> list[Item]:
        """The latest items, oldest first, read from the end: earlier items are not read."""
        if count <= 0:
            return []
        if not self.seems_long():
            self.refresh()
            return self.items[-count:]
        found: list[Item] = []
        removed, cleared = set(), 0
        for event in reversed(self.session):
            if event.seq <= cleared or len(found) == count:
                break
            if event.seq not in removed and _is_item(event):
                found.append(Item(event))
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
            with self._items.lock:
                drafts = self._items.drafts(items)
            self._items.append(*drafts)

    def _pop(self) -> TResponseInputItem | None:
        with self._items.lock:
            while True:
                end = self._items.session.last_seq
                found = self._items.latest(1)
                if not found:
                    return None
                end = self._items.seq or end
                removed = [Draft("item.removed", {"seq": found[0].seq})]
                if found[0].event.type == "message.added" and found[0].event.data["role"] == "user":
                    removed.append(Draft("turn.rolled_back", {"turn_id": found[0].event.data["id"]}))
                try:
                    self._items.append(*removed, expected_seq=end)
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
