"""Bringing back what was deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from hermes_tui.library import cleanup
from hermes_tui.library.cleanup import ChangeResult
from hermes_tui.records import dataclass
from hermes_tui.text import clean, clean_line
from hermes_tui.tui.cells import fit
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.formats import count
from hermes_tui.tui.inks import Line
from hermes_tui.tui.messages import StoresChanged
from hermes_tui.tui.views.change_lines import result_lines, result_words
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from hermes_tui.library.sources import Library
    from hermes_tui.library.trash import Deleted


class RestoreDialog(Dialog[ChangeResult]):
    """The trash, newest first; Enter brings one back."""

    @dataclass
    class TrashRead(Message):
        """What is in the trash."""

        deleted: Sequence[Deleted]

    @dataclass
    class Restored(Message):
        """It is back, or why not."""

        result: ChangeResult

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._deleted: Sequence[Deleted] = ()
        self._said: list[Line] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box wide"):
            yield StillLines(id="title")
            yield LineList()
            yield StillLines(id="hint")

    def on_mount(self) -> None:
        self.query_one("#title", StillLines).show(lambda _: [(("What was deleted in the last 30 days", "title"),), ()])
        self.query_one("#hint", StillLines).show(self._hint)
        rows = self.query_one(LineList)
        rows.styles.height = 6
        rows.say(("Looking into the trash.", "muted"))
        rows.focus()
        if self._desk.library is not None:
            self._read(self._desk.library)

    @work(thread=True, exclusive=True, group="trash", exit_on_error=False, description="Looking into the trash")
    def _read(self, library: Library) -> None:
        from hermes_tui.library.trash import Trash

        self.post_message(self.TrashRead(Trash(library.locations.trash).deleted()))

    @on(TrashRead)
    def _trash_read(self, event: TrashRead) -> None:
        self._deleted = event.deleted
        rows = self.query_one(LineList)
        rows.say(("The trash is empty.", "muted"))
        rows.styles.height = max(3, min(len(self._deleted), int(self.size.height * 0.9) - 10))
        rows.show(len(self._deleted), self._draw, cursor=rows.cursor)
        self.query_one("#hint", StillLines).show(self._hint)

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        one = self._deleted[item]
        glyphs = self._desk.glyphs
        at = self._desk.moment.full(one.entry.at)
        name = f"{one.title} {glyphs.middot} {one.name}" if one.title else one.name
        return (
            ((glyphs.cursor if cursor else " ") + " ", "accent"),
            (fit(clean_line(name), max(8, width - 28), ellipsis=glyphs.ellipsis), ""),
            (f"  {one.entry.verb:<8} {at:>14}", "muted"),
        )

    def _hint(self, _width: int) -> list[Line]:
        number = ((f"{count(len(self._deleted))} in the trash  ", "muted"),) if self._deleted else ()
        return [
            (),
            *self._said,
            (*number, ("Enter", "key"), (" restore  ", "muted"), ("Esc", "key"), (" close", "muted")),
        ]

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        if self._deleted and self._desk.library is not None:
            self._restore(self._desk.library, self._deleted[self.query_one(LineList).cursor].name, self._desk.clock())

    @work(thread=True, exclusive=True, group="trash", exit_on_error=False, description="Restoring")
    def _restore(self, library: Library, name: str, now: float) -> None:
        self.post_message(self.Restored(cleanup.restore(library, name, now=now)))

    @on(Restored)
    def _restored(self, event: Restored) -> None:
        self.app.post_message(StoresChanged())
        if event.result.done and not event.result.failures:
            self.toast(result_words(event.result, "restore"))
            self.dismiss(event.result)
            return
        self._say(result_lines(event.result, "restore", 70, self._desk.glyphs))

    def failed(self, title: str, text: str) -> None:
        self._say([*paragraph(clean(title), 70, "bad"), *paragraph(clean(text), 70, "muted")])

    def _say(self, lines: list[Line]) -> None:
        self._said = [*lines, ()]
        self.query_one("#hint", StillLines).show(self._hint)
