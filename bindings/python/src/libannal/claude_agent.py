# SPDX-License-Identifier: Apache-2.0
"""A session store of the Claude Agent SDK (the extra "claude-agent").

    from libannal.claude_agent import AnnalSessionStore

    options = ClaudeAgentOptions(session_store=AnnalSessionStore(store))

Each transcript (also of a sub-agent) is a session, and each line of it an event.
"""

from __future__ import annotations

from typing import Any, cast

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from ._await import in_thread
from ._errors import NotFound
from ._event import Draft, Event
from ._named import Folded, Named, delete
from ._store import Store


class _Transcript(Folded):
    """The lines of a transcript; a line with a uuid counts once."""

    def reset(self) -> None:
        self.lines: list[Event] = []
        self.uuids: set[str] = set()

    def apply(self, event: Event) -> None:
        if event.type != "transcript.line":
            return
        uuid = event.data.get("uuid")
        if uuid is not None and uuid in self.uuids:
            return
        if uuid is not None:
            self.uuids.add(uuid)
        self.lines.append(event)


class AnnalSessionStore(SessionStore):
    """Transcripts in a store, durable when append() returns. The caller keeps the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._transcripts = Named(store, "claude-agent", _Transcript)

    def _transcript(self, *parts: str) -> _Transcript:
        return cast(_Transcript, self._transcripts.get(*parts))

    def _append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        transcript = self._transcript(*_parts(key))
        with transcript.lock:
            transcript.refresh()
            known = transcript.uuids
            new = [entry for entry in entries if entry.get("uuid") is None or entry["uuid"] not in known]
            if new:
                transcript.append(*(Draft("transcript.line", entry) for entry in new))

    def _load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        transcript = self._transcript(*_parts(key))
        with transcript.lock:
            if not transcript.refresh():
                return None
            return [cast(SessionStoreEntry, line.read()) for line in transcript.lines]

    def _names(self, *beginning: str) -> list[tuple[str, ...]]:
        """The names of sessions with this beginning: (project, session) and (project, session, subpath)."""
        return [parts for parts in self._transcripts.all() if parts[: len(beginning)] == beginning]

    def _mtime(self, *parts: str) -> int:
        try:
            return self._transcript(*parts).session.info().last_ts_us // 1000
        except NotFound:
            return 0

    def _list(self, project_key: str) -> list[SessionStoreListEntry]:
        return [
            {"session_id": parts[1], "mtime": self._mtime(*parts)}
            for parts in self._names(project_key)
            if len(parts) == 2
        ]

    def _summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        found: list[SessionSummaryEntry] = []
        for parts in self._names(project_key):
            if len(parts) != 2:
                continue
            key: SessionKey = {"project_key": parts[0], "session_id": parts[1]}
            entries = self._load(key)
            if entries:
                found.append({**fold_session_summary(None, key, entries), "mtime": self._mtime(*parts)})
        return found

    def _delete(self, key: SessionKey) -> None:
        parts = _parts(key)
        found = self._names(*parts) if len(parts) == 2 else []
        for gone in [*found, parts]:  # the main transcript last: an interrupted call can be repeated
            transcript = self._transcript(*gone)
            with transcript.lock:
                delete(self.store, transcript.session)

    def _subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return [parts[2] for parts in self._names(key["project_key"], key["session_id"]) if len(parts) == 3]

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append lines: all of them, or none. A line whose uuid exists is skipped."""
        await in_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All lines of a transcript; None if the transcript does not exist."""
        return await in_thread(self._load, key)

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The transcripts of a project, without the transcripts of sub-agents."""
        return await in_thread(self._list, project_key)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The result of the SDK's fold_session_summary() for each transcript of a project."""
        return await in_thread(self._summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript permanently; for a session, also the transcripts of its sub-agents."""
        await in_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session."""
        return await in_thread(self._subkeys, key)


def _parts(key: SessionKey) -> tuple[str, ...]:
    subpath: Any = key.get("subpath")
    parts = (key["project_key"], key["session_id"])
    return parts if subpath is None else (*parts, subpath)
