"""What stores made of log files have in common: files, folding a log line by line, summaries.

Codex, Claude Code and DSH keep one log a session. Each package says how one line is read (:class:`LogFold`); listing,
rows, usage and lineage over many logs are worked out here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hermes_tui.model import Compaction, Problem, Request, SessionId, SessionRow
from hermes_tui.storage.jsonl import Record


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log on disk as the folder shows it; nothing read yet."""

    path: str
    session_id: SessionId
    """By its name; the log itself may say otherwise."""
    size: int
    mtime_ns: int
    device: int
    inode: int
    archived: bool = False


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What one log tells list, ledger, lineage and cache screen."""

    row: SessionRow
    requests: tuple[Request, ...]
    """Own requests only, each once."""
    compactions: tuple[Compaction, ...]
    problems: tuple[Problem, ...]


class LogFold(Protocol):
    """Reads a log line by line and can be put away and taken up again at a byte offset."""

    def wants(self, line: bytes) -> bool:
        """Whether this line must be parsed; told by its first bytes, so that most lines never are."""
        ...

    def feed(self, record: Record) -> None:
        """Take in one record; records come in file order."""
        ...

    def summary(self) -> LogSummary:
        """What is known after the records fed so far."""
        ...

    def dump(self) -> bytes:
        """The state as JSON bytes; :class:`LogFold` implementations can be made from them again."""
        ...
