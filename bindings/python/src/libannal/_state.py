# SPDX-License-Identifier: Apache-2.0
"""The state of a session at any moment of its past."""

from __future__ import annotations

import os
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._core import Collector, Resource, Slice, check, natural, ffi, lib, microseconds, new_error
from ._errors import NotFound
from ._json import loads, loads_object
from ._sql import Rows, run_sql

if TYPE_CHECKING:
    from ._store import Store


class State(Resource):
    """The tables of a session after an event, as a database in memory."""

    def __init__(self, store: Store, pointer: Any, pack: Any = None) -> None:
        super().__init__(store._own(pointer, lib.annal_state_free), threading.RLock())
        self._pack = pack  # must outlive the state
        self._store = store
        self.seq = int(lib.annal_state_seq(pointer))
        """The last event that it contains, or 0."""

    def sql(self, sql: str, *params: object) -> Rows:
        """Run a SELECT over its tables; params are ?1, ?2, … Raises `SQLError`."""
        with self._lock, self._store._gate:
            state = self._handle.pointer
            return run_sql(lambda *rest: lib.annal_state_sql(state, *rest), sql, params)

    def json(self) -> dict[str, Any]:
        """All its tables: {"sessions": [{…}], "turns": [{…}, …], …}."""
        return loads_object(self._bytes(lib.annal_state_json, self._handle))

    def hash(self) -> str:
        """64 hex digits; two states are equal if their hashes are."""
        out, err = ffi.new("uint8_t[32]"), new_error()
        with self._lock, self._store._gate:
            check(lib.annal_state_hash(self._handle.pointer, out, err), err)
        return bytes(out).hex()

    def diff(self, after: State) -> list[dict[str, Any]]:
        """A JSON patch (RFC 6902) that turns the `json()` of this state into the `json()` of `after`."""
        with after._lock:
            patch: list[dict[str, Any]] = loads(
                self._bytes(lib.annal_state_patch, self._handle, after._handle)
            )
        return patch

    def _bytes(self, call: Any, *handles: Any) -> bytes:
        pieces: Collector[bytes] = Collector(lambda piece, count: bytes(ffi.buffer(piece, count)))
        err = new_error()
        with self._lock, self._store._gate:
            pointers = [handle.pointer for handle in handles]
            status = call(*pointers, lib.libannal_on_bytes, pieces.handle, err)
        return b"".join(pieces.done(status, err))


def _read_pack(store: Store, pack: str | os.PathLike[str]) -> Any:
    """A pack's file: STORE/packs/NAME.sql for a name."""
    path = os.fspath(pack)
    if not path.endswith(".sql"):
        path = os.path.join(store.path, "packs", f"{path}.sql")
    try:
        with open(path, "rb") as file:
            content = Slice(file.read())
    except FileNotFoundError:
        raise NotFound(f"pack '{pack}' has no file {path}") from None
    out, err = ffi.new("annal_pack **"), new_error()
    check(lib.annal_pack_parse(os.fsencode(path), content.value, out, err), err)
    return ffi.gc(out[0], lib.annal_pack_free)


def open_state(
    store: Store, session: Any, at: int | datetime | str | None, pack: str | os.PathLike[str] | None
) -> State:
    when = ffi.new("annal_moment *", {"kind": lib.ANNAL_AT_END})
    if isinstance(at, int):
        when.kind, when.seq = lib.ANNAL_AT_SEQ, natural(at, "at")
    elif at is not None:
        when.kind, when.time_us = lib.ANNAL_AT_TIME, microseconds(at)
    out, err = ffi.new("annal_state **"), new_error()
    kept = None if pack is None else _read_pack(store, pack)
    options = ffi.new("annal_replay_options *")
    if kept is not None:
        packs = ffi.new("annal_pack *[1]", [kept])
        options.packs, options.pack_count = packs, 1
    with store._gate:
        check(lib.annal_replay_open(store._indexed(), session, when[0], options, out, ffi.NULL, err), err)
        return State(store, out[0], kept)
