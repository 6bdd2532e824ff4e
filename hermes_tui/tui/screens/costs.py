"""Screen 4: what it cost, by model and by much else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.cost import CostReport, cost_report
from hermes_tui.model import CostGrouping
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import DAY
from hermes_tui.tui.inks import Line, Run
from hermes_tui.tui.messages import ShowSessions
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.cost_table import GROUPINGS, grouping_name, groupings_line, heading, row_line, totals_words
from hermes_tui.tui.views.facets import behind_cost
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

PERIODS: Final[tuple[int | None, ...]] = (30, 90, None, 7)
"""Days; ``None``: all."""


class CostsScreen(Place):
    """What did it cost?"""

    PLACE = "costs"
    TAB = "costs"
    CSS_PATH = sheet("costs.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("costs")]

    @dataclass
    class ReportRead(Message):
        """The report is here."""

        grouping: CostGrouping
        days: int | None
        report: CostReport

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._grouping: CostGrouping = "model"
        self._days: int | None = PERIODS[0]
        self._report: CostReport | None = None

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="groupings")
        yield StillLines(id="heading")
        yield LineList()
        yield StillLines(id="total")

    @property
    def table(self) -> LineList:
        """The rows."""
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.table.focus()
        self.query_one("#groupings", StillLines).show(self._groupings)
        self.query_one("#heading", StillLines).show(lambda width: [heading(self._grouping, self._inner(width))])

    def library_ready(self) -> None:
        self._name_stores()
        if not self.nothing_found(self.table):
            self.read()

    def stores_changed(self) -> None:
        if self._report is not None and self.app.screen is self:
            self._read(self._grouping, self._days)

    def _inner(self, width: int) -> int:
        return self.table.scrollable_content_region.width or width

    def read(self) -> None:
        """Ask for another report."""
        self._report = None
        self.table.show(0, self._draw)
        self.table.say(("Adding up.", "muted"))
        for part in ("#groupings", "#heading"):
            self.query_one(part, StillLines).refresh()
        self.query_one("#groupings", StillLines).show(self._groupings)
        self.query_one("#heading", StillLines).show(lambda width: [heading(self._grouping, self._inner(width))])
        self.query_one("#total", StillLines).show(lambda _: [()])
        if self.desk.library is not None and not self.nothing_found(self.table):
            self._read(self._grouping, self._days)

    @work(thread=True, exclusive=True, group="costs", exit_on_error=False, description="Adding up the costs")
    def _read(self, grouping: CostGrouping, days: int | None) -> None:
        library = self.desk.library
        if library is None:
            return
        since = None if days is None else self.desk.clock() - days * DAY
        report = cost_report(library, grouping, since, None, self.desk.zone, str(self.desk.zone))
        if not get_current_worker().is_cancelled:
            self.post_message(self.ReportRead(grouping, days, report))

    @on(ReportRead)
    def _report_read(self, event: ReportRead) -> None:
        if (event.grouping, event.days) != (self._grouping, self._days):
            return
        again = self._report is not None
        report = self._report = event.report
        self.table.say(
            ("Nothing was used in this time.", "strong"), ("", ""), ("o counts 90 days, or all there is.", "muted")
        )
        self.table.show(len(report.rows), self._draw, cursor=self.table.cursor if again else 0, keep=again)
        self.query_one("#total", StillLines).show(
            lambda width: [
                row_line(report.totals, self._grouping, self._inner(width), self.desk.glyphs, False, total=True)
            ]
        )
        right: list[Run] = []
        if report.failures:
            names = ", ".join(clean_line(failure.ref.name) for failure in report.failures)
            right.append((f"! without {names}: 6 says why", "warn"))
        room = self.size.width - 2 - sum(len(text) for text, _ in right)
        self.say_status(totals_words(report, room, self.desk.glyphs), tuple(right))

    def _groupings(self, width: int) -> list[Line]:
        period = "all there is" if self._days is None else f"last {self._days} days"
        zone = clean_line(str(self.desk.zone))
        right = f"{period} {self.desk.glyphs.middot} local time {zone}"
        line = groupings_line(self._grouping, right if width >= 110 else period, width)
        return [line]

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        assert self._report is not None
        return row_line(self._report.rows[item], self._grouping, width, self.desk.glyphs, cursor)

    @on(VirtualList.Chosen)
    def _chosen(self, event: VirtualList.Chosen) -> None:
        assert self._report is not None
        key = self._report.rows[event.item].key
        facets = behind_cost(self._grouping, key, self._days, self.desk.clock(), self.desk.zone)
        if facets is not None:
            self.post_message(ShowSessions(facets))
        elif self._grouping == "task":
            self.toast("A session has many tasks, so the list knows none: group by model (m) or day (d).")
        else:
            self.toast(f"The list cannot be narrowed to what has no {grouping_name(self._grouping)}.")

    # Actions.

    def group_by(self, grouping: CostGrouping) -> None:
        """Show another grouping."""
        if grouping != self._grouping:
            self._grouping = grouping
            self.read()

    def _step(self, step: int) -> None:
        at = GROUPINGS.index(self._grouping)
        self.group_by(GROUPINGS[(at + step) % len(GROUPINGS)])

    def action_next_group(self) -> None:
        self._step(1)

    def action_previous_group(self) -> None:
        self._step(-1)

    def action_model(self) -> None:
        self.group_by("model")

    def action_task(self) -> None:
        self.group_by("task")

    def action_day(self) -> None:
        self.group_by("day")

    def action_source(self) -> None:
        self.group_by("source")

    def action_cwd(self) -> None:
        self.group_by("cwd")

    def action_profile(self) -> None:
        self.group_by("profile")

    def action_channel(self) -> None:
        self.group_by("channel")

    def action_store(self) -> None:
        self.group_by("store")

    def action_period(self) -> None:
        self._days = PERIODS[(PERIODS.index(self._days) + 1) % len(PERIODS)]
        self.read()
