"""The error panel: what failed, why, what to try, where the details are; can be copied."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from hermes_tui.text import clean, literal
from hermes_tui.tui.dialogs.base import paragraph
from hermes_tui.tui.explain import explain
from hermes_tui.tui.inks import Line
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.widgets.lines import StillLines


class ErrorPanel(ModalScreen[None]):
    """Tells one failure; Escape closes it."""

    CSS_PATH = sheet("dialogs.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close"),
        Binding("y", "copy", "Copy"),
    ]

    def __init__(self, doing: str, error: BaseException | None, log: Path | None = None) -> None:
        super().__init__()
        self._doing = doing
        self._error = error
        self._log = log
        self._title, self._text = explain(error)

    def compose(self) -> ComposeResult:
        with Vertical(classes="box failed"):
            yield StillLines(id="said")

    def on_mount(self) -> None:
        self.query_one("#said", StillLines).show(self._view)
        if self._log is not None and self._error is not None:
            self.run_worker(self._write_log, thread=True, exit_on_error=False, description="Writing the log")

    def _write_log(self) -> None:
        assert self._log is not None
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._log.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.writelines(traceback.format_exception(self._error))
        self._log.chmod(0o600)

    def _view(self, width: int) -> list[Line]:
        lines: list[Line] = [((f"{self._doing} failed", "bad strong"),), ()]
        lines += paragraph(self._title, width)
        lines += paragraph(self._text, width, "muted") if self._text else []
        if self._log is not None:
            lines += [(), *paragraph(f"Details: {clean(str(self._log))}", width, "muted")]
        return [*lines, (), (("y", "key"), (" copy  ", "muted"), ("Esc", "key"), (" close", "muted"))]

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(f"{self._title}\n{self._text}")
        self.notify(literal("Copied the message."), markup=False)

    def action_close(self) -> None:
        self.dismiss(None)
