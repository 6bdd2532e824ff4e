"""A scan that cannot read some sessions gives the rest and counts what it missed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes_tui.model import SessionId
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.stores import registry
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import SearchFilters, Transcript

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
