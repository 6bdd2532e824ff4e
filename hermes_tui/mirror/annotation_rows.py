"""What the mirror keeps of the annotations' log: made after the log's gate, from the log, never the other way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.storage.any_json import dump_json, load_json

AnnotationRow = tuple[str, str, str, bool, tuple[str, ...], str | None]
"""agent, path of the store, session, pinned, tags, note."""
_CHECKPOINT: Final = "annotations"


def write_annotations(
    connection: apsw.Connection, rows: Sequence[AnnotationRow], checkpoint: Sequence[int], damaged: int
) -> None:
    """Put these in place of what was known, with the state of the log they were read from."""
    connection.execute("DELETE FROM annotations")
    connection.executemany(
        "INSERT INTO annotations VALUES (?, ?, ?, ?, ?, ?)",
        (
            (agent, store, session, int(pinned), dump_json(list(tags)).decode(), note)
            for agent, store, session, pinned, tags, note in rows
        ),
    )
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES (?, ?)", (_CHECKPOINT, dump_json([*checkpoint, damaged]).decode())
    )


def read_annotations(database: MirrorDatabase) -> tuple[list[AnnotationRow], tuple[int, ...], int] | None:
    """What is known, the state of the log it was read from, its damaged lines; ``None``: nothing, or not readable."""
    try:
        return _read(database)
    except apsw.Error:
        return None


def _read(database: MirrorDatabase) -> tuple[list[AnnotationRow], tuple[int, ...], int] | None:
    found = database.rows("SELECT value FROM meta WHERE key = ?", (_CHECKPOINT,))
    if not found:
        return None
    *checkpoint, damaged = load_json(found[0][0].encode())
    rows = database.rows("SELECT agent, store, session, pinned, tags, note FROM annotations")
    return (
        [
            (agent, store, session, bool(pinned), tuple(load_json(tags.encode())), note)
            for agent, store, session, pinned, tags, note in rows
        ],
        tuple(checkpoint),
        damaged,
    )
