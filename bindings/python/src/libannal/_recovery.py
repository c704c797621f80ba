# SPDX-License-Identifier: Apache-2.0
"""The information that a new process needs to continue a session: `annal show --recovery` prints the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._event import Event

if TYPE_CHECKING:
    from ._session import Session

_LOOK_BACK = 20_480  # events in which the last messages are looked for


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


def read_recovery(session: Session) -> Recovery:
    with session.state() as state:
        seq = state.seq
        status = str(state.sql("SELECT status FROM sessions")[0][0]) if seq else ""
        calls = state.sql("SELECT call_id, tool, seq, called_at, turn_id FROM dangling ORDER BY seq").dicts()
        turns = state.sql(
            "SELECT turn_id, seq, status, created_at, sequence FROM turns WHERE completed_at IS NULL ORDER BY sequence"
        ).dicts()
    last: dict[str, Event] = {}
    for event in session._backwards(max(1, seq - _LOOK_BACK), seq):
        if event.type == "message.added" and isinstance(event.data, dict):
            last.setdefault(str(event.data.get("role")), event)
            if {"user", "assistant"} <= last.keys():
                break
    found = [_open_call(session, call) for call in calls]
    return Recovery(
        session.id, seq, status, found, [OpenTurn(**turn) for turn in turns], last.get("user"), last.get("assistant")  # type: ignore[arg-type]
    )


def _open_call(session: Session, row: dict[str, Any]) -> OpenCall:
    data = session[int(row["seq"]) - 1].data
    given = data.get("input", data.get("arguments")) if isinstance(data, dict) else None
    return OpenCall(input=given, **row)
