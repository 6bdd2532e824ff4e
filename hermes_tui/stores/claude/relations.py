"""Which transcripts are copies of which: ``--fork-session`` leaves no mark, so shared uuids tell (facts section 5).

Lines that several files hold belong to the earliest of them; everywhere else they are inherited. The earliest is the
file that was not marked as a branch, that does not begin with a compaction, that was begun first, that has its
beginning, or into which the program wrote other lines between those that are shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_tui.model import CacheEvent, LineageKind, SessionId
from hermes_tui.records import dataclass
from hermes_tui.stores.claude.fold import Trace
from hermes_tui.stores.conversation import SPARKLINE_POINTS
from hermes_tui.stores.logs import LogFile, LogSummary
from hermes_tui.text import RawText


@dataclass(frozen=True, slots=True)
class Relation:
    """What a file copied, and from where."""

    parent: SessionId | None
    kind: LineageKind
    marks: frozenset[int]
    """Its lines that an earlier file holds (:func:`hermes_tui.stores.claude.fold.mark_of`)."""
    requests: frozenset[str]
    """Its requests that an earlier file holds."""
    messages: int = 0
    """How many of its live messages are copies."""
    calls: int = 0
    """How many of its live tool calls are."""


NO_RELATION = Relation(None, "root", frozenset(), frozenset())


def families(roots: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Groups of files that have a root line in common, by path; files alone are left out.

    ``roots`` gives for each path the uuids of its lines without a parent.
    """
    leader: dict[str, str] = {}

    def found(path: str) -> str:
        while leader.setdefault(path, path) != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    first_with: dict[str, str] = {}
    for path, uuids in roots.items():
        for uuid in uuids:
            other = first_with.setdefault(uuid, path)
            leader[found(path)] = found(other)
    groups: dict[str, list[str]] = {}
    for path in roots:
        groups.setdefault(found(path), []).append(path)
    return (tuple(group) for group in groups.values() if len(group) > 1)


def relations(family: Iterable[tuple[LogFile, Trace]]) -> dict[str, Relation]:
    """By path: what each file of a family copied; the earliest of them copied nothing."""
    members = list(family)
    counts: dict[int, int] = {}
    for _, trace in members:
        for mark in trace.marks:
            counts[mark] = counts.get(mark, 0) + 1
    members.sort(key=lambda member: _earliest_first(member[0], member[1], counts))
    found: dict[str, Relation] = {}
    earlier: list[tuple[LogFile, frozenset[int], frozenset[str]]] = []
    for log, trace in members:
        marks = frozenset(trace.marks)
        keys = trace.requests
        copied = frozenset(mark for mark in marks if any(mark in other for _, other, _ in earlier))
        billed = frozenset(key for key in keys if any(key in other for _, _, other in earlier))
        if copied or billed:
            parent = max(earlier, key=lambda other: len(marks & other[1]))[0].session_id
            kind: LineageKind = "branch" if trace.marked else "fork"
            same = parent == log.session_id
            places = [place for place, mark in enumerate(trace.marks) if mark in copied]
            found[log.path] = Relation(
                parent=None if same else parent,
                kind="root" if same else kind,
                marks=copied,
                requests=billed,
                messages=sum(trace.messages[place] for place in places),
                calls=sum(trace.calls[place] for place in places),
            )
        earlier.append((log, marks, keys))
    return found


def dump_relations(found: Mapping[str, Relation]) -> list[object]:
    """Relations by path as JSON values."""
    return [
        [path, one.parent, one.kind, sorted(one.marks), sorted(one.requests), one.messages, one.calls]
        for path, one in found.items()
    ]


def load_relations(values: Iterable[Any]) -> dict[str, Relation]:
    """What :func:`dump_relations` gave."""
    return {
        path: Relation(parent, kind, frozenset(marks), frozenset(requests), messages, calls)
        for path, parent, kind, marks, requests, messages, calls in values
    }


def _earliest_first(
    log: LogFile, trace: Trace, counts: Mapping[int, int]
) -> tuple[bool, bool, float, bool, bool, bool, str, str]:
    """What a file is sorted by, the original first."""
    own = any(counts[mark] == 1 for mark in trace.marks)
    return (
        trace.marked,
        trace.begins_with_boundary,
        math.inf if trace.birth is None else trace.birth,
        trace.headless,
        trace.broken == 0,
        own,
        log.session_id,
        log.path,
    )


def without_copies(summary: LogSummary, relation: Relation) -> LogSummary:
    """The summary with its own requests and message counts only."""
    own = [request for request in summary.requests if request.request_id not in relation.requests]
    if own and relation.parent is not None:
        event = CacheEvent("fork", RawText(f"the history before it was copied from {relation.parent}"))
        own[0] = replace(own[0], events=(event,))
    row = replace(summary.row, hit_rates=tuple(request.usage.hit_rate for request in own[-SPARKLINE_POINTS:]))
    row = replace(
        row,
        message_count=max(0, (row.message_count or 0) - relation.messages),
        tool_call_count=max(0, (row.tool_call_count or 0) - relation.calls),
    )
    return replace(summary, row=row, requests=tuple(own))


def as_far_as(relation: Relation, trace: Trace) -> Relation:
    """The same where the file ends earlier: its live copies are fewer."""
    places = [place for place, mark in enumerate(trace.marks) if mark in relation.marks]
    messages, calls = (sum(said[place] for place in places) for said in (trace.messages, trace.calls))
    return replace(relation, messages=messages, calls=calls)
