# SPDX-License-Identifier: Apache-2.0
"""Between Python and the library: statuses become exceptions, slices become str, handles know their users.

Every call of the library releases the GIL (cffi does), so that any of them may wait.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import Any, Generic, TypeVar

from ._errors import CLASSES, Closed, Error, Invalid, Unsupported
from ._native import ffi as ffi
from ._native import lib as lib

T = TypeVar("T")

if lib.libannal_own_locks() != 0:
    raise ImportError("SQLite of libannal does not take locks of its own")

OK: int = lib.ANNAL_OK
END: int = lib.ANNAL_END
DAMAGE: int = lib.ANNAL_DAMAGE
STOP = 1  # the result with which a callback ends the call

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)

Time = datetime | int | str
"""A moment: a datetime with a zone, microseconds since 1970 in UTC, or ISO 8601."""


def new_error() -> Any:
    return ffi.new("annal_error *")


def check(status: int, err: Any) -> int:
    """The status, if it is success or news; else raise its exception."""
    if status >= 0:
        return status
    raise failure(status, err)


def failure(status: int, err: Any) -> Error:
    message = ffi.string(err.message).decode("utf-8", "replace")
    if not message:
        message = ffi.string(lib.annal_status_name(status)).decode()
    return CLASSES.get(status, Error)(message, int(err.os_errno))


def text(slice_: Any) -> str:
    """The text of a slice; it is valid UTF-8, unless the line is damaged."""
    return str(ffi.unpack(slice_.ptr, slice_.len), "utf-8", "replace") if slice_.len else ""


def data(slice_: Any) -> bytes:
    return bytes(ffi.buffer(slice_.ptr, slice_.len)) if slice_.len else b""


class Slice:
    """A str as annal_slice. The bytes live as long as this object."""

    __slots__ = ("_bytes", "value")

    def __init__(self, content: str | bytes) -> None:
        encoded = content if isinstance(content, bytes) else encode(content)
        self._bytes = ffi.from_buffer("char[]", encoded)
        self.value = (self._bytes, len(encoded))


class Slices:
    """Several str as an array of annal_slice; without any, `array` is NULL."""

    __slots__ = ("_kept", "array", "count")

    def __init__(self, contents: str | Sequence[str] | None) -> None:
        if contents is None:
            contents = ()
        elif isinstance(contents, str):
            contents = (contents,)
        elif not isinstance(contents, Sequence):
            raise Invalid(f"a str or a sequence of str is needed, not {type(contents).__name__}")
        self._kept = [Slice(content) for content in contents]
        self.count = len(self._kept)
        self.array = ffi.new("annal_slice[]", [kept.value for kept in self._kept]) if self._kept else ffi.NULL


def encode(content: str) -> bytes:
    if not isinstance(content, str):
        raise Invalid(f"a str is needed, not {type(content).__name__}: {content!r:.80}")
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"text that is not valid Unicode: {error}") from None


def natural(number: int, what: str) -> int:
    """A number that is not negative, and has at most 64 bits."""
    if not isinstance(number, int) or not 0 <= number < 2**63:
        raise Invalid(f"{what} is an integer that is not negative, not {number!r:.80}")
    return number


def refuse_copy(self: object) -> Any:
    """In place of __reduce__: an object that owns memory of the library is neither copied nor pickled."""
    raise TypeError(f"{self!r} cannot be copied or pickled: share the object, or open another one")


def microseconds(moment: Time) -> int:
    """A moment as microseconds since 1970-01-01 in UTC."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise Invalid("a datetime without a zone: give it one, for instance timezone.utc")
        return (moment - EPOCH) // _MICROSECOND
    if not isinstance(moment, (int, str)):
        raise Invalid(f"a time is a datetime, microseconds or ISO 8601, not {type(moment).__name__}")
    if isinstance(moment, str):
        out = ffi.new("int64_t *")
        err = new_error()
        check(lib.annal_time_parse(Slice(moment).value, out, err), err)
        return int(out[0])
    if not -(2**63) < moment < 2**63:
        raise Invalid(f"microseconds have at most 64 bits: {moment}")
    return moment


def bound(moment: Time | None) -> int:
    """A bound of a range for the library, where 0 means no bound: the first instant of 1970 becomes the instant before
    it.
    """
    return 0 if moment is None else microseconds(moment) or -1


def moment(time_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=time_us)


_at_exit_began = False


def _stay_if_at_exit() -> None:
    """Let a daemon thread end here, quietly, if it returns from a wait after the interpreter has ended."""
    if _at_exit_began and threading.current_thread() is not threading.main_thread():
        threading.Event().wait()


class Gate:
    """The callers that are inside a store. close() of the library must follow after all others have left."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.foreign = False
        self._closed = False
        self._inside = 0
        self._new_lock()

    def _new_lock(self) -> None:
        self._lock = threading.RLock()
        self._left = threading.Condition(self._lock)

    def __enter__(self) -> Gate:
        with self._lock:
            if not self._closed and not self.foreign:
                self._inside += 1
                return self
        if self.foreign:
            raise Closed(f"{self.what} was opened by the parent of this process")
        _stay_if_at_exit()
        raise Closed(f"{self.what} is closed")

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._closed and not self._inside:
                self._left.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def shut(self, timeout: float | None = None) -> bool:
        """Let no caller in any more, and wait until all have left; False if they did not in that time."""
        with self._left:
            self._closed = True
            return self._left.wait_for(lambda: not self._inside, timeout)

    def after_fork(self) -> None:
        self.foreign = True
        self._new_lock()


class Handle:
    """A pointer of the library that is freed once, by its owner or by the store."""

    __slots__ = ("__weakref__", "_cell", "_free", "_gate", "_siblings")

    def __init__(self, pointer: Any, free: Callable[[Any], Any], gate: Gate, siblings: set[Handle]) -> None:
        self._cell = [pointer]
        self._free = free
        self._gate = gate
        self._siblings = siblings
        siblings.add(self)

    @property
    def pointer(self) -> Any:
        """The pointer; the caller must be in the gate, so that it stays valid."""
        try:
            return self._cell[0]
        except IndexError:
            raise Closed("this object was closed before") from None

    def close(self) -> None:
        """Free it, unless the store was closed, which has freed it, or it belongs to the parent."""
        try:
            with self._gate:
                self.free()
        except Closed:
            pass

    def free(self) -> None:
        try:
            pointer = self._cell.pop()
        except IndexError:
            return
        self._siblings.discard(self)
        self._free(pointer)


R = TypeVar("R", bound="Resource")


class Resource:
    """An object of a store: freed by `close()`, at the end of a `with`, when it is no longer referenced, or with the
    store.
    """

    _handle: Handle
    _lock: threading.Lock | threading.RLock  # held while the handle is used

    def __init__(self, handle: Handle, lock: Any) -> None:
        self._handle = handle
        self._lock = lock

    __reduce__ = refuse_copy

    def close(self) -> None:
        """Free it. A second time does nothing."""
        with self._lock:
            self._handle.close()

    def __enter__(self: R) -> R:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.close()


class Collector(Generic[T]):
    """A collector for a callback. An exception ends the call, and is raised after it."""

    def __init__(self, read: Callable[..., T], limit: int | None = None) -> None:
        self.items: list[T] = []
        self.error: BaseException | None = None
        self._read = read
        self.handle = ffi.new_handle(self)

    def take(self, *arguments: Any) -> int:
        try:
            self.items.append(self._read(*arguments))
        except BaseException as error:
            self.error = error
            return STOP
        return 0

    def done(self, status: int, err: Any) -> list[T]:
        if self.error is not None:
            raise self.error
        check(status, err)
        return self.items


def _take(arg: Any, *arguments: Any) -> Any:
    return ffi.from_handle(arg).take(*arguments)


def _take_void(arg: Any, *arguments: Any) -> None:
    ffi.from_handle(arg).take(*arguments)


for _name in ("session", "hit", "found", "group", "bytes", "pack", "artifact", "lineage"):
    ffi.def_extern(name=f"libannal_on_{_name}", error=STOP)(_take)
for _name in ("delete", "finding"):
    ffi.def_extern(name=f"libannal_on_{_name}")(_take_void)


# Open stores: at the end of the process they are closed; a child process does not own those that it inherits.
open_stores: weakref.WeakSet[Any] = weakref.WeakSet()


_inherited = False


def _after_fork() -> None:
    global _inherited
    for store in list(open_stores):
        _inherited = _inherited or not store._gate.closed
        store._gate.after_fork()


def check_process() -> None:
    """Refuse work in a child that inherited an open store.

    A thread of the parent may have held SQLite's own locks, in memory and on files, at that moment. Here no thread
    would release them, and a lock that is released here is released in the parent, too.
    """
    if _inherited:
        raise Unsupported(
            "a store was open when this process was forked, so that none can be opened here: "
            "open stores after fork(), or start processes by 'spawn' or 'forkserver'"
        )


def _at_exit() -> None:
    global _at_exit_began
    _at_exit_began = True
    for store in list(open_stores):
        store._close_at_exit()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
