# SPDX-License-Identifier: Apache-2.0
"""A session: events in the order in which they happened."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from typing import TYPE_CHECKING, Any, overload

from ._core import DAMAGE, END, Collector, Slice, Time, check, natural, data, failure, ffi, lib, moment, new_error, refuse_copy, text
from ._core import encode as utf8
from ._errors import Corrupt, Invalid, NotFound
from ._event import Draft, Event, flat, flat_drafts
from ._json import dumps
from ._recovery import Recovery, read_recovery
from ._state import State, open_state
from ._store import FORMATS, LEVELS, Format, Level, Store, choice
from ._table import BATCH_BYTES, BATCH_ROWS, BLOCK_BYTES, BLOCK_ROWS, Table, event_batch, event_schema, growing, read_block
from ._tail import Tail

if TYPE_CHECKING:
    import pyarrow

_FORMAT_NAMES: dict[int, Format] = {lib.ANNAL_FORMAT_JSON: "json", lib.ANNAL_FORMAT_MSGPACK: "msgpack"}


_spare_errors: list[Any] = []  # never written to


@dataclass(frozen=True)
class SessionInfo:
    """The header and the last lines of a journal.

    `forked_from` and `fork_seq` describe a fork: the session whose history up to that event it shares.
    """

    session: str
    format: Format | None
    created_us: int
    bytes: int
    last_seq: int
    last_ts_us: int
    torn: bool
    forked_from: str | None
    fork_seq: int
    file: str
    """The id of the journal file: another id means another session with this name."""

    @property
    def created(self) -> datetime:
        return moment(self.created_us)


@dataclass(frozen=True)
class Damage:
    """Bytes of a journal that are damaged. `seq` 0: the header."""

    seq: int
    offset: int
    length: int
    what: str


@dataclass(frozen=True)
class Artifact:
    """Content that is stored beside the journals, named by the SHA-256 of its bytes."""

    session: str
    sha256: str
    bytes: int

    def ref(self, media_type: str = "application/octet-stream") -> dict[str, Any]:
        """The reference to it, for the data of an event."""
        path = f"artifacts/{self.session}/{self.sha256}.zst"
        return {"sha256": self.sha256, "bytes": self.bytes, "media_type": media_type, "path": path}


def _string(raw: Any) -> str:
    return ffi.string(raw).decode("utf-8", "replace")  # type: ignore[no-any-return]


def _draft(item: Draft | tuple[Any, ...] | Mapping[str, Any]) -> Draft:
    if isinstance(item, Draft):
        return item
    try:
        if isinstance(item, Mapping):
            return Draft(**item)
        if isinstance(item, (tuple, list)):
            return Draft(*item)
    except TypeError as error:
        raise Invalid(f"{item!r:.80} is not a draft: {error}") from None
    raise Invalid(f"a draft is a Draft, a tuple or a dict of its fields, not {type(item).__name__}: {item!r:.80}")


class Session:
    """One session of a store: append to it, and read it as a sequence of events.

    `session[0]` is the first event (seq 1), `session[-1]` the last, `session[-10:]` the last ten; iterate
    it, or `reversed()` it, without reading all of it. Any thread may use it.
    """

    def __init__(self, store: Store, session: str, strict: bool = False) -> None:
        self.store = store
        self.id = session
        """The id of the session."""
        self.strict = strict
        """Whether appends refuse fields that do not fit a known type."""
        self._slice = Slice(session)
        self._writer_lock = threading.Lock()
        self._writer: Any = None
        err = new_error()
        check(lib.annal_session_id_check(self._slice.value, err), err)

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is not None:
            writer.close()

    # ---- Appending ----

    def append(
        self,
        type: str,
        data: Any = None,
        *,
        id: str | None = None,
        cause: str | int | Event | None = None,
        ts: Time | None = None,
        expected_seq: int | None = None,
        level: Level | None = None,
    ) -> int:
        """Append an event, and return its seq. It is durable then, unless a `level` says otherwise.

        `data` is anything that JSON can express, or bytes that are JSON already. `cause` is the event that led to it: an
        `Event`, "session:seq", or a seq of this session. With an `id` it is appended exactly once: the same event again returns the first seq. `expected_seq` is the seq of the last event that the
        caller knows, 0 for none: if the session is longer, nothing is appended. The guards of the packs are checked
        first.

        Raises `Refused` with the sentence of the pack whose guard refused, `Conflict` if `expected_seq` or `id`
        does not match, `Invalid`, `LimitExceeded`, `Busy` if another process has the session, `IOFailed`, and `Unknown`
        if storage failed and the event may or may not be written.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     session.append("tool.called", {"tool": "bash"}, id="call-1")
        ...     session.append("tool.called", {"tool": "bash"}, id="call-1")
        1
        1
        """
        if self.strict or id is not None or cause is not None or ts is not None or expected_seq is not None:
            return self._append(*flat(self.id, type, data, id, cause, ts), 1, expected_seq, level)
        name, content = utf8(type), dumps(data, stable=False)
        chosen = lib.ANNAL_LEVEL_DEFAULT if level is None else choice(LEVELS, level, "level")
        try:
            err = _spare_errors.pop()
        except IndexError:
            err = new_error()
        store = self.store
        with store._gate:
            seq: int = lib.libannal_append_one(
                store._index or store._indexed(), self._write(), name, len(name), content, len(content), chosen, err
            )
        if seq < 0:
            raise failure(seq, err)
        _spare_errors.append(err)
        return seq

    async def aappend(
        self,
        type: str,
        data: Any = None,
        *,
        id: str | None = None,
        cause: str | int | Event | None = None,
        ts: Time | None = None,
        expected_seq: int | None = None,
        level: Level | None = None,
    ) -> int:
        """As `append()`, in an event loop: the loop never waits, and coroutines share a sync.

        Do not change `data` until it returns. A coroutine that is cancelled may have appended the event. Appends of
        coroutines to one session keep their order.
        """
        from ._async import Appender  # a program without a loop does not pay for it

        store = self.store

        def prepare() -> tuple[Session, Callable[..., int], bool]:
            heads, content = flat(self.id, type, data, id, cause, ts)
            is_sync = level == "sync" or level is None and store.level == "sync"

            def call(for_sync: Level | None) -> int:
                return self._append(heads, content, 1, expected_seq, for_sync or level)

            return self, call, is_sync

        if store._appender is None:
            with store._index_lock:
                store._appender = store._appender or Appender()
        return await store._appender.append(prepare)

    def append_many(
        self,
        drafts: Iterable[Draft | tuple[Any, ...] | Mapping[str, Any]],
        *,
        expected_seq: int | None = None,
        level: Level | None = None,
    ) -> range:
        """Append events as one: all become durable, or none. Returns their seqs.

        Each is a `Draft`, or a tuple or dict of its fields. At most 65,536 and 80 MiB. Raises as `append()`.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     store.session("s1").append_many([("run.started", {}), ("run.ended", {})])
        range(1, 3)
        """
        if isinstance(drafts, (str, bytes, Mapping, Draft)):
            raise Invalid(f"append_many() takes several drafts, not one {type(drafts).__name__}")
        wanted = [_draft(item) for item in drafts]
        if not wanted:
            return range(0)
        first = self._append(*flat_drafts(self.id, wanted), len(wanted), expected_seq, level)
        return range(first, first + len(wanted))

    def _report(self, drafts: Sequence[Draft], *, expected_seq: int | None = None, level: Level | None = None) -> int:
        """As `append_many()`, for events that report what has happened already: the guards of the core pack are not
        checked. Returns the first seq.
        """
        return self._append(*flat_drafts(self.id, drafts), len(drafts), expected_seq, level, True)

    def _append(
        self,
        heads: bytes,
        content: bytes,
        count: int,
        expected_seq: int | None,
        level: Level | None,
        reports: bool = False,
    ) -> int:
        options = ffi.new("annal_append_options *")
        options.level = choice(LEVELS, level, "level")
        options.reports, options.strict = reports, self.strict and not reports
        if expected_seq is not None:
            options.expect, options.expected_seq = lib.ANNAL_EXPECT_SEQ, natural(expected_seq, "expected_seq")
        store, err = self.store, new_error()
        with store._gate:
            seq = lib.libannal_append(store._indexed(), self._write(), heads, count, content, options, err)
        return check(seq, err)

    def _write(self) -> Any:
        """The writer, opened by the first append. The caller is in the gate."""
        if self._writer is None:
            with self._writer_lock:
                if self._writer is None:
                    out, err = ffi.new("annal_writer **"), new_error()
                    store = self.store
                    check(
                        lib.annal_writer_open(store._pointer, self._slice.value, ffi.NULL, out, err), err
                    )
                    self._writer = store._own(out[0], lib.annal_writer_close)
        return self._writer.pointer

    def sync(self) -> None:
        """Return when everything that was appended through this object is durable, whatever its level.

        Raises `IOFailed` if some events were refused after their append returned, `Unknown` if the outcome is unknown.
        """
        err = new_error()
        with self.store._gate:
            check(lib.annal_writer_sync(self._write(), ffi.NULL, err), err)

    # ---- Information ----

    def _info(self) -> Any:
        """Its annal_session_info. Raises `NotFound`."""
        raw, err = ffi.new("annal_session_info *"), new_error()
        with self.store._gate:
            check(lib.annal_session_info_get(self.store._pointer, self._slice.value, raw, err), err)
        return raw

    def info(self) -> SessionInfo:
        """The header and the last lines of its journal. Raises `NotFound`."""
        raw = self._info()
        return SessionInfo(
            self.id,
            _FORMAT_NAMES.get(raw.format),
            raw.created_us,
            raw.bytes,
            raw.last_seq,
            raw.last_ts_us,
            raw.torn,
            _string(raw.fork_session) or None,
            raw.fork_seq,
            _string(raw.file),
        )

    def exists(self) -> bool:
        """Whether anything was appended to it."""
        try:
            self.info()
        except NotFound:
            return False
        return True

    @property
    def last_seq(self) -> int:
        """The seq of its last event, or 0."""
        try:
            return int(self._info().last_seq)
        except NotFound:
            return 0

    def __len__(self) -> int:
        return self.last_seq

    def __bool__(self) -> bool:
        return True

    # ---- Reading ----

    def events(
        self,
        from_seq: int = 1,
        to_seq: int | None = None,
        *,
        on_damage: Callable[[Damage], None] | None = None,
    ) -> Iterator[Event]:
        """The events from_seq to to_seq (default: the last event), read in parts, each checked by its hash.

        A damaged place raises `Corrupt`; with `on_damage` that function is called instead, and reading continues after
        the place. A session without events yields none.
        """
        for item in self._tables(from_seq, to_seq, growing(), BLOCK_BYTES):
            if isinstance(item, Table):
                yield from item.events(self.store, self.id)
            elif on_damage is None:
                raise Corrupt(f"event {item.seq} of session '{self.id}': {item.what}")
            else:
                on_damage(item)

    def _tables(
        self, from_seq: int, to_seq: int | None, sizes: Iterator[int], size_bytes: int
    ) -> Iterator[Table | Damage]:
        """Tables of at most the given numbers of events, and damaged places between them."""
        store, out, err = self.store, ffi.new("annal_cursor **"), new_error()
        try:
            with store._gate:
                check(
                    lib.annal_cursor_open(store._pointer, self._slice.value, max(natural(from_seq, "from_seq"), 1), out, err), err
                )
                handle = store._own(out[0], lib.annal_cursor_close)
        except NotFound:
            return
        last = 2**64 - 1 if to_seq is None else to_seq
        try:
            status = 0
            while status != END:
                with store._gate:
                    cursor = handle.pointer
                    status, table = read_block(
                        lib.libannal_table_read_cursor, cursor, self._slice.value, last, next(sizes), size_bytes
                    )
                    damage = self._damage(lib.annal_cursor_damage(cursor)) if status == DAMAGE else None
                yield table
                if damage is not None:
                    yield damage
        finally:
            handle.close()

    def arrow(self, from_seq: int = 1, to_seq: int | None = None) -> pyarrow.Table:
        """The events from_seq to to_seq (default: the last event) as a table of Arrow, each checked by its hash.

        The columns are session_id, seq, timestamp, type, id, cause, and data as JSON text. Needs pyarrow (the extra
        "arrow"). Raises `Corrupt` at a damaged place.
        """
        import pyarrow

        batches = []
        for item in self._tables(from_seq, to_seq, repeat(BATCH_ROWS), BATCH_BYTES):
            if isinstance(item, Damage):
                raise Corrupt(f"event {item.seq} of session '{self.id}': {item.what}")
            batches.append(event_batch(item))
        return pyarrow.Table.from_batches(batches, event_schema())

    @staticmethod
    def _damage(raw: Any) -> Damage:
        return Damage(raw.seq, raw.offset, raw.length, _string(raw.what))

    def _backwards(self, first: int, last: int) -> Iterator[Event]:
        size = 16
        while last >= first:
            start = max(first, last - size + 1)
            yield from reversed(list(self.events(start, last)))
            last, size = start - 1, min(2 * size, BLOCK_ROWS)

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def __reversed__(self) -> Iterator[Event]:
        return self._backwards(1, self.last_seq)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        count = len(self)
        if isinstance(index, slice):
            places = range(*index.indices(count))
            if not places:
                return []
            low, high = min(places[0], places[-1]), max(places[0], places[-1])
            events = list(self.events(low + 1, high + 1))[:: abs(places.step)]
            return events if places.step > 0 else events[::-1]
        place = index + count if index < 0 else index
        if not 0 <= place < count:
            raise IndexError(f"session '{self.id}' has {count} events")
        for event in self.events(place + 1, place + 1):
            return event
        raise NotFound(f"session '{self.id}' has no event {place + 1}")

    def tail(
        self,
        *,
        types: str | list[str] | None = None,
        from_seq: int = 0,
        since: Time | None = None,
        last: int = 0,
        from_now: bool = False,
        cursor: str = "",
    ) -> Tail:
        """Follow this session live; as `Store.tail()`. It need not exist yet."""
        return self.store.tail(
            self.id, types=types, from_seq=from_seq, since=since, last=last, from_now=from_now, cursor=cursor
        )

    def verify(self) -> list[Damage]:
        """Read its journal from the first byte to the last, and list the damaged places."""
        found: Collector[Damage] = Collector(self._damage)
        out, err = ffi.new("annal_verify_result *"), new_error()
        with self.store._gate:
            status = lib.annal_session_verify(
                self.store._pointer, self._slice.value, lib.libannal_on_finding, found.handle, out, err
            )
        return found.done(status, err)

    # ---- Its past, and other futures ----

    def state(
        self, at: int | datetime | str | None = None, *, pack: str | os.PathLike[str] | None = None
    ) -> State:
        """The tables of the core pack after event `at`, or at that time; default: now.

        `pack` is a pack of your own instead of core: its name in the store, or the path of its file.

        Raises `NotFound` if the session, the event or the pack does not exist, `SQLError` if the pack has an error.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     _ = session.append_many([("run.started", {}), ("run.ended", {})])
        ...     session.state(at=1).sql("SELECT events FROM sessions")[0]
        (1,)
        """
        return open_state(self.store, self._slice.value, at, pack)

    def fork(self, child: str, at: int | None = None) -> Session:
        """Create a session that shares this session's history up to event `at` (default: the last), by pointer.

        Nothing is copied; both are durable when it returns, and neither contains later events of the other. Raises
        `Conflict` if `child` exists, `NotFound` if event `at` does not exist.
        """
        forked = Session(self.store, child, self.strict)
        err = new_error()
        with self.store._gate:
            check(
                lib.annal_session_fork(
                    self.store._pointer,
                    self._slice.value,
                    lib.ANNAL_FORK_LAST if at is None else natural(at, "at"),
                    forked._slice.value,
                    ffi.NULL,
                    ffi.NULL,
                    err,
                ),
                err,
            )
        return forked

    def copy(self, to: str) -> Session:
        """Copy its history into a new session, `to`, which is not a fork; durable when it returns.

        Every event keeps its seq, time, id, cause and data; a damaged event is replaced by an event of type annal.gap.
        Raises `Conflict` if `to` exists, `NotFound`.
        """
        copied = Session(self.store, to, self.strict)
        out, err = ffi.new("annal_repair_result *"), new_error()
        with self.store._gate:
            status = lib.annal_session_repair(
                self.store._pointer, self._slice.value, copied._slice.value, ffi.NULL, ffi.NULL, ffi.NULL, out, err
            )
            check(status, err)
        return copied

    def recovery(self) -> Recovery:
        """What was in progress at its end: calls without a result, open turns, the last messages. Raises `NotFound`.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     session = store.session("s1")
        ...     _ = session.append("tool.called", {"call_id": "c1", "tool": "pay", "input": {"amount": 7}})
        ...     [(call.tool, call.input) for call in session.recovery().calls]
        [('pay', {'amount': 7})]
        """
        return read_recovery(self)

    def delete(self) -> list[str]:
        """Delete it: as `Store.delete()`."""
        return self.store.delete(self.id)

    # ---- Large content ----

    def put_artifact(self, content: bytes) -> Artifact:
        """Store content beside the journals, durable when it returns; the same content is stored once.

        Append an event that contains its `ref()`: content that no event names is removed by a sweep, after a day.
        """
        raw, err = ffi.new("annal_artifact_info *"), new_error()
        with self.store._gate:
            check(
                lib.annal_artifact_put(
                    self.store._pointer, self._slice.value, Slice(content).value, raw, err
                ),
                err,
            )
        return Artifact(self.id, _string(raw.sha256), raw.bytes)

    def get_artifact(self, sha256: str, bytes_max: int = 1 << 30) -> bytes:
        """The content with that hash, checked. Raises `NotFound`, `Corrupt`, `LimitExceeded` above bytes_max."""
        out, err = ffi.new("annal_slice *"), new_error()
        with self.store._gate:
            check(
                lib.annal_artifact_get(
                    self.store._pointer, self._slice.value, Slice(sha256).value, bytes_max, out, err
                ),
                err,
            )
            try:
                return data(out[0])
            finally:
                lib.annal_free(out.ptr)


__all__ = ["FORMATS", "Artifact", "Damage", "Session", "SessionInfo", "text"]
