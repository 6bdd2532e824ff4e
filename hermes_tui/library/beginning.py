"""The first page of the list, read while the screen is still being imported.

Importing Textual takes a quarter of a second, in which nobody asks the stores. A thread does: what it waits for (disk,
SQLite) costs nothing then, and the first picture of the list has its rows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final, cast

from hermes_tui.library.catalog import CatalogListing, listing, placed_rows
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.model import ListOrder, ListQuery, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.settings import Filters

FIRST: Final = 300
"""Rows asked for before all: the first screen does not wait for the ids of 70,000 conversations."""
PAGE: Final = 64
"""Rows read at once: 0.04 ms by id (facts/textual.md, section 2)."""
ROWS_LATE: Final = 0.1
"""Seconds that the ids wait at most for their first rows; later ones come by themselves."""


@dataclass(frozen=True, slots=True)
class FirstPage:
    """The newest conversations."""

    stamps: tuple[object, ...]
    """How the stores were before they were asked."""
    listing: CatalogListing
    """Their ids, :data:`FIRST` at most."""


def usual_query(filters: Filters) -> ListQuery:
    """What the list shows before anybody narrows it."""
    return ListQuery(
        order=cast("ListOrder", filters.order),
        archived=filters.archived,
        children=filters.children,
        automated=filters.automated,
    )


def open_for_screen(options: SourceOptions, environ: Mapping[str, str], *, mirrored: bool) -> Library:
    """Find the stores, with the mirror beside them where one is kept up; nothing of theirs is opened yet."""
    library = open_library(options, environ)
    logs = any(store.ref.agent != "hermes" for store in library.stores)
    if mirrored and logs and library.locations.mirror.exists():
        # Imported only where there is a mirror to ask: 80 ms before the first list.
        from hermes_tui.library.mirroring import with_mirror

        library = with_mirror(library)
    return library


class Beginning:
    """Opens the stores and reads the first page in a thread of its own, from now on."""

    def __init__(self, options: SourceOptions, environ: Mapping[str, str], *, mirrored: bool) -> None:
        self._library: Future[Library] = Future()
        self._page: Future[FirstPage | None] = Future()
        self._rows: Future[tuple[SessionRow | None, ...]] = Future()
        # A daemon: who quits at once does not wait for a slow disk.
        threading.Thread(
            target=self._read, args=(options, dict(environ), mirrored), name="beginning", daemon=True
        ).start()

    def _read(self, options: SourceOptions, environ: Mapping[str, str], mirrored: bool) -> None:
        try:
            library = open_for_screen(options, environ, mirrored=mirrored)
        except BaseException as error:  # noqa: BLE001 - whoever asks for the library gets it, first of all
            self._library.set_exception(error)
            return
        self._library.set_result(library)
        page: FirstPage | None = None
        rows: tuple[SessionRow | None, ...] = ()
        try:
            stamps = tuple(store.stamp() for store in library.stores)
            page = FirstPage(stamps, listing(library, usual_query(library.settings.filters), FIRST))
            self._page.set_result(page)
            rows = _first_rows(page.listing)
        except Exception:  # noqa: BLE001 - asked again by the list itself, which tells a person what failed
            # From a thread nobody waits for, it would be a traceback across the screen.
            rows = ()
        finally:
            if not self._page.done():
                self._page.set_result(page)
            self._rows.set_result(rows)

    @property
    def opened(self) -> bool:
        """Whether :meth:`library` answers at once."""
        return self._library.done() and self._library.exception() is None

    def library(self) -> Library:
        """The stores; waits for them.

        Raises:
            Exception: what :func:`open_for_screen` raised.
        """
        return self._library.result()

    @property
    def ready(self) -> bool:
        """Whether nothing is to be waited for."""
        return self._rows.done()

    def page(self, library: Library, query: ListQuery) -> FirstPage | None:
        """The first page, if this is what was asked for, and it could be read; waits for it."""
        if not self.opened or library is not self.library() or query != usual_query(library.settings.filters):
            return None
        return self._page.result()

    def rows(self) -> tuple[SessionRow | None, ...]:
        """The rows of its first :data:`PAGE` entries; empty where they take longer than :data:`ROWS_LATE`."""
        try:
            return self._rows.result(ROWS_LATE)
        except TimeoutError:
            return ()


def _first_rows(found: CatalogListing) -> tuple[SessionRow | None, ...]:
    rows, failures = placed_rows(found.entries[:PAGE])
    # Where one failed the list reads them again, and shows why.
    return () if failures else tuple(rows)
