"""One line to type into."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding
from textual.widgets import Input

# What is pasted may hold control bytes, which Textual would pass on to the terminal (facts/textual.md, section 5).
PRINTABLE: Final = "[^\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]*"


class FilterLine(Input):
    """A quiet input without a frame; Down, Enter and Escape leave it."""

    BINDINGS = [Binding("down", "leave", "To the list", show=False)]  # noqa: RUF012 - Textual's own form

    def __init__(self, placeholder: str, *, id: str = "typed") -> None:
        super().__init__(placeholder=placeholder, restrict=PRINTABLE, compact=True, id=id, select_on_focus=False)
        self.cursor_blink = False

    def action_leave(self) -> None:
        """As if Enter had been pressed."""
        self.post_message(self.Submitted(self, self.value))
