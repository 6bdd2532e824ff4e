"""A copy of the sample home for each test, and what the real program said of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.stores.codex.package import PACKAGE
from hermes_tui.stores.codex.store import CodexStore

SAMPLE = Path(__file__).parents[2] / "data" / "samples" / "codex"


def open_home(home: Path, environ: dict[str, str] | None = None) -> CodexStore:
    """The store at a home."""
    store = PACKAGE.open(home, environ or {})[0]
    assert isinstance(store, CodexStore)
    return store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the sample home."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "dot-codex"))


@pytest.fixture
def store(home: Path) -> CodexStore:
    return open_home(home)


@pytest.fixture(scope="session")
def expected() -> dict[str, Any]:
    """The real program's answers."""
    found: dict[str, Any] = json.loads((SAMPLE / "expected.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def labels(expected: dict[str, Any]) -> dict[str, str]:
    """Thread ids by the names of the sample's README."""
    return {name: value if isinstance(value, str) else value[0] for name, value in expected["labels"].items()}
