"""Tables for people: clean text only, markup off, no colour where none is wanted, eighty columns where nobody looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.text import Text

from hermes_tui.model import Cost, Usage
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal

UNKNOWN = literal("?")
NONE = literal("-")
DAY = 86_400.0
PLAIN_WIDTH = 80
"""Columns of a table that goes to a file or a pipe."""
GAP = 2
"""Blanks between columns."""
LEAST_WIDE = 24
"""Cells the wide column should have before other columns are dropped."""


def console(out: TextIO, environ: Mapping[str, str]) -> Console:
    """A console that never interprets what it prints, and never colours a file."""
    is_terminal = out.isatty()
    return Console(
        file=out,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        no_color=bool(environ.get("NO_COLOR")) or not is_terminal,
        force_terminal=is_terminal,
        width=None if is_terminal else _width(environ),
        legacy_windows=False,
    )


def _width(environ: Mapping[str, str]) -> int:
    columns = environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and 20 <= int(columns) <= 1000 else PLAIN_WIDTH


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    right: bool = False
    wide: bool = False
    """Takes the width that is left, and gives it up first; at most one column of a table."""
    keep: int = 0
    """The larger, the later it is dropped when the terminal is narrow; the wide column is never dropped."""


class Table:
    """Rows of clean text in columns that fit: narrow terminals lose columns, not parts of every cell."""

    def __init__(self, *columns: Column) -> None:
        self._columns = columns
        self._rows: list[tuple[CleanText, ...]] = []

    def add(self, *cells: CleanText) -> None:
        """One row; as many cells as there are columns."""
        self._rows.append(cells)

    def __rich_console__(self, terminal: Console, options: ConsoleOptions) -> Iterator[Text]:
        places, widths = self._layout(options.max_width)
        heads = tuple(literal(column.name) for column in self._columns)
        yield Text(self._line(heads, places, widths), style="bold", no_wrap=True, overflow="crop")
        for row in self._rows:
            yield Text(self._line(row, places, widths), no_wrap=True, overflow="crop")

    def _layout(self, width: int) -> tuple[list[int], list[int]]:
        """Which columns are shown, and how wide each is."""
        natural = [
            max([cell_len(column.name), *(cell_len(row[place]) for row in self._rows)])
            for place, column in enumerate(self._columns)
        ]
        places = list(range(len(self._columns)))
        while len(places) > 1 and self._needed(places, natural) > width:
            droppable = [place for place in places if not self._columns[place].wide]
            if not droppable:
                break
            places.remove(min(droppable, key=lambda place: (self._columns[place].keep, -place)))
        widths = natural.copy()
        spare = width - sum(natural[place] + GAP for place in places) + GAP
        for place in places:
            if self._columns[place].wide:
                widths[place] = max(1, natural[place] + min(0, spare))
        return places, widths

    def _needed(self, places: Sequence[int], natural: Sequence[int]) -> int:
        wide = sum(min(natural[place], LEAST_WIDE) for place in places if self._columns[place].wide)
        rest = sum(natural[place] for place in places if not self._columns[place].wide)
        return wide + rest + GAP * (len(places) - 1)

    def _line(self, cells: Sequence[CleanText], places: Sequence[int], widths: Sequence[int]) -> str:
        parts = []
        for place in places:
            text = fitted(cells[place], widths[place])
            blank = " " * (widths[place] - cell_len(text))
            parts.append(blank + text if self._columns[place].right else text + blank)
        return (" " * GAP).join(parts).rstrip()


def line(text: CleanText, style: str = "") -> Text:
    """A line of clean text."""
    return Text(text, style=style, overflow="fold")


def cut(text: str | None, width: int, missing: CleanText = NONE) -> CleanText:
    """One line of store text, at most so many cells wide."""
    if text is None:
        return missing
    return fitted(clean_line(text), width)


def fitted(text: CleanText, width: int) -> CleanText:
    """Clean text, at most so many cells wide."""
    if cell_len(text) <= width:
        return text
    return CleanText(set_cell_size(text, width - 1).rstrip() + "…") if width > 0 else literal("")


def count(number: int | None) -> CleanText:
    """``1,204``; ``?`` where it is not known."""
    return UNKNOWN if number is None else literal(f"{number:,}")


def short(number: int | None) -> CleanText:
    """``950``, ``21.6k``, ``2.1M``, ``3.4G``."""
    if number is None:
        return UNKNOWN
    value, unit = float(number), ""
    for next_unit in ("k", "M", "G"):
        if value < 999.5:
            break
        value, unit = value / 1000, next_unit
    if not unit:
        return literal(str(number))
    return literal(f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}")


def rate(value: float | None) -> CleanText:
    """``0.89``, cut and not rounded so that 1.00 means all of it."""
    return NONE if value is None else literal(f"{int(value * 100 + 1e-9) / 100:.2f}")


def usd(cost: Cost) -> CleanText:
    """``1.42``, ``0.21~`` estimated, ``0.21±`` of several kinds, ``?`` where none is known, ``incl.`` for included."""
    if cost.status is None:
        return NONE
    if cost.usd is None:
        return UNKNOWN
    if cost.status == "included":
        return literal("incl.")
    mark = {"estimated": "~", "mixed": "±"}.get(cost.status, "")
    return literal(amount(cost.usd) + mark)


def amount(dollars: float) -> str:
    """Two decimals, more where that would be 0.00."""
    if dollars == 0 or dollars >= 0.095:
        return f"{dollars:,.2f}"
    return f"{dollars:.4f}" if dollars >= 0.00005 else "<0.0001"


def tokens(usage: Usage | None) -> CleanText:
    """All tokens of a row, short."""
    return UNKNOWN if usage is None else short(usage.total)


def when(seconds: float | None, now: float, zone: tzinfo) -> CleanText:
    """Relative when near (``2 min``, ``3 h``), else the local day."""
    if seconds is None:
        return UNKNOWN
    gone = now - seconds
    if 0 <= gone < 60:
        return literal("now")
    if 60 <= gone < 3600:
        return literal(f"{int(gone // 60)} min")
    if 3600 <= gone < DAY:
        return literal(f"{int(gone // 3600)} h")
    moment = local(seconds, zone)
    if moment is None:
        return UNKNOWN
    if 0 <= gone < 6 * DAY:
        return literal(moment.strftime("%a %H:%M"))
    return literal(moment.strftime("%d %b %Y" if gone > 300 * DAY or gone < 0 else "%d %b %H:%M"))


def stamp(seconds: float | None, zone: tzinfo) -> CleanText:
    """The local moment to the second."""
    moment = None if seconds is None else local(seconds, zone)
    return UNKNOWN if moment is None else literal(moment.strftime("%Y-%m-%d %H:%M:%S"))


def local(seconds: float, zone: tzinfo) -> datetime | None:
    """``None`` for what is no time of this world."""
    try:
        return datetime.fromtimestamp(seconds, zone)
    except (OverflowError, ValueError, OSError):
        return None
