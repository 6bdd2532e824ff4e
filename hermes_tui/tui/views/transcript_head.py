"""The line above a transcript: which conversation, how far its cache hit, which view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_tui.model import SessionRow
from hermes_tui.text import clean_line, literal
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.formats import rate, sparkline
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, clip, line_width
from hermes_tui.tui.views.annotated import tags_text

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation

LEAST_TITLE = 20


def head_lines(
    row: SessionRow | None, parts: str, view: str, width: int, glyphs: Glyphs, said: Annotation | None = None
) -> list[Line]:
    """The head, and below it what people said about the conversation, where they said anything."""
    lines = [head_line(row, parts, view, width, glyphs)]
    if said is not None and (said.pinned or said.tags or said.note):
        lines.append(clip(_said_line(said, glyphs), width, glyphs.ellipsis))
    return lines


def _said_line(said: Annotation, glyphs: Glyphs) -> Line:
    runs: list[Run] = [(" ", "")]
    if said.pinned:
        runs.append((f"{glyphs.pinned} pinned  ", "picked"))
    if said.tags:
        runs += [(tags_text(said), "tool"), ("  ", "")]
    if said.note:
        runs += [("note ", "accent"), (clean_line(said.note), "")]
    return tuple(runs)


def head_line(row: SessionRow | None, parts: str, view: str, width: int, glyphs: Glyphs) -> Line:
    """Title, part, model on the left; record or recovery and the hit rate on the right."""
    if row is None:
        return ((" ", ""), ("Opening the conversation.", "muted"))
    dot = f" {glyphs.middot} "
    title = clean_line(row.title) if row.title else literal(f"(untitled) {clean_line(row.preview or '')}")
    more = [part for part in (parts, clean_line(row.model) if row.model else "", clean_line(row.store.name)) if part]
    right = _right(row, view, glyphs)
    if width - line_width(right) < LEAST_TITLE + 2:
        right = ()
    room = width - line_width(right) - 2
    while more and width_of(title) + sum(width_of(dot + part) for part in more) > room and len(more) > 0:
        more.pop()
    left = "".join(dot + part for part in more)
    title_room = max(1, min(width_of(title), room - width_of(left)))
    shown = fit(title, title_room, ellipsis=glyphs.ellipsis)
    fill = " " * max(1, width - 1 - width_of(shown) - width_of(left) - line_width(right))
    return ((" ", ""), (shown, "title"), (left, "muted"), (fill, ""), *right)


def _right(row: SessionRow, view: str, glyphs: Glyphs) -> tuple[Run, ...]:
    hit = row.usage.hit_rate if row.usage is not None else None
    bad = bool(row.worst_drop_lost)
    bars = sparkline(row.hit_rates, min(12, len(row.hit_rates)), glyphs) if row.hit_rates else ""
    views: list[Run] = []
    for name in ("record", "recovery"):
        views.append((f"[{name}]", "accent strong") if name == view else (f" {name} ", "muted"))
    return (
        *views,
        ("  hit rate ", "muted"),
        (f"{bars} " if bars else "", "muted"),
        (f"{rate(hit)}{' ' + glyphs.bad if bad else ''} ", "bad" if bad else ""),
    )
