# SPDX-License-Identifier: Apache-2.0
"""One exception class for each status of the library. The message is the library's sentence."""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """The failure of a call of the library; the base of all exceptions of this package.

    `status` is the number of <annal/base.h>, `os_errno` the errno at the point of failure or 0.
    """

    status: ClassVar[int] = 0

    def __init__(self, message: str, os_errno: int = 0) -> None:
        super().__init__(message)
        self.os_errno = os_errno

    def __reduce__(self) -> tuple[type[Error], tuple[str, int]]:
        return (type(self), (str(self), self.os_errno))


class NoMemory(Error, MemoryError):
    """An allocation failed."""

    status = -1


class IOFailed(Error):
    """The operating system refused, or the disk failed; `os_errno` says why. The base of `DiskFull`, `DiskFailed` and `ReadOnly`."""

    status = -2


class Corrupt(Error):
    """Bytes on disk are damaged."""

    status = -3


class NotFound(Error, LookupError):
    """No such store, session, event or snapshot."""

    status = -4


class Invalid(Error, ValueError):
    """The caller passed something that is not accepted."""

    status = -5


class Busy(Error, TimeoutError):
    """Another process or thread uses it, and the time to wait is over."""

    status = -6

    __init__ = Error.__init__


class LimitExceeded(Error, ValueError):
    """Larger than a documented limit."""

    status = -7


class Closed(Error):
    """The store, session or tail is closed, failed earlier, or belongs to the parent process."""

    status = -8


class Conflict(Error):
    """expected_seq or id does not match the events of the session."""

    status = -9


class Unknown(Error):
    """Storage failed during an append: reopen the store to learn whether the events were written."""

    status = -10


class Unsupported(Error):
    """A network filesystem, or a store of a newer version."""

    status = -11


class SQLError(Error):
    """A query or a pack is wrong; the message is SQLite's."""

    status = -12


class Refused(Error):
    """A guard of a pack refused; the message is the pack's sentence."""

    status = -13


class DiskFull(IOFailed):
    """The disk, or the quota of the user, has no room; nothing was written. Make room, and try again."""

    status = -14


class ReadOnly(IOFailed):
    """The store was opened with `read_only`, or its filesystem is read-only."""

    status = -15


class DiskFailed(IOFailed):
    """The disk failed: the system reports EIO, or that the device is gone."""

    status = -16


CLASSES: dict[int, type[Error]] = {
    kind.status: kind
    for kind in (
        NoMemory,
        IOFailed,
        Corrupt,
        NotFound,
        Invalid,
        Busy,
        LimitExceeded,
        Closed,
        Conflict,
        Unknown,
        Unsupported,
        SQLError,
        Refused,
        DiskFull,
        ReadOnly,
        DiskFailed,
    )
}
