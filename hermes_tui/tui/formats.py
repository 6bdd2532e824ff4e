"""Numbers, money, times and rates as a person reads them in a narrow column."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Final

from hermes_tui.model import Cost, Usage
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, literal
from hermes_tui.tui.glyphs import Glyphs

NONE: Final = literal("-")
MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class Moment:
    """Now and where: passed in, so that a test needs no patching."""

    now: float
    zone: tzinfo

    def local(self, at: float) -> datetime:
        """This time in the zone of the screen."""
        return datetime.fromtimestamp(at, self.zone)

    def ago(self, at: float | None) -> CleanText:
        """Relative when near, a weekday within a week, else a date; at most 9 cells."""
        if at is None:
            return NONE
        gone = self.now - at
        if gone < -MINUTE:
            return self.day(at)
        if gone < MINUTE:
            return literal("now")
        if gone < HOUR:
            return literal(f"{int(gone / MINUTE)} min")
        if gone < DAY:
            return literal(f"{int(gone / HOUR)} h")
        if gone < 7 * DAY:
            return literal(_DAYS[self.local(at).weekday()])
        return self.day(at)

    def day(self, at: float | None) -> CleanText:
        """``26 Feb``, with the year where it is another one."""
        if at is None:
            return NONE
        moment = self.local(at)
        if moment.year == self.local(self.now).year:
            return literal(f"{moment.day} {_MONTHS[moment.month - 1]}")
        return literal(f"{_MONTHS[moment.month - 1]} {moment.year}")

    def full(self, at: float | None) -> CleanText:
        """``26 Feb 06:13``, with the year where it is another one."""
        if at is None:
            return NONE
        moment = self.local(at)
        year = "" if moment.year == self.local(self.now).year else f" {moment.year}"
        return literal(f"{moment.day} {_MONTHS[moment.month - 1]}{year} {moment:%H:%M}")

    def clock(self, at: float | None) -> CleanText:
        """``06:13:21``."""
        return NONE if at is None else literal(f"{self.local(at):%H:%M:%S}")


def count(number: int | None) -> CleanText:
    """With thousands separators; ``-`` for unknown."""
    return NONE if number is None else literal(f"{number:,}")


def counted(number: int, one: str, many: str = "") -> CleanText:
    """``1 session``, ``1,204 sessions``; ``many`` where an s is not enough."""
    return literal(f"{number:,} {one if number == 1 else many or one + 's'}")


def tokens(number: int | None) -> CleanText:
    """Short: 812, 9.9k, 310k, 2.1M."""
    if number is None:
        return NONE
    if abs(number) < 1_000:
        return literal(str(number))
    for factor, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        value = number / factor
        if abs(value) < 9.95:
            return literal(f"{value:.1f}{unit}")
        if abs(value) < 999.5:
            return literal(f"{value:.0f}{unit}")
    return literal(f"{number / 1e12:.1f}T")


def size(number: int) -> CleanText:
    """Bytes: 812 B, 4.1 kB, 2.1 MB."""
    if number < 1_000:
        return literal(f"{number} B")
    for factor, unit in ((1e3, "kB"), (1e6, "MB"), (1e9, "GB")):
        value = number / factor
        if value < 999.5:
            return literal(f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}")
    return literal(f"{number / 1e12:.1f} TB")


def money(cost: Cost) -> CleanText:
    """``1.42`` actual, ``0.21~`` estimated, ``incl`` included, ``?`` unknown, ``1.42+?`` partly unknown."""
    if cost.status is None and cost.usd is None:
        return NONE
    if cost.status == "included":
        return literal("incl")
    if cost.usd is None:
        return literal("?")
    mark = {"estimated": "~", "mixed": "~", "unknown": "?"}.get(cost.status or "", "")
    return literal(usd(cost.usd) + mark)


def usd(amount: float) -> str:
    """Two places from a cent up, more below, so that a small sum is not shown as nothing."""
    if amount == 0 or abs(amount) >= 0.01:
        return f"{amount:,.2f}"
    return f"{amount:.4f}" if abs(amount) >= 0.00005 else "<0.0001"


def rate(value: float | None) -> CleanText:
    """``0.92``, cut and not rounded so that 1.00 means all of it; ``-`` where nothing was sent."""
    return NONE if value is None else literal(f"{int(value * 100 + 1e-9) / 100:.2f}")


def bar(value: float | None, width: int, glyphs: Glyphs) -> tuple[CleanText, CleanText]:
    """A bar of ``width`` cells for 0..1: the full part and the rest."""
    if value is None:
        return literal(""), literal(" " * width)
    full, half, empty = glyphs.level
    halves = round(min(1.0, max(0.0, value)) * width * 2)
    part = full * (halves // 2) + half * (halves % 2)
    return literal(part), literal(empty * (width - len(part)))


def sparkline(values: tuple[float | None, ...], width: int, glyphs: Glyphs) -> CleanText:
    """The newest ``width`` hit rates as small bars, right aligned; a gap where there is none."""
    steps = len(glyphs.rising) - 1
    signs = (" " if v is None else glyphs.rising[round(min(1.0, max(0.0, v)) * steps)] for v in values[-width:])
    return literal("".join(signs).rjust(width))


def total_tokens(usage: Usage | None) -> CleanText:
    """Prompt size + output, short."""
    return NONE if usage is None else tokens(usage.total)
