"""A scan that cannot read some sessions gives the rest and counts what it missed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes_tui.model import SessionId
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.stores import registry, scan
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import SearchFilters, Transcript
from tests.unit.codex.rollouts import meta, turn, write

SAMPLE = Path(__file__).parents[2] / "data" / "samples" / "dsh" / "dot-dsh"


def test_sessions_that_cannot_be_read_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SAMPLE, tmp_path / "home")
    (store,) = registry.open_places([registry.Place("dsh", tmp_path / "home")], {})
    assert isinstance(store, LogStore)
    whole = {
        one.message.head.session_id for one in store.propose(parse_query("the"), SearchFilters(), "newest").messages
    }
    assert len(whole) >= 3
    broken = sorted(whole)[:2]
    read = store.transcript

    def failing(ids: Sequence[SessionId]) -> Transcript:
        if ids[0] in broken:
            raise OSError(5, "the disk does not answer")
        return read(ids)

    monkeypatch.setattr(store, "transcript", failing)
    proposal = store.propose(parse_query("the"), SearchFilters(), "newest")
    rest = {one.message.head.session_id for one in proposal.messages}
    assert rest == whole - set(broken)
    assert proposal.incomplete is not None
    assert "the disk does not answer" in proposal.incomplete
    assert proposal.incomplete.endswith("(and 1 more)")


def test_a_text_too_long_to_be_searched_whole_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MOST_SEARCHED", 100_000)
    monkeypatch.setattr(scan, "PIECE", 50_000)
    long = "needle " + "hay " * 800_000 + " thorn"
    write(tmp_path, [meta(), *turn(1, long, "said", 0)])
    (store,) = registry.open_places([registry.Place("codex", tmp_path)], {})
    assert isinstance(store, LogStore)
    told = {}
    for word in ("needle", "said"):
        proposal = store.propose(parse_query(word), SearchFilters(), "newest")
        told[word] = (len(list(proposal.messages)), proposal.incomplete)
    assert told["needle"][0] == 1
    assert "only the first 100,000 characters were searched" in (told["needle"][1] or "")


def test_folders_that_cannot_be_looked_into_are_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "home")
    closed = next(path for path in (tmp_path / "home/sessions").iterdir() if "weather" in path.name)
    look = os.scandir

    def refused(path: str) -> object:
        if str(path) == str(closed):
            raise PermissionError(13, "Permission denied")
        return look(path)

    monkeypatch.setattr(os, "scandir", refused)
    (store,) = registry.open_places([registry.Place("dsh", tmp_path / "home")], {})
    (told,) = store.status().findings
    assert (told.code, told.paths) == ("unreadable-folder", (str(closed),))
    assert told.detail == f"cannot be looked into: {closed} (Permission denied)"
    assert told.advice == "Check that you may read them; sessions in them are not listed."
