# SPDX-License-Identifier: Apache-2.0
"""A session of the OpenAI Agents SDK with branches, turns and usage (the extra "openai-agents").

    from libannal.openai_branches import AnnalBranchedSession

    session = AnnalBranchedSession("user 42", store)
    await session.create_branch_from_turn(2)  # up to the second message of the user

It has the methods of the SDK's AdvancedSQLiteSession. A branch is a fork: nothing is copied. A name of a branch can be
used once; the session with the conversation's own name, the branch "main", lists all names that were used.
"""

from __future__ import annotations

import re
import time
from itertools import count
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory.session_settings import resolve_session_limit
from agents.result import RunResult

from ._await import in_thread
from ._errors import Conflict
from ._event import Draft, Event
from ._named import delete
from ._session import Session
from .openai_agents import AnnalSession, Item, _Items

MAIN = "main"
_CALLS = re.compile(r"(tool|function|computer|file_search|web_search|code_interpreter|tool_search|custom_tool|mcp|shell|apply_patch)_call")


class _Branch(_Items):
    """The items of a branch, and the usage of its turns. In the main branch also the names of all branches."""

    def reset(self) -> None:
        super().reset()
        self.usage: dict[int, dict[str, Any]] = {}  # by the seq of the message that began the turn
        self.branches: dict[str, bool] = {}  # whether it was deleted

    def apply(self, event: Event) -> None:
        super().apply(event)
        if event.type == "turn.usage" or event.type == "agent.turn.usage" and "usage" in event.data:
            self.usage[event.data["turn"]] = event.data["usage"]
        elif event.type == "branch.created":
            self.branches[event.data["branch"]] = False
        elif event.type == "branch.deleted":
            self.branches[event.data["branch"]] = True

    def turns(self) -> list[list[Item]]:
        """The items by turn: first the items before the first message of the user, then each such message with the
        items after it.
        """
        found: list[list[Item]] = [[]]
        for item in self.items:
            if item.data.get("role") == "user":
                found.append([])
            found[-1].append(item)
        return found


class AnnalBranchedSession(AnnalSession):
    """A conversation with branches. Each object has a current branch, "main" at first, on which all methods work."""

    _kind = _Branch

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._main = cast(_Branch, self._items)
        self.current_branch = MAIN
        """The branch on which this object works."""

    def _branch(self, branch: str | None = None) -> _Branch:
        """A branch, up to date; None: the current branch, or "main" if that was deleted."""
        wanted = self.current_branch if branch is None else branch
        found = self._main
        if wanted != MAIN:
            found = cast(_Branch, self._named.get(self.session_id, "branch", wanted))
        with found.lock:
            exists = found.refresh()
        if wanted != MAIN and not exists:
            if branch is not None:
                raise ValueError(f"Branch '{branch}' does not exist")
            return self._switch(MAIN)
        return found

    def _switch(self, branch: str) -> _Branch:
        found = self._branch(branch)
        self.current_branch, self._items = branch, found
        return found

    def _get(self, limit: int | None) -> list[TResponseInputItem]:
        self._branch()
        return super()._get(limit)

    def _get_of(self, limit: int | None, branch: str) -> list[TResponseInputItem]:
        limit = resolve_session_limit(limit, self.session_settings)
        found = self._branch(branch)
        with found.lock:
            items = found.items if limit is None else found.items[-limit:] if limit > 0 else []
            return [cast(TResponseInputItem, item.read()) for item in items]

    async def get_items(
        self, limit: int | None = None, branch_id: str | None = None, *, wrapper: Any = None
    ) -> list[TResponseInputItem]:
        """As `AnnalSession.get_items()`, of the current branch or of another."""
        if branch_id is not None:
            return await in_thread(self._get_of, limit, branch_id)
        return await super().get_items(limit)

    def _add(self, items: list[TResponseInputItem]) -> None:
        self._branch()
        super()._add(items)

    def _pop(self) -> TResponseInputItem | None:
        self._branch()
        return super()._pop()

    def _clear(self) -> None:
        for branch in self._names():
            self._delete(branch)
        self._switch(MAIN)
        super()._clear()

    # ---- Branches ----

    def _names(self) -> list[str]:
        """The existing branches, except main."""
        with self._main.lock:
            self._main.refresh()
            known = [branch for branch, deleted in self._main.branches.items() if not deleted]
        return [
            branch for branch in known if self._named.get(self.session_id, "branch", branch).session.exists()
        ]

    def _create(self, turn: int, branch: str | None) -> str:
        if branch is not None and not branch.strip():
            raise ValueError("Branch name cannot be empty")
        source = self._branch()
        with source.lock:
            turns = source.turns()
            if not 1 <= turn < len(turns):
                raise ValueError(f"Turn {turn} does not contain a user message in branch '{self.current_branch}'")
            asked = turns[turn][0]
            before = asked.seq - (1 if asked.event.type == "item.added" else 2)  # without turn.started
        name = self._claim(branch, turn)
        target = self._named.get(self.session_id, "branch", name)
        source.session.fork(target.session.id, at=before)._report([target.naming()])
        self._switch(name)
        return name

    def _claim(self, branch: str | None, turn: int) -> str:
        """Record the name of a new branch; if two processes try, one succeeds."""
        while True:
            with self._main.lock:
                self._main.refresh()
                used, seq = {MAIN, *self._main.branches}, self._main.seq
            made_up = f"branch_from_turn_{turn}_{int(time.time())}"
            names = (made_up if number == 1 else f"{made_up}_{number}" for number in count(1))
            name = branch or next(name for name in names if name not in used)
            if name in used:
                raise ValueError(f"Branch name '{name}' has already been used")
            made = Draft("branch.created", {"branch": name, "from": self.current_branch, "turn": turn})
            try:
                self._main.append(made, expected_seq=seq)
                return name
            except Conflict:
                continue

    def _delete(self, branch: str) -> None:
        gone = self._named.get(self.session_id, "branch", branch)
        self._main.append(Draft("branch.deleted", {"branch": branch}))
        with gone.lock:
            delete(self._named.store, gone.session)

    def _delete_branch(self, branch: str, force: bool) -> None:
        if not branch.strip():
            raise ValueError("Branch ID cannot be empty")
        if branch == MAIN:
            raise ValueError("Cannot delete the 'main' branch")
        if branch == self.current_branch and not force:
            raise ValueError(
                f"Cannot delete current branch '{branch}'. Use force=True or switch branches first"
            )
        if branch not in self._names():
            raise ValueError(f"Branch '{branch}' does not exist")
        if branch == self.current_branch:
            self._switch(MAIN)
        self._delete(branch)

    def _list(self) -> list[dict[str, Any]]:
        found = []
        for name in (MAIN, *self._names()):
            branch = self._branch(name)
            with branch.lock:
                items, turns = list(branch.items), len(branch.turns()) - 1
            if items or name != MAIN:
                found.append(
                    {
                        "branch_id": name,
                        "message_count": len(items),
                        "user_turns": turns,
                        "is_current": name == self.current_branch,
                        "created_at": branch.session.info().created.isoformat(" "),
                    }
                )
        return found

    async def create_branch_from_turn(self, turn_number: int, branch_name: str | None = None) -> str:
        """Create a branch with the items before the user's message of that turn, and switch to it.

        Raises `ValueError` if the turn does not exist, or the name was used before.
        """
        return await in_thread(self._create, turn_number, branch_name)

    async def create_branch_from_content(self, search_term: str, branch_name: str | None = None) -> str:
        """As `create_branch_from_turn()`, for the first message of the user that contains `search_term`."""
        turns = await self.find_turns_by_content(search_term)
        if not turns:
            raise ValueError(f"No user turns found containing '{search_term}'")
        return await self.create_branch_from_turn(turns[0]["turn"], branch_name)

    async def switch_to_branch(self, branch_id: str) -> None:
        """Work on another branch. Raises `ValueError` if no branch has that name."""
        await in_thread(self._switch, branch_id)

    async def delete_branch(self, branch_id: str, force: bool = False) -> None:
        """Delete a branch permanently; the current branch only with `force`. Raises `ValueError`."""
        await in_thread(self._delete_branch, branch_id, force)

    async def list_branches(self) -> list[dict[str, Any]]:
        """For each branch branch_id, message_count, user_turns, is_current, created_at."""
        return await in_thread(self._list)

    # ---- Turns ----

    def _turns(self, branch: str | None) -> list[list[Item]]:
        found = self._branch(branch)
        with found.lock:
            return found.turns()

    def _conversation(self, term: str, branch: str | None) -> list[dict[str, Any]]:
        found = []
        for number, turn in enumerate(self._turns(branch)[1:], 1):
            content = turn[0].read().get("content", "")
            if term.lower() in _text(content).lower():
                text = _text(content)
                found.append(
                    {
                        "turn": number,
                        "content": text[:100] + "..." if len(text) > 100 else text,
                        "full_content": content,
                        "timestamp": turn[0].ts.isoformat(" "),
                        "can_branch": True,
                    }
                )
        return found

    def _by_turns(self, branch: str | None) -> dict[int, list[dict[str, str | None]]]:
        return {
            number: [{"type": _type(item.data), "tool_name": _tool(item.data)} for item in turn]
            for number, turn in enumerate(self._turns(branch))
            if turn
        }

    def _tools(self, branch: str | None) -> list[tuple[str, int, int]]:
        found = []
        for number, turn in self._by_turns(branch).items():
            counts: dict[str, int] = {}
            for item in turn:
                kind, tool = item["type"] or "", item["tool_name"]
                if tool and (_CALLS.fullmatch(kind) or kind == "mcp_approval_request"):
                    counts[tool] = counts.get(tool, 0) + 1
            if "tool_search" not in counts:
                searches = sum(item["type"] == "tool_search_output" for item in turn)
                counts.update({"tool_search": searches} if searches else {})
            found += [(tool, count, number) for tool, count in counts.items()]
        return found

    async def get_conversation_turns(self, branch_id: str | None = None) -> list[dict[str, Any]]:
        """The messages of the user: turn, content (100 characters), full_content, timestamp, can_branch."""
        return await in_thread(self._conversation, "", branch_id)

    async def find_turns_by_content(self, search_term: str, branch_id: str | None = None) -> list[dict[str, Any]]:
        """The messages of the user that contain `search_term`, in upper or lower case."""
        return await in_thread(self._conversation, search_term, branch_id)

    async def get_conversation_by_turns(self, branch_id: str | None = None) -> dict[int, list[dict[str, str | None]]]:
        """The type and the tool of each item, by turn."""
        return await in_thread(self._by_turns, branch_id)

    async def get_tool_usage(self, branch_id: str | None = None) -> list[tuple[str, int, int]]:
        """How often each tool was called in each turn."""
        return await in_thread(self._tools, branch_id)

    # ---- Usage ----

    def _store_usage(self, usage: Any) -> None:
        branch = self._branch()
        with branch.lock:
            turns = branch.turns()
            if len(turns) > 1:
                used = {
                    name: getattr(usage, name) for name in ("requests", "input_tokens", "output_tokens", "total_tokens")
                }
                for name in ("input_tokens_details", "output_tokens_details"):
                    details = getattr(usage, name, None)
                    used[name] = {key: value for key, value in vars(details).items()} if details else None
                asked = turns[-1][0]
                branch.append(Draft("agent.turn.usage", _counted(asked, used, branch.usage.get(asked.seq))))

    def _usage(self, branch: str | None) -> list[dict[str, Any]]:
        found = self._branch(branch)
        with found.lock:
            return [
                {"user_turn_number": number, **found.usage[turn[0].seq]}
                for number, turn in enumerate(found.turns())
                if number and turn[0].seq in found.usage
            ]

    def _session_usage(self, branch: str | None) -> dict[str, int] | None:
        names = [branch] if branch else [MAIN, *self._names()]
        turns: dict[tuple[str, int], dict[str, Any]] = {}
        for name in names:
            found = self._branch(name)
            for used in self._usage(name):  # usage that several branches share counts once
                seq = found.turns()[used["user_turn_number"]][0].seq
                turns[_origin(found.session, seq), seq] = used
        if not turns:
            return None
        sums = {
            name: sum(used[name] for used in turns.values())
            for name in ("requests", "input_tokens", "output_tokens", "total_tokens")
        }
        return {**sums, "total_turns": len(turns)}

    async def store_run_usage(self, result: RunResult) -> None:
        """Store the usage of a run, as the usage of the last turn."""
        await in_thread(self._store_usage, result.context_wrapper.usage)

    async def get_session_usage(self, branch_id: str | None = None) -> dict[str, int] | None:
        """The usage of all turns of a branch, or of all branches; None: unknown."""
        return await in_thread(self._session_usage, branch_id)

    async def get_turn_usage(
        self, user_turn_number: int | None = None, branch_id: str | None = None
    ) -> list[dict[str, Any]] | dict[str, Any]:
        """The usage of each turn; or of that turn, {} if it is unknown."""
        turns = await in_thread(self._usage, branch_id)
        if user_turn_number is None:
            return turns
        for used in turns:
            if used.pop("user_turn_number") == user_turn_number:
                return used
        return {}


def _counted(asked: Item, used: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """The usage of a turn as an increment: `before` is what was stored of it already, and is replaced."""
    numbers = {}
    for name in ("requests", "input_tokens", "output_tokens"):
        numbers[name] = used[name] - (before[name] if before else 0)
    cached = [((each or {}).get("input_tokens_details") or {}).get("cached_tokens") or 0 for each in (used, before)]
    if cached[0] != cached[1]:
        numbers["cached_input_tokens"] = cached[0] - cached[1]
    turn = {"turn_id": asked.event.data["id"]} if asked.event.type == "message.added" else {}
    return {**turn, **numbers, "turn": asked.seq, "usage": used}


def _origin(session: Session, seq: int) -> str:
    """The session in which an event of a fork was appended."""
    while (info := session.info()).forked_from is not None and seq <= info.fork_seq:
        session = session.store.session(info.forked_from)
    return session.id


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _type(item: Any) -> str:
    role = item.get("role")
    return str(role if role in ("user", "assistant") else item.get("type") or "other")


def _tool(item: Any) -> str | None:
    kind, name, outer = item.get("type"), item.get("name"), item.get("namespace")
    if kind in ("mcp_call", "mcp_approval_request"):
        outer = item.get("server_label")
    elif kind in ("tool_search_call", "tool_search_output"):
        return "tool_search"
    elif name is None and _CALLS.fullmatch(str(kind)) and kind not in ("function_call", "custom_tool_call", "tool_call"):
        return str(kind)
    if outer and name and outer != name:
        return f"{outer}.{name}"
    return str(name or outer) if name or outer else None
