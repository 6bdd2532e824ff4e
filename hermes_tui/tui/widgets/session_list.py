"""The list of conversations: ids at once, rows page by page as they come into view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.message import Message

from hermes_tui.library.beginning import PAGE
from hermes_tui.library.catalog import CatalogEntry, keys_of
from hermes_tui.library.sources import Found
from hermes_tui.model import SessionId, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.heights import EvenHeights
from hermes_tui.tui.inks import Line
from hermes_tui.tui.views.annotated import tags_text
from hermes_tui.tui.views.session_columns import Column, columns_for, row_line
from hermes_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation

MOST_PAGES: Final = 48
Key = tuple[str, SessionId]
"""Store name and session id."""


def key_of(entry: CatalogEntry) -> Key:
    """What stays the same when the list is read again."""
    return entry.store.ref.name, entry.id


def found_at(entry: CatalogEntry) -> Found:
    """The conversation of an entry."""
    return Found(entry.store, entry.id, entry.prices)


class SessionList(VirtualList):
    """Rows of conversations; asks for the pages it misses."""

    @dataclass
    class Wanted(Message):
        """Pages in view are not here."""

        pages: tuple[int, ...]
        """Numbers of pages, of ``PAGE`` rows each."""

    class Drawn(Message):
        """The first row is on the screen."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="list")
        self._desk = desk
        self.entries: Sequence[CatalogEntry] = ()
        self.picked: set[Key] = set()
        self.away: int = 0
        """How many selected rows the list does not show now."""
        self.annotations: Mapping[Key, Annotation] = {}
        """What people said about these conversations."""
        self._pages: OrderedDict[int, list[SessionRow | None]] = OrderedDict()
        self._missing: set[int] = set()
        self._drawn = False
        self._columns: tuple[int, tuple[Column, ...]] = (-1, ())

    def columns(self, width: int) -> tuple[Column, ...]:
        """The columns at this width."""
        if self._columns[0] != width:
            self._columns = (width, columns_for(width))
        return self._columns[1]

    def show_entries(self, entries: Sequence[CatalogEntry], *, keep: Key | None, another: bool = False) -> None:
        """Show a list; the cursor stays on ``keep`` where that is in it, else on its row.

        ``another`` is a list for another question: its first row is the answer, unless ``keep`` is in it.
        """
        fresh = another or not self.entries
        self.entries = entries
        self.away = len(self.picked.difference(keys_of(entries))) if self.picked else 0
        place = next((at for at, key in enumerate(keys_of(entries)) if key == keep), None) if keep is not None else None
        cursor, found = place or 0, place is not None
        self._pages.clear()
        self._missing.clear()
        at_top = self.scroll_offset.y == 0 and self.cursor == 0
        # A list that grows on top stays at its top for someone who is at the top.
        self.set_items(
            EvenHeights(len(entries)),
            cursor if found else (0 if fresh or at_top else self.cursor),
            keep_place=found and not at_top,
        )

    def fill(self, page: int, rows: Sequence[SessionRow | None]) -> None:
        """A page is here."""
        self._missing.discard(page)
        self._pages[page] = list(rows)
        self._pages.move_to_end(page)
        while len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)
        for item in range(page * PAGE, min((page + 1) * PAGE, self.count)):
            self.refresh_item(item, draw=False)
        first, last = self.visible_items()
        if first // PAGE <= page <= last // PAGE:
            # Rows of other pages stay as they are painted.
            self.refresh(self.size.region)

    def row(self, item: int) -> SessionRow | None:
        """The row at this place, if it is here."""
        page = self._pages.get(item // PAGE)
        at = item % PAGE
        return page[at] if page is not None and at < len(page) else None

    @property
    def entry(self) -> CatalogEntry | None:
        """The entry under the cursor."""
        return self.entries[self.cursor] if self.cursor < len(self.entries) else None

    @property
    def annotation(self) -> Annotation | None:
        """What was said about the conversation under the cursor."""
        return self.annotations.get(key_of(self.entry)) if self.entry is not None else None

    def toggle_picked(self) -> None:
        """Select the row under the cursor, or not any more, and go on to the next."""
        if (entry := self.entry) is None:
            return
        key = key_of(entry)
        self.picked ^= {key}
        self.refresh_item(self.cursor)
        self.move_to(self.cursor + 1)

    def draw(self, item: int, part: int, width: int) -> Line:  # noqa: ARG002
        page = item // PAGE
        if page not in self._pages and page not in self._missing:
            self._missing.add(page)
            # Asked for after drawing: everything in view that is missing, in one question.
            self.call_after_refresh(self._ask)
        row = self.row(item)
        if row is not None and not self._drawn:
            self._drawn = True
            self.post_message(self.Drawn())
        glyphs = self._desk.glyphs
        key = key_of(self.entries[item])
        said = self.annotations.get(key)
        mark = glyphs.picked if key in self.picked else glyphs.pinned if said is not None and said.pinned else " "
        marks = (glyphs.cursor if item == self.cursor else " ") + mark
        return row_line(row, self.columns(width), width, self._desk.moment, glyphs, marks, tags_text(said))

    def lasting(self, item: int) -> bool:
        return self.row(item) is not None

    def _ask(self) -> None:
        first, last = self.visible_items()
        pages = tuple(page for page in sorted(self._missing) if first // PAGE <= page <= last // PAGE)
        # What scrolled out of view meanwhile is asked for when it comes back.
        self._missing.intersection_update(pages)
        if pages:
            self.post_message(self.Wanted(pages))
