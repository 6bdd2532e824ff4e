"""Going on with a conversation in its own agent: the exact command, before it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from hermes_tui.library.resume import folder_is_gone, resume_command, shell_line
from hermes_tui.model import ResumeCommand
from hermes_tui.records import dataclass
from hermes_tui.text import clean, clean_line
from hermes_tui.tui.dialogs.base import Dialog, paragraph
from hermes_tui.tui.inks import Line
from hermes_tui.tui.messages import StoresChanged
from hermes_tui.tui.widgets.lines import StillLines

if TYPE_CHECKING:
    from hermes_tui.library.sources import Found


class ResumeDialog(Dialog[None]):
    """Shows the command; Enter runs it here and comes back, y copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "start", "Run", show=False),
        Binding("y", "copy", "Copy", show=False),
    ]

    @dataclass
    class CommandRead(Message):
        """The command, and why it can't run here; '' where it can."""

        command: ResumeCommand
        obstacle: str

    def __init__(self, found: Found) -> None:
        super().__init__()
        self._found = found
        self._command: ResumeCommand | None = None
        self._obstacle = ""
        self._trouble = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="box asking"):
            yield StillLines(id="said")

    def on_mount(self) -> None:
        self.query_one("#said", StillLines).show(self._view)
        self._read()

    @work(thread=True, exit_on_error=False, description="Finding the command")
    def _read(self) -> None:
        command = resume_command(self._found)
        obstacle = ""
        if folder_is_gone(command):
            obstacle = f"Its folder {command.cwd} is gone."
        elif shutil.which(command.argv[0]) is None:
            obstacle = f"{command.argv[0]} is not on this machine's path."
        self.post_message(self.CommandRead(command, obstacle))

    @on(CommandRead)
    def _command_read(self, event: CommandRead) -> None:
        self._command, self._obstacle = event.command, event.obstacle
        self.query_one("#said", StillLines).show(self._view)

    def failed(self, title: str, text: str) -> None:
        self._trouble = f"{title}\n{text}".strip()
        self.query_one("#said", StillLines).show(self._view)

    def _view(self, width: int) -> list[Line]:
        lines: list[Line] = [(("Resume", "title"), (f"  {clean_line(self._found.session_id)}", "muted")), ()]
        if self._trouble:
            lines += paragraph(clean(self._trouble), width, "bad")
        elif self._command is None:
            lines.append((("Finding the command.", "muted"),))
        else:
            lines += [(("The agent's own command, which may change its store:", "muted"),), ()]
            lines += paragraph(clean_line(shell_line(self._command)), width, "code")
            if self._obstacle:
                lines += [(), *paragraph(clean_line(self._obstacle), width, "bad")]
        keys: list[tuple[str, str]] = []
        if self._command is not None and not self._obstacle:
            keys += [("Enter", "key"), (" run it  ", "muted")]
        if self._command is not None:
            keys += [("y", "key"), (" copy  ", "muted")]
        return [*lines, (), (*keys, ("Esc", "key"), (" close", "muted"))]

    def action_copy(self) -> None:
        if self._command is not None:
            self.app.copy_to_clipboard(shell_line(self._command))
            self.toast("Copied the command.")

    def action_start(self) -> None:
        """Give the terminal to the agent, and take it back when it ends."""
        command = self._command
        if command is None or self._obstacle:
            return
        try:
            with self.app.suspend():
                done = subprocess.run(
                    list(command.argv), cwd=command.cwd, env={**os.environ, **dict(command.environment)}, check=False
                )
        except SuspendNotSupported:
            self._obstacle = "This terminal cannot be given away: copy the command instead."
            self.query_one("#said", StillLines).show(self._view)
            return
        except OSError as error:
            self.failed(f"{command.argv[0]} could not be started", error.strerror or str(error))
            return
        if done.returncode:
            self.toast(f"{command.argv[0]} ended with {done.returncode}.", bad=True)
        self.app.post_message(StoresChanged())
        self.dismiss(None)
