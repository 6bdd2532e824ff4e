"""The sessions of a folder of logs as a peek shows them, and how they hang together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hermes_tui.model import SessionId, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.stores.conversation import fold_conversation
from hermes_tui.stores.log_source import LogFile

Peeked = tuple[LogFile | None, SessionRow]
"""A log and the row a peek made of it; no log where only the agent's own mirror knows the session."""


@dataclass(frozen=True, slots=True)
class LogIndex:
    """Every session of a store, cheaply: ids, peeked rows, their logs, who is whose child."""

    logs: tuple[LogFile, ...]
    """In order of their sessions' starts, so that what was copied is met where it was written first."""
    rows: Mapping[SessionId, SessionRow]
    logs_of: Mapping[SessionId, tuple[LogFile, ...]]
    """The logs of a session, oldest first."""
    session_of: Mapping[str, SessionId]
    """The session a log's path belongs to."""
    children: Mapping[SessionId, tuple[SessionId, ...]]
    odd: tuple[SessionId, ...]
    """Sessions of which something could not be read."""

    def ancestors(self, session_id: SessionId) -> tuple[SessionId, ...]:
        """The session and what it came from, nearest first; ends where a parent is unknown or comes again."""
        seen = {session_id: None}
        row = self.rows.get(session_id)
        while row is not None and row.parent_id is not None and row.parent_id not in seen:
            parent = row.parent_id
            row = self.rows.get(parent)
            if row is not None:
                seen[parent] = None
        return tuple(seen)

    def tree(self, session_id: SessionId) -> tuple[SessionId, ...]:
        """The whole connected tree around a session, from its root down, parents before children."""
        root = self.ancestors(session_id)[-1]
        order: dict[SessionId, None] = {}
        waiting = [root]
        while waiting:
            here = waiting.pop()
            if here not in order:
                order[here] = None
                waiting.extend(reversed(self.children.get(here, ())))
        return tuple(order)

    def in_cycle(self, session_id: SessionId) -> bool:
        """Whether following the parents leads back to this session."""
        last = self.ancestors(session_id)[-1]
        row = self.rows.get(last)
        return row is not None and row.parent_id == session_id

    def is_orphan(self, session_id: SessionId) -> bool:
        """Whether its parent is named but not here."""
        parent = self.rows[session_id].parent_id
        return parent is not None and parent not in self.rows


def build_index(
    peeked: Iterable[Peeked], joined: Callable[[Sequence[SessionRow]], SessionRow] = fold_conversation
) -> LogIndex:
    """Group what was peeked by session; ``joined`` makes one row of those of its logs."""
    ordered = sorted(peeked, key=_first_come)
    groups: dict[SessionId, list[Peeked]] = {}
    for log, row in ordered:
        groups.setdefault(row.id, []).append((log, row))
    rows = {session_id: joined([row for _, row in group]) for session_id, group in groups.items()}
    children = _children(rows)
    return LogIndex(
        logs=tuple(log for log, _ in ordered if log is not None),
        rows={session_id: _with_children(row, rows, children) for session_id, row in rows.items()},
        logs_of={session_id: tuple(log for log, _ in group if log is not None) for session_id, group in groups.items()},
        session_of={log.path: row.id for log, row in ordered if log is not None},
        children=children,
        odd=tuple(session_id for session_id, row in rows.items() if row.problems),
    )


def _first_come(peeked: Peeked) -> tuple[float, str]:
    log, row = peeked
    return (math.inf if row.started_at is None else row.started_at, "" if log is None else log.path)


def _children(rows: Mapping[SessionId, SessionRow]) -> dict[SessionId, tuple[SessionId, ...]]:
    found: dict[SessionId, list[SessionId]] = {}
    for row in rows.values():
        if row.parent_id is not None and row.parent_id != row.id:
            found.setdefault(row.parent_id, []).append(row.id)
    return {parent: tuple(ids) for parent, ids in found.items()}


def _with_children(
    row: SessionRow, rows: Mapping[SessionId, SessionRow], children: Mapping[SessionId, tuple[SessionId, ...]]
) -> SessionRow:
    kinds = [rows[child].lineage_kind for child in children.get(row.id, ())]
    if not kinds:
        return row
    delegated = kinds.count("delegation")
    return replace(row, delegated=delegated, branches=len(kinds) - delegated)


def logs_of(index: LogIndex, ids: Iterable[SessionId]) -> Iterator[LogFile]:
    """The logs of these sessions, each once, in the index's order within a session."""
    seen: set[str] = set()
    for session_id in ids:
        for log in index.logs_of.get(session_id, ()):
            if log.path not in seen:
                seen.add(log.path)
                yield log
