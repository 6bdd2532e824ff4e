"""What a full-text index takes from a log, line by line, and where it finds the words again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, Protocol

from hermes_tui.storage.jsonl import Record

TextPhase = Literal["talk", "tools", "both"]
"""Prompts and replies are indexed first; what the model thought, and tools were given and gave, afterwards (issue 6).
A line of ``both`` has nothing to index, but each phase must know of it."""


class LogText(NamedTuple):
    """The searchable text of a line: all its entries together, for words are AND inside one message.

    A tuple, for there are many.
    """

    record: Record
    text: str
    at: float | None


class LogTexts(Protocol):
    """Cuts the searchable texts out of the lines of one log, fed in order; what it proposes may be too much."""

    def phase(self, line: bytes) -> TextPhase | None:
        """What this line holds, told by its first bytes; ``None``: nothing to index."""
        ...

    def texts(self, record: Record) -> Iterable[LogText]:
        """The texts that are known after this line, as the transcript shows them."""
        ...

    def rest(self) -> Iterable[LogText]:
        """What was held back until the last line was fed."""
        ...
