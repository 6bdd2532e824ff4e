"""Put back what was deleted, with its ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import apsw

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.stores.changing import BadText, StoredRow
from hermes_tui.stores.hermes.appending import live_columns
from hermes_tui.stores.hermes.dialects import CJK_TABLE, TRIGRAM_TABLE, Dialect
from hermes_tui.stores.hermes.taking import quoted
from hermes_tui.stores.hermes.titles import ask_writer, next_title

FTS_TABLES: Final = ("messages_fts", TRIGRAM_TABLE, CJK_TABLE)


@dataclass(slots=True)
class Restored:
    """What was put back."""

    ids: list[SessionId] = field(default_factory=list)
    inserted: list[SessionId] = field(default_factory=list)
    """Those of them that had no row: the others had only lost their messages."""
    messages: int = 0
    still_there: list[SessionId] = field(default_factory=list)
    """Sessions that are in the store with messages: nothing was done to them."""
    renamed: list[tuple[SessionId, str]] = field(default_factory=list)
    """Sessions whose title another one has by now, with the title they got."""


def put_back(
    raw: apsw.Connection,
    rows: Sequence[StoredRow],
    children: Sequence[tuple[SessionId, SessionId]],
    dialect: Dialect,
) -> Restored:
    """Insert sessions, messages and usage; runs inside one transaction of the retrying writer.

    Args:
        raw: the store.
        rows: what the trash holds.
        children: (child, parent) of sessions that became roots, or hung on one that is gone; where the one or the other
            comes back now and the child is a root still, it gets its parent back.
        dialect: switched for rows the agent's older library indexed.
    """
    # A child may come before its parent.
    raw.execute("PRAGMA defer_foreign_keys = ON")
    restored = Restored()
    columns = {table: live_columns(raw, table) for table in {row.table for row in rows}}
    refused: set[str] = set()
    leftovers = _tables_with_leftovers(raw)
    for row in rows:
        if row.table == "sessions":
            _session(raw, row, columns["sessions"], restored, refused)
    for row in rows:
        if row.table == "sessions" or row.values.get("session_id") in refused or not columns[row.table]:
            continue
        dialect.stops = row.dialect == "stops"
        try:
            for table in leftovers if row.table == "messages" else ():
                raw.execute(f"DELETE FROM {table} WHERE rowid = ?", (row.values.get("id"),))
            _insert(raw, row.table, row.values, columns[row.table])
        finally:
            dialect.stops = False
        restored.messages += row.table == "messages"
    _parents(raw, restored, children)
    return restored


def _tables_with_leftovers(raw: apsw.Connection) -> list[str]:
    """Indexes with texts of their own that learn of new messages and not of deleted ones: a trigger is gone.

    What they still hold of a message would refuse it when it comes back.
    """
    names = {name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")}
    tables = raw.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%USING fts5%'")
    return [
        name
        for name, sql in tables.fetchall()
        if name in FTS_TABLES
        and "content=" not in str(sql).replace(" ", "")
        and f"{name}_insert" in names
        and f"{name}_delete" not in names
    ]


def _session(
    raw: apsw.Connection, row: StoredRow, columns: frozenset[str], restored: Restored, refused: set[str]
) -> None:
    identity = row.values["id"]
    if raw.execute("SELECT 1 FROM sessions WHERE id = ?", (identity,)).fetchall():
        if raw.execute("SELECT 1 FROM messages WHERE session_id = ? LIMIT 1", (identity,)).fetchall():
            refused.add(identity)
            restored.still_there.append(SessionId(identity))
            return
        counters = [n for n in ("message_count", "tool_call_count") if n in columns and n in row.values]
        if counters:
            sets = ", ".join(f"{name} = :{name}" for name in counters)
            raw.execute(f"UPDATE sessions SET {sets} WHERE id = :id", {n: row.values[n] for n in ("id", *counters)})
    else:
        values = dict(row.values)
        title = values.get("title")
        if isinstance(title, str) and raw.execute("SELECT 1 FROM sessions WHERE title = ?", (title,)).fetchall():
            values["title"] = next_title(ask_writer(raw), title)
            restored.renamed.append((SessionId(identity), values["title"]))
        _insert(raw, "sessions", values, columns)
        restored.inserted.append(SessionId(identity))
    restored.ids.append(SessionId(identity))


def _parents(raw: apsw.Connection, restored: Restored, children: Sequence[tuple[SessionId, SessionId]]) -> None:
    """Parents that are gone for good are left out; children that lost theirs get it back."""
    if "parent_session_id" not in live_columns(raw, "sessions"):
        return
    for identity in restored.inserted:
        raw.execute(
            "UPDATE sessions SET parent_session_id = NULL WHERE id = ? AND parent_session_id IS NOT NULL"
            " AND parent_session_id NOT IN (SELECT id FROM sessions)",
            (identity,),
        )
    back = set(restored.ids)
    for child, parent in children:
        if parent in back or child in back:
            raw.execute(
                "UPDATE sessions SET parent_session_id = :parent WHERE id = :child AND parent_session_id IS NULL"
                " AND EXISTS (SELECT 1 FROM sessions WHERE id = :parent)",
                {"parent": parent, "child": child},
            )


def _insert(raw: apsw.Connection, table: str, values: dict[str, Any], columns: frozenset[str]) -> None:
    """Insert the columns the table still has; the bytes of a bad text as text."""
    kept = {name: value for name, value in values.items() if name in columns}
    marks = ", ".join("CAST(? AS TEXT)" if isinstance(value, BadText) else "?" for value in kept.values())
    names = ", ".join(quoted(name) for name in kept)
    cells = [bytes(value) if isinstance(value, BadText) else value for value in kept.values()]
    raw.execute(f"INSERT INTO {table}({names}) VALUES ({marks})", cells)
