"""The tree of sessions that hang together, as lines."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from hermes_tui.model import Compaction, Lineage, LineageNode, SessionId
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.formats import Moment, count, money, rate, tokens, total_tokens
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, clip

KIND_WIDTH: Final = 10
DEEPEST: Final = 10
"""Levels drawn by indenting; deeper ones stay at this column."""


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line: a session, or a compaction inside one."""

    node: LineageNode
    prefix: CleanText
    own: bool
    """Part of the conversation that was asked for."""
    tip: bool = False
    compaction: Compaction | None = None


def tree_lines(lineage: Lineage, glyphs: Glyphs) -> list[TreeLine]:
    """Root first; what branches off hangs under its session, what goes on after a compaction stays in its column."""
    children: defaultdict[SessionId | None, list[LineageNode]] = defaultdict(list)
    known = {node.id for node in lineage.nodes}
    for node in lineage.nodes:
        children[node.parent_id if node.parent_id in known else None].append(node)
    for group in children.values():
        group.sort(key=lambda node: (node.row.started_at or 0.0, node.id))
    own = set(lineage.conversation)
    tip = lineage.conversation[-1] if lineage.conversation else None
    out: list[TreeLine] = []
    seen: set[SessionId] = set()
    # Rings have no root: every node that was not reached from one starts a tree of its own.
    starts = [*children[None], *lineage.nodes]
    for start in starts:
        stack: list[tuple[LineageNode, int, bool]] = [(start, 0, False)]
        while stack:
            node, depth, side = stack.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            prefix = _prefix(depth, side, glyphs)
            out.append(TreeLine(node, prefix, node.id in own, tip=node.id == tip))
            inner = literal(glyphs.pipe * min(depth, DEEPEST) + glyphs.pipe)
            out += [TreeLine(node, inner, node.id in own, compaction=one) for one in node.compactions]
            following, branches = _split(children[node.id], own)
            if following is not None:
                stack.append((following, depth, side))
            stack += [(branch, depth + 1, True) for branch in reversed(branches)]
    return out


def _prefix(depth: int, side: bool, glyphs: Glyphs) -> CleanText:
    if not depth:
        return literal("")
    return literal(glyphs.pipe * (min(depth, DEEPEST) - 1) + (glyphs.fork if side else glyphs.pipe))


def _split(children: list[LineageNode], own: set[SessionId]) -> tuple[LineageNode | None, list[LineageNode]]:
    """The session that goes on with this one, and those that leave it."""
    going_on = [child for child in children if child.kind in {"compaction", "revert"}]
    following = next((child for child in going_on if child.id in own), going_on[-1] if going_on else None)
    return following, [child for child in children if child is not following]


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    width: int


_FIELDS: Final = (_Field("tokens", 8), _Field("hit", 7), _Field("cost", 9), _Field("messages", 9), _Field("ended", 14))
_LEAST_NAME: Final = 40


def fields_for(width: int) -> int:
    """How many of the columns at the right fit; they are dropped from the right."""
    for number in range(len(_FIELDS), 0, -1):
        if width - sum(one.width for one in _FIELDS[:number]) >= _LEAST_NAME:
            return number
    return 1


def heading(title: CleanText, width: int) -> Line:
    """The conversation's title and the names of the columns."""
    number = fields_for(width)
    room = width - sum(one.width for one in _FIELDS[:number]) - 1
    runs: list[Run] = [(" " + fit(title, room), "title")]
    runs += [(_cell(one.name, one), "head") for one in _FIELDS[:number]]
    return tuple(runs)


def _cell(text: str, field: _Field) -> str:
    if field.name == "ended":
        return "  " + fit(text, field.width - 2)
    if field.name == "hit":
        return fit(text if len(text) > 4 else text + " ", field.width, "right")
    return fit(text, field.width, "right")


def line_of(line: TreeLine, width: int, moment: Moment, glyphs: Glyphs, cursor: bool) -> Line:
    """One line of the tree."""
    number = fields_for(width)
    room = width - sum(one.width for one in _FIELDS[:number]) - 1
    edge: Run = (glyphs.cursor if cursor else " ", "accent")
    if line.compaction is not None:
        said = _compaction_runs(line.compaction, moment, glyphs)
        return clip((edge, (line.prefix, "rule"), *said), width, glyphs.ellipsis)
    name = _name_runs(line, moment, glyphs, room)
    values = _values(line.node, glyphs)
    return (edge, *name, *((_cell(text, one), ink) for (text, ink), one in zip(values, _FIELDS[:number], strict=False)))


def _name_runs(line: TreeLine, moment: Moment, glyphs: Glyphs, room: int) -> list[Run]:
    row = line.node.row
    ink = "title" if line.own else "muted"
    kind = line.node.kind
    runs: list[Run] = [
        (line.prefix, "rule"),
        ((glyphs.own if line.own else glyphs.other) + " ", ink),
        (f"{kind:<{max(KIND_WIDTH, KIND_WIDTH + 4 - width_of(line.prefix))}} ", ink),
    ]
    runs.append((f"{moment.full(row.started_at):<12}  ", "muted"))
    words: list[Run] = []
    if line.tip:
        words.append((f"tip {glyphs.running + ' ' if row.running else ''} ", "good"))
    if line.node.findings:
        words.append((f"{glyphs.bad} {', '.join(map(clean_line, line.node.findings))}  ", "bad"))
    if row.worst_drop_lost:
        words.append((f"{glyphs.bad} cache drop  ", "bad"))
    named = row.title if kind not in {"compaction", "root"} and row.title else row.model
    words.append((clean_line(named or row.title or row.id), "" if line.own else "muted"))
    out: list[Run] = []
    left = room
    for text, own_ink in [*runs, *words]:
        cells = width_of(text)
        if cells > left:
            out.append((fit(text, left, ellipsis=glyphs.ellipsis), own_ink))
            left = 0
            break
        out.append((text, own_ink))
        left -= cells
    out.append((" " * left, ""))
    return out


def _values(node: LineageNode, glyphs: Glyphs) -> list[Run]:
    row = node.row
    hit = row.usage.hit_rate if row.usage is not None else None
    bad = bool(row.worst_drop_lost)
    ended = clean_line(row.end_reason) if row.end_reason else "running" if row.running else "-"
    cost = money(row.cost)
    return [
        (total_tokens(row.usage), ""),
        (f"{rate(hit)}{glyphs.bad if bad else ' '}", "bad" if bad else ""),
        (cost if cost.endswith(("~", "?")) else cost + " ", ""),
        (count(row.message_count), ""),
        (ended, "good" if ended == "running" else "muted"),
    ]


def _compaction_runs(compaction: Compaction, moment: Moment, glyphs: Glyphs) -> list[Run]:
    words: list[str] = [clean_line(compaction.trigger)] if compaction.trigger else []
    if compaction.before_tokens is not None:
        after = f" {glyphs.right} {tokens(compaction.after_tokens)}" if compaction.after_tokens is not None else ""
        words.append(f"{tokens(compaction.before_tokens)}{after} tokens")
    if compaction.dropped is not None:
        words.append(f"{count(compaction.dropped)} messages dropped")
    if compaction.kept is not None:
        words.append(f"{count(compaction.kept)} kept")
    text = f" {glyphs.middot} ".join(words)
    return [(f"{glyphs.heavy} compacted  ", "summary"), (f"{moment.full(compaction.at)}  {text}", "muted")]
