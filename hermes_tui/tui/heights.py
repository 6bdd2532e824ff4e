"""How high the items of a long list are, and which item is at which line.

A list of one-line rows costs nothing; items of different height keep sums of blocks, so that one height changes
in the time of one block, not of the list: 100,000 messages scroll as 100 do (design.md, rule 6).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final, Protocol

BLOCK: Final = 512
"""Items a block: changing one height sums one block (10 µs), finding a line walks the blocks."""


class Heights(Protocol):
    """What a virtual list asks."""

    @property
    def count(self) -> int:
        """How many items."""
        ...

    @property
    def total(self) -> int:
        """Lines of all items."""
        ...

    def height(self, item: int) -> int:
        """Lines of this item; may be 0."""
        ...

    def top(self, item: int) -> int:
        """The first line of this item."""
        ...

    def at(self, line: int) -> tuple[int, int]:
        """The item at this line and which of its lines that is; the line must exist."""
        ...


class EvenHeights:
    """Every item has the same height."""

    __slots__ = ("count", "each")

    def __init__(self, count: int, each: int = 1) -> None:
        self.count = count
        self.each = each

    @property
    def total(self) -> int:
        return self.count * self.each

    def height(self, item: int) -> int:  # noqa: ARG002 - the protocol's
        return self.each

    def top(self, item: int) -> int:
        return item * self.each

    def at(self, line: int) -> tuple[int, int]:
        return divmod(line, self.each)


class VariedHeights:
    """Items of different heights that may change one by one; items may be added at the end."""

    __slots__ = ("_blocks", "_heights", "_total")

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: array[int] = array("l", heights)
        self._blocks: list[int] = []
        self._sum_from(0)

    def _sum_from(self, block: int) -> None:
        heights = self._heights
        del self._blocks[block:]
        self._blocks.extend(sum(heights[at : at + BLOCK]) for at in range(block * BLOCK, len(heights), BLOCK))
        self._total = sum(self._blocks)

    @property
    def count(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        return self._total

    def extend(self, heights: Iterable[int]) -> None:
        """Add items at the end."""
        block = len(self._heights) // BLOCK
        self._heights.extend(heights)
        self._sum_from(block)

    def set(self, item: int, height: int) -> int:
        """Change one height; returns by how much."""
        change = height - self._heights[item]
        if change:
            self._heights[item] = height
            self._blocks[item // BLOCK] += change
            self._total += change
        return change

    def height(self, item: int) -> int:
        return self._heights[item]

    def top(self, item: int) -> int:
        block = item // BLOCK
        return sum(self._blocks[:block]) + sum(self._heights[block * BLOCK : item])

    def at(self, line: int) -> tuple[int, int]:
        first = 0
        for lines in self._blocks:
            if line < lines:
                break
            line -= lines
            first += BLOCK
        for item in range(first, len(self._heights)):
            if line < self._heights[item]:
                return item, line
            line -= self._heights[item]
        raise IndexError(line)
