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
from tests.unit.codex.rollouts import THREAD, meta, stamp, turn, write
from tests.unit.dsh.conftest import Log

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


def locked(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Nobody may read these files, root neither."""
    real = os.open

    def opened(path: str | os.PathLike[str], *more: int, **words: int) -> int:
        if str(path) in map(str, paths):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *more, **words)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("agent", ["codex", "dsh"])
def test_what_a_log_holds_that_cannot_be_opened_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    if agent == "codex":
        path = write(tmp_path, [meta(), *turn(1, "ask", "say", 0)])
    else:
        path = Log().talk("ask", "say").write(tmp_path)
    (store,) = registry.open_places([registry.Place(agent, tmp_path)], {})
    assert isinstance(store, LogStore)
    locked(monkeypatch, path)
    (thread,) = store.index().rows
    row = store.rows([thread])[0]
    assert (row.message_count, row.request_count, row.usage, row.problems) == (None, None, None, 1)
    transcript = store.transcript([thread])
    assert [head for batch in transcript.heads() for head in batch] == []
    assert [problem.reason for problem in transcript.problems] == ["cannot be read: Permission denied"]


def test_a_part_of_a_thread_that_cannot_be_opened_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = "01a1ee59-7a00-7000-8000-0000000000aa"
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 1}
    path = write(tmp_path, [meta(history_mode="paginated"), *turn(1, "ask", "say", 0)])
    name = path.name.replace(".jsonl", f"_{segment}.jsonl")
    later = write(tmp_path, [meta(history_mode="paginated", history_base=base, timestamp=stamp(50))], name=name)
    (store,) = registry.open_places([registry.Place("codex", tmp_path)], {})
    assert isinstance(store, LogStore)
    locked(monkeypatch, later)
    (row,) = store.rows([SessionId(THREAD)])
    transcript = store.transcript([SessionId(THREAD)])
    assert [head for batch in transcript.heads() for head in batch if head.kind == "prompt"]
    assert (row.parts, row.problems, row.resumable) == (2, len(transcript.problems), False)
