"""While the screen is open: an appended line is in the list and in the mirror within a second, by events or without."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_tui.library.live import Live
from hermes_tui.library.prices import DEFAULT_PRICES
from hermes_tui.library.sources import Library
from hermes_tui.locations import Locations
from hermes_tui.mirror.backfill import Progress
from hermes_tui.settings import Settings

from .line_store import LineStore, append, line_store


def library_of(store: LineStore, tmp_path: Path) -> Library:
    own = Locations(tmp_path / "cache", tmp_path / "data", tmp_path / "config")
    return Library((store,), (), own, Settings(), DEFAULT_PRICES)


def until(true: Callable[[], bool], seconds: float = 20.0) -> float:
    """Seconds until it is true; fails when it never is."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < seconds
        time.sleep(0.02)
    return time.monotonic() - begun


@pytest.mark.parametrize("events", [True, False])
def test_an_appended_line_is_mirrored_soon(tmp_path: Path, events: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not events:
        monkeypatch.setattr("hermes_tui.storage.events.FileEvents.start", lambda self: None)
    store = line_store(tmp_path / "logs")
    append(tmp_path / "logs", "a", {"text": "first", "at": 1.0})
    told: list[Progress] = []
    live = Live(library_of(store, tmp_path), told.append)
    library = live.start()
    try:
        mirror = library.mirror
        assert mirror is not None
        until(lambda: mirror.state() == "ready" and mirror.rows("SELECT COUNT(*) FROM texts") == [(1,)])
        before = store.stamp()
        append(tmp_path / "logs", "a", {"text": "second", "at": 2.0})
        # Generous: the machine may be busy. The figure is in benchmarks/.
        assert until(lambda: mirror.rows("SELECT COUNT(*) FROM texts") == [(2,)]) < 10
        assert store.stamp() != before
        until(lambda: told[-1].phase == "done")
    finally:
        begun = time.monotonic()
        live.stop()
        assert time.monotonic() - begun < 5


def test_folders_are_not_walked_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = line_store(tmp_path / "logs")
    append(tmp_path / "logs", "a", {"text": "first", "at": 1.0})
    walks: list[int] = []
    real = LineStore.logs
    monkeypatch.setattr(LineStore, "logs", lambda self: (walks.append(1), real(self))[1])
    live = Live(library_of(store, tmp_path), fill=False)
    live.start()
    try:
        until(lambda: store.events is not None and store.events.working)
        store.stamp()
        walked = len(walks)
        for _ in range(50):
            store.stamp()
        assert len(walks) == walked
        append(tmp_path / "logs", "b", {"text": "new", "at": 2.0})
        until(lambda: "b" in store.index().rows)
    finally:
        live.stop()


def test_an_unwritable_cache_is_told_and_harms_nothing(tmp_path: Path) -> None:
    store = line_store(tmp_path / "logs")
    append(tmp_path / "logs", "a", {"text": "first", "at": 1.0})
    (tmp_path / "cache").write_text("a file where our folder should be")
    troubles: list[str] = []
    live = Live(library_of(store, tmp_path), on_trouble=troubles.append)
    live.start()
    try:
        until(lambda: bool(troubles))
        assert [row.id for row in store.rows([store.logs()[0].session_id])] == ["a"]
    finally:
        live.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_nobody_expected_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("bad value")

    monkeypatch.setattr("hermes_tui.library.live.update_mirror", broken)
    store = line_store(tmp_path / "logs")
    append(tmp_path / "logs", "a", {"text": "first", "at": 1.0})
    told: list[str] = []
    live = Live(library_of(store, tmp_path), on_trouble=told.append)
    live.start()
    try:
        until(lambda: bool(told))
        assert "ValueError: bad value" in told[0]
    finally:
        live.stop()
