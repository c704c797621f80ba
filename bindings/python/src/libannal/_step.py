# SPDX-License-Identifier: Apache-2.0
"""Steps of a run, which run once: docs/steps.md has the rules."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ._core import natural
from ._errors import Conflict, Invalid
from ._event import Event
from ._json import dumps, loads

if TYPE_CHECKING:
    from ._run import Run

_INLINE_BYTES = 48 << 20  # of a result; a longer one becomes an artifact
_PAUSE, _PAUSE_MOST = 0.1, 10.0  # seconds


class StepFailed(RuntimeError):
    """A step failed, in this process or an earlier one; the message is the message of its exception.

    `kind` is the name of the exception's class.
    """

    kind: str = ""


class Steps:
    """The steps of a run: the events of its session, read once and then followed."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.RLock()
        self._seq = 0
        self._owner = ""
        self._called: dict[str, int] = {}  # by id of the call, the seq of its tool.called
        self._ended: dict[str, Event] = {}
        self._running: dict[str, object] = {}  # by id of the call, its attempt in this process

    def _read(self) -> None:
        session = self._run.session
        for event in session.events(self._seq + 1):
            data = event.data if isinstance(event.data, dict) else {}
            if event.type in ("session.created", "session.resumed"):
                self._owner = data.get("owner", "")
            elif event.type == "tool.called":
                self._called.setdefault(str(data.get("call_id")), event.seq)
            elif event.type in ("tool.returned", "tool.failed"):
                self._ended.setdefault(str(data.get("call_id")), event)
            self._seq = event.seq

    def _append(self, type: str, data: dict[str, Any], call_id: str) -> None:
        """Append an event of a step, unless the run has another owner, or the step has ended."""
        session = self._run.session
        while True:
            with self._lock:
                self._read()
                if self._owner != self._run.owner:
                    self._run.is_lost = True
                    raise Conflict(f"session '{session.id}' was resumed by another process: this run cannot continue")
                if call_id in self._ended:
                    return
                cause = self._called.get(call_id)
                try:
                    session.append(
                        type,
                        data,
                        cause=None if cause is None else f"{session.id}:{cause}",
                        expected_seq=self._seq,
                        level="sync",
                    )
                    return
                except Conflict:
                    if session.last_seq < self._seq:
                        self._run.is_lost = True
                        raise Conflict(f"session '{session.id}' was deleted: this run cannot continue") from None
                    continue  # another event was appended in the meantime

    def _answer(self, ended: Event) -> Any:
        if ended.type == "tool.returned":
            return ended.output()
        error = ended.data.get("error") or {}
        failed = StepFailed(str(error.get("message", ended.output())))
        failed.kind = str(error.get("type", ""))
        raise failed

    def begin(self, key: str, attempt: object) -> tuple[bool, Any]:
        """(True, the recorded result), or (False, None) after the call was recorded, until `end()` of this attempt."""
        if not isinstance(key, str) or not key:
            raise Invalid("the key of a step is a str that is not empty")
        call_id = f"step:{key}"
        with self._lock:
            self._read()
            if call_id in self._ended:
                return True, self._answer(self._ended[call_id])
            if call_id in self._running:
                raise Conflict(f"step '{key}' runs already in this process")
            self._running[call_id] = attempt
        if call_id in self._called:
            self._append("step.retried", {"call_id": call_id, "reason": "interrupted"}, call_id)
        else:
            self._append("tool.called", {"call_id": call_id, "tool": key}, call_id)
        return False, None

    def end(self, key: str, attempt: object) -> None:
        """The step does not run any more in this process, if it ran in this attempt."""
        with self._lock:
            if self._running.get(f"step:{key}") is attempt:
                del self._running[f"step:{key}"]

    def retry(self, key: str, attempt: int, error: BaseException) -> None:
        data = {"call_id": f"step:{key}", "reason": "error", "attempt": attempt, "error": _error(error)}
        self._append("step.retried", data, f"step:{key}")

    def fail(self, key: str, error: BaseException, began: float) -> None:
        output = f"{type(error).__name__}: {error}"
        data = {"call_id": f"step:{key}", "success": False, "output": output, "error": _error(error)}
        self._append("tool.failed", {**data, "duration_ms": _since(began)}, f"step:{key}")

    def complete(self, key: str, content: bytes, began: float) -> Any:
        call_id = f"step:{key}"
        data: dict[str, Any] = {"call_id": call_id, "success": True}
        if len(content) > _INLINE_BYTES:
            data["output_ref"] = self._run.session.put_artifact(content).ref("application/json")
        else:
            data["output"] = loads(content)
        self._append("tool.returned", {**data, "duration_ms": _since(began)}, call_id)
        with self._lock:
            self._read()
            return self._answer(self._ended[call_id])


def _error(error: BaseException) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _within(function: Callable[[], Any], timeout: float | None) -> Any:
    """Call a function; raise TimeoutError if it takes longer. It then continues in its thread, unheeded."""
    if timeout is None:
        return function()
    found: list[Any] = []

    def work() -> None:
        try:
            found.append((function(), None))
        except BaseException as error:
            found.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout)
    if not found:
        raise TimeoutError(f"the step took longer than {timeout} s")
    result, error = found[0]
    if error is not None:
        raise error
    return result


def run_step(steps: Steps, key: str, function: Callable[[], Any], retries: int, timeout: float | None) -> Any:
    natural(retries, "retries")
    this, began = object(), time.monotonic()
    try:
        is_done, result = steps.begin(key, this)
        if is_done:
            return result
        for attempt in range(1, retries + 2):
            try:
                content = dumps(_within(function, timeout))
                break
            except Exception as error:
                if attempt > retries:
                    steps.fail(key, error, began)
                    raise
                steps.retry(key, attempt, error)
                time.sleep(min(_PAUSE * 2 ** (attempt - 1), _PAUSE_MOST))
        return steps.complete(key, content, began)
    finally:
        steps.end(key, this)


async def run_step_async(
    steps: Steps, key: str, function: Callable[[], Awaitable[Any]], retries: int, timeout: float | None
) -> Any:
    import asyncio  # a program without a loop does not pay for it

    from ._await import in_thread

    natural(retries, "retries")
    this, began = object(), time.monotonic()
    try:
        is_done, result = await in_thread(steps.begin, key, this)
        if is_done:
            return result
        for attempt in range(1, retries + 2):
            try:
                content = dumps(await asyncio.wait_for(function(), timeout))
                break
            except Exception as error:
                if attempt > retries:
                    await in_thread(steps.fail, key, error, began)
                    raise
                await in_thread(steps.retry, key, attempt, error)
                await asyncio.sleep(min(_PAUSE * 2 ** (attempt - 1), _PAUSE_MOST))
        return await in_thread(steps.complete, key, content, began)
    finally:
        steps.end(key, this)
