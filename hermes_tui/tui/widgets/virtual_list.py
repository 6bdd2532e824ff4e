"""A list drawn line by line: 100,000 rows cost what 100 do (facts/textual.md, section 2)."""

from __future__ import annotations

from typing import ClassVar, Final, Self

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hermes_tui.records import dataclass
from hermes_tui.tui.cells import fit, wrap
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.heights import EvenHeights, Heights
from hermes_tui.tui.inks import Inked, Line

MOST_KEPT: Final = 400
"""Painted lines that are kept: some screens full."""


class VirtualList(Inked, ScrollView, can_focus=True):
    """Items with a cursor; a key press draws two rows again, not the screen.

    A subclass says how an item looks (:meth:`draw`) and which items the cursor may stand on (:meth:`pickable`).
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("list")]
    ALLOW_SELECT = False

    cursor: reactive[int] = reactive(0, repaint=False)
    """The item under the cursor; meaningless while the list is empty."""

    @dataclass
    class Moved(Message):
        """The cursor is on another item."""

        list: VirtualList
        """Which list."""
        item: int
        """The item it is on now."""

        @property
        def control(self) -> VirtualList:
            """The list, for ``on`` selectors."""
            return self.list

    @dataclass
    class Chosen(Message):
        """The user wants to open an item."""

        list: VirtualList
        """Which list."""
        item: int
        """The item."""

        @property
        def control(self) -> VirtualList:
            """The list, for ``on`` selectors."""
            return self.list

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self.heights: Heights = EvenHeights(0)
        self._notice: tuple[tuple[str, str], ...] = ()
        self._kept: dict[int, Strip] = {}
        """Lines as they were painted: a list that scrolls draws what comes into view."""
        self._kept_width = 0
        super().__init__(id=id, classes=classes)

    # What a subclass says.

    def draw(self, item: int, part: int, width: int) -> Line:
        """One line of one item; ``part`` counts the lines of the item."""
        raise NotImplementedError

    def pickable(self, item: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the cursor may stand on it."""
        return True

    def lasting(self, item: int) -> bool:  # noqa: ARG002 - for subclasses
        """Whether its lines stay as they are until it is refreshed, or the whole list."""
        return False

    # What an owner does.

    def set_items(self, heights: Heights, cursor: int = 0, *, keep_place: bool = False) -> None:
        """Show other items. ``keep_place`` leaves the cursor's row where it is on the screen."""
        shift = self._row_of_cursor() if keep_place else None
        self.heights = heights
        self.virtual_size = Size(0, heights.total)
        target = max(0, min(cursor, heights.count - 1))
        self.set_reactive(VirtualList.cursor, self._settle(target, 1) if heights.count else 0)
        if shift is not None and heights.count:
            self._jump(heights.top(self.cursor) - shift)
        else:
            self._jump(0)
            self._show_cursor()
        self.refresh()
        if heights.count:
            self.post_message(self.Moved(self, self.cursor))

    def say(self, *lines: tuple[str, str]) -> None:
        """What stands in the empty list: clean text and ink, line by line."""
        self._notice = lines
        if not self.heights.count:
            self.refresh()

    @property
    def count(self) -> int:
        """How many items."""
        return self.heights.count

    def visible_items(self) -> tuple[int, int]:
        """First and last item in view; ``(0, -1)`` when there is none."""
        if not self.heights.total:
            return 0, -1
        top = max(0, min(self.scroll_offset.y, self.heights.total - 1))
        bottom = min(self.heights.total - 1, top + max(0, self.scrollable_content_region.height - 1))
        return self.heights.at(top)[0], self.heights.at(bottom)[0]

    def refresh_item(self, item: int, *, draw: bool = True) -> None:
        """Draw one item again, now or when it is drawn anyway."""
        top = self.heights.top(item)
        for line in range(top, top + self.heights.height(item)):
            self._kept.pop(line, None)
        if draw:
            self.refresh_lines(top, self.heights.height(item))

    # Drawing.

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """As Textual's; without regions every line is drawn anew."""
        if not regions:
            self._kept.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        """Colours may be others."""
        self._kept.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        line = y + self.scroll_offset.y
        if width != self._kept_width:
            self._kept.clear()
            self._kept_width = width
        kept = self._kept.get(line)
        if kept is not None:
            return kept
        base = self.own_style
        if not self.heights.total:
            return self._notice_line(y, width, base)
        if line >= self.heights.total:
            return Strip.blank(width, base)
        item, part = self.heights.at(line)
        drawn = self.draw(item, part, width)
        if item == self.cursor and self.pickable(item):
            return self._cursor_strip(drawn, width, base)
        strip = self.paint(drawn, width, base)
        if self.lasting(item):
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[line] = strip
        return strip

    def _cursor_strip(self, drawn: Line, width: int, base: Style) -> Strip:
        ink = "cursor" if self.has_focus else "blurred"
        if self.flat and self.has_focus:
            # The whole row is reversed: its mark would be a hole in it.
            return self.paint_flat(((" ", ""), *_without_edge(drawn)), width, base + Style(reverse=True))
        return self.paint(drawn, width, base + self.ink(ink))

    def _notice_line(self, y: int, width: int, base: Style) -> Strip:
        lines = [(text[start:end], ink) for text, ink in self._notice for start, end in wrap(text, max(10, width - 8))]
        top = max(0, (self.scrollable_content_region.height - len(lines)) // 3)
        if not top <= y < top + len(lines):
            return Strip.blank(width, base)
        text, ink = lines[y - top]
        return self.paint((("    ", ""), (fit(text, max(0, width - 8)), ink)), width, base)

    # Moving.

    def _settle(self, item: int, direction: int) -> int:
        """The nearest item the cursor may stand on, first in this direction."""
        for step in (direction, -direction):
            at = item
            while 0 <= at < self.heights.count:
                if self.pickable(at):
                    return at
                at += step
        return item

    def move_to(self, item: int, direction: int = 1) -> None:
        """Put the cursor on an item and bring it into view."""
        if self.heights.count:
            self.cursor = self._settle(max(0, min(item, self.heights.count - 1)), direction)

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw the old and the new row, scroll only when the new one is out of view."""
        if not self.heights.count or old == new:
            return
        if old < self.heights.count:
            self.refresh_item(old)
        self.refresh_item(new)
        self._show_cursor()
        self.post_message(self.Moved(self, new))

    def _show_cursor(self) -> None:
        if not self.heights.count:
            return
        top = self.heights.top(self.cursor)
        # Lines nobody can stand on above an item (a heading) come into view with it.
        lead = 0
        while self.cursor - lead - 1 >= 0 and not self.pickable(self.cursor - lead - 1) and lead < 2:
            lead += 1
        first = self.heights.top(self.cursor - lead)
        bottom = top + self.heights.height(self.cursor)
        page = max(1, self.scrollable_content_region.height)
        if first < self.scroll_offset.y:
            self._jump(first)
        elif bottom > self.scroll_offset.y + page:
            # Not past its heading, where the page is smaller than both, or has no height yet.
            self._jump(min(first, bottom - page))

    def _row_of_cursor(self) -> int | None:
        if not self.heights.count:
            return None
        return self.heights.top(min(self.cursor, self.heights.count - 1)) - self.scroll_offset.y

    def _jump(self, y: int) -> None:
        self.scroll_to(y=max(0, y), animate=False, force=True)

    def _page(self) -> int:
        return max(1, self.scrollable_content_region.height - 1)

    def action_down(self) -> None:
        self.move_to(self.cursor + 1, 1)

    def action_up(self) -> None:
        if self.cursor <= self._settle(0, 1):
            self._jump(0)
        self.move_to(self.cursor - 1, -1)

    def action_page_down(self) -> None:
        self._move_lines(self._page())

    def action_page_up(self) -> None:
        self._move_lines(-self._page())

    def _move_lines(self, lines: int) -> None:
        if not self.heights.count:
            return
        target = self.heights.top(self.cursor) + lines
        clipped = max(0, min(target, self.heights.total - 1))
        self._jump(self.scroll_offset.y + lines)
        self.move_to(self.heights.at(clipped)[0], 1 if lines > 0 else -1)

    def action_first(self) -> None:
        self.move_to(0, 1)
        self._jump(0)

    def action_last(self) -> None:
        self.move_to(self.heights.count - 1, -1)

    def action_choose(self) -> None:
        if self.heights.count and self.pickable(self.cursor):
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is; a second click opens."""
        line = event.y - self.gutter.top + self.scroll_offset.y
        if not 0 <= line < self.heights.total:
            return
        item = self.heights.at(line)[0]
        if not self.pickable(item):
            return
        was = self.cursor
        self.move_to(item)
        if event.chain >= 2 and was == item:
            self.action_choose()

    def on_focus(self) -> None:
        self._draw_cursor_again()

    def on_blur(self) -> None:
        self._draw_cursor_again()

    def _draw_cursor_again(self) -> None:
        if self.cursor < self.heights.count:
            self.refresh_item(self.cursor)


def _without_edge(line: Line) -> Line:
    """A row without its first cell, where the mark of the cursor stands."""
    return ((line[0][0][1:], line[0][1]), *line[1:]) if line else line
