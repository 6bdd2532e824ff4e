"""Finding in one transcript: which messages match, and where in their text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from hermes_tui.model import Message, MessageHead
from hermes_tui.text import clean
from hermes_tui.tui.cells import Range
from hermes_tui.tui.views.blocks import PIECE, Finder

if TYPE_CHECKING:
    from hermes_tui.library.transcript import Transcript

BATCH_BYTES: Final = 2_000_000
"""Text read at once: bounds memory and the time until a newer find may begin."""
BATCH_COUNT: Final = 200
_OVERLAP: Final = 200
"""Characters two pieces of a long text share, so that a match on their border is found."""


def literal_finder(query: str) -> Finder:
    """As a browser finds: the words as typed, case folded, any white space between them."""
    words = query.split()
    pattern = re.compile(r"\s+".join(re.escape(word) for word in words), re.IGNORECASE)

    def find(text: str) -> Sequence[Range]:
        return [match.span() for match in pattern.finditer(text)] if words else []

    return find


def batches(heads: Sequence[MessageHead], items: Sequence[int]) -> Iterator[list[int]]:
    """The messages in the order given, in batches of bounded size."""
    batch: list[int] = []
    size = 0
    for item in items:
        if batch and (size + heads[item].size > BATCH_BYTES or len(batch) >= BATCH_COUNT):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += heads[item].size
    if batch:
        yield batch


def count_matches(transcript: Transcript, message: Message, find: Finder) -> int:
    """How often a message matches; long ones are read piece by piece."""
    if not message.cut:
        return len(find(clean(message.text or "")))
    total = 0
    start = 0
    while piece := transcript.piece(message.head, start, PIECE):
        total += len(find(clean(piece)))
        if len(piece) < PIECE:
            break
        start += PIECE - _OVERLAP
    return total
