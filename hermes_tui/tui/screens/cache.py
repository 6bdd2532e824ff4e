"""Screen 5: where the prompt cache stopped hitting, why, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.cache import CacheReport, Drop, cache_report
from hermes_tui.library.catalog import row_of
from hermes_tui.library.sources import Found
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit, wrap
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import DAY, count, counted, usd
from hermes_tui.tui.inks import Line, Run, spread
from hermes_tui.tui.messages import ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.drop_table import curve_of, drop_line, heading
from hermes_tui.tui.views.plot import Curve, plot_lines
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

DAYS: Final = 30
"""How far back all conversations are looked at."""
NO_CURVE: Final = Curve((), (), "", "")


class CacheScreen(Place):
    """Where did the cache stop hitting, why, and what did it cost?"""

    PLACE = "cache"
    TAB = "cache"
    CSS_PATH = sheet("cache.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("cache")]

    @dataclass
    class ReportRead(Message):
        """The report is here."""

        found: Found | None
        report: CacheReport
        title: CleanText

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._shown: Found | None = None
        self._asked = False
        """Whether a report was asked for since the library was opened."""
        self._all = False
        self._expected = False
        self._by_time = False
        self._report: CacheReport | None = None
        self._title = literal("")
        self._curve = NO_CURVE
        self._plot_height = 8
        self._drops: list[Drop] = []
        self._numbers: dict[int, int] = {}

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="head")
        yield StillLines(id="plot")
        yield StillLines(id="heading")
        yield LineList()
        yield StillLines(id="evidence")

    @property
    def table(self) -> LineList:
        """The drops."""
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.query_one("#head", StillLines).show(self._head)
        self.query_one("#plot", StillLines).show(self._plot)
        self.query_one("#heading", StillLines).show(lambda width: [heading(width, self._all)])
        self.table.focus()

    def on_resize(self) -> None:
        height = self.size.height
        self._plot_height = 12 if height >= 34 else 9 if height >= 28 else 7
        self.query_one("#plot").styles.height = self._plot_height
        self.query_one("#plot", StillLines).show(self._plot)

    def on_screen_resume(self) -> None:
        if self.desk.library is None or self.nothing_found(self.table):
            return
        if self.desk.subject is None:
            self._all = True
        if not self._asked or (not self._all and self.desk.subject != self._shown):
            self.read()

    def asked_about(self) -> None:
        """About the conversation at hand, whatever was looked at before."""
        if self._all:
            self._all = False
            self._asked = False

    def library_ready(self) -> None:
        if self.nothing_found(self.table):
            return
        self._asked = False
        self.on_screen_resume()

    def stores_changed(self) -> None:
        if self._report is not None and self.app.screen is self:
            self._read(None if self._all else self._shown)

    def read(self) -> None:
        """Look at another conversation, or at all."""
        self._asked = True
        self._shown = self.desk.subject
        self._report, self._drops, self._curve = None, [], NO_CURVE
        self._title = literal("all conversations" if self._all else "")
        self.table.show(0, self._draw)
        self.table.say(("Looking at every request.", "muted"))
        self._show_parts()
        self._read(None if self._all else self._shown)

    @work(thread=True, exclusive=True, group="cache", exit_on_error=False, description="Looking at the cache")
    def _read(self, found: Found | None) -> None:
        library = self.desk.library
        if library is None:
            return
        title = literal("all conversations")
        if found is not None:
            row = row_of(found, conversation=True)
            title = clean_line(row.title or row.preview or row.id) if row is not None else clean_line(found.session_id)
        report = cache_report(library, found, None if found is not None else self.desk.clock() - DAYS * DAY)
        if not get_current_worker().is_cancelled:
            self.post_message(self.ReportRead(found, report, title))

    @on(ReportRead)
    def _report_read(self, event: ReportRead) -> None:
        if event.found != (None if self._all else self._shown):
            return
        self._report, self._title = event.report, event.title
        self._numbers = {id(point.request): number for number, point in enumerate(event.report.points, 1)}
        self._curve = curve_of(event.report, self.desk.moment, by_day=self._all)
        self._show_drops()

    def _show_drops(self) -> None:
        report = self._report
        if report is None:
            return
        drops = [drop for drop in report.drops if self._expected or not drop.expected]
        if self._by_time:
            drops.sort(key=lambda drop: -(drop.request.at or 0.0))
        else:
            drops.sort(key=lambda drop: (drop.expected, -(drop.cost_usd or 0.0), -drop.lost_tokens))
        self._drops = drops
        hidden = len(report.drops) - len(drops)
        if not report.points:
            self.table.say(("Its store keeps no usage, so nothing can be said of the cache.", "strong"))
        else:
            self.table.say(
                ("The cache hit as it could.", "good"),
                ("", ""),
                (_expected_words(hidden), "muted"),
            )
        self.table.show(len(drops), self._draw)
        self._show_parts()
        self._show_status()

    def _show_parts(self) -> None:
        self.query_one("#head", StillLines).show(self._head)
        self.query_one("#plot", StillLines).show(self._plot)
        self.query_one("#heading", StillLines).show(lambda width: [heading(width, self._all)])
        self.query_one("#evidence", StillLines).show(self._evidence)

    def _head(self, width: int) -> list[Line]:
        report = self._report
        if report is None:
            return [((" ", ""), (self._title, "title"))]
        dot = f" {self.desk.glyphs.middot} "
        what = counted(len(report.points), "request") + (f", last {DAYS} days, day by day" if self._all else "")
        bad = [drop for drop in report.drops if not drop.expected]
        lost = sum(drop.lost_tokens for drop in bad)
        cost = sum(drop.cost_usd or 0.0 for drop in bad)
        right: tuple[Run, ...] = (("nothing lost ", "good"),)
        if bad:
            known = [drop for drop in bad if drop.cost_usd is not None]
            unknown = "" if len(known) == len(bad) else " + unknown"
            money = f"about {usd(cost)}{unknown}" if known else "cost unknown"
            right = ((f"{counted(len(bad), 'drop')}, lost {count(lost)} tokens, {money} ", "bad"),)
        return [spread(((" ", ""), (self._title, "title"), (dot + what, "muted")), right, width)]

    def _plot(self, width: int) -> list[Line]:
        return plot_lines(self._curve, width, self._plot_height, self.desk.glyphs)

    def _evidence(self, width: int) -> list[Line]:
        if not self._drops:
            return [(), ()]
        drop = self._drops[min(self.table.cursor, len(self._drops) - 1)]
        text = clean_line(drop.evidence) or ("It was expected." if drop.expected else "Nothing in the store tells why.")
        if self._all:
            # Of one conversation the head says which.
            where = clean_line(f"{drop.store.name}:{drop.request.session_id}")
            text = literal(f"{text} {self.desk.glyphs.middot} {where}")
        ranges = wrap(text, max(10, width - 22))[:2]
        lines: list[Line] = []
        for at, (start, end) in enumerate(ranges):
            lines.append(((" ", ""), (fit(drop.cause if at == 0 else "", 18), "warn strong"), (text[start:end], "")))
        return [*lines, ()][:2]

    @on(VirtualList.Moved)
    def _moved(self) -> None:
        self.query_one("#evidence", StillLines).show(self._evidence)

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        drop = self._drops[item]
        number = None if self._all else self._numbers.get(id(drop.request))
        return drop_line(drop, number, width, self.desk.moment, self.desk.glyphs, cursor)

    def _show_status(self) -> None:
        report = self._report
        if report is None:
            return
        hidden = len(report.drops) - len(self._drops)
        runs: list[Run] = [("x", "bad"), (" bad drop  ", "muted"), ("o", "muted"), (" expected  ", "muted")]
        runs.append((f"cause unknown: {report.unknown_share * 100:.0f} %  ", "muted"))
        if hidden:
            runs.append((f"{hidden:,} expected not listed", "muted"))
        right: list[Run] = []
        if report.failures:
            names = ", ".join(clean_line(failure.ref.name) for failure in report.failures)
            right.append((f"! without {names}: 6 says why", "warn"))
        self.say_status(tuple(runs), tuple(right))

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        library = self.desk.library
        if library is None or not self._drops:
            return
        drop = self._drops[self.table.cursor]
        store = library.store_named(drop.store.name)
        if store is None:
            self.toast(f"{drop.store.name} is not open any more.", bad=True)
            return
        found = Found(store, drop.request.session_id, library.prices)
        self.post_message(ShowTranscript(found, drop.request.message_id))

    def action_scope(self) -> None:
        if self._all and self.desk.subject is None:
            self.toast("No conversation is chosen: press 1 and put the cursor on one.")
            return
        self._all = not self._all
        self.read()

    def action_expected(self) -> None:
        self._expected = not self._expected
        self._show_drops()

    def action_sort(self) -> None:
        self._by_time = not self._by_time
        self._show_drops()
        self.toast("Newest drops first." if self._by_time else "Dearest drops first.")


def _expected_words(hidden: int) -> str:
    if not hidden:
        return "Every request found what it could find."
    return f"{counted(hidden, 'miss was', 'misses were')} expected (first requests, compactions, forks): e shows them."
