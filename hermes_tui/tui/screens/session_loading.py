"""Reading the list of conversations: its newest rows first, then every id, one question at a time."""

from __future__ import annotations

import dataclasses
import threading
from typing import Final

from textual import on, work
from textual.message import Message
from textual.worker import get_current_worker

from hermes_tui.library import catalog
from hermes_tui.library.catalog import CatalogListing
from hermes_tui.library.sources import Library
from hermes_tui.records import dataclass
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.screens.session_changes import ChangingList
from hermes_tui.tui.views.facets import Facets

FIRST: Final = 300
"""Rows asked for before all: the first screen does not wait for the ids of 70,000 conversations."""
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

    class LoadEnded(Message):
        """The list was read, or cannot be: the next question may be asked."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._rows_seen = threading.Event()
        """The first rows are on the screen."""
        self._loading = False
        self._load_again: bool | None = None
        """Whether the list is to be read once more after this, and whether all of it."""

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
            self._read_list(library, self.narrowed(library), self.facets, whole)

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
    def _read_list(self, library: Library, narrowed: Library, facets: Facets, whole: bool) -> None:
        worker = get_current_worker()
        try:
            stamps = tuple(store.stamp() for store in library.stores)
            found = catalog.listing(narrowed, facets.query(), FIRST)
            complete = found.total <= len(found.entries)
            self.post_message(self.Listed(facets, found, stamps, complete))
            if whole and not complete and facets == self.facets:
                # Reading 70,000 ids takes the processor from the first rows, and makes a page on its way be read twice.
                self._rows_seen.wait(ROWS_FIRST)
                if not worker.is_cancelled:
                    found = catalog.listing(narrowed, facets.query())
                    self.post_message(self.Listed(facets, found, stamps, True))
        finally:
            self.post_message(self.LoadEnded())

    @on(LoadEnded)
    def _load_ended(self) -> None:
        self._loading = False
        if self._load_again is not None:
            whole, self._load_again = self._load_again, None
            self.load_list(whole)
