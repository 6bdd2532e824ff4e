"""Hit rates of 0..1 over an axis, drawn with block signs that every font has; bad places are marked under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run

WIDEST: Final = 6
"""Cells of the widest bar."""
LABELS: Final = 6
"""Cells of the labels left of the axis."""


@dataclass(frozen=True, slots=True)
class Curve:
    """What is plotted."""

    values: tuple[float | None, ...]
    """0..1 in order; ``None`` leaves a gap."""
    marks: tuple[tuple[int, bool], ...]
    """(index, bad): a drop; expected ones are marked differently."""
    first: str
    """Under the left end; clean."""
    last: str
    """Under the right end; clean."""


def plot_lines(curve: Curve, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """``height`` lines: the plot, its axis with marks, the labels under it."""
    # Few values stand side by side as bars, not as walls.
    inner = min(max(4, width - LABELS - 1), max(len(curve.values) * WIDEST, width_of(curve.first + curve.last) + 4))
    inner = min(inner, max(4, width - LABELS - 1))
    rows = max(2, height - 2)
    columns = _columns(curve, inner)
    lines = [_row(columns, row, rows, glyphs) for row in range(rows)]
    lines.append(_axis(columns, glyphs))
    room = max(0, inner - width_of(curve.first))
    lines.append(((" " * LABELS, ""), (curve.first, "muted"), (fit(curve.last, room, "right"), "muted")))
    return lines


@dataclass(frozen=True, slots=True)
class _Column:
    value: float | None
    mark: bool | None
    """A bad drop, an expected one, or none: the sign on the axis."""
    bad: bool = False
    """Whether the value is that of a bad drop."""


def _columns(curve: Curve, inner: int) -> list[_Column]:
    """What each column shows: the mean of its values, or the lowest where a drop is among them."""
    count = len(curve.values)
    marks: dict[int, bool] = {}
    for index, bad in curve.marks:
        marks[index] = marks.get(index, False) or bad
    out: list[_Column] = []
    for column in range(inner if count else 0):
        first = column * count // inner
        last = max(first + 1, (column + 1) * count // inner)
        known = [value for value in curve.values[first:last] if value is not None]
        here = [marks[index] for index in range(first, last) if index in marks]
        value = None if not known else min(known) if any(here) else sum(known) / len(known)
        # A value that fills several columns is marked at its first one only; few values stand as bars, parted.
        begins = count > inner or column == 0 or (column - 1) * count // inner != first
        parted = count * 3 <= inner and (column + 1) * count // inner != first
        out.append(_Column(None if parted else value, any(here) if here and begins else None, any(here)))
    return out + [_Column(None, None)] * (inner - len(out))


def _row(columns: Sequence[_Column], row: int, rows: int, glyphs: Glyphs) -> Line:
    """One line of the plot, the highest first."""
    label = {0: "1.0", (rows - 1) // 2 if rows % 2 else rows // 2: "0.5"}.get(row, "") if rows > 2 else ""
    tick = glyphs.axis_tick if label else glyphs.axis_v
    runs: list[Run] = [(f"{label:>{LABELS - 2}} ", "muted"), (tick, "rule")]
    steps = len(glyphs.rising)
    signs: list[Run] = []
    for column in columns:
        filled = 0 if column.value is None else round(min(1.0, max(0.0, column.value)) * rows * steps)
        level = min(steps, filled - (rows - 1 - row) * steps)
        ink = "bad" if column.bad else "curve"
        signs.append((glyphs.rising[level - 1] if level > 0 else " ", ink))
    return (*runs, *_joined(signs))


def _axis(columns: Sequence[_Column], glyphs: Glyphs) -> Line:
    signs: list[Run] = [
        (glyphs.rule, "rule") if column.mark is None else ("x", "bad") if column.mark else ("o", "muted")
        for column in columns
    ]
    return ((f"{'0.0':>{LABELS - 2}} ", "muted"), (glyphs.axis_corner, "rule"), *_joined(signs))


def _joined(signs: Sequence[Run]) -> list[Run]:
    """Neighbours of one ink as one run."""
    out: list[Run] = []
    for sign, ink in signs:
        if out and out[-1][1] == ink:
            out[-1] = (out[-1][0] + sign, ink)
        else:
            out.append((sign, ink))
    return out
