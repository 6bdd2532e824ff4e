"""Kept answers: what `mirror drop` and `mirror rebuild` take away, and what `mirror status` says of them."""

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


def test_a_kept_answer_that_is_damaged_is_told(
    cli: Cli, sample: Callable[[str], Path], own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() + 60_000_000_000)
    store = sample("hermes/home")
    assert not cli("mirror", "--json", store=store).json["mirror"]["fallbacks"].get("answer-damaged")
    for file in (own_home / "own" / "cache" / "answers").iterdir():
        file.write_bytes(b"no answer")
    assert cli("mirror", "--json", store=store).json["mirror"]["fallbacks"]["answer-damaged"]
