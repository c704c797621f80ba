# SPDX-License-Identifier: Apache-2.0
"""Recording without a framework: a context manager for a run, a decorator for functions that it calls, and steps that
run once.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast, overload

from ._errors import Conflict, Invalid
from ._json import dumps
from ._recovery import OpenCall, Recovery
from ._session import Session
from ._step import Steps, run_step, run_step_async
from ._store import Store
from ._store import open as open_store

P = ParamSpec("P")
R = TypeVar("R")

_current: contextvars.ContextVar[Run | None] = contextvars.ContextVar("libannal.run", default=None)


def _shown(value: Any) -> Any:
    """A value as JSON; values that JSON cannot express become their repr()."""
    try:
        dumps(value)
    except Invalid:
        return repr(value)
    return value


def _error(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}


class Call:
    """A call of a tool, in a run. Set `output`; an exception that leaves the block is a failure of the tool."""

    def __init__(self, run: Run, tool: str, input: Any, call_id: str | None = None, seq: int = 0) -> None:
        self.output: Any = None
        """The result of the tool."""
        self.id = call_id or f"call_{uuid.uuid4().hex}"
        self._run = run
        self._called = {"call_id": self.id, "tool": tool, "input": _shown(input)}
        self._cause = seq  # of its tool.called, if an earlier process appended it

    def __enter__(self) -> Call:
        self._began = time.monotonic()
        if not self._cause:
            self._cause = self._run._append("tool.called", self._called)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        data: dict[str, Any] = {
            "call_id": self.id,
            "success": error is None,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
        }
        if error is not None:
            data["output"] = f"{type(error).__name__}: {error}"
        elif self.output is not None:
            data["output"] = _shown(self.output)
        self._run._append(
            "tool.returned" if error is None else "tool.failed", data, cause=f"{self._run.session.id}:{self._cause}"
        )


class Run:
    """One run of an agent: a session that begins with session.created and ends with session.ended.

    Create one with `run()`. Events are durable when a method returns.
    """

    session: Session

    recovery: Recovery | None
    """What was in progress when an earlier process left this run; None if the run is new."""

    def __init__(
        self, name: str, store: Store | str | os.PathLike[str] | None, session: str | None, resume: bool = False
    ) -> None:
        if resume and session is None:
            raise Invalid("annal.run(resume=True) needs the id of the session that it resumes")
        self.name = name
        self.owner = uuid.uuid4().hex
        """The name of this process for the run, in session.created or session.resumed."""
        self.is_lost = False
        """Whether another process has resumed the run, or deleted its session, as far as a step of this process knows."""
        self._steps = Steps(self)
        self._resume = resume
        self._wanted = store
        self._session_id = session or f"run_{uuid.uuid4().hex}"
        self._own: Store | None = None

    def __getattr__(self, name: str) -> Any:
        """Of a run that has not begun, `session` and `recovery` are missing."""
        if name in ("session", "recovery"):
            raise Invalid(f"a run begins with its block: with annal.run({self.name!r}, …) as run: …")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __enter__(self) -> Run:
        parent = _current.get()
        store = self._wanted
        if store is None:
            if parent is None:
                raise Invalid("annal.run() needs a store: an open one, or its directory")
            store = parent.session.store
        elif not isinstance(store, Store):
            store = self._own = open_store(store)
        self.session = store.session(self._session_id)
        self._began = time.monotonic()
        created = {"agent_id": self.name, "title": self.name, "status": "running"}
        if parent is not None:
            created["parent_session_id"] = parent.session.id
        try:
            self._begin(created)
        except BaseException:
            self._close()
            raise
        self._token = _current.set(self)
        return self

    def _begin(self, created: dict[str, Any]) -> None:
        """Append session.created; of a session that exists, session.resumed."""
        self.recovery = None
        while True:
            try:
                if self.recovery is None:
                    self.session.append("session.created", {**created, "owner": self.owner}, expected_seq=0)
                else:
                    resumed = {"status": "running", "owner": self.owner}
                    self.session.append("session.resumed", resumed, expected_seq=self.recovery.seq)
                return
            except Conflict:
                if not self._resume:
                    raise Conflict(
                        f"session '{self.session.id}' exists: pass resume=True to continue it, or another id"
                    ) from None
                self.recovery = self.session.recovery()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        data: dict[str, Any] = {"duration_ms": round((time.monotonic() - self._began) * 1000)}
        if error is not None:
            data |= {"reason": "error", "error": _error(error), "status": "failed"}
        try:
            if not self.is_lost:
                self._append("session.ended", data)
        finally:
            self._close()

    def _close(self) -> None:
        if self._own is not None:
            self._own.close()

    def _append(self, type: str, data: dict[str, Any], cause: str | None = None) -> int:
        return self.session.append(type, data, cause=cause)

    def message(self, role: str, content: Any, **fields: Any) -> int:
        """Record a message of "user", "assistant" or "system"; returns the seq of message.added."""
        return self._append(
            "message.added", {"id": uuid.uuid4().hex, "role": role, "content": _shown(content), **fields}
        )

    def tool(self, tool: str, input: Any = None, *, call_id: str | None = None) -> Call:
        """Record a call of a tool: `with run.tool("bash", {"command": "make"}) as call: call.output = …`.

        `call_id` is the model's id of the call (default: a new one).
        """
        return Call(self, tool, input, call_id)

    def reopen(self, call: OpenCall) -> Call:
        """Continue a call of `recovery.calls`: `with run.reopen(open_call) as call: call.output = …` appends its result."""
        return Call(self, call.tool, call.input, call.call_id, call.seq)

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0, **fields: Any) -> int:
        """Record used tokens, as an increment; also model, cached_input_tokens, cost_usd, …"""
        return self._append(
            "agent.turn.usage",
            {
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "total_tokens": input_tokens + output_tokens,
                **fields,
            },
        )

    def step(
        self, key: str, function: Callable[[], R], *, retries: int = 0, timeout: float | None = None
    ) -> R:
        """The recorded result of the step `key`; if there is none, call the function and record its result, durably.

        The result is JSON, and the answer is the recorded value: a tuple becomes a list. An exception is recorded and
        raised when no `retries` are left; the next time it raises `StepFailed`. A `timeout` in seconds ends an attempt.
        Raises `Conflict` if another process has resumed the run: then nothing was recorded. docs/steps.md has the rules.

        >>> import libannal as annal, tempfile
        >>> with annal.open(tempfile.mkdtemp()) as store, annal.run("sums", store=store) as run:
        ...     [run.step("sum", lambda: 1 + 2), run.step("sum", lambda: 0)]
        [3, 3]
        """
        return cast(R, run_step(self._steps, key, function, retries, timeout))

    async def astep(
        self, key: str, function: Callable[[], Awaitable[R]], *, retries: int = 0, timeout: float | None = None
    ) -> R:
        """As `step()`, for a coroutine function; the event loop never waits for the disk."""
        return cast(R, await run_step_async(self._steps, key, function, retries, timeout))

    def append(self, type: str, data: Any = None) -> int:
        """Append any other event."""
        return self.session.append(type, data)


def run(
    name: str,
    *,
    store: Store | str | os.PathLike[str] | None = None,
    session: str | None = None,
    resume: bool = False,
) -> Run:
    """Record one run of an agent: `with annal.run("triage", store="store") as run: …`.

    Within another run `store` may be omitted, and the new run is its sub-agent. `session` is the id of the
    session (default: a new one). An exception that leaves the block ends it as failed.

    If the session exists, it raises `Conflict`; with `resume=True` the run continues it: `run.recovery` has the calls
    and turns that were open when the earlier process ended.

    >>> import libannal as annal, tempfile
    >>> with annal.open(tempfile.mkdtemp()) as store:
    ...     with annal.run("triage", store=store) as run:
    ...         _ = run.message("user", "Is the build green?")
    ...         with run.tool("bash", {"command": "make"}) as call:
    ...             call.output = "ok"
    ...         _ = run.usage(input_tokens=120, output_tokens=7)
    ...     [event.type for event in run.session][1:4]
    ['message.added', 'tool.called', 'tool.returned']
    """
    return Run(name, store, session, resume)


def current_run() -> Run | None:
    """The run that this code is in, also across await; None outside of a run."""
    return _current.get()


@overload
def record(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def record(
    *, name: str | None = None, store: Store | str | os.PathLike[str] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def record(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    store: Store | str | os.PathLike[str] | None = None,
) -> Any:
    """Record each call of a function, also of an async one: arguments, result or exception, duration.

    With a `store` a call is a run of its own (within another run: a sub-agent); without it, it is a tool call of
    the current run, and outside of any run it is not recorded.

    >>> import libannal as annal, tempfile
    >>> @annal.record
    ... def add(a, b):
    ...     return a + b
    >>> with annal.open(tempfile.mkdtemp()) as store, annal.run("sums", store=store) as run:
    ...     total = add(1, b=2)
    ...     run.session[-1].data["output"]
    3
    """

    def wrap(wrapped: Callable[..., Any]) -> Callable[..., Any]:
        title = name or wrapped.__name__
        signature = inspect.signature(wrapped)

        def begin(arguments: tuple[Any, ...], options: dict[str, Any]) -> Run | Call | None:
            if store is not None:
                return Run(title, store, None)
            within = _current.get()
            if within is None:
                return None
            bound = signature.bind(*arguments, **options)
            return within.tool(title, {key: _shown(value) for key, value in bound.arguments.items()})

        if inspect.iscoroutinefunction(wrapped):

            @functools.wraps(wrapped)
            async def record_async(*arguments: Any, **options: Any) -> Any:
                place = begin(arguments, options)
                if place is None:
                    return await cast(Awaitable[Any], wrapped(*arguments, **options))
                with place:
                    result = await cast(Awaitable[Any], wrapped(*arguments, **options))
                    _keep(place, result)
                    return result

            return record_async

        @functools.wraps(wrapped)
        def record_call(*arguments: Any, **options: Any) -> Any:
            place = begin(arguments, options)
            if place is None:
                return wrapped(*arguments, **options)
            with place:
                result = wrapped(*arguments, **options)
                _keep(place, result)
                return result

        return record_call

    return wrap if function is None else wrap(function)


def _keep(place: Run | Call, result: Any) -> None:
    if isinstance(place, Call):
        place.output = result
    elif result is not None:
        place.message("assistant", result if isinstance(result, (str, list)) else repr(result))
