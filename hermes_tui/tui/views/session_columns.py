"""The list of conversations as columns: which fit a width, and how one row looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Final

from hermes_tui.model import SessionRow
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.formats import Moment, count, money, rate, sparkline, total_tokens
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a row needs beside itself."""

    moment: Moment
    glyphs: Glyphs
    width: int
    """Cells of this column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the list."""

    name: str
    width: int
    """0: takes what is left."""
    right: bool
    draw: Callable[[SessionRow, Drawing], Run]
    order: str = ""
    """The list order this column shows."""


GAP: Final = "  "
"""Before a column that begins at its left edge; before one that ends at its right edge a single space will do."""
MARGIN: Final = 3
"""Cells left of the first column: cursor, selection, space."""
LEAST_TITLE: Final = 24


def _title(row: SessionRow, _drawing: Drawing) -> Run:
    if row.title:
        return clean_line(row.title), "strong" if not row.archived else "muted"
    said = clean_line(row.preview) if row.preview else literal("no messages" if not row.message_count else "")
    return literal(f"(untitled) {said}"), "muted"


def _parts(row: SessionRow, _drawing: Drawing) -> Run:
    marks = [
        f"{letter}{number}"
        for letter, number in (("c", row.compactions), ("b", row.branches), ("d", row.delegated))
        if number
    ]
    return literal(" ".join(marks)), "muted"


def folder_of(row: SessionRow, width: int) -> CleanText:
    """The last two parts of the folder, or one where two don't fit."""
    if not row.cwd:
        return literal("")
    parts = PurePath(clean_line(row.cwd)).parts
    two = "/".join(parts[-2:]).replace("//", "/")
    return CleanText(two if width_of(two) <= width else parts[-1]) if parts else literal("")


def _folder(row: SessionRow, drawing: Drawing) -> Run:
    return folder_of(row, drawing.width), "muted"


def _model(row: SessionRow, drawing: Drawing) -> Run:
    more = len(set(row.models) - {row.model})
    name = clean_line(row.model) if row.model else literal("")
    if more > 0:
        return literal(
            fit(name, max(1, min(width_of(name), drawing.width - 3)), ellipsis=drawing.glyphs.ellipsis) + f" +{more}"
        ), ""
    return name, ""


def _messages(row: SessionRow, _drawing: Drawing) -> Run:
    return count(row.message_count), ""


def _tokens(row: SessionRow, _drawing: Drawing) -> Run:
    return total_tokens(row.usage), ""


def _cache(row: SessionRow, drawing: Drawing) -> Run:
    hit = row.usage.hit_rate if row.usage is not None else None
    bad = f" {drawing.glyphs.bad}" if row.worst_drop_lost else "  "
    bars = sparkline(row.hit_rates, drawing.width - 7, drawing.glyphs) + " " if drawing.width > 7 else ""
    return literal(f"{bars}{rate(hit):>4}{bad}"), "bad" if row.worst_drop_lost else "muted"


def _cost(row: SessionRow, _drawing: Drawing) -> Run:
    said = money(row.cost)
    plain = not said.endswith(("~", "?"))
    # The sign hangs behind the number, so that the numbers stay in line.
    return literal(said + " " if plain else said), "" if plain else "estimated"


def _active(row: SessionRow, drawing: Drawing) -> Run:
    mark = drawing.glyphs.running if row.running else " "
    return literal(f"{drawing.moment.ago(row.last_active_at)} {mark}"), "good" if row.running else "muted"


def _store(row: SessionRow, _drawing: Drawing) -> Run:
    return clean_line(row.store.name), "muted"


TITLE: Final = Column("title", 0, False, _title)
PARTS: Final = Column("parts", 7, False, _parts)
STORE: Final = Column("store", 15, False, _store)
FOLDER: Final = Column("folder", 14, False, _folder)
MODEL: Final = Column("model", 16, False, _model)
MESSAGES: Final = Column("msgs", 6, True, _messages, "messages")
TOKENS: Final = Column("tokens", 7, True, _tokens, "tokens")
CACHE: Final = Column("cache", 15, True, _cache)
CACHE_NARROW: Final = Column("cache", 6, True, _cache)
COST: Final = Column("cost", 8, True, _cost, "cost")
ACTIVE: Final = Column("active", 10, True, _active, "activity")

_LAYOUTS: Final = (
    (TITLE, PARTS, STORE, FOLDER, MODEL, MESSAGES, TOKENS, CACHE, COST, ACTIVE),
    (TITLE, PARTS, FOLDER, MODEL, MESSAGES, TOKENS, CACHE_NARROW, COST, ACTIVE),
    (TITLE, PARTS, MODEL, MESSAGES, TOKENS, COST, ACTIVE),
    (TITLE, PARTS, MESSAGES, COST, ACTIVE),
    (TITLE, MESSAGES, ACTIVE),
)


def columns_for(width: int) -> tuple[Column, ...]:
    """The columns that leave the title enough room."""
    for layout in _LAYOUTS:
        if _rest(layout, width) >= LEAST_TITLE:
            return layout
    return (TITLE,)


def _rest(layout: tuple[Column, ...], width: int) -> int:
    return width - MARGIN - sum(column.width + len(_gap(column)) for column in layout) + len(_gap(layout[0]))


def _gap(column: Column) -> str:
    return " " if column.right else GAP


def heading(columns: tuple[Column, ...], width: int, order: str, glyphs: Glyphs) -> Line:
    """Names of the columns; the one the list is ordered by is marked."""
    runs: list[Run] = [(" " * MARGIN, "head")]
    for at, column in enumerate(columns):
        cells = column.width or _rest(columns, width)
        name = column.name
        ordered = bool(order) and column.order == order
        if ordered:
            spaced = f"{name} {glyphs.down}"
            name = spaced if width_of(spaced) <= cells else f"{name}{glyphs.down}"
        text = fit(name, cells, "right" if column.right else "left")
        hang = {"cost": 1, "active": 2, "cache": 2 if cells > 8 else 1}.get(column.name, 0)
        if hang and not ordered:
            # These columns keep cells for a sign behind the number.
            text = fit(name, cells - hang, "right") + " " * hang
        runs += [(_gap(column) if at else "", "head"), (text, "head accent" if ordered else "head")]
    return tuple(runs)


def row_line(
    row: SessionRow | None,
    columns: tuple[Column, ...],
    width: int,
    moment: Moment,
    glyphs: Glyphs,
    marks: str,
    tags: CleanText | str = "",
) -> Line:
    """One row, exactly ``width`` cells; ``None`` draws a placeholder. ``marks`` is cursor and selection, two cells.

    Tags stand behind the title and take at most half of its room.
    """
    runs: list[Run] = [(marks[0], "accent"), (marks[1:2], "picked"), (" ", "")]
    if row is None:
        return (*runs, (fit(glyphs.unseen * 18, max(0, width - MARGIN)), "faint"))
    for at, column in enumerate(columns):
        cells = column.width or _rest(columns, width)
        text, ink = column.draw(row, Drawing(moment, glyphs, cells))
        if at:
            runs.append((_gap(column), ""))
        if tags and column is TITLE:
            shown = fit(tags, min(width_of(tags), cells // 2), ellipsis=glyphs.ellipsis)
            cells -= width_of(shown) + 1
            used = min(width_of(text), cells)
            runs += [
                (fit(text, used, ellipsis=glyphs.ellipsis), ink),
                (f" {shown}", "tool"),
                (" " * (cells - used), ""),
            ]
            continue
        runs.append((fit(text, cells, "right" if column.right else "left", glyphs.ellipsis), ink))
    return tuple(runs)
