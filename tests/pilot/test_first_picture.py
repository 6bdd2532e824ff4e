"""What was read before there was a screen is in its first picture, and what can wait begins after it."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from hermes_tui.library.beginning import Beginning, FirstPage
from hermes_tui.library.catalog import listing, readable_rows
from hermes_tui.library.sources import Library, SourceOptions
from hermes_tui.model import ListQuery, SessionRow
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.widgets.session_list import SessionList
from tests.pilot.memory_store import NOW, demo_library


class Read(Beginning):
    """A beginning that has read everything."""

    def __init__(self, library: Library) -> None:
        self._found = library

    opened = ready = True  # type: ignore[assignment]

    def library(self) -> Library:
        return self._found

    def page(self, library: Library, query: ListQuery) -> FirstPage | None:
        stamps = tuple(store.stamp() for store in library.stores)
        return FirstPage(stamps, listing(library, query)) if query == ListQuery() else None

    def rows(self) -> tuple[SessionRow | None, ...]:
        return tuple(readable_rows(listing(self._found, ListQuery()).entries)[0])


class Watched(HermesTui):
    """Keeps what of the list was drawn."""

    def __init__(self, library: Library) -> None:
        desk = Desk(clock=lambda: NOW, zone=UTC)
        super().__init__(SourceOptions(), desk=desk, environ={}, beginning=Read(library))
        self.pictures: list[str] = []
        self.waited: list[int] = []

    def _display(self, screen: Any, renderable: Any) -> None:
        if renderable is not None and not self._batch_count:
            rows = screen.query_one(SessionList)
            lines = [rows.render_line(y).text for y in range(rows.size.height)] if rows.size else []
            self.pictures.append("\n".join(lines))
        super()._display(screen, renderable)

    def on_list_shown(self) -> None:
        self.waited.append(len(self.pictures))
        super().on_list_shown()


async def test_the_first_picture_has_the_first_rows() -> None:
    library, _, _ = demo_library()
    app = Watched(library)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause(0.5)
        title = "cart"
        assert title in app.pictures[0], app.pictures[0]
        assert "Looking for conversations" not in app.pictures[0]
        assert app.waited, "nothing was begun"
        assert app.waited[0] >= 1, "what can wait did not wait for the first picture"
