"""What it cost, as a table with a bar for the hit rate."""

from __future__ import annotations

from typing import Final

from hermes_tui.library.cost import CostReport, CostRow
from hermes_tui.model import CostGrouping
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line
from hermes_tui.tui.cells import fit, fit_end
from hermes_tui.tui.formats import bar, count, money, rate, tokens, usd
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, line_width

GROUPINGS: Final[tuple[CostGrouping, ...]] = ("model", "task", "day", "source", "cwd", "profile", "channel", "store")
NAMES: Final[dict[CostGrouping, str]] = {"cwd": "folder"}
NO_KEY: Final[dict[CostGrouping, str]] = {
    "model": "(no model)",
    "cwd": "(no folder)",
    "channel": "(no channel)",
    "profile": "(no profile)",
    "source": "(no source)",
    "day": "(no time)",
}
BAR: Final = 10
LEAST_KEY: Final = 20


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    width: int
    keep: int
    """Fields with a higher number are left out first where there is little room."""


_FIELDS: Final = (
    _Field("sessions", 10, 1),
    _Field("requests", 10, 3),
    _Field("input", 9, 2),
    _Field("read", 9, 2),
    _Field("write", 9, 4),
    _Field("output", 9, 2),
    _Field("hit", BAR + 8, 5),
    _Field("rate", 7, 1),
    _Field("cost", 12, 0),
)


def fields_for(width: int) -> tuple[_Field, ...]:
    """The columns that leave the key enough room."""
    for most in range(5, -1, -1):
        fields = tuple(one for one in _FIELDS if one.keep <= most and not (one.name == "rate" and most == 5))
        if width - 3 - sum(one.width for one in fields) >= LEAST_KEY:
            return fields
    return _FIELDS[-1:]


LEAST_PRICED: Final = 30
"""Cells left for who priced it."""


def grouping_name(grouping: CostGrouping) -> str:
    """As people say it."""
    return NAMES.get(grouping, grouping)


def groupings_line(chosen: CostGrouping, right: str, width: int) -> Line:
    """``by model  task  day …``, the chosen one marked; the period and zone on the right."""
    runs: list[Run] = [(" by ", "muted")]
    for grouping in GROUPINGS:
        name = grouping_name(grouping)
        runs.append((f" {name} ", "here") if grouping == chosen else (f" {name} ", "muted"))
    used = sum(len(text) for text, _ in runs)
    return (*runs, (fit(right + " ", max(0, width - used), "right"), "muted"))


def heading(grouping: CostGrouping, width: int) -> Line:
    """Names of the columns."""
    fields = fields_for(width)
    room = width - 3 - sum(one.width for one in fields)
    return ((fit("  " + grouping_name(grouping), room + 2), "head"), *((_head_cell(one), "head") for one in fields))


def _head_cell(field: _Field) -> str:
    if field.name == "hit":
        return "   " + fit("hit", field.width - 3)
    name = "hit" if field.name == "rate" else field.name
    return fit(name + (" " if field.name == "cost" else ""), field.width, "right")


def row_line(
    row: CostRow, grouping: CostGrouping, width: int, glyphs: Glyphs, cursor: bool, total: bool = False
) -> Line:
    """One line of the table."""
    fields = fields_for(width)
    room = width - 3 - sum(one.width for one in fields)
    key = "total" if total else clean_line(row.key) if row.key else NO_KEY.get(grouping, "(none)")
    ink = "strong" if total else "" if row.key else "muted"
    edge: Run = (glyphs.cursor + " " if cursor else "  ", "accent")
    fitted = fit_end if grouping == "cwd" else fit
    runs: list[Run] = [edge, (fitted(key, room, ellipsis=glyphs.ellipsis), ink)]
    for field in fields:
        runs += _cell(field, row, glyphs, total)
    return tuple(runs)


def _cell(field: _Field, row: CostRow, glyphs: Glyphs, total: bool) -> list[Run]:
    usage = row.usage
    ink = "strong" if total else ""
    if field.name == "hit":
        full, rest = bar(usage.hit_rate, BAR, glyphs)
        return [("   ", ""), (full, _level_ink(usage.hit_rate)), (rest, "rule"), (f" {rate(usage.hit_rate):<4}", ink)]
    if field.name == "cost":
        said = money(row.cost)
        if total and row.cost.usd is not None and row.cost.status in {"unknown", "mixed"}:
            unknown = any(status == "unknown" for status, _ in row.parts)
            said = clean_line(f"{usd(row.cost.usd)}" + ("+?" if unknown else "~"))
        hang = said if said.endswith(("~", "?")) else said + " "
        return [(fit(hang, field.width, "right"), "estimated" if said.endswith(("~", "?")) and not total else ink)]
    values = {
        "sessions": count(row.sessions),
        "requests": count(row.requests),
        "input": tokens(usage.input) if usage.input else "-",
        "read": tokens(usage.cache_read) if usage.cache_read else "-",
        "write": tokens(usage.cache_write) if usage.cache_write else "-",
        "output": tokens(usage.output) if usage.output else "-",
        "rate": rate(usage.hit_rate),
    }
    return [(fit(values[field.name], field.width, "right"), ink)]


def _level_ink(hit: float | None) -> str:
    """The number stands beside the bar; the colour only says it again."""
    return "good" if hit is None or hit >= 0.7 else "warn" if hit >= 0.4 else "bad"


def totals_words(report: CostReport, width: int, glyphs: Glyphs) -> tuple[Run, ...]:
    """``actual 12.10 · estimated 124.32 · some unknown``: money told apart by how it is known, and by whom."""
    dot = f" {glyphs.middot} "
    runs: list[Run] = []
    for status, amount in report.totals.parts:
        if runs:
            runs.append((dot, "muted"))
        if status == "included":
            runs.append(("some included in a plan", ""))
        elif amount is None:
            runs.append(("some unknown", "warn"))
        else:
            runs += [(f"{status} ", "muted"), (usd(amount), "")]
    # Cut rather than left out, unless next to nothing of it would be seen.
    if report.totals.priced_by and line_width(tuple(runs)) + LEAST_PRICED <= width:
        runs += [(f"{dot}priced by ", "muted"), (clean_line(report.totals.priced_by), "")]
    return tuple(runs) or (("nothing was used", "muted"),)
