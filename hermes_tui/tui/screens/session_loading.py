"""Reading the list of conversations: its newest rows first, then every id, one question at a time; rows by pages."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Final

from textual import on, work
from textual.message import Message
from textual.timer import Timer
from textual.worker import get_current_worker

from hermes_tui.library import catalog
from hermes_tui.library.beginning import FIRST, Beginning
from hermes_tui.library.catalog import CatalogEntry, CatalogListing
from hermes_tui.library.failures import StoreFailed
from hermes_tui.library.sources import Library
from hermes_tui.model import SessionRow
from hermes_tui.records import dataclass
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.screens.session_changes import ChangingList
from hermes_tui.tui.views.facets import Facets

LOOK_EVERY: Final = 1.5
"""Seconds between looks at the stamps of the stores: new rows appear within two seconds."""
WHOLE_EVERY: Final = 15.0
"""Seconds between two readings of all ids while a store changes; the newest rows are read each time."""
ROWS_FIRST: Final = 0.4
"""Seconds that all else waits at most for the first rows."""
ANY_TEXT: Final = "\x00"
"""A text to filter by that no row has: the stores read what such a filter looks into."""


class LoadingList(ChangingList):
    """A screen with the list of conversations, by the questions that fill it."""

    @dataclass
    class Listed(Message):
        """The ids of the list are here."""

        facets: Facets
        listing: CatalogListing
        stamps: tuple[object, ...]
        whole: bool
        """Whether every id is in it."""
        rows: Sequence[SessionRow | None] = ()
        """Those of its first page, if they are here."""

    @dataclass
    class PageRead(Message):
        """The rows of a page are here."""

        listing: int
        page: int
        rows: Sequence[SessionRow | None]

    class StampsMoved(Message):
        """A store is not what it was."""

    class LoadEnded(Message):
        """The list was read, or cannot be: the next question may be asked."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._number = 0
        """Counts listings, so that a late page of an older one is not shown."""
        self._rows_seen = threading.Event()
        """The first rows are on the screen."""
        self._loading = False
        self._load_again: bool | None = None
        """Whether the list is to be read once more after this, and whether all of it."""
        self._stamps: tuple[object, ...] | None = None
        """What the stores were when they were listed last; ``None``: they were not."""
        self._whole_later: Timer | None = None
        """Reads every id some time after a change."""

    def narrowed(self, library: Library) -> Library:
        """The library with the stores that agent, profile and store leave."""
        facets = self.facets
        stores = tuple(
            store
            for store in library.stores
            if facets.agent in (None, store.ref.agent)
            and facets.profile in (None, store.ref.profile or "default")
            and facets.store in (None, store.ref.name)
        )
        return library if stores == library.stores else dataclasses.replace(library, stores=stores)

    def load_list(self, whole: bool = True) -> None:
        """Ask every store for its newest ids, then for all of them.

        One question at a time: letters typed one after the other would ask a large store for each in a thread of its
        own, all of them at once, and hold up each other and the keys. What is asked meanwhile waits for the answer; of
        several questions the newest is asked.
        """
        library = self.desk.library
        if self._loading:
            self._load_again = whole or bool(self._load_again)
        elif library is not None and library.stores:
            self._loading = True
            narrowed, beginning = self.narrowed(library), self.desk.beginning
            listed = self._begun(beginning, narrowed, self.facets) if beginning and beginning.ready else None
            if listed is not None:
                # At once: the first picture has the first rows.
                self.post_message(listed)
            self._read_list(library, narrowed, self.facets, whole, listed)

    def _begun(self, beginning: Beginning, narrowed: Library, facets: Facets) -> Listed | None:
        """The list as it was read before there was a screen; of use once. Waits for it."""
        self.desk.beginning = None
        page = beginning.page(narrowed, facets.query())
        if page is None:
            return None
        complete = page.listing.total <= len(page.listing.entries)
        return self.Listed(facets, page.listing, page.stamps, complete, beginning.rows())

    def ready_filter(self) -> None:
        """Let the stores read what a filter looks into before the first letter is typed; the list stays as it is."""
        library = self.desk.library
        if not self._loading and library is not None and library.stores:
            self._loading = True
            self._read_for_filter(self.narrowed(library), dataclasses.replace(self.facets, text=ANY_TEXT))

    @work(thread=True, group="list", exit_on_error=False, description="Reading what the filter looks into")
    def _read_for_filter(self, narrowed: Library, facets: Facets) -> None:
        try:
            catalog.listing(narrowed, facets.query(), 1)
        finally:
            self.post_message(self.LoadEnded())

    @work(thread=True, group="list", exit_on_error=False, description="Reading the list")
    def _read_list(
        self, library: Library, narrowed: Library, facets: Facets, whole: bool, listed: Listed | None
    ) -> None:
        worker = get_current_worker()
        try:
            if listed is None:
                beginning = self.desk.beginning
                listed = self._begun(beginning, narrowed, facets) if beginning is not None else None
                listed = listed or self._newest(library, narrowed, facets)
                self.post_message(listed)
            if whole and not listed.whole and facets == self.facets:
                # Reading 70,000 ids takes the processor from the first rows, and makes a page on its way be read twice.
                self._rows_seen.wait(ROWS_FIRST)
                if not worker.is_cancelled:
                    found = catalog.listing(narrowed, facets.query())
                    self.post_message(self.Listed(facets, found, listed.stamps, True))
        finally:
            self.post_message(self.LoadEnded())

    def _newest(self, library: Library, narrowed: Library, facets: Facets) -> Listed:
        stamps = tuple(store.stamp() for store in library.stores)
        found = catalog.listing(narrowed, facets.query(), FIRST)
        return self.Listed(facets, found, stamps, found.total <= len(found.entries))

    @on(LoadEnded)
    def _load_ended(self) -> None:
        self._loading = False
        if self._load_again is not None:
            whole, self._load_again = self._load_again, None
            self.load_list(whole)

    # The rows of a page.

    @work(thread=True, group="rows", exit_on_error=False, description="Reading rows")
    def _read_page(self, number: int, page: int, entries: Sequence[CatalogEntry]) -> None:
        if number != self._number:
            return
        rows, failures = catalog.placed_rows(entries)
        self.post_message(self.PageRead(number, page, rows))
        # The rows first: the marks of bad cache drops need a second look.
        self._mark(number, page, rows)
        if failures:
            # The rows of the other stores are on their way.
            raise StoreFailed(failures[0].reason, failures[0].advice)

    @work(thread=True, group="rows", exit_on_error=False, description="Reading rows")
    def _read_marks(self, number: int, rows: Sequence[SessionRow | None]) -> None:
        self._mark(number, 0, rows)

    def _mark(self, number: int, page: int, rows: Sequence[SessionRow | None]) -> None:
        if self.desk.library is None:
            return
        # Imported late: the first rows are on the screen by now.
        from hermes_tui.library.drop_marks import marked

        known = [row for row in rows if row is not None]
        marks = {(row.store.name, row.id): row for row in marked(self.desk.library, known)}
        if any(row.worst_drop_lost for row in marks.values()):
            better = [marks.get((row.store.name, row.id)) if row is not None else None for row in rows]
            self.post_message(self.PageRead(number, page, better))

    # Live.

    def look_for_changes(self) -> None:
        """Look at the stamps of the stores, while this screen is seen."""
        library = self.desk.library
        if library is None or self._stamps is None or self.app.screen is not self:
            return
        self._read_stamps(library)

    @work(thread=True, exclusive=True, group="stamps", exit_on_error=False, description="Looking at the stores")
    def _read_stamps(self, library: Library) -> None:
        stamps = tuple(store.stamp() for store in library.stores)
        if stamps != self._stamps and not get_current_worker().is_cancelled:
            self.post_message(self.StampsMoved())

    @on(StampsMoved)
    def _stamps_moved(self) -> None:
        """Read the newest rows again, and all of them now and then; the cursor stays where it is."""
        if self._whole_later is None:
            self._whole_later = self.set_timer(WHOLE_EVERY, self._load_whole)
        self.load_list(whole=False)

    def _load_whole(self) -> None:
        self._whole_later = None
        self.load_list()

    def stores_changed(self) -> None:
        self.load_list()

    def on_screen_resume(self) -> None:
        if self._stamps is not None:
            self.look_for_changes()
