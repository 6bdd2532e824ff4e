"""What ``mirror drop`` and ``mirror rebuild`` take away besides the mirror."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Cli


@pytest.mark.parametrize("action", ["drop", "rebuild"])
def test_kept_answers_go_with_the_mirror(
    cli: Cli, sample: Callable[[str], Path], own_home: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() + 60_000_000_000)
    store = sample("hermes/home")
    listed = cli("list", "--json", store=store).json
    answers = own_home / "own" / "cache" / "answers"
    assert any(b"'listing'" in file.read_bytes() for file in answers.iterdir())
    assert cli("list", "--json", store=store).json == listed
    done = cli("mirror", action, "--json", store=store).json["done"]
    assert not any(b"'listing'" in file.read_bytes() for file in answers.iterdir())
    assert (str(answers) in done) == (action == "drop")
    assert cli("list", "--json", store=store).json == listed
