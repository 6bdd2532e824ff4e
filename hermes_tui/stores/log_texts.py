"""What a full-text index takes from a log, line by line, and where it finds the words again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from hermes_tui.storage.jsonl import Record

TextPhase = Literal["talk", "tools"]
"""Prompts and replies are indexed first, what tools were given and gave afterwards (issue 6)."""


@dataclass(frozen=True, slots=True)
class LogText:
    """The searchable text of a line: all its entries together, for words are AND inside one message."""

    text: str
    at: float | None
    copy: str | None = None
    """Equal for texts that are one message stored several times (forks); ``None`` where logs hold no copies."""


class LogTexts(Protocol):
    """Cuts the searchable texts out of the lines of one log."""

    def phase(self, line: bytes) -> TextPhase | None:
        """What this line holds, told by its first bytes; ``None``: nothing to index."""
        ...

    def text(self, record: Record) -> LogText | None:
        """The text of one line, of all that the transcript shows of it; ``None``: nothing."""
        ...
