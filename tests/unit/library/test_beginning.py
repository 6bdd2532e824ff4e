"""The first page is read before there is a screen, and only given to who asks for just that."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.library import beginning as room
from hermes_tui.library.beginning import Beginning, usual_query
from hermes_tui.library.catalog import listing, readable_rows
from hermes_tui.library.demo import write_demo
from hermes_tui.library.sources import SourceOptions, open_library
from hermes_tui.model import ListQuery
from hermes_tui.settings import Filters
from hermes_tui.storage.errors import StorageError
from hermes_tui.tui.views.facets import Facets

NOW = 1_790_000_000.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "home"
    write_demo(folder, NOW)
    return folder


def begun(home: Path, own: Path) -> Beginning:
    return Beginning(SourceOptions(paths=(str(home),)), {"HERMES_TUI_HOME": str(own)}, mirrored=False)


def test_it_has_what_the_list_would_read(home: Path, tmp_path: Path) -> None:
    early = begun(home, tmp_path)
    library = early.library()
    page = early.page(library, ListQuery())
    assert page is not None
    plain = open_library(SourceOptions(paths=(str(home),)), {"HERMES_TUI_HOME": str(tmp_path)})
    wanted = listing(plain, ListQuery(), room.FIRST)
    assert [entry.id for entry in page.listing.entries] == [entry.id for entry in wanted.entries]
    assert page.stamps == tuple(store.stamp() for store in plain.stores)
    first, _ = readable_rows(wanted.entries[: room.PAGE])
    assert [row.id for row in early.rows() if row is not None] == [row.id for row in first]
    assert early.ready


def test_another_question_or_library_is_not_answered(home: Path, tmp_path: Path) -> None:
    early = begun(home, tmp_path)
    library = early.library()
    assert early.page(library, ListQuery(text="gateway")) is None
    again = open_library(SourceOptions(paths=(str(home),)), {"HERMES_TUI_HOME": str(tmp_path)})
    assert early.page(again, ListQuery()) is None


def test_the_settings_say_what_is_asked_first() -> None:
    filters = Filters(archived=True, children=True, automated=False, order="messages")
    facets = Facets(archived=True, delegated=True, automated=False, order="messages")
    assert usual_query(filters) == facets.query()
    assert usual_query(Filters()) == Facets().query()


def test_a_library_that_cannot_be_opened_is_told_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    def broken(*_given: object) -> object:
        raise PermissionError("not yours")

    monkeypatch.setattr(room, "open_library", broken)
    early = begun(home, tmp_path)
    with pytest.raises(PermissionError):
        early.library()
    assert not early.opened


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [StorageError("damaged", "state.db is damaged", ""), TypeError("no list")])
def test_a_list_that_cannot_be_read_is_left_to_the_screen(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path, error: Exception
) -> None:
    def broken(*_given: object) -> object:
        raise error

    monkeypatch.setattr(room, "listing", broken)
    early = begun(home, tmp_path)
    assert early.page(early.library(), ListQuery()) is None
    assert early.rows() == ()
