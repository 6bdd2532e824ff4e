"""Which stored rows are copies: messages a compaction kept and wrote again.

A compaction begins a new generation of the context: the protected first messages again, the summary (a row of its own
or written into a kept row), the kept tail again, then new rows (facts/hermes.md section 7, "Compaction copies rows").
It does so inside one session or in a child session. Each generation is laid beside the one before it, in order; texts
that merely repeat, as people do, are not copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.stores.hermes.content import Stored

MOST_PROTECTED: Final = 64
"""Rows before a summary that may be protected first messages."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A row with what the generations say of it."""

    row: Stored
    copy: bool = False
    """It is stored before: shown there."""
    kept: int | None = None
    """On a summary: messages kept word for word."""
    dropped: int | None = None
    """On a summary: messages the model no longer sees."""
    at: float | None = None
    """On a summary: when the compaction happened, where the row's own time does not tell."""


def same_message(one: Stored, other: Stored) -> bool:
    """Whether two rows store one message; a tool result may have been shortened when it was kept."""
    if one.print == other.print:
        return True
    return one.role == "tool" == other.role and bool(one.tool_call_id) and one.tool_call_id == other.tool_call_id


class Generations:
    """Reads the rows of a conversation in order and says which are copies; looks ahead no further than it must."""

    def __init__(self) -> None:
        self._context: list[Stored] = []
        """The generation in force, in order."""
        self._ahead: deque[Stored] = deque()
        self._rows: Iterator[Stored] = iter(())

    def session(self, rows: Iterable[Stored], *, continues: bool) -> Iterator[Placed]:
        """The rows of the next session; ``continues``: it goes on where a compaction ended the one before."""
        self._rows, self._ahead = iter(rows), deque()
        if continues:
            yield from self._first_of_part()
        else:
            self._context = []
        held: deque[Stored] = deque()
        compacted_before = False
        while (row := self._next()) is not None:
            if row.summary:
                yield from self._new_generation(held, row)
                compacted_before = False
                continue
            if compacted_before and row.state == "live" and not self._summary_ahead():
                yield from self._release(held, 0)
                self._ahead.appendleft(row)
                yield from self._unmarked(self._in_force())
                compacted_before = False
                continue
            compacted_before = row.state == "compacted"
            held.append(row)
            yield from self._release(held, MOST_PROTECTED)
        yield from self._release(held, 0)

    def _release(self, held: deque[Stored], keep: int) -> Iterator[Placed]:
        """Rows that are no protected beginning of a next generation are new ones."""
        while len(held) > keep:
            row = held.popleft()
            self._context.append(row)
            yield Placed(row)

    def _new_generation(self, held: deque[Stored], summary: Stored) -> Iterator[Placed]:
        """A summary inside a session: the rows just before it may be copies of the first ones."""
        everything = [*self._context, *held]
        protected = next(
            (
                size
                for size in range(min(len(held), len(everything) // 2, MOST_PROTECTED), 0, -1)
                if all(map(same_message, everything[-size:], everything))
            ),
            0,
        )
        before = everything[: len(everything) - protected]
        for number, row in enumerate(held):
            yield Placed(row, copy=number >= len(held) - protected)
        held.clear()
        yield from self._after_summary(
            [row for row in before if row.state != "rewound"], everything[-protected:] if protected else [], summary
        )

    def _first_of_part(self) -> Iterator[Placed]:
        """The beginning of a session that continues another one."""
        before = self._in_force()
        ahead = self._peek(MOST_PROTECTED + 1)
        place = next((number for number, row in enumerate(ahead) if row.summary), None)
        if place is None:
            self._context = []
            yield from self._unmarked(before)
            return
        protected: list[Stored] = []
        copying = True
        for number in range(place):
            row = self._ahead.popleft()
            copying = copying and number < len(before) and same_message(row, before[number])
            protected.append(row)
            yield Placed(row, copy=copying)
        summary = self._ahead.popleft()
        yield from self._after_summary(before, protected, summary)

    def _after_summary(self, before: Sequence[Stored], protected: list[Stored], summary: Stored) -> Iterator[Placed]:
        """The summary itself and the kept tail behind it."""
        rest = before[len(protected) :]
        tail = self._kept_tail(rest)
        kept = len(protected) + len(tail) + (1 if summary.merged else 0)
        spoken = sum(not row.summary for row in before)
        yield Placed(summary, False, kept, max(spoken - kept, 0), self._time_of(summary, rest, len(tail)))
        copies: list[Stored] = []
        for is_copy in tail:
            row = self._ahead.popleft()
            copies.append(row)
            yield Placed(row, copy=is_copy)
        self._context = [*protected, summary, *copies]

    def _time_of(self, summary: Stored, before: Sequence[Stored], tail: int) -> float | None:
        """When a compaction happened.

        A kept row with the summary inside keeps its time; rows of the turn in progress are written with new ones.
        """
        if not summary.merged:
            return summary.at
        known = {row.at for row in before}
        fresh = [row.at for row in self._peek(tail) if row.at is not None and row.at not in known]
        newest = [row.at for row in before[-1:] if row.at is not None]
        return min(fresh or newest, default=summary.at)

    def _kept_tail(self, before: Sequence[Stored]) -> list[bool]:
        """For each row after a summary that belongs to the kept tail, whether it is a copy.

        The tail runs to the end of the generation before: compaction keeps the newest. Where several beginnings fit,
        because people repeat themselves, the one whose times agree best is taken, then the longest.
        """
        first = self._peek(1)
        if not first or not before:
            return []
        best: tuple[int, int] | None = None
        for start in range(len(before)):
            if not same_message(first[0], before[start]):
                continue
            tail = before[start:]
            ahead = self._peek(len(tail))
            if len(ahead) < len(tail) or not all(map(same_message, ahead, tail)):
                continue
            times = sum(one.at == other.at for one, other in zip(ahead, tail, strict=False))
            if best is None or (times, len(tail)) > best:
                best = (times, len(tail))
        if best is not None:
            return [True] * best[1]
        return self._same_times(before)

    def _same_times(self, before: Sequence[Stored]) -> list[bool]:
        """A tail that was changed when it was kept: only rows that agree in text and time are copies."""
        known = {(row.print, row.at) for row in before}
        found: list[bool] = []
        for row in self._peek(len(before)):
            found.append((row.print, row.at) in known)
        while found and not found[-1]:
            found.pop()
        return found

    def _unmarked(self, before: Sequence[Stored]) -> Iterator[Placed]:
        """A generation without a summary we know."""
        for is_copy in self._same_times(before):
            row = self._ahead.popleft()
            self._context.append(row)
            yield Placed(row, copy=is_copy)

    def _in_force(self) -> list[Stored]:
        """The context without what the user took back."""
        return [row for row in self._context if row.state != "rewound"]

    def _summary_ahead(self) -> bool:
        return any(row.summary for row in self._peek(MOST_PROTECTED))

    def _next(self) -> Stored | None:
        return self._ahead.popleft() if self._ahead else next(self._rows, None)

    def _peek(self, count: int) -> list[Stored]:
        """The next rows without taking them; fewer at the end."""
        while len(self._ahead) < count:
            row = next(self._rows, None)
            if row is None:
                break
            self._ahead.append(row)
        return [self._ahead[number] for number in range(min(count, len(self._ahead)))]
