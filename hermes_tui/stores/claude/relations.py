"""Which transcripts are copies of which: ``--fork-session`` leaves no mark, so shared uuids tell (facts section 5).

Lines that several files hold belong to the earliest of them; everywhere else they are inherited. The earliest is the
file that is no sub-agent's, that was not marked as a branch, that does not begin with a compaction, that was begun
first, that has its beginning, or into which the program wrote other lines between those that are shared. Of copies of
one session, which a moved folder leaves behind, it is the one that was written to last: it knows what is live.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from hermes_tui.model import CacheEvent, LineageKind, Request, SessionId, Usage
from hermes_tui.records import dataclass
from hermes_tui.stores.claude.traces import Spent, Trace
from hermes_tui.stores.conversation import SPARKLINE_POINTS
from hermes_tui.stores.logs import LogFile, LogSummary
from hermes_tui.text import RawText


@dataclass(frozen=True, slots=True)
class Relation:
    """What a file copied, and from where."""

    parent: SessionId | None
    kind: LineageKind
    marks: frozenset[int]
    """Its lines that an earlier file holds (:func:`hermes_tui.stores.claude.traces.mark_of`)."""
    requests: frozenset[str]
    """Its requests that an earlier file holds."""
    messages: int = 0
    """How many of its live messages are copies."""
    calls: int = 0
    """How many of its live tool calls are."""
    again: frozenset[int] | None = None
    """Which of its compactions a newer copy of the same session tells, by their place; ``None``: there is none."""
    raised: Mapping[str, Spent] = field(default_factory=dict)
    """What its own requests used where a copy tells more of it: the last line of a reply may be lost in this file."""


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


_Met = tuple[LogFile, frozenset[int], frozenset[str]]
"""A file with its lines and requests."""


def relations(family: Iterable[tuple[LogFile, Trace]]) -> dict[str, Relation]:
    """By path: what each file of a family copied; the earliest of them copied nothing."""
    members = _in_order(list(family))
    found: dict[str, Relation] = {}
    earlier: list[_Met] = []
    most = _largest(trace for _, trace in members)
    for log, trace in members:
        marks, keys = frozenset(trace.marks), frozenset(trace.requests)
        copied = frozenset(mark for mark in marks if any(mark in other for _, other, _ in earlier))
        billed = frozenset(key for key in keys if any(key in other for _, _, other in earlier))
        raised = {key: most[key] for key, spent in trace.requests.items() if key not in billed and spent != most[key]}
        if copied or billed or raised:
            parent = _copied_from(log, marks, keys, earlier)
            places = [place for place, mark in enumerate(trace.marks) if mark in copied]
            found[log.path] = Relation(
                parent=parent,
                kind="root" if parent is None else "branch" if trace.marked else "fork",
                marks=copied,
                requests=billed,
                messages=sum(trace.messages[place] for place in places),
                calls=sum(trace.calls[place] for place in places),
                again=_told_again(log, trace, earlier),
                raised=raised,
            )
        earlier.append((log, marks, keys))
    return found


def _in_order(members: Sequence[tuple[LogFile, Trace]]) -> list[tuple[LogFile, Trace]]:
    """The original first; copies of one session stand together, the one that was written to last before the others."""
    counts: dict[int, int] = {}
    for _, trace in members:
        for mark in trace.marks:
            counts[mark] = counts.get(mark, 0) + 1
    first: dict[SessionId, _Rank] = {}
    for log, trace in members:
        rank = _earliest_first(trace, counts)
        first[log.session_id] = min(rank, first.get(log.session_id, rank))
    return sorted(members, key=lambda one: (first[one[0].session_id], one[0].session_id, *_newest_first(*one)))


def _newest_first(log: LogFile, trace: Trace) -> tuple[float, int, str]:
    return (math.inf if trace.last_at is None else -trace.last_at, -log.size, log.path)


def _copied_from(
    log: LogFile, marks: frozenset[int], keys: frozenset[str], earlier: Sequence[_Met]
) -> SessionId | None:
    """The session it has most lines in common with, itself left out."""
    others = [other for other in earlier if other[0].session_id != log.session_id]
    shared = [other for other in others if not (marks.isdisjoint(other[1]) and keys.isdisjoint(other[2]))]
    return max(shared, key=lambda other: len(marks & other[1]))[0].session_id if shared else None


def _told_again(log: LogFile, trace: Trace, earlier: Sequence[_Met]) -> frozenset[int] | None:
    told = [other[1] for other in earlier if other[0].session_id == log.session_id]
    if not told:
        return None
    return frozenset(place for place, mark in enumerate(trace.compactions) if any(mark in marks for marks in told))


def _largest(traces: Iterable[Trace]) -> dict[str, Spent]:
    """By request: the largest value of each field any file has (facts section 5)."""
    most: dict[str, Spent] = {}
    for trace in traces:
        for key, spent in trace.requests.items():
            known = most.setdefault(key, spent)
            if known != spent:
                most[key] = Spent(*map(max, known, spent))
    return most


def dump_relations(found: Mapping[str, Relation]) -> list[object]:
    """Relations by path as JSON values."""
    return [
        [
            path, one.parent, one.kind, sorted(one.marks), sorted(one.requests), one.messages, one.calls,
            None if one.again is None else sorted(one.again), [[key, *spent] for key, spent in one.raised.items()],
        ]
        for path, one in found.items()
    ]  # fmt: skip


def load_relations(values: Iterable[Any]) -> dict[str, Relation]:
    """What :func:`dump_relations` gave."""
    return {
        path: Relation(
            parent, kind, frozenset(marks), frozenset(requests), messages, calls,
            None if again is None else frozenset(again), {key: Spent(*spent) for key, *spent in raised},
        )
        for path, parent, kind, marks, requests, messages, calls, again, raised in values
    }  # fmt: skip


_Rank = tuple[bool, bool, bool, float, bool, bool, bool]


def _earliest_first(trace: Trace, counts: Mapping[int, int]) -> _Rank:
    """What a file is sorted by, the original first."""
    own = any(counts[mark] == 1 for mark in trace.marks)
    return (
        trace.delegated,
        trace.marked,
        trace.begins_with_boundary,
        math.inf if trace.birth is None else trace.birth,
        trace.headless,
        trace.broken == 0,
        own,
    )


def without_copies(summary: LogSummary, relation: Relation) -> LogSummary:
    """The summary with its own requests and message counts only."""
    own = [
        _raised(request, relation.raised.get(request.request_id or ""))
        for request in summary.requests
        if request.request_id not in relation.requests
    ]
    if own and relation.parent is not None:
        event = CacheEvent("fork", RawText(f"the history before it was copied from {relation.parent}"))
        own[0] = replace(own[0], events=(event,))
    row = replace(summary.row, hit_rates=tuple(request.usage.hit_rate for request in own[-SPARKLINE_POINTS:]))
    row = replace(
        row,
        message_count=max(0, (row.message_count or 0) - relation.messages),
        tool_call_count=max(0, (row.tool_call_count or 0) - relation.calls),
    )
    if relation.again is None:
        return replace(summary, row=row, requests=tuple(own))
    compactions = tuple(one for place, one in enumerate(summary.compactions) if place not in relation.again)
    # Its dead branches are told with the newer copy.
    row = replace(row, compactions=len(compactions), branches=0)
    return replace(summary, row=row, requests=tuple(own), compactions=compactions)


def _raised(request: Request, spent: Spent | None) -> Request:
    """The request with what a copy of it tells."""
    if spent is None:
        return request
    usage = Usage(spent.input, spent.output, spent.cache_read, spent.cache_write)
    return replace(request, usage=usage, write_1h=min(spent.write_1h, spent.cache_write))


def in_one_order(requests: Iterable[Request], several: Container[SessionId]) -> Iterator[Request]:
    """The same requests; those of a session that lies in several files come last, in the order of their times.

    Copies may both have gone on: neither file's order is that of the session.
    """
    held: dict[SessionId, list[Request]] = {}
    for request in requests:
        if request.session_id in several:
            held.setdefault(request.session_id, []).append(request)
        else:
            yield request
    for some in held.values():
        timed = [(request.at, place) for place, request in enumerate(some) if request.at is not None]
        yield from (some[place] for _, place in sorted(timed)) if len(timed) == len(some) else some


def as_far_as(relation: Relation, trace: Trace) -> Relation:
    """The same where the file is looked at alone and ends earlier: its live copies are fewer."""
    places = [place for place, mark in enumerate(trace.marks) if mark in relation.marks]
    messages, calls = (sum(said[place] for place in places) for said in (trace.messages, trace.calls))
    return replace(relation, messages=messages, calls=calls, again=None)
