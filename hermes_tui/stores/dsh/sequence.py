"""Which sequence numbers of a session were met: dense from 0, but for what damage took away or changed."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from hermes_tui.records import dataclass


@dataclass(slots=True)
class Numbers:
    """The numbers met so far, and which one comes next."""

    due: int = 0
    """The number that comes next."""
    runs: list[list[int]] = field(default_factory=list)
    """Runs that were met, in order: the first number and the one behind the last. One but for a damaged log."""

    def fits(self, number: int) -> bool:
        """Whether an event of this number is none that was met before.

        One damaged number may be far too high: what follows it counts on from the numbers before, and is new.
        """
        if number == self.due:
            return True
        before = bisect_right(self.runs, number, key=_first) - 1
        return before < 0 or self.runs[before][1] <= number

    def meet(self, number: int, span: int) -> None:
        """Note an event that stands for so many numbers."""
        behind = number + span
        if self.runs and self.runs[-1][1] == number:
            self.runs[-1][1] = behind
        else:
            self._insert(number, behind)
        self.due = behind

    def _insert(self, number: int, behind: int) -> None:
        at = bisect_right(self.runs, number, key=_first)
        if at and self.runs[at - 1][1] >= number:
            self.runs[at - 1][1] = max(self.runs[at - 1][1], behind)
        else:
            self.runs.insert(at, [number, behind])

    def above(self, number: int) -> list[list[int]]:
        """The runs from this number on."""
        return [[max(first, number), behind] for first, behind in self.runs if behind > number]


def _first(run: list[int]) -> int:
    return run[0]
