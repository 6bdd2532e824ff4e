"""Writing conversations to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from hermes_tui.library.export import FORMATS, ExportOptions, export_to, file_name
from hermes_tui.records import dataclass
from hermes_tui.text import clean
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.inks import Line
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.lines import StillLines

if TYPE_CHECKING:
    from hermes_tui.library.sources import Found


class ExportDialog(Dialog[None]):
    """Format, redaction, file name; Enter writes, never over a file that is there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+f", "format", "Format", show=False, priority=True),
        Binding("ctrl+r", "redact", "Redact", show=False, priority=True),
    ]

    @dataclass
    class Written(Message):
        """The file is there."""

        path: Path

    def __init__(self, founds: Sequence[Found]) -> None:
        super().__init__()
        self._founds = list(founds)
        self._options = ExportOptions(conversation=True)
        self._trouble = ""
        self._writing = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield StillLines(id="title")
            yield FilterLine("file", id="path")
            yield StillLines(id="said")

    def on_mount(self) -> None:
        number = len(self._founds)
        what = "this conversation" if number == 1 else f"{number:,} conversations"
        self.query_one("#title", StillLines).show(lambda _: [((f"Export {what}", "title"),)])
        self.query_one("#said", StillLines).show(self._view)
        line = self.query_one("#path", FilterLine)
        line.value = str(Path.cwd() / self._suggested())
        line.focus()

    def _suggested(self) -> str:
        if len(self._founds) == 1:
            return file_name(self._founds[0], self._options)
        return f"conversations.{self._options.format}"

    def _view(self, width: int) -> list[Line]:
        options = self._options
        lines: list[Line] = [
            (
                ("format   ", "muted"),
                *((f" {name} ", "here" if name == options.format else "muted") for name in FORMATS),
            ),
            (
                ("secrets  ", "muted"),
                ("are replaced" if options.redact else "are written as they are", "" if options.redact else "warn"),
            ),
        ]
        if self._writing:
            lines += [(), (("Writing.", "notice"),)]
        if self._trouble:
            lines += [(), *paragraph(clean(self._trouble), width, "bad")]
        keys: Line = (
            ("Enter", "key"),
            (" write  ", "muted"),
            ("^f", "key"),
            (" format  ", "muted"),
            ("^r", "key"),
            (" secrets  ", "muted"),
            ("Esc", "key"),
            (" close", "muted"),
        )
        return [*lines, (), keys]

    def _redraw(self) -> None:
        self.query_one("#said", StillLines).show(self._view)

    def action_format(self) -> None:
        before = self._options.format
        following = FORMATS[(FORMATS.index(before) + 1) % len(FORMATS)]
        self._options = replace(self._options, format=following)
        line = self.query_one("#path", FilterLine)
        line.value = (
            line.value.removesuffix(f".{before}") + f".{following}" if line.value.endswith(before) else line.value
        )
        self._redraw()

    def action_redact(self) -> None:
        self._options = replace(self._options, redact=not self._options.redact)
        self._redraw()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value.strip() and not self._writing:
            self._writing, self._trouble = True, ""
            self._redraw()
            self._write(Path(event.value.strip()).expanduser(), self._options)

    @work(thread=True, exclusive=True, group="export", exit_on_error=False, description="Exporting")
    def _write(self, path: Path, options: ExportOptions) -> None:
        self.post_message(self.Written(export_to(path, self._founds, options)))

    def failed(self, title: str, text: str) -> None:
        self._writing = False
        # "--yes" is a word of the command line; here another name is the way.
        self._trouble = title if "is there already" in title else f"{title}\n{text}".strip()
        self._redraw()

    @on(Written)
    def _written(self, event: Written) -> None:
        self.toast(f"Wrote {event.path}")
        self.dismiss(None)
