# SPDX-License-Identifier: Apache-2.0
"""A step store of pydantic-ai's harness (the extra "pydantic-ai").

    from libannal.pydantic_ai import AnnalStepStore

    agent = Agent(model, capabilities=[StepPersistence(store=AnnalStepStore(store))])

A run is a session. Its steps, its snapshots and the ledger of its tool calls are events; a snapshot is stored as the
messages that are new since the previous snapshot.
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
from ._named import Folded, Named
from ._store import Level, Store

_RUN, _STEP, _SNAPSHOT, _EFFECT = "run.registered", "step.recorded", "snapshot.saved", "effect.recorded"
_RUNS: TypeAdapter[RunRecord] = TypeAdapter(RunRecord)
_STEPS: TypeAdapter[StepEvent] = TypeAdapter(StepEvent)
_EFFECTS: TypeAdapter[ToolEffectRecord] = TypeAdapter(ToolEffectRecord)


class _Run(Folded):
    """A run: its record, its steps, its snapshots, and its tool calls."""

    def reset(self) -> None:
        self.record: Any = None
        self.steps: list[Any] = []
        self.snapshots: list[tuple[dict[str, Any], list[Any]]] = []  # its description, and its messages
        self.effects: dict[str, Any] = {}
        self.keys: set[tuple[str, str]] = set()

    def apply(self, event: Event) -> None:
        data = event.data
        if event.type == _RUN:
            self.record = data
        elif event.type == _STEP:
            self.steps.append(data)
        elif event.type == _EFFECT:
            self.effects[data["tool_call_id"]] = data
        elif event.type == _SNAPSHOT:
            self.snapshots.append((data["snapshot"], [*self.messages[: data["same"]], *data["messages"]]))
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
                written = _difference(run.messages, data) if type_ == _SNAPSHOT else data
                try:
                    run.append(Draft(type_, written), expected_seq=run.seq)
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
