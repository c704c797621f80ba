# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: its sources, its examples, its README."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import libannal as annal
from libannal._errors import CLASSES
from libannal._native import ffi, lib

HERE = Path(__file__).parent
BINDING = HERE.parent
ROOT = BINDING.parent.parent

sys.path.insert(0, str(BINDING / "native"))
build = importlib.import_module("build")


def headers() -> list[Path]:
    return build.headers([ROOT / folder / "include" for folder in ("journal", "index", "snapshot", "replay")])


def test_every_public_header_is_read() -> None:
    installed = {path for path in ROOT.glob("*/include/annal/**/*.h")}
    assert set(headers()) == installed


def test_every_function_and_constant_of_the_headers_is_in_the_module() -> None:
    text = "\n".join(build.COMMENT.sub(" ", path.read_text()) for path in headers())
    functions = set(re.findall(r"ANNAL_API[^;]*?\b(annal_[a-z0-9_]+)\s*\(", text))
    assert len(functions) > 100
    assert functions - set(dir(lib)) == set()
    constants = set(re.findall(r"^\s*(ANNAL_[A-Z0-9_]+)(?: = |,)", text, re.MULTILINE))
    assert constants - set(dir(lib)) == set()
    assert lib.ANNAL_DATA_BYTES_MAX == 64 << 20
    assert ffi.sizeof("annal_session_info") > 0


def test_every_status_has_an_exception() -> None:
    statuses = {
        value: name for name in dir(lib) if name.startswith("ANNAL_ERR_") and (value := getattr(lib, name)) < 0
    }
    assert CLASSES.keys() == statuses.keys()


def test_the_module_shows_its_entry_alone() -> None:
    import libannal._native as native

    shown = subprocess.run(
        ["nm", "--dynamic", "--defined-only", native.__file__], capture_output=True, text=True, check=True
    )
    assert [line.split()[2] for line in shown.stdout.splitlines()] == ["PyInit__native"]


def test_a_program_without_a_loop_does_not_load_asyncio() -> None:
    code = "import libannal, sys; sys.exit('asyncio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_equals_the_version_of_the_library() -> None:
    assert f'version = "{annal.__version__}"' in (BINDING / "pyproject.toml").read_text()


NEEDS = {
    "claude_agent": "claude_agent_sdk",
    "google_adk": "google.adk",
    "langgraph": "langgraph",
    "openai_agents": "agents",
    "openai_branches": "agents",
    "opentelemetry": "opentelemetry.sdk",
    "pydantic_ai": "pydantic_ai_harness",
}


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(annal.__path__)])
def test_examples_in_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "_native":
        return
    pytest.importorskip(NEEDS.get(name, "libannal"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert doctest.testmod(importlib.import_module(f"libannal.{name}")).failed == 0


PAGES = [BINDING / "README.md", BINDING / "docs" / "frameworks.md", BINDING / "docs" / "agents.md"]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def run_block(block: str, names: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    for name in re.findall(r"^(?:from|import) (google.adk|\w+)", block, re.MULTILINE):
        pytest.importorskip(name)
    exec(compile(block, "example", "exec"), names)
    out = capsys.readouterr().out
    for said in re.findall(r"# prints (.*)", block):
        assert said in out


@pytest.mark.parametrize(("page", "number"), [(page, n) for page in PAGES for n in range(len(blocks(page)))])
def test_examples_in_pages_run(
    page: Path, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_block(blocks(page)[number], {"__name__": "__main__"}, capsys)


@pytest.mark.parametrize("order", [1, -1])
def test_examples_of_the_readme_run_in_any_order_and_twice(
    order: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in 2 * blocks(PAGES[0])[::order]:
        run_block(block, {"__name__": "__main__"}, capsys)


def test_the_tour_for_analysts_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(BINDING / "docs" / "analysts.md"):
        run_block(block, names, capsys)


def test_sqlite_of_python_and_ours_do_not_take_each_others_locks(tmp_path: Path) -> None:
    """With POSIX locks in both this ends with SIGBUS: the second to open a database truncates its -shm."""
    for turn in range(8):
        with annal.open(tmp_path / str(turn)) as store:
            session = store.session("s1")
            for events in range(1, 20):
                session.append("message.added", {"role": "user"})
                assert len(store.sql("SELECT seq FROM events")) == events
                theirs = sqlite3.connect(f"file:{store.path}/sessions.db?mode=ro", uri=True)
                assert theirs.execute("SELECT events FROM sessions").fetchone() == (events,)
                theirs.close()
            theirs = sqlite3.connect(f"{store.path}/sessions.db")
            assert theirs.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            theirs.close()


def test_names_are_the_same_in_every_language() -> None:
    for line in (BINDING / "tests" / "names.tsv").read_text().splitlines():
        wanted, *parts = line.split("\t")
        assert annal.name(*parts) == wanted
        assert len(wanted) <= 137
