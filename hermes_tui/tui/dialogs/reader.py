"""A box of lines to read."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical

from hermes_tui.text import clean_line
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.inks import Line
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines


class Reader(Dialog[None]):
    """Lines from a store, cleaned; scrolls."""

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = clean_line(title)
        self._texts = [clean_line(line) for line in lines]
        self._lines: list[Line] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall"):
            yield StillLines(id="title")
            yield LineList()

    def on_mount(self) -> None:
        self.query_one("#title", StillLines).show(lambda _: [((self._title, "title"),), ()])
        self.query_one(LineList).focus()

    def on_resize(self) -> None:
        """Break the lines to the width of the box."""
        rows = self.query_one(LineList)
        width = max(20, min(100, int(self.size.width * 0.94)) - 8)
        self._lines = [line for text in self._texts for line in paragraph(text, width)]
        rows.show(len(self._lines), lambda item, _width, _cursor: self._lines[item])
