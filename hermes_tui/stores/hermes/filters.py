"""The filters of a search as conditions on ``messages m`` (contract.md, search).

Sessions are tested through sub-selects, so that a message whose session row is gone still passes where nothing is asked
of its session (issue 3: orphaned messages are marked, not hidden).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from hermes_tui.records import dataclass
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.conversation import below
from hermes_tui.stores.hermes.candidates import Condition
from hermes_tui.stores.hermes.cells import text_or_none
from hermes_tui.stores.hermes.links import all_links, json_ids, links_around
from hermes_tui.stores.hermes.salvage import salvaged
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


def conditions(
    connection: ReadConnection, schema: Schema, filters: SearchFilters, *, damaged: bool = False
) -> Conditions:
    """The filters as SQL; in a damaged store the sessions that can be read are found first."""
    shown = list(_state(schema, filters.all_states))
    of_sessions = _readable if damaged else _session
    every = [*shown, *_message(schema, filters), *of_sessions(connection, schema, filters)]
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
        inside = "cwd = ?1 OR substr(cwd, 1, length(?1) + 1) IN (?1 || '/', ?1 || '\\')".replace("?1", "?")
        values = (folder,) * 4 if schema.has("sessions", "cwd") else ()
        yield _of_sessions(schema, "cwd", inside), values
    if filters.channel is not None:
        yield _AMONG, (_channel(connection, schema, filters.channel),)


def _readable(
    connection: ReadConnection, schema: Schema, filters: SearchFilters
) -> Iterator[tuple[str, Sequence[Any]]]:
    """The filters on sessions as ids: a sub-select over ``sessions`` would fail on its first damaged page."""
    links = all_links(connection, schema)
    columns = schema.select("sessions", ("id", "source", "model", "cwd"))

    def read(ids: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        sql = f"SELECT {columns} FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return {row[0]: row[1:] for row in connection.rows(sql, (json_ids(ids),))}

    facts, _ = salvaged(read, sorted(links.by_id))
    if filters.exclude_source is not None:
        excluded = [one for one, (source, _, _) in facts.items() if source == filters.exclude_source]
        yield "m.session_id NOT IN (SELECT value FROM json_each(?))", (json_ids(excluded),)
    if filters.channel is not None:
        starts = [link for link in links.by_id.values() if link.session_key == filters.channel]
        parts = {part.id for link in starts for part in links.conversation(link)}
        yield _AMONG, (json_ids(sorted(parts)),)
    if filters.source is not None or filters.model is not None or filters.cwd is not None:
        passing = [
            one
            for one, (source, model, cwd) in facts.items()
            if filters.source in (None, source)
            and filters.model in (None, model)
            and (filters.cwd is None or below(text_or_none(cwd), filters.cwd))
        ]
        yield _AMONG, (json_ids(passing),)


_AMONG: Final = "m.session_id IN (SELECT value FROM json_each(?))"


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
