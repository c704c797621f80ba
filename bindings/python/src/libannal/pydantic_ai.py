# SPDX-License-Identifier: Apache-2.0
"""A step store of pydantic-ai's harness (the extra "pydantic-ai").

    from libannal.pydantic_ai import AnnalStepStore

    agent = Agent(model, capabilities=[StepPersistence(store=AnnalStepStore(store))])

A run is a session. Its steps, its snapshots and the ledger of its tool calls are events; a snapshot is stored as the
messages that are new since the previous snapshot. Their messages, calls of tools, results, tokens and turns are events of
the core pack in the same append.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai_harness.step_persistence import ContinuableSnapshot, RunRecord, StepEvent, ToolEffectRecord

from ._await import in_thread
from ._errors import Conflict
from ._event import Draft, Event
from ._json import loads
from ._meaning import Path, Telling, Told, moves, put
from ._named import Named
from ._names import name
from ._store import Level, Store

_RUN, _STEP, _SNAPSHOT, _EFFECT = "run.registered", "step.recorded", "snapshot.saved", "effect.recorded"
_RUNS: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
_STEPS: TypeAdapter[StepEvent] = TypeAdapter(StepEvent)
_EFFECTS: TypeAdapter[ToolEffectRecord] = TypeAdapter(ToolEffectRecord)


class _Run(Told):
    """A run: its record, its steps, its snapshots, and its tool calls."""

    agent = "pydantic-ai"

    def reset(self) -> None:
        super().reset()
        self.record: Any = None
        self.steps: list[Any] = []
        self.snapshots: list[tuple[dict[str, Any], list[Any]]] = []  # its description, and its messages
        self.effects: dict[str, Any] = {}
        self.keys: set[tuple[str, str]] = set()
        self.seen: set[tuple[Any, ...]] = set()  # messages of snapshots

    def birth(self) -> list[Draft]:
        return []  # the record of the run says more

    def apply(self, event: Event) -> None:
        self.hear(event)
        data = event.data
        if event.type == _RUN:
            self.record = data
        elif event.type == _STEP:
            self.steps.append(data)
        elif event.type == _EFFECT:
            self.effects[data["tool_call_id"]] = data
        elif event.type == _SNAPSHOT:
            messages = data["messages"]
            if "moved" in data:
                messages = event.read()["messages"]
                for path, back, member in moves(data):
                    put(messages, path, self.heard[event.seq - back].data[member])
            self.seen.update(_key(message) for message in messages)
            self.snapshots.append((data["snapshot"], [*self.messages[: data["same"]], *messages]))
            self.heard = {}
        key = data["snapshot"].get("idempotency_key") if event.type == _SNAPSHOT else data.get("idempotency_key")
        if key is not None and event.type in (_STEP, _SNAPSHOT):
            self.keys.add((event.type, key))

    @property
    def messages(self) -> list[Any]:
        """The messages of the last snapshot."""
        return self.snapshots[-1][1] if self.snapshots else []


class AnnalStepStore:
    """Runs in a store; the effect of a method is durable when it returns. The caller keeps the store.

    A write with an `idempotency_key` that the run has already does nothing. With `max_snapshots_per_run` only the
    newest snapshots are returned, and always the newest that is complete; the others stay in the history. With
    `level="batch"` nothing waits for the disk, and it is durable within the store's batch_ms.
    """

    def __init__(
        self, store: Store, *, max_snapshots_per_run: int | None = None, level: Level = "sync"
    ) -> None:
        if max_snapshots_per_run is not None and (
            not isinstance(max_snapshots_per_run, int) or max_snapshots_per_run < 1
        ):
            raise ValueError(f"max_snapshots_per_run must be an int >= 1 or None, got {max_snapshots_per_run!r}")
        self.store = store
        self._max = max_snapshots_per_run
        self._runs = Named(store, "pydantic-ai", _Run, level)

    def _run(self, run_id: str) -> _Run:
        return cast(_Run, self._runs.get(run_id))

    def _append(self, run_id: str, type_: str, data: dict[str, Any], key: str | None = None) -> None:
        """Append, unless the run has the key. `data` of a snapshot: with all its messages."""
        run = self._run(run_id)
        with run.lock:
            while True:
                run.refresh()
                if key is not None and (type_, key) in run.keys:
                    return
                try:
                    run.append(*_drafts(run, type_, data), expected_seq=run.seq)
                    return
                except Conflict:
                    continue  # another caller wrote to the run

    def _get_run(self, run_id: str) -> RunRecord | None:
        run = self._run(run_id)
        with run.lock:
            return _RUNS.validate_python(run.record) if run.refresh() and run.record is not None else None

    def _list_runs(self, parent_run_id: str | None, conversation_id: str | None) -> list[RunRecord]:
        found: dict[str, RunRecord] = {}
        for event in self.store.query(types=_RUN):
            record = _RUNS.validate_json(event.json)
            if event.session == self._run(record.run_id).session.id:
                found[record.run_id] = record
        return sorted(
            (
                record
                for record in found.values()
                if parent_run_id in (None, record.parent_run_id)
                and conversation_id in (None, record.conversation_id)
            ),
            key=lambda record: record.started_at,
        )

    def _list_events(self, run_id: str) -> list[StepEvent]:
        run = self._run(run_id)
        with run.lock:
            run.refresh()
            return [_STEPS.validate_python(step) for step in run.steps]

    def _snapshots(self, run_id: str, include_interrupted: bool, latest: bool) -> list[ContinuableSnapshot]:
        run = self._run(run_id)
        with run.lock:
            run.refresh()
            given = run.snapshots
            if self._max is not None and len(given) > self._max:
                older = [what for what in given[: -self._max] if what[0]["state"] == "complete"]
                newer = given[-self._max :]
                given = newer if any(what[0]["state"] == "complete" for what in newer) else [*older[-1:], *newer]
            wanted = [what for what in given if include_interrupted or what[0]["state"] == "complete"]
            return [_read_snapshot(*what) for what in (wanted[-1:] if latest else wanted)]

    def _effects(self, run_id: str) -> list[ToolEffectRecord]:
        run = self._run(run_id)
        with run.lock:
            run.refresh()
            return [_EFFECTS.validate_python(effect) for effect in run.effects.values()]

    async def register_run(self, record: RunRecord) -> None:
        """Store the record of a run; the last record counts."""
        await in_thread(self._append, record.run_id, _RUN, _RUNS.dump_python(record, mode="json"))

    async def get_run(self, *, run_id: str) -> RunRecord | None:
        """The record of a run; None if it was not registered."""
        return await in_thread(self._get_run, run_id)

    async def list_runs(
        self, *, parent_run_id: str | None = None, conversation_id: str | None = None
    ) -> list[RunRecord]:
        """Records of runs, by the time at which they started."""
        return await in_thread(self._list_runs, parent_run_id, conversation_id)

    async def append_event(self, event: StepEvent) -> None:
        """Add a step."""
        data = _STEPS.dump_python(event, mode="json")
        await in_thread(self._append, event.run_id, _STEP, data, event.idempotency_key)

    async def list_events(self, *, run_id: str) -> list[StepEvent]:
        """The steps of a run, in order."""
        return await in_thread(self._list_events, run_id)

    async def save_snapshot(self, snapshot: ContinuableSnapshot) -> None:
        """Add a snapshot."""
        data = {
            "run_id": snapshot.run_id,
            "step_index": snapshot.step_index,
            "conversation_id": snapshot.conversation_id,
            "parent_run_id": snapshot.parent_run_id,
            "agent_name": snapshot.agent_name,
            "timestamp": snapshot.timestamp.isoformat(),
            "state": snapshot.state,
            "idempotency_key": snapshot.idempotency_key,
            "messages": loads(ModelMessagesTypeAdapter.dump_json(snapshot.messages)),
        }
        await in_thread(self._append, snapshot.run_id, _SNAPSHOT, data, snapshot.idempotency_key)

    async def latest_snapshot(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> ContinuableSnapshot | None:
        """The last snapshot that is complete, or the last of all, or None."""
        found = await in_thread(self._snapshots, run_id, include_interrupted, True)
        return found[0] if found else None

    async def list_snapshots(
        self, *, run_id: str, include_interrupted: bool = False
    ) -> list[ContinuableSnapshot]:
        """The snapshots of a run that are complete, or all, in the order in which they were saved."""
        return await in_thread(self._snapshots, run_id, include_interrupted, False)

    async def record_tool_effect(self, record: ToolEffectRecord) -> None:
        """Store the record of a tool call; the last record of a call counts."""
        await in_thread(self._append, record.run_id, _EFFECT, _EFFECTS.dump_python(record, mode="json"))

    async def get_tool_effect(self, *, run_id: str, tool_call_id: str) -> ToolEffectRecord | None:
        """The last record of a tool call, or None."""
        effects = await in_thread(self._effects, run_id)
        return next((effect for effect in effects if effect.tool_call_id == tool_call_id), None)

    async def list_unresolved_tool_effects(self, *, run_id: str) -> list[ToolEffectRecord]:
        """Calls that were started, and about which nothing else is known: they may have had their effect."""
        effects = await in_thread(self._effects, run_id)
        return [effect for effect in effects if effect.status == "started"]


def _drafts(run: _Run, type_: str, data: dict[str, Any]) -> list[Draft]:
    """The event of the harness, after the events of the core pack with its content."""
    telling = Telling(run)
    if type_ == _SNAPSHOT:
        data = _difference(run.messages, data)
        runs = [message["run_id"] for message in data["messages"] if message.get("run_id") is not None]
        for place, message in enumerate(data["messages"]):
            # The session of an earlier run contains its messages, which precede.
            own = message.get("run_id") in (None, *runs[-1:])
            if own and _key(message) not in run.seen:
                _tell_message(telling, message, data["same"] + place, place)
        return telling.beside(_SNAPSHOT, data, "messages")
    if type_ == _RUN:
        created = {"agent_id": data["agent_name"] or run.agent, "status": "running"}
        if data["parent_run_id"] is not None:
            created["parent_session_id"] = name("pydantic-ai", data["parent_run_id"])
        telling.add("session.created", created)
    elif type_ == _STEP:
        _tell_step(telling, run, data)
    elif data["status"] == "started":
        telling.call(data["tool_call_id"], data["tool_name"], {})
    elif data["status"] == "failed":
        telling.result(data["tool_call_id"], True, {"output": data["effect_summary"] or ""})
    return [*telling.list, Draft(type_, data)]


def _key(message: dict[str, Any]) -> tuple[Any, ...]:
    """The members of a message that do not differ in a later snapshot."""
    parts = ((part["part_kind"], part.get("tool_call_id"), str(part.get("content"))) for part in message["parts"])
    return (message["kind"], *parts)


def _tell_step(telling: Telling, run: _Run, step: dict[str, Any]) -> None:
    kind, error = step["kind"], step["error"]
    if kind == "model_request_failed":
        telling.add("provider.failed", {"error": error})
    if kind not in ("run_completed", "run_failed"):
        return
    for call, returned in run.calls.items():
        if not returned and run.effects.get(call, {}).get("status") == "completed":
            telling.result(call, False, {})
    telling.answer(error if kind == "run_failed" else None)
    failed = {"status": "failed", "reason": "error", "error": error}
    telling.add("session.ended", failed if kind == "run_failed" else {})


def _tell_message(telling: Telling, message: dict[str, Any], number: int, place: int) -> None:
    """A message of pydantic-ai, in the list of new messages at `place`."""
    roles = {"user-prompt": "user", "system-prompt": "system", "text": "assistant"}
    asks = [part["part_kind"] for part in message["parts"]].count("user-prompt") > 0
    if asks:
        telling.ask()
    for index, part in enumerate(message["parts"]):
        kind, path = part["part_kind"], (place, "parts", index)
        content: Path = (*path, "content")
        if kind in roles:
            said = {"id": f"m{number}.{index}", "role": roles[kind], "content": None}
            telling.add("message.added", said, content=content)
        elif kind == "tool-call":
            telling.call(part["tool_call_id"], part["tool_name"], {"input": None}, input=(*path, "args"))
        elif kind == "tool-return":
            failed = part.get("outcome") not in (None, "success")
            telling.result(part["tool_call_id"], failed, {"output": None}, output=content)
        elif kind == "retry-prompt" and part.get("tool_name"):
            telling.result(part["tool_call_id"], True, {"output": None}, output=content)
    used = message.get("usage")
    if used:
        tokens = {name: used.get(name) or 0 for name in ("input_tokens", "output_tokens", "cache_write_tokens")}
        tokens["cached_input_tokens"] = used.get("cache_read_tokens") or 0
        telling.usage(message.get("model_name"), tokens)


def _difference(before: list[Any], data: dict[str, Any]) -> dict[str, Any]:
    """A snapshot as the number of messages that it shares with the previous snapshot, and the other messages."""
    snapshot = dict(data)
    messages = snapshot.pop("messages")
    same = 0
    while same < min(len(before), len(messages)) and before[same] == messages[same]:
        same += 1
    return {"snapshot": snapshot, "same": same, "messages": messages[same:]}


def _read_snapshot(what: dict[str, Any], messages: list[Any]) -> ContinuableSnapshot:
    return ContinuableSnapshot(
        **{**what, "timestamp": datetime.fromisoformat(what["timestamp"])},
        messages=ModelMessagesTypeAdapter.validate_python(messages),
    )
