# SPDX-License-Identifier: Apache-2.0
"""A checkpointer of LangGraph that keeps its checkpoints in a store (the extra "langgraph").

    from libannal.langgraph import AnnalSaver

    with annal.open("store") as store:
        graph = builder.compile(checkpointer=AnnalSaver(store))

A thread is one session. Each checkpoint is one durable event with the channels that changed, and so is each call of
put_writes(). Messages in them, and calls of tools, results and tokens in messages, are events of the core pack before it;
a checkpoint refers to their text instead of repeating it. copy_thread() is a fork, by pointer. Deleting runs and pruning remove checkpoints from lists;
delete_thread() deletes the session, so that no file has its content.
"""

from __future__ import annotations

import builtins
import random
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from . import _delta
from ._await import in_thread
from ._core import ffi, lib
from ._errors import Conflict, Invalid
from ._event import Draft, Event
from ._json import dumps
from ._meaning import Telling, Told, texts
from ._named import Named, delete
from ._store import Level, Store

_TRIES = 4  # tries to write a difference, while others append to the thread

Typed = tuple[str, bytes]


def _pack(typed: Typed) -> builtins.list[str]:
    return [typed[0], b64encode(typed[1]).decode()]


def _unpack(packed: Sequence[str]) -> Typed:
    return packed[0], b64decode(packed[1])


_SHORT = 48  # bytes: a text up to this length is repeated instead of referred to
_MISSES = 2  # messages in a row without a text in the bytes, after which no earlier one is looked for

def _settled(packed: Any, seq: int) -> Any:
    """Packed bytes of event `seq`, with the seq of each event that they refer to."""
    if isinstance(packed, str):
        return packed
    if isinstance(packed[0], int):  # a difference
        begin, inserted, skipped, copied, tail = packed
        return [begin, _settled(inserted, seq), skipped, copied, _settled(tail, seq)]
    return [
        piece if isinstance(piece, str) else [piece[0] + seq if piece[0] < 0 else piece[0], *piece[1:]]
        for piece in packed
    ]


class _Saved:
    """A checkpoint without its values."""

    __slots__ = ("checkpoint", "metadata", "parent", "run", "writes")

    def __init__(self, data: dict[str, Any]) -> None:
        self.checkpoint = _unpack(data["checkpoint"])
        self.metadata = _unpack(data["metadata"])
        self.parent: str | None = data.get("parent")
        self.run: Any = data.get("run_id")
        # By task and index: task, channel, value, path.
        self.writes: dict[tuple[str, int], tuple[str, str, Typed, str]] = {}


def _ordered(saved: _Saved) -> builtins.list[tuple[str, str, Typed]]:
    """Writes to a checkpoint, as LangGraph replays them: task, channel, value."""
    writes = sorted(saved.writes.items(), key=lambda item: (item[1][3], *item[0]))
    return [(task, channel, typed) for _, (task, channel, typed, _) in writes]


class _Value:
    """A value of a channel: complete, or its difference from the previous version."""

    __slots__ = ("base", "content", "depth", "made", "type", "unpack")

    def __init__(self, type: str, content: Any, base: _Value | None, unpack: Callable[[Any], bytes]) -> None:
        self.unpack = unpack
        self.type = type
        self.content = content
        self.base = base
        self.depth: int = 0 if base is None else base.depth + 1
        self.made: bytes | None = None  # result of read(), of the newest version only

    def read(self) -> bytes:
        chain = [self]
        while chain[-1].made is None and chain[-1].base is not None:
            chain.append(chain[-1].base)
        first = chain.pop()
        found = self.unpack(first.content) if first.made is None else first.made
        while chain:
            found = _delta.decode(found, chain.pop().content, self.unpack)
        return found


_DEPTH = 64  # differences in a row: reading an old value follows all of them


class _Thread(Told):
    """A thread: its checkpoints by namespace and id, and the values of its channels by version."""

    agent = "langgraph"

    def reset(self) -> None:
        super().reset()
        self.said: dict[str, int] = {}  # by id of a message, its event
        self.texts: dict[int, builtins.list[bytes]] = {}  # by event
        self.saved: dict[str, dict[str, _Saved]] = {}
        self.values: dict[tuple[str, str, Any], _Value] = {}
        self.last: dict[tuple[str, str], Any] = {}  # by channel, the version that was saved last
        self.coming: dict[tuple[str, str, Any], bytes] = {}  # being appended: need not be encoded again
        # By namespace, the greatest id.
        self.latest: dict[str, str] = {}
        self.owner: str | None = None  # its last owner

    def value(self, space: str, channel: str, version: Any) -> Typed | None:
        """A value; None if it is missing or empty."""
        value = self.values.get((space, channel, version))
        if value is None or value.type == "empty":
            return None
        content = value.read()
        if self.last[space, channel] == version:
            value.made = content
        return value.type, content

    def unpack(self, packed: Any) -> bytes:
        """The bytes that `_pieces()` packed."""
        if isinstance(packed, str):
            return b64decode(packed)
        return b"".join(b64decode(piece) if isinstance(piece, str) else self._text(*piece) for piece in packed)

    def _text(self, seq: int, place: int, form: str = "") -> bytes:
        """A text of a message; the Node package refers to it in the form that it has in JSON, too."""
        text = self.texts[seq][place]
        return dumps(text.decode())[1:-1] if form == "json" else text

    def difference(
        self, space: str, channel: str, typed: Typed, pack: Callable[[bytes], Any]
    ) -> builtins.list[Any] | None:
        """A value as [version from which it differs, difference]; None: write the complete value."""
        version = self.last.get((space, channel))
        base = self.value(space, channel, version)
        if base is None or self.values[space, channel, version].depth >= _DEPTH:
            return None
        how = _delta.encode(base[1], typed[1], pack)
        return None if how is None else [version, how]

    def _keep(self, space: str, channel: str, version: Any, type: str, *packed: Any) -> None:
        if len(packed) == 1:
            value = _Value(type, packed[0], None, self.unpack)
        else:
            value = _Value(type, packed[1], self.values[space, channel, packed[0]], self.unpack)
        value.made = self.coming.pop((space, channel, version), None)
        last = self.values.get((space, channel, self.last.get((space, channel))))
        if last is not None and last.made is not None:
            if value.made is None and last is value.base:
                value.made = _delta.decode(last.made, value.content, self.unpack)
            last.made = None
        self.values[space, channel, version] = value
        self.last[space, channel] = version

    def hear(self, event: Event) -> None:
        super().hear(event)
        self.heard = {}
        if event.type in ("message.added", "tool.called", "tool.returned", "tool.failed", "tool.output"):
            data = event.data
            of = data.get("id" if event.type == "message.added" else "message_id")
            if isinstance(of, str):
                self.said.setdefault(of, event.seq)
                self.texts[event.seq] = [_bytes(text) for text in texts(data)]

    def apply(self, event: Event) -> None:
        data = event.data
        if event.type == "checkpoint.saved":
            space = data["ns"]
            for channel, version, type, *packed in data["values"]:
                packed[-1] = _settled(packed[-1], event.seq)
                self._keep(space, channel, version, type, *packed)
            saved = _Saved(data)
            before = self.saved.setdefault(space, {}).get(data["id"])
            if before is not None:
                saved.writes = before.writes
            self.saved[space][data["id"]] = saved
            self.latest[space] = max(data["id"], self.latest.get(space, ""))
        elif event.type == "checkpoint.writes":
            found = self.saved.get(data["ns"], {}).get(data["id"])
            if found is None:
                return
            for index, channel, *packed in data["writes"]:
                key = (data["task"], index)
                if index < 0 or key not in found.writes:
                    found.writes[key] = (data["task"], channel, _unpack(packed), data["path"])
        elif event.type == "checkpoint.deleted":
            for space, checkpoint in data["checkpoints"]:
                self.saved.get(space, {}).pop(checkpoint, None)
            self.latest = {space: max(saved) for space, saved in self.saved.items() if saved}
        elif event.type == "thread.claimed":
            self.owner = data["owner"]
        else:
            self.hear(event)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "system": "system", "tool": "tool"}


def _plain(value: Any) -> Any:
    """A value as JSON; values that JSON cannot express become text."""
    try:
        dumps(value, stable=False)
    except Invalid:
        return str(value).encode("utf-8", "replace").decode()
    return value


class _Message:
    """A message of LangChain, or a dict that is one."""

    __slots__ = ("calls", "content", "failed", "id", "model", "result_of", "role", "tokens")

    def __init__(self, role: str, content: Any, id: Any) -> None:
        self.role = role
        self.content = content
        self.id = id if isinstance(id, str) and id else None
        self.calls: builtins.list[tuple[str, str, Any]] = []
        self.result_of: str | None = None
        self.failed = False
        self.model: str | None = None
        self.tokens: dict[str, int] = {}

    @classmethod
    def of(cls, value: Any) -> _Message | None:
        if isinstance(value, BaseMessage):
            found = cls(_ROLES.get(value.type, value.type), value.content, value.id)
            found._calls(getattr(value, "tool_calls", None))
            if isinstance(value, ToolMessage):
                found.result_of, found.failed = value.tool_call_id, value.status == "error"
            found.model = value.response_metadata.get("model_name")
            found._usage(getattr(value, "usage_metadata", None) or {})
            return found
        if isinstance(value, dict) and "content" in value:
            role = value.get("role", _ROLES.get(str(value.get("type"))))
            if isinstance(role, str):
                found = cls(role, value["content"], value.get("id"))
                found._calls(value.get("tool_calls"))
                result_of = value.get("tool_call_id")
                found.result_of = result_of if isinstance(result_of, str) else None
                return found
        return None

    def _calls(self, calls: Any) -> None:
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function", call) if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(call.get("id"), str):
                input_ = function.get("args", function.get("arguments"))
                self.calls.append((call["id"], str(function.get("name")), input_))

    def _usage(self, used: Mapping[str, Any]) -> None:
        details = used.get("input_token_details") or {}
        numbers = {name: used.get(name) for name in ("input_tokens", "output_tokens")}
        numbers |= {"cached_input_tokens": details.get("cache_read"), "cache_write_tokens": details.get("cache_creation")}
        self.tokens = {name: value for name, value in numbers.items() if isinstance(value, int)}

    def hash(self) -> int:
        content = self.content.encode() if isinstance(self.content, str) else dumps(_plain(self.content))
        return int(lib.libannal_hash(ffi.from_buffer("char[]", content), len(content)))


class _Messages:
    """The messages in the channels of a checkpoint, as events of the core pack. (What tasks write is not told: put_writes()
    runs beside put(), and what it saves is in the next checkpoint.)
    """

    def __init__(self, thread: _Thread) -> None:
        self._thread = thread
        self._telling = Telling(thread)
        self.list = self._telling.list
        self._new: dict[str, int] = {}  # by id of a message, its place in the list
        self._read: dict[str, builtins.list[tuple[str, _Message]]] = {}  # by channel, the last messages

    def _backwards(self, found: Any, channel: str) -> Iterator[tuple[str, _Message]]:
        """The messages of a channel, the last first, with their ids; a message without an id receives one."""
        given = found if isinstance(found, list) else [found]
        read = self._read.setdefault(channel, [])
        yield from read
        for place in range(len(given) - len(read) - 1, -1, -1):
            message = _Message.of(given[place])
            if message is None:
                return
            read.append((message.id or f"~{channel}.{place}.{message.hash():016x}", message))
            yield read[-1]

    def tell(self, found: Any, channel: str) -> None:
        """Add the messages that are new."""
        new = []
        for key, message in self._backwards(found, channel):
            if key in self._thread.said:
                break  # the messages before it are known, too
            if key not in self._new:
                new.append((key, message))
        for key, message in reversed(new):
            self._add(key, message)
        if new and new[0][1].role == "assistant" and not new[0][1].calls:
            self._telling.answer()

    def _add(self, key: str, message: _Message) -> None:
        telling, content = self._telling, _plain(message.content)
        if message.role == "user":
            telling.ask()
        before = len(self.list)
        if message.result_of is not None:
            telling.result(message.result_of, message.failed, {"output": content, "message_id": key})
        elif content or not message.calls:
            telling.add("message.added", {"id": key, "role": message.role, "content": content})
        for call_id, tool, input_ in message.calls:
            telling.call(call_id, tool, {"input": _plain(input_), "message_id": key})
        if len(self.list) > before:
            self._new[key] = before
        if key not in self._thread.said:
            telling.usage(message.model, message.tokens)

    def _texts(self, key: str, is_known: bool) -> tuple[int, builtins.list[bytes]]:
        """The event of a message, and its texts. `is_known`: also of earlier events."""
        place = self._new.get(key)
        if place is not None:
            return place - len(self.list), [_bytes(text) for text in texts(self.list[place].data)]
        seq = self._thread.said.get(key) if is_known else None
        return (0, []) if seq is None else (seq, self._thread.texts.get(seq, []))

    def pack(self, content: bytes, found: Any, channel: str, is_known: bool) -> Any:
        """Bytes of a value as base64; if texts of messages are in them, as a list of base64 and references
        [event, place]. An event is a seq or, below 0, the number of events back.
        """
        if len(content) <= _SHORT:
            return b64encode(content).decode()
        pieces: builtins.list[Any] = []
        end, misses = len(content), 0
        for key, _ in self._backwards(found, channel):
            event, said = self._texts(key, is_known)
            misses += 1
            for place in range(len(said) - 1, -1, -1):
                at = content.rfind(said[place], 0, end) if len(said[place]) > _SHORT else -1
                if at >= 0:
                    rest = content[at + len(said[place]) : end]
                    pieces += [b64encode(rest).decode(), [event, place]]
                    end, misses = at, 0
            if misses > _MISSES:
                break
        first = b64encode(content[:end]).decode()
        return [first, *reversed(pieces)] if pieces else first


class StaleOwner(Conflict):
    """Another owner has claimed the thread since; nothing was written, and this owner cannot write any more."""

    is_stale_write_owner_error = True


class AnnalSaver(BaseCheckpointSaver[str]):
    """Checkpoints in a store; every method is durable when it returns. The caller keeps the store.

    `adapter` is the first part of the names of its sessions: savers with different adapters do not see each other. With
    `level="batch"` put() and put_writes() do not wait for the disk, and are durable within the store's batch_ms.
    """

    def __init__(
        self,
        store: Store,
        *,
        serde: SerializerProtocol | None = None,
        adapter: str = "langgraph",
        level: Level = "sync",
    ) -> None:
        super().__init__(serde=serde)
        self.store = store
        self._threads = Named(store, adapter, _Thread, level)

    def _thread(self, thread_id: str) -> _Thread:
        return cast(_Thread, self._threads.get(str(thread_id)))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The next version of a channel: a number, and digits that distinguish the versions of two processes."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    # ---- Writing ----

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, and the values of the channels in `new_versions`."""
        place = config["configurable"]
        thread, space = place["thread_id"], place.get("checkpoint_ns", "")
        rest = cast(dict[str, Any], checkpoint.copy())
        values = rest.pop("channel_values")
        said = get_checkpoint_metadata(config, metadata)
        typed = {
            (channel, version): self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
            for channel, version in new_versions.items()
        }
        data = {
            "ns": space,
            "id": checkpoint["id"],
            "checkpoint": _pack(self.serde.dumps_typed(rest)),
            "metadata": _pack(self.serde.dumps_typed(said)),
        }
        asked = {"parent": get_checkpoint_id(config), **{key: said.get(key) for key in ("step", "source", "run_id")}}
        data.update((key, value) for key, value in asked.items() if value is not None)
        self._save(self._thread(thread), data, typed, values)
        return _config(thread, space, checkpoint["id"])

    def _save(
        self, thread: _Thread, data: dict[str, Any], typed: dict[tuple[str, Any], Typed], values: dict[str, Any]
    ) -> None:
        """Append a checkpoint with its values, as differences from existing values and with references to earlier
        events, if nothing was appended in between.
        """
        for attempt in range(_TRIES + 1):
            alone = attempt == _TRIES  # complete values, wherever the thread ends
            with thread.lock:
                self._refresh(thread)
                seq = thread.seq
                thread.coming = {(data["ns"], *key): content for key, (_, content) in typed.items()}
                messages = _Messages(thread)
                for channel, _ in typed:
                    if channel in values and not channel.startswith("__"):
                        messages.tell(values[channel], channel)
                data["values"] = [
                    [*key, value[0], *self._packed(thread, messages, data["ns"], key[0], value, values, alone)]
                    for key, value in typed.items()
                ]
            drafts = [*messages.list, Draft("checkpoint.saved", data)]
            if alone:
                self._append(thread, *drafts)
                return
            try:
                thread.append(*drafts, expected_seq=seq)
                return
            except Conflict:
                continue

    @staticmethod
    def _packed(
        thread: _Thread,
        messages: _Messages,
        space: str,
        channel: str,
        typed: Typed,
        values: dict[str, Any],
        alone: bool,
    ) -> builtins.list[Any]:
        """A value as [version from which it differs, difference], or complete as [value]."""

        def pack(content: bytes) -> Any:
            return messages.pack(content, values.get(channel), channel, not alone)

        how = None if alone else thread.difference(space, channel, typed, pack)
        return [pack(typed[1])] if how is None else how

    def _refresh(self, thread: _Thread) -> None:
        """Read the new events, before a write."""
        thread.refresh()

    def _append(self, thread: _Thread, *drafts: Draft) -> None:
        thread.append(*drafts)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task on top of a checkpoint. The first write of a task at an index stays."""
        place = config["configurable"]
        self._append(
            self._thread(place["thread_id"]),
            Draft(
                "checkpoint.writes",
                {
                    "ns": place.get("checkpoint_ns", ""),
                    "id": place["checkpoint_id"],
                    "task": task_id,
                    "path": task_path,
                    "writes": [
                        [WRITES_IDX_MAP.get(channel, index), channel, *_pack(self.serde.dumps_typed(value))]
                        for index, (channel, value) in enumerate(writes)
                    ],
                },
            ),
        )

    def claim_write_ownership(self, thread_id: str) -> AnnalSaver:
        """Claim a thread: the returned saver is the only saver that may write to it, in all processes.

        The previous owner is refused from now on: `put()` and `put_writes()` of that saver raise `StaleOwner`, and
        write nothing. A saver that claimed nothing is not checked.
        """
        thread, owner = self._thread(thread_id), uuid4().hex
        thread.append(Draft("thread.claimed", {"owner": owner}))
        return _Owner(self, str(thread_id), owner)

    # ---- Reading ----

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that config names, or the latest of its thread and namespace."""
        place = config["configurable"]
        thread = self._thread(place["thread_id"])
        space = place.get("checkpoint_ns", "")
        with thread.lock:
            thread.refresh()
            saved = thread.saved.get(space)
            if not saved:
                return None
            checkpoint = get_checkpoint_id(config) or thread.latest[space]
            if checkpoint not in saved:
                return None
            return self._tuple(thread, place["thread_id"], space, checkpoint)

    def _tuple(self, thread: _Thread, thread_id: str, space: str, checkpoint: str) -> CheckpointTuple:
        saved = thread.saved[space][checkpoint]
        loads = self.serde.loads_typed
        rest = loads(saved.checkpoint)
        values = {}
        for channel, version in rest["channel_versions"].items():
            typed = thread.value(space, channel, version)
            if typed is not None:
                values[channel] = loads(typed)
        return CheckpointTuple(
            config=_config(thread_id, space, checkpoint),
            checkpoint=cast(Checkpoint, {**rest, "channel_values": values}),
            metadata=loads(saved.metadata),
            parent_config=_config(thread_id, space, saved.parent) if saved.parent else None,
            pending_writes=[(task, channel, loads(typed)) for task, channel, typed in _ordered(saved)],
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints of a thread, or of all, the newest of each namespace first."""
        place = config["configurable"] if config else {}
        only = get_checkpoint_id(config) if config else None
        end = get_checkpoint_id(before) if before else None
        threads = [str(place["thread_id"])] if config else [parts[0] for parts in self._threads.all()]
        left = limit
        for thread_id in threads:
            thread = self._thread(thread_id)
            with thread.lock:
                thread.refresh()
                found = [
                    (space, checkpoint)
                    for space in thread.saved
                    if place.get("checkpoint_ns") in (None, space)
                    for checkpoint in sorted(thread.saved[space], reverse=True)
                    if (only is None or checkpoint == only) and (end is None or checkpoint < end)
                ]
            for space, checkpoint in found:
                if left is not None and left <= 0:
                    return
                with thread.lock:
                    saved = thread.saved.get(space, {}).get(checkpoint)
                    if saved is None:
                        continue
                    said = self.serde.loads_typed(saved.metadata)
                    if filter and any(said.get(key) != value for key, value in filter.items()):
                        continue
                    answer = self._tuple(thread, thread_id, space, checkpoint)
                left = None if left is None else left - 1
                yield answer

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the nearest value of an ancestor, and the writes since then. Nothing else is read."""
        place = config["configurable"]
        thread, space = self._thread(place["thread_id"]), place.get("checkpoint_ns", "")
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        loads, left = self.serde.loads_typed, set(channels)
        with thread.lock:
            thread.refresh()
            saved = thread.saved.get(space, {})
            target = saved.get(get_checkpoint_id(config) or thread.latest.get(space, ""))
            name = target.parent if target is not None else None
            while name is not None and name in saved and left:
                for task, channel, typed in reversed(_ordered(saved[name])):
                    if channel in left:
                        found[channel]["writes"].append((task, channel, loads(typed)))
                versions = loads(saved[name].checkpoint)["channel_versions"]
                for channel in list(left):
                    value = thread.value(space, channel, versions[channel]) if channel in versions else None
                    if value is not None:
                        found[channel]["seed"] = loads(value)
                        left.discard(channel)
                name = saved[name].parent
        for entry in found.values():
            entry["writes"].reverse()
        return found

    # ---- Removing ----

    def delete_thread(self, thread_id: str) -> None:
        """Delete the session of a thread; threads that were copied from it keep their history."""
        thread = self._thread(thread_id)
        with thread.lock:
            delete(self.store, thread.session)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of these runs, in all threads."""
        wanted = set(run_ids)
        if wanted:
            for (thread_id,) in self._threads.all():
                self._take_out(thread_id, lambda _space, _id, saved: saved.run in wanted)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Create a thread with the content of another thread: a fork by pointer. Raises `Conflict` if it exists."""
        source, target = self._thread(source_thread_id), self._thread(target_thread_id)
        with source.lock, target.lock:
            if source.refresh():
                forked = source.session.fork(target.session.id)
                forked._report([target.naming()])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the latest checkpoint of each namespace, and the ancestors of its delta channels; or "delete" all."""
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            thread = self._thread(thread_id)
            with thread.lock:
                thread.refresh()
                kept = {
                    (space, name)
                    for space, saved in thread.saved.items()
                    for name in self._needed(thread, space, saved)
                }
                self._take_out(thread_id, lambda space, name, _saved: (space, name) not in kept)

    def _needed(self, thread: _Thread, space: str, saved: dict[str, _Saved]) -> Iterator[str]:
        """The latest checkpoint, and its ancestors until each of its delta channels has a value."""
        name: str | None = max(saved, default=None)
        deltas: set[str] | None = None
        while name is not None and name in saved:
            yield name
            loads, typed = self.serde.loads_typed, saved[name]
            rest, said = loads(typed.checkpoint), loads(typed.metadata)
            if deltas is None:
                deltas = set(said.get("counters_since_delta_snapshot") or ())
            versions = rest["channel_versions"]
            deltas = {
                channel
                for channel in deltas
                if thread.value(space, channel, versions.get(channel)) is None
            }
            if not deltas:
                return
            name = saved[name].parent

    def _take_out(self, thread_id: str, wanted: Callable[[str, str, _Saved], bool]) -> None:
        thread = self._thread(thread_id)
        with thread.lock:
            thread.refresh()
            gone = [
                [space, name]
                for space, saved in thread.saved.items()
                for name, what in saved.items()
                if wanted(space, name, what)
            ]
            if gone:
                thread.append(Draft("checkpoint.deleted", {"checkpoints": gone}))

    # ---- The same for event loops: in the loop's threads, because they wait for a disk ----

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple()`."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list()`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await in_thread(next, found, None)) is not None:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put()`."""
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes()`."""
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history()`."""
        return await in_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def aclaim_write_ownership(self, thread_id: str) -> AnnalSaver:
        """As `claim_write_ownership()`."""
        return await in_thread(self.claim_write_ownership, thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread()`."""
        await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs()`."""
        await in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread()`."""
        await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune()`."""
        await in_thread(lambda: self.prune(thread_ids, strategy=strategy))


class _Owner(AnnalSaver):
    """A saver that has claimed a thread."""

    def __init__(self, saver: AnnalSaver, thread_id: str, owner: str) -> None:
        BaseCheckpointSaver.__init__(self, serde=saver.serde)
        self.store = saver.store
        self._threads = saver._threads
        self._claimed = saver._thread(thread_id)
        self._owner = owner

    def _refresh(self, thread: _Thread) -> None:
        thread.refresh()
        if thread is self._claimed and thread.owner != self._owner:
            raise StaleOwner(f"thread {thread.parts[-1]!r} was claimed by another owner")

    def _append(self, thread: _Thread, *drafts: Draft) -> None:
        while True:
            with thread.lock:
                self._refresh(thread)
                seq = thread.seq
            try:
                thread.append(*drafts, expected_seq=seq)
                return
            except Conflict:
                continue  # another caller has appended, perhaps a claim


def _config(thread_id: str, space: str, checkpoint: str) -> RunnableConfig:
    return {
        "configurable": {"thread_id": thread_id, "checkpoint_ns": space, "checkpoint_id": checkpoint}
    }
