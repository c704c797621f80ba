# SPDX-License-Identifier: Apache-2.0
"""The information that a new process needs to continue a session: `annal show --recovery` prints the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._core import check, data, ffi, lib, new_error, text
from ._event import Event
from ._json import loads

if TYPE_CHECKING:
    from ._session import Session


@dataclass(frozen=True)
class OpenCall:
    """A call of a tool without a result: it may have had its effect."""

    call_id: str
    tool: str
    input: Any
    seq: int
    """The seq of its tool.called."""
    called_at: str
    turn_id: str | None


@dataclass(frozen=True)
class OpenTurn:
    """A turn that has not ended."""

    turn_id: str
    seq: int
    """The seq of its turn.started."""
    status: str
    created_at: str
    sequence: int


@dataclass(frozen=True)
class Recovery:
    """The end of a session: the last event, its status, and everything that was in progress, oldest first."""

    session: str
    seq: int
    """The last event: `expected_seq` of the next append."""
    status: str
    calls: list[OpenCall]
    turns: list[OpenTurn]
    last_user: Event | None
    """The last message of the user, in the newest 20,480 events."""
    last_assistant: Event | None


def _maybe(slice_: Any) -> str | None:
    return text(slice_) if slice_.ptr else None


def read_recovery(session: Session) -> Recovery:
    out, err = ffi.new("annal_recovery **"), new_error()
    store = session.store
    with store._gate:
        check(lib.annal_recovery_get(store._indexed(), session._slice.value, out, err), err)
    try:
        found = out[0]
        calls = [_open_call(session, found.calls[place]) for place in range(found.call_count)]
        turns = [_open_turn(found.turns[place]) for place in range(found.turn_count)]
        last = [session[seq - 1] if seq else None for seq in (found.user.seq, found.assistant.seq)]
        return Recovery(session.id, found.seq, text(found.status), calls, turns, *last)
    finally:
        lib.annal_recovery_free(out[0])


def _open_call(session: Session, raw: Any) -> OpenCall:
    if raw.input.len:
        given = loads(data(raw.input))
    else:  # none, or its call is one of so many that the library did not read it
        called = session[raw.seq - 1].data
        given = called.get("input", called.get("arguments")) if isinstance(called, dict) else None
    return OpenCall(text(raw.call_id), text(raw.tool), given, raw.seq, text(raw.called_at), _maybe(raw.turn_id))


def _open_turn(raw: Any) -> OpenTurn:
    return OpenTurn(text(raw.turn_id), raw.seq, text(raw.status), text(raw.created_at), raw.sequence)
