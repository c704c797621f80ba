# SPDX-License-Identifier: Apache-2.0
"""Steps: docs/steps.md, rule by rule."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from pathlib import Path

import pytest

import libannal as annal


def resumed(store: annal.Store) -> annal.Run:
    return annal.run("job", store=store, session="job", resume=True)


def test_a_step_runs_once_and_returns_the_recorded_value(path: Path) -> None:
    ran: list[str] = []

    def work() -> tuple[int, str]:
        ran.append("work")
        return (1, "é")

    for _ in range(3):
        with annal.open(path) as store, resumed(store) as run:
            assert run.step("work", work) == [1, "é"]  # type: ignore[comparison-overlap]
            assert run.step("none", lambda: None) is None
    assert ran == ["work"]
    with annal.open(path) as store:
        calls = store.sql("SELECT call_id, tool, status FROM tool_calls ORDER BY seq")
        assert list(calls) == [("step:work", "work", "returned"), ("step:none", "none", "returned")]


def test_an_exception_is_recorded_and_raised_again(path: Path) -> None:
    ran: list[int] = []

    def fail() -> None:
        ran.append(1)
        raise KeyError("gone")

    with annal.open(path) as store, resumed(store) as run:
        with pytest.raises(KeyError):
            run.step("fail", fail, retries=1)
    with annal.open(path) as store, resumed(store) as run:
        with pytest.raises(annal.StepFailed, match="gone") as caught:
            run.step("fail", fail)
        assert caught.value.kind == "KeyError" and len(ran) == 2
        retried = [event.data for event in run.session if event.type == "step.retried"]
        assert [(data["attempt"], data["error"]["type"]) for data in retried] == [(1, "KeyError")]


def test_a_step_that_ended_with_its_process_runs_again(path: Path) -> None:
    with annal.open(path) as store, resumed(store) as run:
        run._steps.begin("pay", object())
    with annal.open(path) as store:
        assert list(store.sql("SELECT substr(call_id, 6) FROM dangling WHERE call_id GLOB 'step:*'")) == [("pay",)]
        with resumed(store) as run:
            assert run.step("pay", lambda: 7) == 7
        assert len(store.sql("SELECT 1 FROM dangling")) == 0
        assert [event.data["reason"] for event in run.session if event.type == "step.retried"] == ["interrupted"]


def test_a_step_of_a_deleted_session_fails(store: annal.Store) -> None:
    with pytest.raises(annal.Conflict, match="was deleted"), resumed(store) as run:
        run.step("pay", lambda: store.delete("job"))
    assert not store.session("job").exists()


def test_two_processes_never_both_complete_a_step(path: Path) -> None:
    with annal.open(path) as store, annal.open(path) as other:
        with pytest.raises(annal.Conflict, match="resumed by another"), resumed(store) as frozen:

            def slow() -> str:
                with resumed(other) as run:
                    assert run.step("pay", lambda: "second") == "second"
                return "first"

            frozen.step("pay", slow)
        session = store.session("job")
        assert [event.data["output"] for event in session if event.type == "tool.returned"] == ["second"]
        assert [event.type for event in session].count("session.ended") == 1


class Example:
    """A session of steps.tsv, and the runs that claimed it."""

    def __init__(self, store: annal.Store, session: str) -> None:
        self.session = store.session(session)
        self.runs: list[annal.Run] = []
        self.started: dict[str, annal.Run] = {}
        self.seq = 0

    def open(self) -> None:
        run = annal.run("job", store=self.session.store, session=self.session.id, resume=True)
        contextvars.copy_context().run(run.__enter__)
        self.runs.append(run)

    def act(self, action: str, key: str, does: str) -> str:
        def work() -> object:
            verb, _, rest = does.partition(" ")
            if verb == "returns":
                return json.loads(rest)
            kind, _, message = rest.partition(" ")
            raise type(kind, (Exception,), {})(message)

        try:
            if action == "step":
                return json.dumps(self.runs[-1].step(key, work))
            if action == "start":
                self.runs[-1]._steps.begin(key, object())
                self.started[key] = self.runs[-1]
                return ""
            steps, began = self.started[key]._steps, time.monotonic()
            try:
                content = json.dumps(work()).encode()
            except Exception as error:
                steps.fail(key, error, began)
                raise
            return json.dumps(steps.complete(key, content, began))
        except (annal.Conflict, annal.Invalid) as error:
            return type(error).__name__.lower()
        except annal.StepFailed as error:
            return f"failed {error.kind} {error}"
        except Exception as error:
            return f"failed {type(error).__name__} {error}"

    def events(self) -> list[tuple[str, object]]:
        found = []
        for event in self.session.events(self.seq + 1):
            self.seq = event.seq
            if not event.type.startswith("session."):
                found.append((event.type, {k: v for k, v in event.data.items() if k != "duration_ms"}))
        return found


def test_the_shared_examples_hold(store: annal.Store) -> None:
    cases = 0
    for line in (Path(__file__).parent / "steps.tsv").read_text().splitlines():
        action, *fields = line.split("\t")
        if action == "case":
            cases += 1
            example = Example(store, f"case-{cases}")
        elif action == "open":
            example.open()
        elif not line.startswith("#"):
            key, does, answer, *events = fields
            found = example.act(action, key, does)
            if answer.startswith("{"):
                assert json.loads(found) == json.loads(answer), line
            else:
                assert found == answer, line
            wanted = [(type, json.loads(data)) for type, data in (event.split(" ", 1) for event in events)]
            assert example.events() == wanted, line
    assert cases > 5


def test_threads_share_the_steps_of_a_run(store: annal.Store) -> None:
    with resumed(store) as run:
        threads = [threading.Thread(target=run.step, args=(f"step {n}", lambda n=n: n)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [run.step(f"step {n}", lambda: -1) for n in range(8)] == list(range(8))
        with pytest.raises(annal.Conflict, match="runs already"):
            run.step("twice", lambda: run.step("twice", lambda: 1))


def test_a_timeout_ends_an_attempt(store: annal.Store) -> None:
    async def main() -> None:
        with resumed(store) as run:
            with pytest.raises(TimeoutError):
                run.step("slow", lambda: time.sleep(5), timeout=0.05)
            with pytest.raises(asyncio.TimeoutError):
                await run.astep("wait", lambda: asyncio.sleep(5), timeout=0.05)
            assert await run.astep("quick", lambda: asyncio.sleep(0, "x"), timeout=5) == "x"
            assert await run.astep("quick", lambda: asyncio.sleep(0, "y")) == "x"
            with pytest.raises(annal.StepFailed):
                await run.astep("wait", lambda: asyncio.sleep(0))

    asyncio.run(main())


def test_results_that_are_no_json_fail_and_long_ones_are_artifacts(
    store: annal.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("libannal._step._INLINE_BYTES", 1000)
    with resumed(store) as run:
        with pytest.raises(annal.Invalid, match="cannot be written as JSON"):
            run.step("object", object)
        assert run.step("long", lambda: ["x" * 2000]) == ["x" * 2000]
        assert run.step("long", lambda: ["y"]) == ["x" * 2000]
        ended = run.session[-1]
        assert "output" not in ended.data and ended.data["output_ref"]["media_type"] == "application/json"
        assert ended.output() == ["x" * 2000]
        for key in ("", 7):
            with pytest.raises(annal.Invalid):
                run.step(key, lambda: 1)  # type: ignore[arg-type]
        with pytest.raises(annal.Invalid, match="retries"):
            run.step("never", lambda: 1, retries=-1)
        with pytest.raises(annal.Invalid, match="retries"):
            asyncio.run(run.astep("never", lambda: asyncio.sleep(0), retries=-1))
        assert not run.session.recovery().calls


def test_a_cancelled_step_can_run_again(store: annal.Store) -> None:
    async def main() -> None:
        with resumed(store) as run:
            first = asyncio.create_task(run.astep("load", lambda: asyncio.sleep(0)))
            await asyncio.sleep(0)
            first.cancel()  # while its call is recorded
            with pytest.raises(asyncio.CancelledError):
                await first
            running = asyncio.Event()

            async def wait() -> str:
                running.set()
                await asyncio.sleep(60)
                return "late"

            second = asyncio.create_task(run.astep("load", wait))
            await running.wait()
            beside = asyncio.create_task(run.astep("load", wait))
            await asyncio.sleep(0)
            beside.cancel()  # it does not run, and does not end the one that runs
            with pytest.raises(asyncio.CancelledError):
                await beside
            with pytest.raises(annal.Conflict, match="runs already"):
                await run.astep("load", wait)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert await run.astep("load", lambda: asyncio.sleep(0, "done")) == "done"

    asyncio.run(asyncio.wait_for(main(), 20))
