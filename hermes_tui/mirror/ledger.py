"""What the mirror holds of which log, and how one projection is written: rows and checkpoint in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple

import apsw

from hermes_tui.mirror.database import WORD_TABLES, MirrorDatabase
from hermes_tui.mirror.index_rows import SEATS, TIME_SHIFT, TextRows
from hermes_tui.mirror.projector import (
    Known,
    Projection,
    ToolsProjection,
    dump_place,
    load_place,
    same_file,
    signed,
)
from hermes_tui.mirror.words import store_word
from hermes_tui.model import SessionId
from hermes_tui.storage.any_json import dump_json
from hermes_tui.stores.log_source import LogFile

_LOG_COLUMNS: Final = "id, path, device, inode, size, mtime_ns, archived, head, tools_offset, tools_line, offset, since"

MOST_STALE: Final = 100_000
"""Texts that are gone and whose words are still in the index; fewer of them are not worth filling it anew."""
_STALE: Final = "stale"
"""The key of how many there are."""


def known_logs(database: MirrorDatabase, store_path: str) -> dict[str, Known]:
    """Every log of a store that the mirror has, by path, without the fold's state.

    Raises:
        apsw.Error: the mirror cannot be read.
    """
    rows = database.rows(f"SELECT {_LOG_COLUMNS} FROM logs WHERE store = ?", (store_path,))
    return {row[1]: _known(row, b"") for row in rows}


def known_log(database: MirrorDatabase, path: str, *, state: bool = True) -> Known | None:
    """One log with the place its fold was put away at, and with the fold's state where that is wanted.

    Raises:
        apsw.Error: the mirror cannot be read.
    """
    rows = database.rows(f"SELECT {_LOG_COLUMNS}, place FROM logs WHERE path = ?", (path,))
    return _known(rows[0], rows[0][12], state=state) if rows else None


def _known(row: Sequence[Any], place: bytes, *, state: bool = True) -> Known:
    id_, path, device, inode, size, mtime_ns, archived, head, tools_offset, tools_line, offset, since = row[:12]
    log = LogFile(path, SessionId(""), size, mtime_ns, device, inode, bool(archived))
    return Known(id_, log, head, load_place(place, state=state), tools_offset, tools_line, offset, since)


def is_current(known: Known, log: LogFile) -> bool:
    """Whether the log is as it was when it was projected."""
    old = known.log
    return same_file(log, old) and (old.size, old.mtime_ns) == (log.size, log.mtime_ns)


def write_projections(
    connection: apsw.Connection, agent: str, store_path: str, projections: Sequence[Projection]
) -> None:
    """Write what was read of some logs; inside one transaction of the retrying writer."""
    before = [_before(connection, projection.log.path) for projection in projections]
    _forget_texts(connection, [old.id for old, new in zip(before, projections, strict=True) if old and new.fresh])
    texts = [
        (_write_log(connection, agent, store_path, new, old), new.talk)
        for old, new in zip(before, projections, strict=True)
    ]
    _write_texts(connection, "talk", texts, store_path)


def write_tools(connection: apsw.Connection, projections: Iterable[tuple[Known, ToolsProjection]]) -> None:
    """Write the words of tool calls and results, if the log is still what it was when they were read."""
    texts: defaultdict[str, list[tuple[int, TextRows]]] = defaultdict(list)
    for known, projection in projections:
        changed = connection.execute(
            "UPDATE logs SET tools_offset = ?1, tools_line = ?2, since = MIN(COALESCE(since, ?3), COALESCE(?3, since))"
            " WHERE id = ?4 AND tools_offset = ?5 AND head = ?6 RETURNING store",
            (
                projection.offset,
                projection.line,
                projection.texts.since,
                known.id,
                known.tools_offset,
                known.head,
            ),
        )
        for (store_path,) in list(changed):
            if projection.anew is not None:
                anew = projection.anew
                connection.execute(
                    "UPDATE logs SET place = ?, card = ?, requests = ? WHERE id = ?",
                    (dump_place(anew.place), anew.card, anew.requests, known.id),
                )
            texts[store_path].append((known.id, projection.texts))
    for store_path, some in texts.items():
        _write_texts(connection, "tools", some, store_path)


def forget_logs(connection: apsw.Connection, ids: Sequence[int]) -> None:
    """Take away logs that are gone, with the places of their texts: the mirror never leads."""
    _forget_texts(connection, ids)
    connection.executemany("DELETE FROM logs WHERE id = ?", ((log_id,) for log_id in ids))


def _forget_texts(connection: apsw.Connection, log_ids: Sequence[int]) -> None:
    """Take away where texts lie. Their words stay in the index, which cannot delete them.

    They lead nowhere, or, where their id is given again, to a line that the matcher then looks at in vain.
    """
    if not log_ids:
        return
    logs = dump_json(log_ids).decode()
    found = connection.execute("SELECT MIN(since) FROM logs WHERE id IN (SELECT value FROM json_each(?))", (logs,))
    since = next(iter(found))[0]
    if since is None:
        return
    connection.execute("DELETE FROM texts WHERE id >= ? AND log IN (SELECT value FROM json_each(?))", (since, logs))
    connection.execute(
        "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = CAST(value AS INTEGER) + ?2",
        (_STALE, connection.changes()),
    )


def start_over_when_stale(connection: apsw.Connection, store_paths: Collection[str]) -> None:
    """Empty the mirror, words and cards, where most words of its index are those of texts that are gone.

    Args:
        connection: of the writer.
        store_paths: the stores that are filled anew in this run; nothing is emptied while there are others.
    """
    count = "SELECT COALESCE(MAX(CAST(value AS INTEGER)), 0) FROM meta WHERE key = ?"
    (stale,) = next(iter(connection.execute(count, (_STALE,))))
    if stale < MOST_STALE or stale < next(iter(connection.execute("SELECT COUNT(*) FROM texts")))[0]:
        return
    if not {store for (store,) in connection.execute("SELECT DISTINCT store FROM logs")} <= set(store_paths):
        return
    for table in WORD_TABLES:
        connection.execute(f"INSERT INTO {table}({table}) VALUES ('delete-all')")
    connection.execute("DELETE FROM texts; DELETE FROM logs")
    connection.execute("DELETE FROM meta WHERE key = ?", (_STALE,))


class _Before(NamedTuple):
    """What the mirror has of a log that is written anew or further."""

    id: int
    tools_offset: int
    tools_line: int
    since: int | None


def _before(connection: apsw.Connection, path: str) -> _Before | None:
    rows = connection.execute("SELECT id, tools_offset, tools_line, since FROM logs WHERE path = ?", (path,))
    return next((_Before(*row) for row in list(rows)), None)


def _write_log(
    connection: apsw.Connection, agent: str, store_path: str, projection: Projection, before: _Before | None
) -> int:
    log, place, since = projection.log, projection.place, projection.talk.since
    tools = (0 if projection.indexed else -1, 1)
    if before is not None and not projection.fresh:
        tools = (before.tools_offset, before.tools_line)
        since = min((some for some in (since, before.since) if some is not None), default=None)
    connection.execute(
        "INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            None if before is None else before.id,
            agent,
            store_path,
            log.path,
            signed(log.device),
            signed(log.inode),
            log.size,
            log.mtime_ns,
            int(log.archived),
            projection.head,
            *tools,
            0 if place is None else place.offset,
            since,
            dump_place(place),
            projection.peek,
            projection.card,
            projection.requests,
        ),
    )
    return connection.last_insert_rowid() if before is None else before.id


def _write_texts(
    connection: apsw.Connection, table: str, texts: Iterable[tuple[int, TextRows]], store_path: str
) -> None:
    """In the order of their ids, because the word index wants growing ones."""
    rows: list[_Row] = []
    for log_id, some in texts:
        rows.extend(zip(some.ids, repeat(log_id), some.lines, some.offsets, some.words, strict=False))
    rows.sort(key=_ID)
    if not _put_places(connection, rows):
        seats = _free_ids(connection, [row[0] >> TIME_SHIFT << TIME_SHIFT for row in rows])
        rows = [(seat, *row[1:]) for seat, row in zip(seats, rows, strict=True)]
        connection.executemany(_PLACE, map(_PLACE_OF, rows))
    word = store_word(store_path)
    connection.executemany(
        f"INSERT INTO {table}(rowid, words) VALUES (?, ?)", ((row[0], f"{row[4]} {word}") for row in rows)
    )


_Row = tuple[int, int, int, int, str]
_ID: Final = itemgetter(0)
_PLACE_OF: Final = itemgetter(0, 1, 2, 3)
_PLACE: Final = "INSERT INTO texts VALUES (?, ?, ?, ?)"


def _put_places(connection: apsw.Connection, rows: Sequence[_Row]) -> bool:
    """Write where the texts lie under the ids they have; ``False``, and nothing written: one of these was taken."""
    connection.execute("SAVEPOINT places")
    try:
        connection.executemany(_PLACE, map(_PLACE_OF, rows))
    except apsw.ConstraintError:
        connection.execute("ROLLBACK TO places")
        return False
    finally:
        connection.execute("RELEASE places")
    return True


def _free_ids(connection: apsw.Connection, bases: Sequence[int]) -> Iterator[int]:
    """An id for each text, at or after its second, none twice."""
    second, following = -1, 0
    for base in bases:
        if base != second:
            second = base
            last = next(
                iter(connection.execute("SELECT MAX(id) FROM texts WHERE id >= ? AND id < ?", (base, base + SEATS)))
            )[0]
            following = max(following, base, 0 if last is None else last + 1)
        while following >= base + SEATS and _taken(connection, following):
            following += 1
        yield following
        following += 1


def _taken(connection: apsw.Connection, text_id: int) -> bool:
    return bool(list(connection.execute("SELECT 1 FROM texts WHERE id = ?", (text_id,))))
