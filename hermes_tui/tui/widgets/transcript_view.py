"""A transcript drawn line by line: heights are kept, texts are not; what comes into view is asked for.

Heights of messages that were not read yet are estimated from their size. When a text arrives its height becomes
exact and the line the reader looks at stays where it is. The way follows facts/textual.md, section 3.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from hermes_tui.library.transcript import is_shown
from hermes_tui.model import MessageHead
from hermes_tui.records import dataclass
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.heights import VariedHeights
from hermes_tui.tui.inks import Inked, Line
from hermes_tui.tui.views.blocks import (
    FOLDED,
    PEEKED,
    Block,
    Frame,
    body_line,
    estimated_height,
    in_first_answer,
    part_line,
    title_line,
    waiting_line,
)

MOST_BLOCKS: Final = 400
"""Messages kept ready to draw: several screens."""
PEEK: Final = 20_000
"""A folded tool call up to this size is read, so that its line can say what it does."""
MOST_SELECTED: Final = 5_000
"""Lines copied at once."""
MARGIN: Final = 3
"""Cells left of a text."""
Test = Callable[[int], bool]


class TranscriptView(Inked, ScrollView, can_focus=True):
    """The messages of a conversation; knows nothing of stores."""

    ALLOW_SELECT = True

    cursor: reactive[int] = reactive(0, repaint=False)
    """The current message."""

    @dataclass
    class Wanted(Message):
        """Texts in view are not here."""

        items: tuple[int, ...]
        version: int
        """What they were asked for: the view may be filled anew before this is read."""

    @dataclass
    class Moved(Message):
        """Another message is current, or the view scrolled."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.heads: list[MessageHead] = []
        self.heights = VariedHeights()
        self.blocks: OrderedDict[int, Block] = OrderedDict()
        self.all_states = False
        self.version = 0
        """Counts what texts were made ready for, so that a late one of before is not drawn."""
        self.hidden = 0
        """Messages in states that are shown on request only."""
        self.pieces: dict[int, int] = {}
        """Which piece of a long text is shown."""
        self._flipped: set[int] = set()
        self._unfold_all = False
        self._open_calls: dict[str, int] = {}
        self._result_of: dict[int, int] = {}
        self._call_of: dict[int, int] = {}
        self._parts: dict[int, int] = {}
        self._part_count = 0
        self._asked: set[int] = set()
        self._asking = False
        self._width = 80
        self._at_end = False
        self.numbered = True
        """Whether the first message here is the first of the transcript."""
        self._notice = ""
        super().__init__(id="transcript")

    # What an owner does.

    def clear(self) -> None:
        """Forget everything."""
        self.heads = []
        self.hidden = 0
        self.heights = VariedHeights()
        self.forget_blocks()
        self.pieces.clear()
        self._flipped.clear()
        self._open_calls.clear()
        self._result_of.clear()
        self._call_of.clear()
        self._parts.clear()
        self._part_count = 0
        self.set_reactive(TranscriptView.cursor, 0)
        self._measure()

    def add(self, heads: Sequence[MessageHead]) -> None:
        """More messages at the end."""
        if not heads:
            return
        first = len(self.heads)
        self.heads.extend(heads)
        self.hidden += sum(not is_shown(head, False) for head in heads)
        for item in range(first, len(self.heads)):
            self._link(item)
        self.heights.extend([self._height(item) for item in range(first, len(self.heads))])
        self._measure()
        if not first:
            self.set_reactive(TranscriptView.cursor, self._visible_from(0, 1) or 0)
        self.refresh()

    def forget_blocks(self) -> None:
        """Every text must be made ready again; heights stay as they are."""
        self.version += 1
        self.blocks.clear()
        self._asked.clear()
        self.refresh()

    def put(self, blocks: Mapping[int, Block]) -> None:
        """Texts are here."""
        place = self._place()
        for item, block in blocks.items():
            self._asked.discard(item)
            if block.width != self._width or item >= len(self.heads):
                continue
            self.blocks[item] = block
            self.blocks.move_to_end(item)
            self.heights.set(item, self._height(item))
        while len(self.blocks) > MOST_BLOCKS:
            self.blocks.popitem(last=False)
        self._measure()
        self._return_to(place)
        self.refresh()

    def say(self, text: str) -> None:
        """What stands in an empty transcript: our own words."""
        self._notice = text
        self.refresh()

    def show_states(self, all_states: bool) -> None:
        """Show or hide rewound messages and dead branches."""
        self.all_states = all_states
        self._measure_all()

    # Heights.

    @property
    def text_width(self) -> int:
        """The width blocks must be made for."""
        return self._width

    def _link(self, item: int) -> None:
        head = self.heads[item]
        if head.tool_call_id:
            if head.kind == "tool-call":
                self._open_calls[head.tool_call_id] = item
            elif head.kind == "tool-result":
                call = self._open_calls.get(head.tool_call_id, -1)
                if call >= 0 and call not in self._result_of:
                    self._result_of[call] = item
                    self._call_of[item] = call
        if item and head.session_id != self.heads[item - 1].session_id:
            self._part_count = max(2, self._part_count + 1)
            self._parts[item] = self._part_count

    def folded(self, item: int) -> bool:
        """Whether only the title line of a message is shown."""
        item = self._call_of.get(item, item)
        usual = self.heads[item].kind in FOLDED and not self._unfold_all
        return usual != (item in self._flipped)

    def _height(self, item: int) -> int:
        head = self.heads[item]
        if not is_shown(head, self.all_states):
            return 0
        folded = self.folded(item)
        if folded and item in self._call_of:
            return 0
        lead = 1 if item in self._parts else 0
        if folded:
            return lead + 1
        block = self.blocks.get(item)
        text = block.height if block is not None else estimated_height(head, self._width)
        return lead + 1 + text + 1

    def _measure(self) -> None:
        self.virtual_size = Size(0, self.heights.total)

    def _measure_all(self) -> None:
        place = self._place()
        self.heights = VariedHeights(self._height(item) for item in range(len(self.heads)))
        self._measure()
        if self.heads and not self.heights.height(self.cursor):
            self.cursor = self._visible_from(self.cursor, 1) or self._visible_from(self.cursor, -1) or 0
        self._return_to(place)
        self.refresh()

    def _place(self) -> tuple[int, int] | None:
        """The message at the top of the view and the line of it; ``None`` at the end, which stays the end."""
        if self._at_end or not self.heights.total:
            return None
        return self.heights.at(min(self.scroll_offset.y, self.heights.total - 1))

    def _return_to(self, place: tuple[int, int] | None) -> None:
        if place is None:
            if self._at_end:
                self._jump(self.heights.total)
            return
        item, line = place
        self._jump(self.heights.top(item) + min(line, max(0, self.heights.height(item) - 1)))

    def on_resize(self) -> None:
        """Break texts anew at the new width; the message at the top stays at the top."""
        width = self.scrollable_content_region.width
        if width == self._width or width <= 0:
            return
        self._width = width
        self.blocks.clear()
        self._asked.clear()
        self._measure_all()

    # Drawing.

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.own_style
        if not self.heights.total:
            text = self._notice if y == 1 else ""
            return self.paint((("    ", ""), (fit(text, max(0, width - 8)), "muted")), width, base)
        line = y + self.scroll_offset.y
        if line >= self.heights.total:
            return Strip.blank(width, base)
        item, part = self.heights.at(line)
        strip = self.paint(self._line(item, part, self._width), width, base)
        selection = self.text_selection
        span = selection.get_span(line) if selection is not None else None
        if span is not None:
            strip = _highlighted(strip, *span, self.screen.get_component_rich_style("screen--selection"))
        return strip.apply_offsets(0, line)

    # Selecting with the mouse (facts/textual.md, section 3).

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text without the margin; texts that are not here yet are left out."""
        if not self.heights.total:
            return None
        first = selection.start.y if selection.start is not None else 0
        last = min(selection.end.y if selection.end is not None else self.heights.total, self.heights.total - 1)
        lines: list[str] = []
        for line in range(first, min(last, first + MOST_SELECTED) + 1):
            item, part = self.heights.at(line)
            text = "".join(piece for piece, _ in self._line(item, part, self._width)).rstrip()
            start, end = selection.get_span(line) or (0, -1)
            margin = MARGIN if text[:1] in (" ", self._desk.glyphs.bar) and not text[1:MARGIN].strip() else 0
            lines.append(text[max(start, margin) : None if end < 0 else end])
        return "\n".join(lines), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - asked for while drawing
        """Draw it."""
        self.refresh()

    def _line(self, item: int, line: int, width: int) -> Line:
        head = self.heads[item]
        block = self.blocks.get(item)
        if block is not None and block.width != width:
            block = None
        frame = self._frame(item)
        if item in self._parts:
            if line == 0:
                return part_line(self._parts[item], self._part_count, "", width, self._desk.glyphs)
            line -= 1
        if block is None and self._needs_text(item):
            self._ask_soon()
        if line == 0:
            return title_line(head, block, frame, width)
        if line == self.heights.height(item) - (1 if item in self._parts else 0) - 1:
            return ()
        if block is None:
            return waiting_line(frame, width) if line == 1 else ()
        return body_line(block, line - 1, frame) if line - 1 < block.height else ()

    def _frame(self, item: int) -> Frame:
        result = self._result_of.get(item)
        return Frame(
            glyphs=self._desk.glyphs,
            moment=self._desk.moment,
            folded=self.folded(item),
            current=item == self.cursor,
            number=item + 1 if self.numbered else 0,
            result=self.heads[result] if result is not None else None,
            opening=in_first_answer(self.heads, item),
        )

    def _needs_text(self, item: int) -> bool:
        if not self.folded(item):
            return True
        return self.heads[item].kind in PEEKED and self.heads[item].size <= PEEK

    def _ask_soon(self) -> None:
        if not self._asking:
            self._asking = True
            # After drawing: everything in view and a page around it, in one question.
            self.call_after_refresh(self._ask)

    def _ask(self) -> None:
        self._asking = False
        if not self.heights.total:
            return
        page = max(1, self.scrollable_content_region.height)
        top = max(0, min(self.scroll_offset.y - page, self.heights.total - 1))
        bottom = min(self.heights.total - 1, self.scroll_offset.y + 2 * page)
        first, last = self.heights.at(top)[0], self.heights.at(bottom)[0]
        items = tuple(
            item
            for item in range(first, last + 1)
            if self.heights.height(item)
            and item not in self.blocks
            and item not in self._asked
            and self._needs_text(item)
        )
        if items:
            self._asked.update(items)
            self.post_message(self.Wanted(items, self.version))

    # Moving.

    def watch_cursor(self, old: int, new: int) -> None:
        """Draw the edge of the old and the new current message."""
        for item in (old, new):
            if item < len(self.heads):
                self.refresh_lines(self.heights.top(item), max(1, self.heights.height(item)))
        self.post_message(self.Moved())

    def _visible_from(self, item: int, step: int, test: Test | None = None) -> int | None:
        """The nearest message with lines in a direction, itself included."""
        while 0 <= item < len(self.heads):
            if self.heights.height(item) and (test is None or test(item)):
                return item
            item += step
        return None

    def find_from(self, item: int, step: int, test: Test) -> int | None:
        """The next message in a direction that passes a test."""
        return self._visible_from(item + step, step, test)

    def go_to(self, item: int, line: int | None = None, row: int = 0) -> None:
        """Make a message current and show its beginning at a row, or one of its lines a third down."""
        if not self.heads:
            return
        self._at_end = False
        self.cursor = item
        top = self.heights.top(item)
        if line is None:
            self._jump(top - row)
        else:
            lead = 1 if item in self._parts else 0
            self._jump(top + lead + 1 + line - self.scrollable_content_region.height // 3)

    def go_to_end(self) -> None:
        """The last line of the last message, and it stays the last while more arrives."""
        last = self._visible_from(len(self.heads) - 1, -1)
        if last is not None:
            self.cursor = last
        self._at_end = True
        self._jump(self.heights.total)

    def stay_at_end(self) -> None:
        """More arrived: who was at the end sees it."""
        if self._at_end:
            self.go_to_end()

    def drop(self, item: int) -> None:
        """Read one text again."""
        self.blocks.pop(item, None)
        self._asked.discard(item)
        self.refresh()

    @property
    def page(self) -> int:
        """Lines in view."""
        return max(3, self.scrollable_content_region.height)

    def scroll_lines(self, lines: int) -> None:
        """Scroll; the current message follows the view."""
        before = self.scroll_offset.y
        most = max(0, self.heights.total - self.scrollable_content_region.height)
        target = max(0, min(before + lines, most))
        self._at_end = target >= most > 0
        self._jump(target)
        if target == before:
            # Nothing left to scroll: walk the current message instead.
            step = 1 if lines > 0 else -1
            following = self._visible_from(self.cursor + step, step)
            if following is not None:
                self.cursor = following
            return
        self._keep_cursor_in_view(target)

    def _keep_cursor_in_view(self, top: int) -> None:
        if not self.heads:
            return
        page = self.scrollable_content_region.height
        start = self.heights.top(self.cursor)
        if start < top + page and start + self.heights.height(self.cursor) > top:
            self.post_message(self.Moved())
            return
        at = top if start < top else min(self.heights.total - 1, top + page - 1)
        self.cursor = self.heights.at(at)[0]

    def _jump(self, y: int) -> None:
        self.scroll_to(y=max(0, y), animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the mouse wheel and the scroll bar as well."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value) and self.is_mounted:
            most = max(0, self.heights.total - self.scrollable_content_region.height)
            self._at_end = self._at_end and round(new_value) >= most
            self._keep_cursor_in_view(round(new_value))

    # Folding.

    def flip(self, item: int) -> None:
        """Fold or unfold a message; a call and its result go together."""
        item = self._call_of.get(item, item)
        row = self.heights.top(item) - self.scroll_offset.y
        self._flipped ^= {item}
        self._at_end = False
        self.heights.set(item, self._height(item))
        if (result := self._result_of.get(item)) is not None:
            self.heights.set(result, self._height(result))
        self._measure()
        self.cursor = item
        self._jump(self.heights.top(item) - max(0, row))
        self.refresh()

    def unfold(self, item: int) -> None:
        """Unfold a message if it is folded."""
        if self.folded(item):
            self.flip(item)

    def flip_all(self) -> None:
        """Unfold everything, or fold what begins folded."""
        self._unfold_all = not self._unfold_all
        self._flipped.clear()
        self._at_end = False
        self._measure_all()
        self.go_to(self._call_of.get(self.cursor, self.cursor) if self.heads else 0)

    def is_compaction(self, item: int) -> bool:
        """Whether the context was cut here."""
        block = self.blocks.get(item)
        return (
            self.heads[item].kind == "summary"
            or item in self._parts
            or (block is not None and block.message.compaction is not None)
        )

    def on_click(self, event: events.Click) -> None:
        """Make the message under the mouse current; a click on its title line folds it."""
        # A second click would select everything.
        event.prevent_default()
        if self.text_selection is not None:
            # The end of a selection, not a click.
            return
        line = event.y + self.scroll_offset.y
        if not 0 <= line < self.heights.total:
            return
        item, part = self.heights.at(line)
        was = self.cursor
        self.cursor = item
        foldable = self.heads[item].kind in FOLDED
        if part == (1 if item in self._parts else 0) and (foldable or was == item):
            self.flip(item)


def _highlighted(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with characters from ``start`` to ``end`` in this style; -1 is the end of the line."""
    text = strip.text
    left = width_of(text[:start])
    right = strip.cell_length if end < 0 else width_of(text[:end])
    if right <= left:
        return strip
    return Strip.join([strip.crop(0, left), strip.crop(left, right).apply_style(style), strip.crop(right)])
