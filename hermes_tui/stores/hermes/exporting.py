"""Sessions as plain dictionaries, in the product's shape of an export (facts/hermes.md section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.links import batches
from hermes_tui.stores.hermes.schema import Schema

_ORDER: Final = ("id", "role", "content", "tool_name", "tool_calls", "tool_call_id", "timestamp")
"""Columns of a message that come first; the others follow by name."""


def newest_first(connection: ReadConnection, schema: Schema) -> list[str]:
    """Ids of every session."""
    order = schema.column("sessions", "started_at", "s")
    return [row[0] for row in connection.rows(f"SELECT s.id FROM sessions s ORDER BY {order} DESC, s.id DESC")]


def exported(connection: ReadConnection, schema: Schema, session_id: str) -> dict[str, Any] | None:
    """A session's row with its live messages; ``None`` when it is not there."""
    names = sorted(schema.columns["sessions"])
    row = connection.one(f"SELECT {', '.join(names)} FROM sessions WHERE id = ?", (session_id,))
    if row is None:
        return None
    numbers: list[int] = []
    if schema.has("messages", "id", "session_id"):
        live = " AND (active IS NULL OR active = 1)" if schema.has("messages", "active") else ""
        found = connection.rows(f"SELECT id FROM messages WHERE session_id = ?{live} ORDER BY id", (session_id,))
        numbers = [number for (number,) in found]
    return {**dict(zip(names, row, strict=True)), "messages": exported_messages(connection, schema, numbers)}


def exported_messages(connection: ReadConnection, schema: Schema, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Messages by their ids, in this order."""
    there = schema.columns.get("messages", frozenset())
    names = [name for name in _ORDER if name in there] + sorted(there.difference(_ORDER))
    found: dict[int, dict[str, Any]] = {}
    for part in batches([str(number) for number in numbers]):
        marks = ",".join("?" * len(part))
        sql = f"SELECT {', '.join(names)} FROM messages WHERE id IN ({marks})"
        for row in connection.rows(sql, [int(number) for number in part]):
            message = dict(zip(names, row, strict=True))
            found[message["id"]] = message
    return [found[number] for number in numbers if number in found]
