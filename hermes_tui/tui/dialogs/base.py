"""What dialogs have in common: a box, Escape closes, failures are told inside."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState

from hermes_tui.text import clean
from hermes_tui.tui.cells import wrap
from hermes_tui.tui.explain import explain
from hermes_tui.tui.inks import Line
from hermes_tui.tui.stylesheets import sheet

Answer = TypeVar("Answer")


def paragraph(text: str, width: int, ink: str = "") -> list[Line]:
    """Clean text broken to a width."""
    return [((text[start:end], ink),) for start, end in wrap(text, width)]


class Dialog(ModalScreen[Answer]):
    """A box over the screen."""

    CSS_PATH = sheet("dialogs.tcss")
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", "Close", show=False)]

    def action_close(self) -> None:
        self.dismiss(None)

    def toast(self, text: str, *, bad: bool = False) -> None:
        """Say something small in passing."""
        self.notify(clean(text), severity="error" if bad else "information", markup=False, timeout=6)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Tell a failure of a worker."""
        if event.state is not WorkerState.ERROR:
            return
        event.stop()
        title, text = explain(event.worker.error)
        self.failed(title, text)

    def failed(self, title: str, text: str) -> None:
        """Tell it; a dialog with a place for it does so there."""
        self.toast(f"{title}\n{text}".strip(), bad=True)
