"""Screen 6: is what I see true?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.health import Health, doctor
from hermes_tui.model import ListQuery
from hermes_tui.records import dataclass
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.messages import ShowSessions
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.facets import Facets
from hermes_tui.tui.views.health_report import HealthLine, health_lines, summary
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.virtual_list import VirtualList


class HealthScreen(Place):
    """Findings of the stores, the mirror, the settings."""

    PLACE = "health"
    TAB = "health"
    CSS_PATH = sheet("health.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("health")]

    @dataclass
    class Checked(Message):
        """The report is here."""

        health: Health

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._health: Health | None = None
        self._lines: list[HealthLine] = []

    def body(self) -> Iterable[Widget]:
        yield LineList()

    @property
    def report(self) -> LineList:
        """The lines."""
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.report.say(("Checking every store. This may take a while for large ones.", "muted"))
        self.report.focus()

    def library_ready(self) -> None:
        self._name_stores()
        self._check()

    @work(thread=True, exclusive=True, group="health", exit_on_error=False, description="Checking the stores")
    def _check(self) -> None:
        if self.desk.library is None:
            return
        from hermes_tui.library.mirroring import mirror_health

        health = doctor(self.desk.library, mirror_health)
        if not get_current_worker().is_cancelled:
            self.post_message(self.Checked(health))

    @on(Checked)
    def _checked(self, event: Checked) -> None:
        self._health = event.health
        self._show()

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        if self._health is None:
            return
        lines = self._lines = health_lines(self._health, self.size.width - 2, self.desk.glyphs)
        self.report.show(
            len(lines), self._draw, cursor=self.report.cursor, may_stand=lambda item: lines[item].stands, keep=True
        )
        self.say_status(summary(self._health))

    def _draw(self, item: int, width: int, cursor: bool) -> tuple[tuple[str, str], ...]:  # noqa: ARG002
        line = self._lines[item].line
        if cursor and line:
            return ((self.desk.glyphs.cursor, "accent"), (line[0][0][1:], line[0][1]), *line[1:])
        return line

    @on(VirtualList.Chosen)
    def _chosen(self, event: VirtualList.Chosen) -> None:
        store = self._lines[event.item].store
        if store is None:
            self.toast("This is about no store: put the cursor on one to see its sessions.")
        else:
            self.post_message(ShowSessions(Facets(store=store, archived=True, delegated=True)))

    def action_reload(self) -> None:
        self._health = None
        self.report.show(0, self._draw)
        self.report.say(("Checking again.", "muted"))
        self._check()

    def action_copy(self) -> None:
        line = self._lines[self.report.cursor] if self._lines else None
        if line is None or line.finding is None:
            self.toast("Put the cursor on a finding.")
            return
        finding = line.finding
        text = "\n".join(part for part in (finding.code, finding.detail, finding.advice or "", *finding.paths) if part)
        self.app.copy_to_clipboard(text)
        self.toast(f"Copied {finding.code}.")

    def action_prune(self) -> None:
        from hermes_tui.tui.dialogs.prune import PruneDialog

        self.app.push_screen(PruneDialog(self.desk, ListQuery()))
