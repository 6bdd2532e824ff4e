"""Reading around damaged indexes: rows that stand whole in their table are found by passing over it instead.

A view takes the place of the table on this one connection, in its temporary schema: no file is touched.
"""

from __future__ import annotations

import threading
from typing import Final

import apsw

from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.storage.stamps import file_stamp

TABLES: Final = ("sessions", "messages", "session_model_usage")
MOST_STEPS: Final = 300_000_000
"""Rows looked at for one list, about: some seconds. In a larger store what a damaged index held is left out instead."""


class Detours:
    """Which tables of one store are read without their indexes; may be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[object, tuple[str, ...]] | None = None

    def take(self, connection: ReadConnection) -> bool:
        """Go around what is damaged, on this connection from now on; ``False``: no index is, or it takes too long."""
        stamp = file_stamp(connection.path)
        with self._lock:
            found = self._found[1] if self._found is not None and self._found[0] == stamp else None
        if found is None:
            found = tuple(_with_broken_index(connection))
            with self._lock:
                self._found = (stamp, found)
        if found:
            connection.prepare(lambda raw: _put_views(raw, found))
        return bool(found)


def _with_broken_index(connection: ReadConnection) -> list[str]:
    """The tables an index of which is damaged, and that are small enough to be passed over for each session."""
    tables = {row[0] for row in connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    broken = [table for table in TABLES if table in tables and _is_broken(connection, table)]
    sessions = _counted(connection, "sessions")
    return [table for table in broken if max(sessions, 1) * _counted(connection, table) <= MOST_STEPS]


def _is_broken(connection: ReadConnection, table: str) -> bool:
    """Whether a whole index of the table cannot be read; one over some rows alone is not asked for all."""
    # A bare count(*) takes whatever index is smallest.
    names = connection.rows("SELECT name FROM pragma_index_list(?) WHERE NOT partial", (table,))
    return any(not _readable(connection, f'SELECT sum(1) FROM "{table}" INDEXED BY "{name}"') for (name,) in names)


def _readable(connection: ReadConnection, sql: str) -> bool:
    try:
        connection.rows(sql)
    except StoreDamaged:
        return False
    return True


def _counted(connection: ReadConnection, table: str) -> int:
    """Rows of a table; what lies behind a damaged page is not known, and such a table is not gone through."""
    try:
        row = connection.one(f'SELECT count(*) FROM "{table}" NOT INDEXED')
    except StoreDamaged:
        return MOST_STEPS + 1
    return row[0] if row else 0


def _put_views(raw: apsw.Connection, tables: tuple[str, ...]) -> None:
    """Views in the temporary schema, which is in memory; names are looked up there first."""
    raw.execute("PRAGMA temp_store=MEMORY; PRAGMA query_only=0")
    try:
        for table in tables:
            has_rowid = not raw.execute(
                "SELECT wr FROM pragma_table_list(?) WHERE schema = 'main'", (table,)
            ).fetchall()[0][0]
            rowid = "rowid AS rowid, " if has_rowid else ""
            raw.execute(f'CREATE TEMP VIEW IF NOT EXISTS "{table}" AS SELECT {rowid}* FROM main."{table}" NOT INDEXED')
    finally:
        raw.execute("PRAGMA query_only=1")
