"""Tags and a note of one's own; the agents never see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from hermes_tui.library.annotations import annotate
from hermes_tui.text import clean
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.formats import counted
from hermes_tui.tui.inks import Line
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.lines import StillLines

if TYPE_CHECKING:
    from hermes_tui.library.sources import Found, Library

What = Literal["tags", "note"]
SEVERAL: Final[dict[What, str]] = {
    "tags": "These all of them have. What only some have stays theirs.",
    "note": "What you write takes the place of the note of each.",
}
"""Said where several conversations are selected."""


class AnnotateDialog(Dialog[bool]):
    """One line to type; Enter keeps it."""

    class Kept(Message):
        """It is on disk."""

    def __init__(self, desk: Desk, founds: Sequence[Found], what: What, before: str) -> None:
        super().__init__()
        self._desk = desk
        self._founds = list(founds)
        self._what = what
        self._before = before
        self._trouble = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield StillLines(id="title")
            yield FilterLine("words, parted by spaces or commas" if self._what == "tags" else "a note", id="line")
            yield StillLines(id="said")

    def on_mount(self) -> None:
        heading = "Tags" if self._what == "tags" else "Note"
        whose = f" of {counted(len(self._founds), 'conversation')}" if len(self._founds) > 1 else ""
        self.query_one("#title", StillLines).show(
            lambda _: [((heading + whose, "title"), ("  kept by this program alone", "muted"))]
        )
        self.query_one("#said", StillLines).show(self._view)
        line = self.query_one("#line", FilterLine)
        line.value = self._before
        line.focus()

    def _view(self, width: int) -> list[Line]:
        lines: list[Line] = paragraph(clean(self._trouble), width, "bad") if self._trouble else []
        if len(self._founds) > 1 and not lines:
            lines = paragraph(clean(SEVERAL[self._what]), width, "muted")
        return [*lines, (("Enter", "key"), (" keep  ", "muted"), ("Esc", "key"), (" leave it", "muted"))]

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() == self._before.strip():
            # Nothing was changed: notes that differ are not taken away by an empty line.
            self.dismiss(False)
        elif self._desk.library is not None:
            self._keep(self._desk.library, event.value.strip(), self._desk.clock())

    @work(thread=True, exclusive=True, group="annotate", exit_on_error=False, description="Keeping it")
    def _keep(self, library: Library, typed: str, now: float) -> None:
        if self._what == "note":
            annotate(library, self._founds, "note", [typed], now)
        else:
            before = set(self._before.split())
            after = _words(typed, before)
            if gone := sorted(before - after):
                annotate(library, self._founds, "untag", gone, now)
            if new := sorted(after - before):
                annotate(library, self._founds, "tag", new, now)
        self.post_message(self.Kept())

    @on(Kept)
    def _kept(self) -> None:
        self.dismiss(True)

    def failed(self, title: str, text: str) -> None:
        self._trouble = f"{title}\n{text}".strip()
        self.query_one("#said", StillLines).show(self._view)


def _words(typed: str, before: set[str]) -> set[str]:
    """The tags of a line; commas part them too, save in those that were there with one."""
    return {tag for word in typed.split() for tag in ([word] if word in before else word.split(",")) if tag}
