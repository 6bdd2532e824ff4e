"""A few words around a match, with the matches marked (contract.md, search)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.text import RawText

OPENING: Final = ">>>"
CLOSING: Final = "<<<"
BEFORE: Final = 60
"""Characters before the first match."""
LENGTH: Final = 220
"""Characters of a snippet, about."""
MOST_MARKED: Final = 400
"""Characters of one mark; a longer one, of a regular expression, is cut."""
MORE: Final = "…"
CONTEXT: Final = 200
"""Characters of a neighbouring message."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text with its marks."""

    text: RawText
    """Without markers."""
    marks: tuple[tuple[int, int], ...]
    """Start and length in ``text``."""

    @property
    def marked(self) -> str:
        """With ``>>>`` and ``<<<`` around each mark."""
        pieces: list[str] = []
        end = 0
        for start, length in self.marks:
            pieces += [self.text[end:start], OPENING, self.text[start : start + length], CLOSING]
            end = start + length
        return "".join([*pieces, self.text[end:]])


def snippet_of(text: str, marks: Sequence[tuple[int, int]]) -> Snippet:
    """The piece of a text around its first mark, with every mark that lies in it."""
    first, length = marks[0]
    start = _word_start(text, max(first - BEFORE, 0), first)
    end = max(start + LENGTH, first + min(length, MOST_MARKED))
    lead = MORE if start else ""
    piece = lead + _without_markers(text[start:end]) + (MORE if end < len(text) else "")
    kept = [
        (place - start + len(lead), min(size, end - place))
        for place, size in marks
        if place < end and (place + size <= end or place == first)
    ]
    return Snippet(RawText(piece), tuple(kept))


def _word_start(text: str, start: int, limit: int) -> int:
    """Not in the middle of a word where one ends soon."""
    if not start:
        return 0
    space = text.find(" ", start, min(start + 20, limit))
    return space + 1 if space >= 0 else start


def _without_markers(text: str) -> str:
    """The text's own ``>>>`` would be taken for a marker; look-alikes of the same length keep the places right."""
    return text.replace(OPENING, "\u203a\u203a\u203a").replace(CLOSING, "\u2039\u2039\u2039")


def cut_context(text: str) -> RawText:
    """The beginning of a neighbouring message."""
    return RawText(text if len(text) <= CONTEXT else text[:CONTEXT] + MORE)
