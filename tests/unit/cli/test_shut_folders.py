"""Folders we may not look into: a store's own, and ours. Each is told, and nothing else is lost by it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Cli, Contract

Shut = Callable[[Path], None]


@pytest.fixture
def shut() -> Iterator[Shut]:
    """Takes the rights to a folder away until the test ends; root reads on whatever they are."""
    closed: list[Path] = []

    def close(folder: Path) -> None:
        closed.append(folder)
        folder.chmod(0)
        if os.access(folder, os.R_OK | os.X_OK):
            pytest.skip("this user may read everything")

    yield close
    for folder in closed:
        folder.chmod(0o700)


HOMES = (
    ("hermes", "HERMES_HOME", "hermes/home"),
    ("codex", "CODEX_HOME", "codex"),
    ("claude", "CLAUDE_CONFIG_DIR", "claude/dot-claude"),
    ("dsh", "DSH_HOME", "dsh/dot-dsh"),
)


@pytest.mark.parametrize(("agent", "variable", "name"), HOMES)
def test_a_home_that_is_shut_is_told_and_the_others_are_listed(
    cli: Cli,
    contract: Contract,
    sample: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    shut: Shut,
    agent: str,
    variable: str,
    name: str,
) -> None:
    for _, other, folder in HOMES:
        monkeypatch.setenv(other, str(sample(folder)))
    home = Path(os.environ[variable])
    shut(home)
    listed = cli("list", "--json")
    assert listed.code == 3
    stores = contract("list", listed.json)["stores"]
    assert {one["agent"] for one in stores if one["state"] != "unreadable"} == {one for one, *_ in HOMES} - {agent}
    assert str(home) in listed.err
    alone = cli("list", "--json", "--agent", agent)
    given = cli("list", "--json", store=home)
    for answer in (alone, given):
        assert answer.code == 3
        assert "Permission denied" in answer.out + answer.err
    other = next(one for one, *_ in HOMES if one != agent)
    assert cli("list", "--json", "--agent", other).code == 0


def test_a_session_root_that_is_shut_is_told(
    cli: Cli, sample: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, shut: Shut
) -> None:
    home = sample("dsh/dot-dsh-v0")
    monkeypatch.setenv("DSH_HOME", str(home))
    shut(home / "sessions")
    for where in ((), ("--store", str(home))):
        answer = cli(*where, "list", "--json")
        assert answer.code == 3
        assert str(home / "sessions") in answer.json["error"]["message"]


def test_our_own_folder_that_is_shut_takes_no_list_away(
    cli: Cli, contract: Contract, sample: Callable[[str], Path], own_home: Path, shut: Shut
) -> None:
    home = sample("dsh/dot-dsh")
    before = cli("list", "--json", store=home).json["sessions"]
    (own_home / "own" / "cache").mkdir(parents=True, exist_ok=True)
    shut(own_home / "own")
    assert cli("list", "--json", store=home).json["sessions"] == before
    assert cli("search", "the", "--json", store=home).code == 0
    doctor = cli("doctor", "--json", store=home)
    assert doctor.code == 0
    assert [one["state"] for one in contract("doctor", doctor.json)["stores"]] == ["ok"]
    update = cli("mirror", "update", "--json", store=home)
    assert (update.code, contract("error", update.json)["error"]["code"]) == (1, "refused")
    assert str(own_home / "own") in update.json["error"]["message"]
