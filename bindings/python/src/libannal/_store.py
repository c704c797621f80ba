# SPDX-License-Identifier: Apache-2.0
"""A store: the directory that holds every session."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ._core import (
    Collector,
    Gate,
    Handle,
    Slice,
    Slices,
    Time,
    bound,
    check,
    natural,
    check_process,
    ffi,
    lib,
    new_error,
    open_stores,
    refuse_copy,
    text,
)
from ._errors import Closed, Invalid
from ._event import Event
from ._query import Query, events_filter
from ._sql import Rows, run_sql
from ._tail import Tail, open_tail

if TYPE_CHECKING:
    from ._async import Appender
    from ._session import Session

T = TypeVar("T")

Level = Literal["sync", "batch", "os"]
"""When an append counts as done: "sync" survives a power cut, "batch" is durable within batch_ms, "os" survives
the end of the process."""

Format = Literal["json", "msgpack"]

LEVELS: dict[str | None, int] = {
    None: lib.ANNAL_LEVEL_DEFAULT,
    "sync": lib.ANNAL_LEVEL_SYNC,
    "batch": lib.ANNAL_LEVEL_BATCH,
    "os": lib.ANNAL_LEVEL_OS,
}
FORMATS: dict[str | None, int] = {
    None: lib.ANNAL_FORMAT_DEFAULT,
    "json": lib.ANNAL_FORMAT_JSON,
    "msgpack": lib.ANNAL_FORMAT_MSGPACK,
}
PACK_STATES: dict[int, Literal["ready", "building", "failed"]] = {
    lib.ANNAL_PACK_READY: "ready",
    lib.ANNAL_PACK_BUILDING: "building",
    lib.ANNAL_PACK_FAILED: "failed",
}
_SECONDS_AT_EXIT = 5.0


def choice(table: dict[str | None, int], value: str | None, what: str) -> int:
    try:
        return table[value]
    except KeyError:
        known = ", ".join(str(name) for name in table if name)
        raise Invalid(f"{value!r} is not a {what}: {known}") from None


@dataclass(frozen=True)
class Pack:
    """The state of a pack of the store. `error` says why it is not run."""

    name: str
    version: int
    state: Literal["ready", "building", "failed"]
    source: str | None
    error: str | None
    events_applied: int
    events_behind: int


@dataclass(frozen=True)
class Hit:
    """A place where the words of a search were found. `rank` is bm25: the lower the better."""

    session: str
    seq: int
    ts_us: int
    type: str
    role: str
    tool: str
    snippet: str
    rank: float


@dataclass(frozen=True)
class Found:
    """A session that a search found: `why` in one line, and its best `places`. The higher `score`, the better."""

    session: str
    last_us: int
    events: int
    score: float
    why: str
    places: list[Hit]


def _optional(string: Any) -> str | None:
    return ffi.string(string).decode("utf-8", "replace") if string else None


def _read_pack(info: Any) -> Pack:
    return Pack(
        ffi.string(info.name).decode(),
        info.version,
        PACK_STATES[info.state],
        _optional(info.source),
        _optional(info.error),
        info.events_applied,
        info.events_behind,
    )


def _read_hit(hit: Any) -> Hit:
    return Hit(
        text(hit.session),
        hit.seq,
        hit.ts_us,
        text(hit.type),
        text(hit.role),
        text(hit.tool),
        text(hit.snippet),
        hit.rank,
    )


def _read_found(found: Any) -> Found:
    places = [_read_hit(found.places[i]) for i in range(found.place_count)]
    return Found(text(found.session), found.last_us, found.events, found.score, text(found.why), places)


def _read_note(note: Any) -> str:
    if not note.error or note.part == lib.ANNAL_DELETE_SESSION:
        return ""
    return ffi.string(note.error.message).decode("utf-8", "replace")  # type: ignore[no-any-return]


class Store:
    """An open store; create one with `open()`, and keep it: one object a directory and process.

    Any thread may use it, and it knows which threads are inside: `close()` waits for them. In a child of fork() every
    method raises `Closed`.
    """

    def __init__(self, path: str, pointer: Any, follow: bool, level: Level = "sync", strict: bool = False) -> None:
        self._pointer = pointer
        self._gate = Gate(f"store '{path}'")
        self._children: set[Handle] = set()
        self._follow = follow
        self._index: Any = ffi.NULL
        self._index_lock = threading.Lock()
        # By trace of OpenTelemetry: the session in which an adapter tells it, and whether it counts tokens.
        self._told_traces: dict[int, tuple[str, bool]] = {}
        self._appender: Appender | None = None  # of coroutines
        self._tails: weakref.WeakSet[Tail] = weakref.WeakSet()
        self.level = level
        """The default level of appends."""
        self.strict = strict
        """Whether appends refuse fields that do not fit a known type."""
        self.path: str = ffi.string(lib.annal_store_path(pointer)).decode("utf-8", "surrogateescape")
        """The directory, as an absolute path."""
        open_stores.add(self)

    # ---- Closing ----

    def close(self) -> None:
        """Write everything durably and release all sessions. Waits for calls of other threads.

        Raises `IOFailed` or `Unknown` if something that was appended could not be written durably.
        """
        if self._gate.closed:
            return
        if self._gate.foreign:
            self._gate.shut(0)
            return
        self._gate.shut()
        for tail in list(self._tails):
            tail._wake()
        if self._appender is not None:
            self._appender.close()
        self._free()

    def _free(self) -> None:
        for child in list(self._children):
            child.free()
        lib.annal_index_close(self._index)
        self._index = ffi.NULL
        pointer, self._pointer = self._pointer, ffi.NULL
        err = new_error()
        check(lib.annal_store_close(pointer, err), err)

    def _close_at_exit(self) -> None:
        if self._gate.closed or self._gate.foreign:
            return
        if self._gate.shut(_SECONDS_AT_EXIT):
            self._free()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        gate = getattr(self, "_gate", None)
        if gate is None or gate.closed or gate.foreign:
            return
        warnings.warn(f"{gate.what} was not closed", ResourceWarning, source=self, stacklevel=2)
        self.close()

    __reduce__ = refuse_copy

    def __repr__(self) -> str:
        return f"<Store {self.path!r}{' (closed)' if self._gate.closed else ''}>"

    def _own(self, pointer: Any, free: Any) -> Handle:
        return Handle(pointer, free, self._gate, self._children)

    def _indexed(self) -> Any:
        """The index, opened when it is first needed. The caller is in the gate."""
        if not self._index:
            with self._index_lock:
                if not self._index:
                    out, err = ffi.new("annal_index **"), new_error()
                    options = ffi.new("annal_index_options *", {"follow": self._follow})
                    check(lib.annal_index_open(self._pointer, options, out, err), err)
                    self._index = out[0]
        return self._index

    # ---- Sessions ----

    def session(self, session: str, *, strict: bool | None = None) -> Session:
        """The session with that id (1 to 200 of A-Z a-z 0-9 . _ -). It exists once something is appended.

        With `strict` (default: as the store) an append of a type in docs/events.md raises `Invalid` if it has an unknown
        field, lacks a required one, or has one of another kind.

        Raises `Invalid` if it is not an id; `name()` computes an id for any strings.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     store.session("s1").append("run.started", {"task": "hello"})
        1
        """
        from ._session import Session

        with self._gate:
            return Session(self, session, self.strict if strict is None else strict)

    def sessions(self) -> list[str]:
        """The ids of all sessions, sorted. It lists a directory and reads no journal."""
        found: Collector[str] = Collector(lambda session, _bytes: text(session))
        err = new_error()
        with self._gate:
            status = lib.annal_session_each(self._pointer, lib.libannal_on_session, found.handle, err)
        return found.done(status, err)

    def __iter__(self) -> Iterator[Session]:
        return (self.session(session) for session in self.sessions())

    def __contains__(self, session: str) -> bool:
        return self.session(session).exists()

    def delete(self, *sessions: str) -> list[str]:
        """Delete sessions so that no file of the store contains any of their bytes.

        Returns sentences about what remains for now, for instance content that another process's database still has.
        Raises `Conflict` if a fork needs a session, `NotFound`, `Busy`.
        """
        notes: Collector[str] = Collector(_read_note)
        names, err = Slices(sessions), new_error()
        with self._gate:
            status = lib.annal_session_delete(
                self._indexed(), names.array, names.count, lib.libannal_on_delete, notes.handle, err
            )
        return [note for note in notes.done(status, err) if note]

    # ---- Durability ----

    def sync(self) -> None:
        """Return when every append of this object that has returned is durable, whatever its level."""
        err = new_error()
        with self._gate:
            check(lib.annal_store_sync(self._pointer, err), err)

    # ---- Queries ----

    def query(
        self,
        *,
        sessions: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        from_seq: int = 0,
        to_seq: int = 0,
        where: str = "",
        limit: int = 0,
        descending: bool = False,
    ) -> Query:
        """The events that match all of this: iterate over it, or call `count()`.

        `types` are types or patterns with *, ? and [abc]; `since` <= ts < `until`, so adjacent ranges share no event,
        and a missing bound does not limit; `where` is an SQL expression
        over session_id, seq, timestamp, type, id, cause and data, as "data->>'$.tool' = 'bash'". Everything
        that is durable now is in the answer.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     _ = store.session("s1").append("tool.called", {"tool": "bash"})
        ...     [event.data["tool"] for event in store.query(types="tool.*")]
        ['bash']
        """
        return Query(
            self,
            events_filter(
                sessions=sessions,
                types=types,
                since=since,
                until=until,
                from_seq=from_seq,
                to_seq=to_seq,
                where=where,
                limit=limit,
                descending=descending,
            ),
        )

    def aquery(self, **options: Any) -> AsyncIterator[Event]:
        """As `query()`, in an event loop: `async for event in store.aquery(types="tool.*"): …`."""
        from ._async import read_query

        return read_query(self.query(**options))

    async def asql(self, sql: str, *params: object, session: str = "") -> Rows:
        """As `sql()`, in a thread of the event loop."""
        from ._await import in_thread

        return await in_thread(self.sql, sql, *params, session=session)

    def sql(self, sql: str, *params: object, session: str = "") -> Rows:
        """Run a SELECT over sessions.db, the tables of packs, and `events`; params are ?1, ?2, …

        `session` adds the databases that packs keep only for that session. Raises `SQLError`.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     _ = store.session("s1").append("tool.called", {"tool": "bash"})
        ...     list(store.sql("SELECT type, count(*) FROM events GROUP BY type"))
        [('tool.called', 1)]
        """
        with self._gate:
            index = self._indexed()
            return run_sql(lambda *rest: lib.annal_index_sql(index, *rest), sql, params, session)

    def search(
        self,
        words: str | Sequence[str] = (),
        *,
        expression: str = "",
        sessions: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        role: str = "",
        tool: str = "",
        since: Time | None = None,
        until: Time | None = None,
        limit: int = 20,
        newest_first: bool = False,
    ) -> list[Hit]:
        """List the events whose messages or results of tools contain all words; the best hit first.

        `words` is text whose words must all occur, or a list of words and phrases; a * at the end of a word matches any
        ending. `expression` is an expression of SQLite's FTS5 instead. `limit` 0: all. Raises `Invalid` if there is
        nothing to search for. To find the right session, use `find()`.
        """
        return self._search(
            (lib.annal_search_each, lib.libannal_on_hit, _read_hit),
            (words, sessions, types),
            expression=expression,
            role=role,
            tool=tool,
            since_us=bound(since),
            until_us=bound(until),
            limit=natural(limit, "limit"),
            order=lib.ANNAL_SEARCH_NEWEST if newest_first else lib.ANNAL_SEARCH_BEST,
        )

    def find(
        self,
        words: str | Sequence[str],
        *,
        sessions: str | Sequence[str] | None = None,
        types: str | Sequence[str] | None = None,
        role: str = "",
        tool: str = "",
        since: Time | None = None,
        until: Time | None = None,
        limit: int = 10,
        places: int = 3,
    ) -> list[Found]:
        """Find the sessions that a question is about, the best first, each with its best places.

        `words` is a question, or a list of words and phrases; a session need not contain all words. Other forms of a word
        (migrate, migrated), typing errors and parts of names (get_user_id, getUserId) are found, too. `limit` 0: all.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     _ = store.session("s1").append("message.added", {"role": "user", "content": "We migrated the tables."})
        ...     [(found.session, found.why) for found in store.find("when was the migration of tables?")]
        [('s1', 'migration in 1 event, tables in 1; 2 of 2 in event 1')]
        """
        return self._search(
            (lib.annal_search_session_each, lib.libannal_on_found, _read_found),
            (words, sessions, types),
            role=role,
            tool=tool,
            since_us=bound(since),
            until_us=bound(until),
            limit=natural(limit, "limit"),
            places=natural(places, "places"),
        )

    def _search(
        self,
        how: tuple[Any, Any, Callable[[Any], T]],
        lists: tuple[str | Sequence[str], str | Sequence[str] | None, str | Sequence[str] | None],
        **members: str | int,
    ) -> list[T]:
        """Search with a function of the library, its callback and the reader of that; `members` of its options are named
        there as here.
        """
        function, callback, read = how
        words, sessions, types = lists
        kept = [Slices(words.split() if isinstance(words, str) else words), Slices(sessions), Slices(types)]
        texts = {name: Slice(member) for name, member in members.items() if isinstance(member, str)}
        given: dict[str, Any] = members | {name: member.value for name, member in texts.items()}
        for name, slices in zip(("word", "session", "type"), kept):
            given |= {f"{name}s": slices.array, f"{name}_count": slices.count}
        options = ffi.new("annal_search_options *", given)
        found, err = Collector(read), new_error()
        with self._gate:
            status = function(self._indexed(), options, callback, found.handle, ffi.NULL, err)
        return found.done(status, err)

    # ---- Live ----

    def tail(
        self,
        sessions: str | Sequence[str] | None = None,
        *,
        types: str | Sequence[str] | None = None,
        from_seq: int = 0,
        since: Time | None = None,
        last: int = 0,
        from_now: bool = False,
        cursor: str = "",
    ) -> Tail:
        """Follow sessions (none: all) live: existing events first, then each new event when it is durable.

        Begins with the first event, or `from_seq`, `since`, with the `last` N, or `from_now`. With the name of a
        `cursor` it continues where `Tail.commit()` left it. Raises `Invalid` if two beginnings are given, `Busy`
        if another tail uses the cursor.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store:
        ...     _ = store.session("s1").append("run.started")
        ...     with store.tail() as tail:
        ...         next(tail).type
        'run.started'
        """
        return open_tail(
            self,
            sessions,
            types=types,
            from_seq=from_seq,
            since=since,
            last=last,
            from_now=from_now,
            cursor=cursor,
        )

    # ---- Packs ----

    def packs(self) -> list[Pack]:
        """Every pack of the store, core first."""
        found: Collector[Pack] = Collector(_read_pack)
        err = new_error()
        with self._gate:
            status = lib.annal_pack_each(self._indexed(), lib.libannal_on_pack, found.handle, err)
        return found.done(status, err)

    def enable_pack(self, name: str, at: str | os.PathLike[str] | None = None) -> None:
        """Enable a built-in pack; `at` is the directory of its database. Raises `NotFound`.

        A pack of your own is enabled while its file is in STORE/packs/NAME.sql.
        """
        place = ffi.NULL if at is None else ffi.new("char[]", os.fsencode(at))
        err = new_error()
        with self._gate:
            check(lib.annal_pack_enable(self._pointer, name.encode(), place, err), err)

    def disable_pack(self, name: str) -> None:
        """Disable a built-in pack; its database stays. Raises `NotFound` if it is not enabled."""
        err = new_error()
        with self._gate:
            check(lib.annal_pack_disable(self._pointer, name.encode(), err), err)


def _milliseconds(number: int, what: str) -> int:
    if natural(number, what) >= 2**31:
        raise Invalid(f"{what} is at most {2**31 - 1}, not {number}")
    return number


def open(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    read_only: bool = False,
    level: Level = "sync",
    format: Format | None = None,
    batch_ms: int = 0,
    wait_ms: int = 0,
    follow: bool = True,
    strict: bool = False,
    unsafe_filesystem: bool = False,
) -> Store:
    """Open the store in a directory, and recover events of processes that died.

    `level` is the default level of appends; `format` the format of new journals (default: JSON lines);
    `batch_ms` how long an append of level "batch" may stay in memory (default: 10 ms); `wait_ms` how long to
    wait for another process (default: 10,000 ms). With `follow` the tables are kept up to date in the
    background once they are needed; without it each query updates them first. `strict` is the default of
    `Store.session()`.
    With `unsafe_filesystem` it also writes on FUSE and network filesystems, where a crash or a second process may
    lose acknowledged events.

    Raises `NotFound` if the store does not exist and `create` is false, `IOFailed` if the directory cannot be read or
    written, `Unsupported` on a network filesystem, for a store of a newer version, and in a child of fork() whose
    parent had a store open.

    >>> import libannal as annal, tempfile
    >>> with annal.open(tempfile.mkdtemp()) as store:
    ...     store.session("s1").append("tool.called", {"tool": "bash"})  # durable now
    1
    """
    check_process()
    name = os.fspath(path)
    options = ffi.new(
        "annal_store_options *",
        {
            "create": create and not read_only,
            "read_only": read_only,
            "level": choice(LEVELS, level, "level"),
            "format": choice(FORMATS, format, "format"),
            "batch_ms": _milliseconds(batch_ms, "batch_ms"),
            "wait_ms": _milliseconds(wait_ms, "wait_ms"),
            "unsafe_filesystem": unsafe_filesystem,
        },
    )
    out, err = ffi.new("annal_store **"), new_error()
    check(lib.annal_store_open(os.fsencode(name), options, out, err), err)
    return Store(name, out[0], follow and not read_only, level, strict)


__all__ = ["Closed", "Event", "Format", "Hit", "Level", "Pack", "Store", "open"]
