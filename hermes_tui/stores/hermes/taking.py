"""Read everything a deletion takes, byte for byte, and tell later whether it is still the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hermes_tui.model import SessionId
from hermes_tui.storage.reading import ReadConnection, read_only
from hermes_tui.stores.changing import BadText, StoredFile, StoredRow
from hermes_tui.stores.hermes.dialects import NulDialect, holds_nul, nul_dialect
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.titles import Ask

PAGE: Final = 100
"""Messages read at a time."""
OWNED_TABLES: Final = ("session_model_usage", "session_daily_usage")
"""Tables whose rows belong to a session and go with it."""
_MARKS: Final = (
    "started_at",
    "ended_at",
    "message_count",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "api_call_count",
    "archived",
    "rewind_count",
    "last_activity_at",
)


def quoted(name: str) -> str:
    """A column's name in SQL: newer versions of the agent, and plugins, may call theirs anything."""
    return '"' + name.replace('"', '""') + '"'


def session_mark(ask: Ask, schema: Schema, session_id: str) -> tuple[Any, ...] | None:
    """Equal while nothing was added to or changed in a session; ``None`` when it is gone. Numbers only."""
    columns = [name for name in _MARKS if schema.has("sessions", name)]
    if schema.has("sessions", "title"):
        columns.append("octet_length(title)")
    found = ask(f"SELECT {', '.join(columns) or '1'} FROM sessions WHERE id = ?", (session_id,))
    if not found:
        return None
    if not schema.has("messages", "session_id"):
        return found[0]
    flags = [f"sum({name})" for name in ("active", "compacted") if schema.has("messages", name)]
    totals = ", ".join(["count(*)", "max(id)", "sum(octet_length(content))", *flags])
    return found[0] + ask(f"SELECT {totals} FROM messages WHERE session_id = ?", (session_id,))[0]


def nul_rows(connection: ReadConnection, schema: Schema, session_ids: Sequence[str]) -> dict[int, NulDialect]:
    """Messages with a NUL in an indexed text, with how the trigram index has each."""
    names = [name for name in ("content", "tool_name", "tool_calls") if schema.has("messages", name)]
    if not names or not schema.has("messages", "id", "session_id"):
        return {}
    test = " OR ".join(f"instr(CAST({name} AS BLOB), x'00')" for name in names)
    marks = ",".join("?" * len(session_ids))
    sql = f"SELECT id, {', '.join(names)} FROM messages WHERE session_id IN ({marks}) AND ({test})"
    found: dict[int, NulDialect] = {}
    for row in connection.rows(sql, session_ids):
        values = dict(zip(("id", *names), row, strict=True))
        if holds_nul(values):
            found[values["id"]] = nul_dialect(connection, schema, values)
    return found


def stored_rows(
    path: str,
    schema: Schema,
    ids: Sequence[SessionId],
    files: Sequence[tuple[SessionId, str]],
    *,
    messages_only: bool = False,
) -> Iterator[StoredRow | StoredFile]:
    """Every row and file that goes with these sessions; of a session that is only cleared, its row and messages."""
    with read_only(path) as connection:
        encoding = _encoding(connection)
        for session_id in ids:
            yield from _rows(connection, "sessions", "id = ?", (session_id,), encoding)
            if schema.has("messages", "id", "session_id"):
                yield from _messages(connection, schema, session_id, encoding)
            for table in () if messages_only else OWNED_TABLES:
                if schema.has(table, "session_id"):
                    yield from _rows(connection, table, "session_id = ?", (session_id,), encoding)
    for session_id, name in files:
        try:
            found = Path(name).stat()
        except FileNotFoundError:
            # The agent was quicker: there is nothing left to take.
            continue
        yield StoredFile(name, session_id, found.st_mode & 0o777, found.st_mtime_ns)


def read_children(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> list[tuple[SessionId, SessionId]]:
    """(child, parent) of every child of these sessions."""
    if not schema.has("sessions", "parent_session_id"):
        return []
    marks = ",".join("?" * len(ids))
    sql = f"SELECT id, parent_session_id FROM sessions WHERE parent_session_id IN ({marks})"
    return [(SessionId(child), SessionId(parent)) for child, parent in connection.rows(sql, ids)]


def _messages(connection: ReadConnection, schema: Schema, session_id: str, encoding: str) -> Iterator[StoredRow]:
    dialects = nul_rows(connection, schema, (session_id,))
    last = -1 << 63
    while True:
        where = f"session_id = ? AND id > ? ORDER BY id LIMIT {PAGE}"
        rows = list(_rows(connection, "messages", where, (session_id, last), encoding))
        for row in rows:
            yield StoredRow(row.table, row.values, dialects.get(row.values["id"]))
        if len(rows) < PAGE:
            return
        last = rows[-1].values["id"]


def _rows(
    connection: ReadConnection, table: str, where: str, params: Sequence[Any], encoding: str
) -> Iterator[StoredRow]:
    """Rows with their texts as bytes, so that what is not UTF-8 is kept as it is."""
    names = [row[0] for row in connection.rows("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))]
    cells = ", ".join(
        f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in map(quoted, names)
    )
    for row in connection.rows(f"SELECT {cells} FROM {table} WHERE {where}", params):
        values = (_cell(kind, cell, encoding) for kind, cell in zip(row[::2], row[1::2], strict=True))
        yield StoredRow(table, dict(zip(names, values, strict=True)))


def _cell(kind: str, cell: Any, encoding: str) -> Any:
    if kind != "text":
        return cell
    try:
        return cell.decode(encoding)
    except UnicodeDecodeError:
        return BadText(cell)


def _encoding(connection: ReadConnection) -> str:
    row = connection.one("PRAGMA encoding")
    return {"UTF-16le": "utf-16-le", "UTF-16be": "utf-16-be"}.get(row[0] if row else "", "utf-8")
