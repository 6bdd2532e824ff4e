"""Answers kept from an earlier run: believed only while everything they were made from is as it was.

A mirror may lag, never lead (design.md, rule 1): beside an answer stands the evidence of what it was made from, told by
stat alone, and the code that made it. The evidence is taken before the question and again after it; only where both
are equal is the answer kept, and only where both are equal now is it given. A file written to just before the question
may be written to again without its time moving, so an answer made from one is not kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from hermes_tui import __version__
from hermes_tui.model import (
    CostGrouping,
    ListEntry,
    Listing,
    ListQuery,
    Request,
    SessionId,
    SessionRow,
    StoreRef,
    UsageReport,
    UsageSum,
)
from hermes_tui.stores.kept_values import dump_request, dump_row, dump_spend, load_request, load_row, load_spend

SETTLED_NS: Final = 2_000_000_000
"""File systems tell times in steps of up to two seconds (FAT)."""
WINDOW_SECONDS: Final = 86_400.0
"""A window of time that moves on is looked through again once a day: it holds more than is shown."""
MOST_REQUESTS: Final = 50_000
"""So many requests of one window are kept: about 10 MB."""
ZONE_YEARS: Final = range(2020, 2036)
UNKNOWN: Final = float("-inf")
"""The place in an order of what has no value; JSON has no word for it."""
Answer = TypeVar("Answer")


class Evidence(NamedTuple):
    """What an answer was made from, told by stat alone."""

    seen: str
    """Equal while nothing changed."""
    newest_ns: int
    """The last change of any of it, Unix nanoseconds."""
    taken_ns: int
    """When it was looked at; not after that."""

    @property
    def settled(self) -> bool:
        """Whether a later change of it cannot have the time of the last one."""
        return self.newest_ns + SETTLED_NS <= self.taken_ns


class Answers(Protocol):
    """Where answers are kept."""

    def find(self, question: str, seen: str) -> Any | None:
        """The answer as JSON values; ``None``: there is none, or what it was made from is not what it was."""
        ...

    def keep(self, question: str, seen: str, answer: object) -> None:
        """Keep an answer of JSON values; never raises for what is wrong with our own files."""
        ...


class NothingKept:
    """Every answer is made anew."""

    def find(self, question: str, seen: str) -> Any | None:
        """None is kept."""
        del question, seen
        return None

    def keep(self, question: str, seen: str, answer: object) -> None:
        """It is let go."""
        del question, seen, answer


class Asked(NamedTuple):
    """One question about one store, asked while its answer may still be kept from another run."""

    answers: Answers
    agent: str
    question: str
    before: Evidence | None
    again: Callable[[], Evidence | None]

    def found(self) -> Any | None:
        """The kept answer as JSON values, if it may be believed."""
        return None if self.before is None else self.answers.find(self.question, self._seen(self.before))

    @property
    def lasts(self) -> bool:
        """Whether an answer would be kept."""
        return self.before is not None and self.before.settled

    def keep(self, answer: object) -> None:
        """Keep what was answered, unless what it was made from may have changed meanwhile."""
        before = self.before
        if before is None or not before.settled:
            return
        after = self.again()
        if after is not None and after.seen == before.seen:
            self.answers.keep(self.question, self._seen(before), answer)

    def _seen(self, evidence: Evidence) -> str:
        return f"{evidence.seen}\n{code_of(self.agent)}"


def ask(
    answers: Answers,
    store: StoreRef,
    evidence: Callable[[], Evidence | None],
    *question: object,
    before: Evidence | None = None,
) -> Asked:
    """Begin a question; whatever its answer depends on besides the store is part of ``question``.

    Args:
        answers: where its answer is kept.
        store: the store it is about.
        evidence: tells what an answer is made from; ``None`` where it must not be kept.
        question: what is asked.
        before: the evidence, where it was taken already.
    """
    if before is None and not isinstance(answers, NothingKept):
        before = evidence()
    return Asked(answers, store.agent, repr((store.agent, store.path, *question)), before, evidence)


@cache
def code_of(agent: str) -> str:
    """The code that reads this agent's stores, told by its files: another version may answer otherwise."""
    stores = Path(__file__).parent
    found = [f"{__version__} {agent}"]
    for folder in (stores, stores / agent, stores.parent, stores.parent / "storage"):
        try:
            with os.scandir(folder) as files:
                stats = [(file.name, file.stat()) for file in files if file.name.endswith(".py")]
        except OSError:
            continue  # the package is no folder: the version has to do
        found += [f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in sorted(stats, key=_name)]
    return "\n".join(found)


def _name(named: tuple[str, object]) -> str:
    return named[0]


# ------------------------------------------------------------------------------------------------------- lists


def lasting(query: ListQuery) -> bool:
    """Whether this list may be asked for again: what is typed, and times counted from now, mostly are not."""
    return not query.text and query.since is None and query.until is None


def kept_listing(begin: Callable[[str], Asked], limit: int | None, make: Callable[[], Listing]) -> Listing:
    """A list with its counts: its first rows, or all of it.

    Args:
        begin: begins the question for one of both.
        limit: how many rows are wanted; ``None``: all.
        make: reads them now.
    """
    first, whole = begin("first"), begin("whole")
    for asked in (first, whole) if limit is not None else (whole,):
        kept = asked.found()
        if kept is not None and (limit is None or len(kept[0]) >= min(limit, kept[3])):
            return _load_listing(kept, limit)
    found = make()
    (whole if limit is None else first).keep(_dump_listing(found))
    return found


def _dump_listing(found: Listing) -> list[object]:
    orders = [None if entry.order == UNKNOWN else entry.order for entry in found.entries]
    parts = [entry.parts for entry in found.entries] if any(entry.parts for entry in found.entries) else None
    return [[entry.id for entry in found.entries], orders, parts, found.total, found.left_out]


def _load_listing(kept: Sequence[Any], limit: int | None) -> Listing:
    ids, orders, parts, total, left_out = kept
    entries = zip(
        ids[:limit],
        (UNKNOWN if order is None else order for order in orders[:limit]),
        repeat(()) if parts is None else map(tuple, parts),
        strict=False,
    )
    # Without the detour of its constructor: a store has 70,000.
    return Listing(tuple(map(_entry, entries)), total, left_out)


def _entry(values: tuple[SessionId, float, tuple[SessionId, ...]]) -> ListEntry:
    return tuple.__new__(ListEntry, values)


# -------------------------------------------------------------------------------------------------------- rows

FIRST_ROWS: Final = 128
"""So many rows at the top of a list are kept: more than the first screen shows, and ``list`` by itself."""


class DatedRows(NamedTuple):
    """Rows by the ids that were asked for."""

    by_id: dict[str, SessionRow]
    lasting: bool
    """Whether they stay as they are while nothing is written: none runs, and none will by the clock alone."""


def kept_rows(asked: Asked, store: StoreRef, ids: Sequence[SessionId], make: Callable[[], DatedRows]) -> DatedRows:
    """The rows at the top of a list.

    Args:
        asked: the question without the ids.
        store: the store it is about.
        ids: whose rows.
        make: reads them now.
    """
    kept = asked.found()
    if kept is not None and kept[0] == list(ids):
        return DatedRows({identity: load_row(store, row) for identity, row in zip(*kept, strict=True)}, lasting=True)
    found = make()
    rows = [found.by_id[identity] for identity in ids if identity in found.by_id]
    if asked.lasts and found.lasting and len(rows) == len(ids) and all(map(_plain, rows)):
        asked.keep([list(ids), list(map(dump_row, rows))])
    return found


def _plain(row: SessionRow) -> bool:
    """Whether nothing is wrong with a row, and JSON has words for its numbers."""
    numbers = (row.started_at, row.ended_at, row.last_active_at, *row.hit_rates)
    spent = (number for spend in row.spend for number in (spend.cost_usd, spend.last_at))
    return not row.problems and row.resumable and _finite(numbers) and _finite(spent)


# ------------------------------------------------------------------------------------------------------- usage


class DatedReport(NamedTuple):
    """Usage with the time of the oldest piece of it."""

    report: UsageReport
    oldest: float | None


def usage_question(
    grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
) -> tuple[str | float | bool | None, ...]:
    """What tells one question about usage from another; a later ``since`` may share an answer (:func:`kept_usage`)."""
    return ("usage", grouping, since is None, until, zone_marks(zone) if grouping == "day" else "")


def kept_usage(asked: Asked, since: float | None, make: Callable[[], DatedReport]) -> UsageReport:
    """Usage by key; what was counted from one moment on stays right for a later one until its oldest piece is older.

    Args:
        asked: the question, in which whether there is a ``since`` is told but not which.
        since: Unix seconds; pieces before it are left out.
        make: adds up now.
    """
    kept = asked.found()
    if kept is not None:
        counted_from, oldest, *sums = kept
        inside = since is not None and counted_from is not None and oldest is not None
        if since == counted_from or (inside and counted_from <= since <= oldest):
            return _load_report(sums)
    found = make()
    values = _dump_report(found.report)
    if values is not None:
        asked.keep([since, found.oldest, *values])
    return found.report


def _finite(numbers: Iterable[float | None]) -> bool:
    """Whether JSON has words for all of them."""
    return all(number is None or math.isfinite(number) for number in numbers)


def zone_marks(zone: tzinfo) -> str:
    """A time zone by its name and its offsets at the begin of each month: rules of zones are changed, names are not."""
    begins = (datetime(year, month, 1) for year in ZONE_YEARS for month in range(1, 13))
    offsets = (zone.utcoffset(begin) for begin in begins)
    return f"{zone} {[None if offset is None else offset.total_seconds() for offset in offsets]}"


def _dump_report(report: UsageReport) -> list[object] | None:
    """The report as JSON values; ``None``: a sum has no finite value."""
    numbers = (number for one in (*report.sums, *report.apart) for number in (one.spend.cost_usd, one.spend.last_at))
    if not _finite(numbers):
        return None
    return [_dump_sums(report.sums), list(report.sessions.items()), report.distinct, _dump_sums(report.apart)]


def _load_report(values: Sequence[Any]) -> UsageReport:
    sums, sessions, distinct, apart = values
    return UsageReport(_load_sums(sums), dict(map(tuple, sessions)), distinct, _load_sums(apart))


def _dump_sums(sums: Iterable[UsageSum]) -> list[object]:
    return [[one.key, dump_spend(one.spend)] for one in sums]


def _load_sums(values: Iterable[Sequence[Any]]) -> tuple[UsageSum, ...]:
    return tuple(UsageSum(key, load_spend(spend)) for key, spend in values)


# ---------------------------------------------------------------------------------------------------- requests


def kept_points(asked: Asked, since: float, make: Callable[[], Iterable[Request]]) -> Iterable[Request]:
    """The requests of chains that go on after ``since``; for a later moment those of some chains too many are as right.

    Args:
        asked: the question without ``since``.
        since: Unix seconds.
        make: reads them now.
    """
    kept = asked.found()
    if kept is not None and kept[0] <= since < kept[0] + WINDOW_SECONDS:
        return map(load_request, kept[1])
    found = list(make())
    if len(found) <= MOST_REQUESTS and _finite(number for one in found for number in (one.at, one.cost_usd)):
        asked.keep([since, list(map(dump_request, found))])
    return found
