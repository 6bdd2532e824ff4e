"""What a pass over many logs has to say: places that cannot be read by kind, orphans and cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Final

from hermes_tui.model import Finding, Problem, SessionId
from hermes_tui.records import dataclass
from hermes_tui.stores.log_index import LogIndex

UNREADABLE_LINES: Final = "unreadable-lines"
ABSURD_TIMES: Final = "absurd-time"
NAMED_PATHS: Final = 20
"""Paths a finding names; its count tells the rest."""
NAMED_SESSIONS: Final = 3
_ADVICE: Final = {
    UNREADABLE_LINES: "`show ID` lists them with line and reason; the rest of each log is shown.",
    "session-format-unsupported": "Only their headers are shown; an agent that knows the format can open them.",
}

_SAID: Final = {ABSURD_TIMES: "with a time that is none"}


@dataclass(slots=True)
class _Kind:
    places: int = 0
    paths: dict[str, None] = field(default_factory=dict)
    first: str = ""


class ProblemTally:
    """Counts problems by what kind they are."""

    def __init__(self, code_of: Callable[[Problem], str]) -> None:
        self._code_of = code_of
        self._kinds: dict[str, _Kind] = {}

    def add(self, path: str, problems: Sequence[Problem]) -> None:
        """Add the problems of one log."""
        for problem in problems:
            kind = self._kinds.setdefault(self._code_of(problem), _Kind())
            kind.places += 1
            kind.paths[path] = None
            kind.first = kind.first or problem.reason

    def findings(self) -> Iterator[Finding]:
        """One finding a kind, with the first reason as it was met."""
        for code, kind in self._kinds.items():
            where = f"{counted(kind.places, 'place')} in {counted(len(kind.paths), 'log')}"
            detail = f"{where} {_SAID.get(code, 'cannot be read')}: {kind.first}"
            yield Finding(code, "warn", detail, kind.places, _ADVICE.get(code), tuple(sorted(kind.paths)[:NAMED_PATHS]))


def counted(count: int, noun: str) -> str:
    """``1 log``, ``2 logs``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def lineage_findings(index: LogIndex) -> Iterator[Finding]:
    """Sessions whose parents are not here, and those whose parents lead back to them."""
    orphans = [session_id for session_id in index.rows if index.is_orphan(session_id)]
    cycles = [session_id for session_id in index.rows if index.in_cycle(session_id)]
    if orphans:
        yield Finding("orphan", "info", _named("their parent is not in this store", orphans), len(orphans))
    if cycles:
        yield Finding("cycle", "warn", _named("their parents lead back to them", cycles), len(cycles))


def _named(what: str, ids: Sequence[SessionId]) -> str:
    more = ", …" if len(ids) > NAMED_SESSIONS else ""
    return f"{counted(len(ids), 'session')}: {what} ({', '.join(ids[:NAMED_SESSIONS])}{more})"
