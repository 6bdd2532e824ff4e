"""Hits of a search grouped by conversation, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from hermes_tui.library.search import SearchHit
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.formats import Moment
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, clip, spread
from hermes_tui.tui.views.blocks import KIND_INKS

INDENT: Final = 3
OPEN: Final = ">>>"
CLOSE: Final = "<<<"
LONGEST: Final = 1_000
"""Characters kept of a text beside a hit: more never fits its line."""
GroupKey = tuple[str, str]


@dataclass(slots=True)
class Group:
    """The hits of one conversation."""

    key: GroupKey
    first: SearchHit
    hits: list[SearchHit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in the list: the heading of a conversation, or a hit in it."""

    group: Group
    hit: SearchHit | None
    lead: bool = False
    """A blank line stands before it."""

    @property
    def height(self) -> int:
        """Lines."""
        if self.hit is None:
            return 1 + int(self.lead)
        return 1 + sum(1 for one in (self.hit.before, self.hit.after) if one is not None and one.text.strip())


def add_hits(groups: list[Group], hits: Sequence[SearchHit]) -> None:
    """Put new hits into their conversations; conversations stay in the order of their first hit."""
    known = {group.key: group for group in groups}
    for hit in hits:
        key = (hit.store.ref.name, hit.root_id or hit.head.session_id)
        group = known.get(key)
        if group is None:
            group = known[key] = Group(key, hit)
            groups.append(group)
        group.hits.append(hit)


def items_of(groups: Sequence[Group]) -> list[Item]:
    """What the list shows."""
    out: list[Item] = []
    for group in groups:
        out.append(Item(group, None, lead=bool(out)))
        out += [Item(group, hit) for hit in group.hits]
    return out


def item_line(item: Item, part: int, width: int, moment: Moment, glyphs: Glyphs, cursor: bool) -> Line:
    """One line of an item."""
    if item.hit is None:
        return () if item.lead and part == 0 else _heading(item.group, width, glyphs)
    edge: Run = (glyphs.cursor if cursor else " ", "accent")
    if part == 0:
        return clip((edge, *_hit_runs(item.hit, width, moment, glyphs)), width, glyphs.ellipsis)
    neighbours = [
        (name, one)
        for name, one in (("before", item.hit.before), ("after", item.hit.after))
        if one is not None and one.text.strip()
    ]
    name, neighbour = neighbours[min(part, len(neighbours)) - 1]
    who = {"user": "you", "assistant": "it"}.get(neighbour.role or "", clean_line(neighbour.role or ""))
    text = clean_line(neighbour.text.lstrip()[:LONGEST])
    return clip((edge, (f"     {name:<7}", "rule"), (f"{who:<5}", "muted"), (text, "muted")), width, glyphs.ellipsis)


def _heading(group: Group, width: int, glyphs: Glyphs) -> Line:
    hit = group.first
    dot = f" {glyphs.middot} "
    title = clean_line(hit.title) if hit.title else literal("(untitled)")
    if hit.session is None:
        title = literal("(its session is gone)")
    elif not hit.title and hit.session.preview:
        title = literal(f"(untitled) {clean_line(hit.session.preview)}")
    facts = [clean_line(hit.store.ref.name)]
    if hit.session is not None and hit.session.source:
        facts.append(clean_line(hit.session.source))
    if hit.session is not None and hit.session.archived:
        facts.append(literal("archived"))
    number = f"{len(group.hits):,} hit{'' if len(group.hits) == 1 else 's'} "
    room = max(8, width - width_of(dot + dot.join(facts)) - len(number) - 3)
    shown = fit(title, min(width_of(title), room), ellipsis=glyphs.ellipsis)
    return spread(((" ", ""), (shown, "title"), (dot + dot.join(facts), "muted")), ((number, "muted"),), width)


def _hit_runs(hit: SearchHit, width: int, moment: Moment, glyphs: Glyphs) -> list[Run]:
    copies = f" x{hit.copies}" if hit.copies > 1 else ""
    state = "" if hit.head.state in {"live", "compacted"} else f" ({hit.head.state})"
    lead: list[Run] = [
        ("  ", ""),
        (f"{moment.full(hit.head.at):<13}", "muted"),
        (f"{hit.head.kind + state:<12}", KIND_INKS[hit.head.kind]),
    ]
    room = width - INDENT - 25 - len(copies) - 2
    return [*lead, *_snippet(hit, max(10, room), glyphs), (copies, "accent")]


def _snippet(hit: SearchHit, room: int, glyphs: Glyphs) -> list[Run]:
    """The snippet on one line with its matches between markers, beginning near the first match."""
    text, marks = hit.snippet.text, hit.snippet.marks
    start = _beginning(text, marks, room)
    runs: list[Run] = [(glyphs.ellipsis, "muted")] if start else []
    at = start
    for mark, length in marks:
        if mark < at:
            continue
        runs += [
            (_flat(text[at:mark]), ""),
            (OPEN, "accent"),
            (_flat(text[mark : mark + length]), "mark"),
            (CLOSE, "accent"),
        ]
        at = mark + length
    runs.append((_flat(text[at:]), ""))
    return runs


def _beginning(text: str, marks: Sequence[tuple[int, int]], room: int) -> int:
    """Where to begin so that the first match is in view."""
    if not marks or width_of(text[: marks[0][0] + marks[0][1]]) + 2 * len(OPEN) <= room:
        return 0
    start = max(0, marks[0][0] - room // 3)
    space = text.find(" ", start, marks[0][0])
    return space + 1 if space >= 0 else start


def _flat(text: str) -> CleanText:
    """On one line, with the spaces at its ends kept: marks stand between pieces."""
    cleaned = clean_line(text)
    if not cleaned:
        return CleanText(" " if text else "")
    return CleanText((" " if text[:1].isspace() else "") + cleaned + (" " if text[-1:].isspace() else ""))
