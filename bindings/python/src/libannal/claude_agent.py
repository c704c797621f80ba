# SPDX-License-Identifier: Apache-2.0
"""A session store of the Claude Agent SDK (the extra "claude-agent").

    from libannal.claude_agent import AnnalSessionStore

    options = ClaudeAgentOptions(session_store=AnnalSessionStore(store))

Each transcript (also of a sub-agent) is a session. Its lines are messages, calls of tools, their results, tokens and turns
of the core pack; a line that is none of these is an event of its own.
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
from ._errors import Conflict, NotFound
from ._event import Draft, Event
from ._meaning import Path, Telling, Told, Whole
from ._named import Named, delete
from ._names import name
from ._store import Store


_LINE = "transcript.line"


class _Transcript(Told):
    """The lines of a transcript; a line with a uuid counts once."""

    agent = "claude-agent"

    def reset(self) -> None:
        super().reset()
        self.lines: list[Whole] = []
        self.uuids: set[str] = set()

    def birth(self) -> list[Draft]:
        created: dict[str, Any] = {"agent_id": self.agent, "provider": "anthropic"}
        if len(self.parts) > 3:
            created["parent_session_id"] = name(*self.parts[:3])
        return [Draft("session.created", created)]

    def apply(self, event: Event) -> None:
        self.hear(event)
        line = self.whole(event, _LINE)
        if line is None:
            return
        data = event.data
        uuid = data["extra"]["value"].get("uuid") if line.is_told else data.get("uuid")
        if uuid is not None and uuid in self.uuids:
            return
        if uuid is not None:
            self.uuids.add(uuid)
        self.lines.append(line)


def _tell(telling: Telling, entry: dict[str, Any]) -> None:
    """The events of a line."""
    message = entry.get("message")
    if entry.get("type") in ("user", "assistant") and isinstance(message, dict):
        _tell_message(telling, entry, message)
    elif entry.get("type") in ("custom-title", "ai-title"):
        title = entry.get("customTitle", entry.get("aiTitle"))
        if isinstance(title, str):
            telling.add("session.updated", {"set": {"title": title}})


def _tell_message(telling: Telling, entry: dict[str, Any], message: dict[str, Any]) -> None:
    role, content = str(entry["type"]), message.get("content")
    whole: Path = ("message", "content")
    said = {"id": str(entry.get("uuid") or message.get("id") or "~")[:8], "role": role}
    blocks = content if isinstance(content, list) else []
    kinds = {block.get("type") if isinstance(block, dict) else None for block in blocks}
    by_agent = entry.get("isMeta") or entry.get("isCompactSummary") or "tool_result" in kinds
    if role == "user" and not by_agent and (isinstance(content, str) or "text" in kinds):
        telling.ask()
    if isinstance(content, str) or blocks and kinds <= {"text", "thinking", "redacted_thinking", "image", "document"}:
        telling.add("message.added", {**said, "content": None}, content=whole)
    else:
        for place, block in enumerate(blocks):
            if isinstance(block, dict):
                _tell_block(telling, said, block, (*whole, place))
    usage = message.get("usage")
    if role == "assistant" and isinstance(usage, dict):
        _tell_usage(telling, entry, message, usage)
        if message.get("stop_reason") in ("end_turn", "stop_sequence"):
            telling.answer()


def _tell_block(telling: Telling, said: dict[str, Any], block: dict[str, Any], path: Path) -> None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        telling.add("message.added", {**said, "content": None}, content=(*path, "text"))
    elif kind == "tool_use" and isinstance(block.get("id"), str):
        moved = {"input": (*path, "input")} if "input" in block else {}
        telling.call(block["id"], str(block.get("name")), dict.fromkeys(moved), **moved)
    elif kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
        moved = {"output": (*path, "content")} if "content" in block else {}
        telling.result(block["tool_use_id"], bool(block.get("is_error")), dict.fromkeys(moved), **moved)


def _tell_usage(telling: Telling, entry: dict[str, Any], message: dict[str, Any], usage: dict[str, Any]) -> None:
    """The tokens of a message, which each of its lines repeats: what is new."""

    def count(member: str) -> int:
        value = usage.get(member)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    of = str(message.get("id") or entry.get("uuid"))
    read, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    tokens = {"output_tokens": count("output_tokens")}
    known = telling.counted(of)
    if known is None:
        tokens["input_tokens"] = count("input_tokens") + read + written
        tokens["cached_input_tokens"], tokens["cache_write_tokens"] = read, written
    else:
        tokens["output_tokens"] -= known
    telling.usage(message.get("model"), tokens, of)


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
            while True:
                transcript.refresh()
                known = transcript.uuids
                new = [entry for entry in entries if entry.get("uuid") is None or entry["uuid"] not in known]
                telling = Telling(transcript)
                drafts: list[Draft] = []
                for entry in new:
                    telling = Telling(transcript, telling)
                    _tell(telling, cast(dict[str, Any], entry))
                    drafts += telling.drafts(_LINE, entry)
                try:
                    if drafts:
                        transcript.append(*drafts, expected_seq=transcript.seq)
                    return
                except Conflict:
                    continue  # another process appended lines

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
