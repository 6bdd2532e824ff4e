"""The filters of a search as conditions on ``messages m`` (contract.md, search).

Sessions are tested through sub-selects, so that a message whose session row is gone still passes where nothing is asked
of its session (issue 3: orphaned messages are marked, not hidden).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.candidates import Condition
from hermes_tui.stores.hermes.links import json_ids, links_around
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.protocol import SearchFilters


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a hit must fulfil."""

    all: Condition
    """Everything that was asked for."""
    shown: Condition
    """State alone: what a reader sees."""


NOTHING: Final = Conditions(Condition(), Condition())


def conditions(connection: ReadConnection, schema: Schema, filters: SearchFilters) -> Conditions:
    """The filters as SQL."""
    shown = list(_state(schema, filters.all_states))
    every = [*shown, *_message(schema, filters), *_session(connection, schema, filters)]
    return Conditions(_joined(every), _joined(shown))


def _joined(pieces: Sequence[tuple[str, Sequence[Any]]]) -> Condition:
    if not pieces:
        return Condition()
    sql = " AND ".join(f"({sql})" for sql, _ in pieces)
    return Condition(f"({sql})", tuple(value for _, values in pieces for value in values))


def _state(schema: Schema, all_states: bool) -> Iterator[tuple[str, Sequence[Any]]]:
    """Rewound rows only on request; rows for the model alone never (facts/hermes.md section 2, display_kind)."""
    if not all_states and schema.has("messages", "active"):
        compacted = " OR m.compacted = 1" if schema.has("messages", "compacted") else ""
        yield f"m.active IS NULL OR m.active <> 0{compacted}", ()
    if schema.has("messages", "display_kind"):
        yield "m.display_kind IS NOT 'hidden'", ()


def _message(schema: Schema, filters: SearchFilters) -> Iterator[tuple[str, Sequence[Any]]]:
    if filters.role is not None:
        yield "m.role = ?", (filters.role,)
    for sign, bound in ((">=", filters.since), ("<=", filters.until)):
        if bound is None:
            continue
        # Text sorts after every number: an absurd time passes no bound.
        timed = schema.has("messages", "timestamp")
        yield (f"typeof(m.timestamp) IN ('real', 'integer') AND m.timestamp {sign} ?", (bound,)) if timed else ("0", ())


def _session(connection: ReadConnection, schema: Schema, filters: SearchFilters) -> Iterator[tuple[str, Sequence[Any]]]:
    for column, value in (("source", filters.source), ("model", filters.model)):
        if value is not None:
            yield _of_sessions(schema, column, f"{column} = ?"), (value,) if schema.has("sessions", column) else ()
    if filters.exclude_source is not None and schema.has("sessions", "source"):
        yield "m.session_id NOT IN (SELECT id FROM sessions WHERE source = ?)", (filters.exclude_source,)
    if filters.cwd is not None:
        folder = filters.cwd.rstrip("/\\") or filters.cwd
        below = "cwd = ?1 OR substr(cwd, 1, length(?1) + 1) IN (?1 || '/', ?1 || '\\')".replace("?1", "?")
        values = (folder,) * 4 if schema.has("sessions", "cwd") else ()
        yield _of_sessions(schema, "cwd", below), values
    if filters.channel is not None:
        yield "m.session_id IN (SELECT value FROM json_each(?))", (_channel(connection, schema, filters.channel),)


def _of_sessions(schema: Schema, column: str, condition: str) -> str:
    if not schema.has("sessions", column):
        return "0"
    return f"m.session_id IN (SELECT id FROM sessions WHERE {condition})"


def _channel(connection: ReadConnection, schema: Schema, key: str) -> str:
    """The sessions of a channel and those that continue them after a compaction."""
    if not schema.has("sessions", "session_key"):
        return "[]"
    ids = [row[0] for row in connection.rows("SELECT id FROM sessions WHERE session_key = ?", (key,))]
    links = links_around(connection, schema, ids)
    found = {part.id for one in ids if one in links.by_id for part in links.conversation(links.by_id[one])}
    return json_ids(sorted(found | set(ids)))
