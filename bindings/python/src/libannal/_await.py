# SPDX-License-Identifier: Apache-2.0
"""Calls that may wait for the disk, in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call it in one of the loop's threads.

    A cancelled caller receives the cancellation when the call has ended, so that the outcome is known: nothing is
    written after the `await`.
    """
    call = partial(contextvars.copy_context().run, function, *args, **kwargs)
    called = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(called)
    except asyncio.CancelledError:
        while not called.done():
            try:
                await asyncio.wait((called,))
            except asyncio.CancelledError:
                pass  # it was cancelled before
        if not called.cancelled():
            called.exception()  # no caller asks for it
        raise
