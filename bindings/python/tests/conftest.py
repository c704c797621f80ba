# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import libannal as annal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[annal.Store]:
    with annal.open(path) as store:
        yield store


@pytest.fixture
def session(store: annal.Store) -> annal.Session:
    return store.session("s1")
