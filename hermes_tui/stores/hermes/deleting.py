"""Delete sessions and messages inside a transaction of the retrying writer (facts/hermes.md section 3, rules)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from hermes_tui.stores.hermes.dialects import Dialect, NulDialect
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.taking import OWNED_TABLES


def delete_messages(
    raw: apsw.Connection, session_ids: Sequence[str], dialect: Dialect, nul: Mapping[int, NulDialect]
) -> int:
    """Delete every message of these sessions, each row with the tokenizer that indexed it.

    Returns:
        How many there were.
    """
    # Preparing this statement fails where an index has a tokenizer we lack, also when no row matches.
    marks = ",".join("?" * len(session_ids))
    (count,) = raw.execute(f"SELECT count(*) FROM messages WHERE session_id IN ({marks})", session_ids).fetchall()[0]
    if not count:
        return 0
    dialect.stops = True
    try:
        for message_id, way in nul.items():
            if way == "stops":
                raw.execute("DELETE FROM messages WHERE id = ?", (message_id,))
    finally:
        dialect.stops = False
    raw.execute(f"DELETE FROM messages WHERE session_id IN ({marks})", session_ids)
    return int(count)


def delete_sessions(
    raw: apsw.Connection, schema: Schema, session_ids: Sequence[str], dialect: Dialect, nul: Mapping[int, NulDialect]
) -> int:
    """Delete sessions with all that belongs to them; children that stay become roots.

    Messages go first: triggers of newer indexes look their session up.

    Returns:
        Messages deleted.
    """
    marks = ",".join("?" * len(session_ids))
    count = delete_messages(raw, session_ids, dialect, nul) if schema.has("messages", "session_id") else 0
    if schema.has("sessions", "parent_session_id"):
        raw.execute(f"UPDATE sessions SET parent_session_id = NULL WHERE parent_session_id IN ({marks})", session_ids)
    for table in OWNED_TABLES:
        if schema.has(table, "session_id"):
            raw.execute(f"DELETE FROM {table} WHERE session_id IN ({marks})", session_ids)
    raw.execute(f"DELETE FROM sessions WHERE id IN ({marks})", session_ids)
    return count


def clear_session(
    raw: apsw.Connection, schema: Schema, session_id: str, dialect: Dialect, nul: Mapping[int, NulDialect]
) -> int:
    """Delete the messages of a session and set its counts to 0; its tokens stay.

    Returns:
        Messages deleted.
    """
    count = delete_messages(raw, (session_id,), dialect, nul)
    counters = [name for name in ("message_count", "tool_call_count") if schema.has("sessions", name)]
    if counters:
        raw.execute(f"UPDATE sessions SET {', '.join(f'{n} = 0' for n in counters)} WHERE id = ?", (session_id,))
    return count
