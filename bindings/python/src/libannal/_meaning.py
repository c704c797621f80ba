# SPDX-License-Identifier: Apache-2.0
"""Content of frameworks as events of the core pack, for the adapters.

An adapter appends messages, calls of tools, results, tokens and turns as events of the core pack, so that lists, search,
reports and SQL read them. The framework receives its own value unchanged, and no content is stored twice: members that a
core event contains are null in the value, and "moved" names their places. One group of events looks like this:

    message.added  {"id": "m1", "role": "assistant", "content": "Building."}
    tool.called    {"call_id": "c1", "tool": "bash", "input": {"command": "make"},
                    "extra": {"value": {"blocks": [{"text": null}, {"id": "c1", "name": "bash", "input": null}]},
                              "moved": [[["blocks", 0, "text"], 1, "content"], [["blocks", 1, "input"]]]}}

Each item of "moved" is a path in "value", the number of events from this event back to the event with the content, and
its member there; without these, it is the member of this event with the last name of the path. A value without a meaning for the core is an event of the adapter's own type.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from ._event import Draft, Event
from ._named import Folded

Path = tuple[str | int, ...]

_TRACES = 4096  # whose session is remembered

_PARTS = frozenset(("message.added", "tool.called", "tool.returned", "tool.failed", "tool.updated", "tool.output"))
ENDS = ("turn.completed", "turn.failed", "turn.cancelled")


class Whole:
    """A value of a framework that was appended with `Telling.drafts()`."""

    __slots__ = ("_moved", "event")

    def __init__(self, event: Event, moved: list[tuple[Sequence[str | int], Event, str]] | None) -> None:
        self.event = event
        self._moved = moved

    @property
    def is_told(self) -> bool:
        """Whether core events have parts of it."""
        return self._moved is not None

    def read(self) -> Any:
        """The value, as objects of the caller's own."""
        value = self.event.read()
        if self._moved is None:
            return value
        sources = {id(self.event): value}
        entry = value["extra"]["value"]
        for path, source, member in self._moved:
            given = sources.get(id(source))
            if given is None:
                given = sources[id(source)] = source.read()
            put(entry, path, given[member])
        return entry


class Told(Folded):
    """A session with its content in events of the core pack."""

    agent = ""
    """The name of the framework, `agent_id` of the session."""
    counts_tokens = True
    """Whether the framework reports tokens to the adapter."""

    def reset(self) -> None:
        self.turn_count = 0
        self.open_turn: str | None = None
        self.calls: dict[str, bool] = {}  # by id of the call, whether its result is known
        self.tokens: dict[str, int] = {}  # by message, its output tokens
        self.model: str | None = None
        self.heard: dict[int, Event] = {}  # core events since the last value of the framework

    def birth(self) -> list[Draft]:
        return [Draft("session.created", {"agent_id": self.agent})]

    def refresh(self) -> bool:
        self._note_trace()
        return super().refresh()

    def append(self, *drafts: Draft, expected_seq: int | None = None) -> None:
        self._note_trace()
        super().append(*drafts, expected_seq=expected_seq)

    def _note_trace(self) -> None:
        """Let an exporter of OpenTelemetry for this store know that this session tells what happens in this trace."""
        trace = sys.modules.get("opentelemetry.trace")
        if trace is not None:
            trace_id = trace.get_current_span().get_span_context().trace_id
            told = self.session.store._told_traces
            if trace_id and trace_id not in told:
                if len(told) >= _TRACES:
                    told.pop(next(iter(told)), None)
                told[trace_id] = (self.session.id, self.counts_tokens)

    def hear(self, event: Event) -> None:
        """Take note of a core event. Call it for each event."""
        if event.type in _PARTS:
            self.heard[event.seq] = event
        if event.type == "turn.started":
            self.turn_count += 1
            self.open_turn = event.data.get("turn_id")
        elif event.type in ENDS:
            if event.data.get("turn_id") in (None, self.open_turn):
                self.open_turn = None
        elif event.type == "tool.called":
            self.calls.setdefault(event.data.get("call_id"), False)
        elif event.type in ("tool.returned", "tool.failed"):
            self.calls[event.data.get("call_id")] = True
        elif event.type == "agent.turn.usage":
            self.model = self.model or event.data.get("model")
            of = event.data.get("message_id")
            if of is not None:
                self.tokens[of] = self.tokens.get(of, 0) + event.data.get("output_tokens", 0)

    def whole(self, event: Event, own: str) -> Whole | None:
        """The value of the framework that ends with this event; None if no value ends here. `own` is the type of values
        without a meaning for the core.
        """
        if event.type == own:
            found = Whole(event, None)
        elif event.type in _PARTS and "moved" in (extra := event.data.get("extra") or {}):
            found = Whole(event, [(path, self.heard[event.seq - back], member) for path, back, member in moves(extra)])
        else:
            return None
        self.heard = {}
        return found


class Telling:
    """The core events of a value of the framework, in order. `before`: the events of the previous value, if these are not
    appended yet.
    """

    def __init__(self, told: Told, before: Telling | None = None) -> None:
        self._told = told
        self.list: list[Draft] = []
        self._turns: int = told.turn_count if before is None else before._turns
        self._open: str | None = told.open_turn if before is None else before._open
        self._calls: dict[str, bool] = {} if before is None else before._calls
        self._tokens: dict[str, int] = {} if before is None else before._tokens
        self._moved: list[tuple[Path, int, str]] = []

    def add(self, type: str, data: dict[str, Any], **moved: Path) -> None:
        """Add an event; `moved` names the places of its members in the framework's value."""
        self._moved += [(path, len(self.list), member) for member, path in moved.items()]
        self.list.append(Draft(type, data))

    def ask(self) -> None:
        """Begin a turn, before what the user said."""
        if self._open is not None:
            self.add("turn.completed", {"turn_id": self._open, "reason": "next_turn"})
        self._turns += 1
        self._open = f"t{self._turns}"
        self.add("turn.started", {"turn_id": self._open})

    def answer(self, error: str | None = None) -> None:
        """End the turn, after the last answer."""
        if self._open is not None:
            data = {"turn_id": self._open} if error is None else {"turn_id": self._open, "error": error}
            self.add("turn.completed" if error is None else "turn.failed", data)
            self._open = None

    def call(self, call_id: str, tool: str, data: dict[str, Any], **moved: Path) -> None:
        """Add a call of a tool, unless it is known."""
        known = self._told.calls
        if call_id not in known and call_id not in self._calls:
            self._calls[call_id] = False
            self.add("tool.called", {"call_id": call_id, "tool": tool, **data}, **moved)

    def result(self, call_id: str, failed: bool, data: dict[str, Any], **moved: Path) -> None:
        """Add the result of a call; of a call whose result is known, its output."""
        if self._calls.get(call_id) or self._told.calls.get(call_id):
            if "output" in data:
                self.add("tool.output", {"call_id": call_id, **data}, **moved)
            return
        self._calls[call_id] = True
        ended = "tool.failed" if failed else "tool.returned"
        self.add(ended, {"call_id": call_id, "success": not failed, **data}, **moved)

    def counted(self, message_id: str) -> int | None:
        """The output tokens of a message that were added before; None if none of its tokens were."""
        added = self._tokens.get(message_id)
        return self._told.tokens.get(message_id) if added is None else added + self._told.tokens.get(message_id, 0)

    def usage(self, model: str | None, tokens: dict[str, int], message_id: str | None = None) -> None:
        """Add tokens, with the id of the message if its tokens are reported again; numbers that are 0 are left out."""
        kept: dict[str, Any] = {name: value for name, value in tokens.items() if value > 0}
        if not kept:
            return
        if message_id is not None:
            self._tokens[message_id] = self._tokens.get(message_id, 0) + kept.get("output_tokens", 0)
            kept["message_id"] = message_id
        if self._open is not None:
            kept["turn_id"] = self._open
        if model and model != self._told.model:  # the model of the session is the first one
            kept["model"] = model
        self.add("agent.turn.usage", kept)

    def _take(self, value: Any, last: int) -> tuple[Any, list[Any]]:
        """The value without the content of the events, and "moved", counted back from the event `last`."""
        for path, place, member in self._moved:
            self.list[place].data[member] = _get(value, path)
        moved = []
        for path, place, member in self._moved:
            value = _hollow(value, path)
            moved.append([path] if place == last and member == path[-1] else [path, last - place, member])
        return value, moved

    def beside(self, own: str, data: dict[str, Any], member: str) -> list[Draft]:
        """The events of this append, and an event of the framework's own; paths are within that member of its data."""
        if self._moved:
            value, moved = self._take(data[member], len(self.list))
            data = {**data, member: value, "moved": moved}
        return [*self.list, Draft(own, data)]

    def drafts(self, own: str, value: Any) -> list[Draft]:
        """The events of this append, with the framework's own value."""
        if not self._moved:
            return [*self.list, Draft(own, value)]
        last = max(place for _, place, _ in self._moved)
        value, moved = self._take(value, last)
        bearer = self.list[last]
        self.list[last] = Draft(bearer.type, {**bearer.data, "extra": {"value": value, "moved": moved}})
        return self.list


def moves(data: dict[str, Any]) -> Iterator[tuple[Sequence[str | int], int, str]]:
    """The items of "moved", each with all its parts."""
    for path, *rest in data["moved"]:
        back, member = rest or (0, path[-1])
        yield path, back, member


def _hollow(value: Any, path: Path) -> Any:
    """A copy of a value, with null at the path."""
    copied = value.copy()
    copied[path[0]] = None if len(path) == 1 else _hollow(copied[path[0]], path[1:])
    return copied


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: Sequence[str | int], content: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = content


def texts(data: dict[str, Any]) -> list[str]:
    """The texts of a message or a result, in order."""
    content = data.get("content", data.get("output"))
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
