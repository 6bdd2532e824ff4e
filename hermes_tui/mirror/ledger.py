"""What the mirror holds of which log, and how one projection is written: rows and checkpoint in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

import apsw

from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.index_rows import SEATS, TIME_SHIFT, TextRows
from hermes_tui.mirror.projector import Known, Projection, ToolsProjection, dump_place, load_place
from hermes_tui.mirror.words import store_word
from hermes_tui.model import SessionId
from hermes_tui.stores.log_source import LogFile

_LOG_COLUMNS: Final = "id, path, device, inode, size, mtime_ns, archived, head, tools_offset, tools_line, offset"


def _signed(number: int) -> int:
    """An unsigned 64-bit file number as SQLite can hold it."""
    return number - (1 << 64) if number >= 1 << 63 else number


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
    return _known(rows[0], rows[0][11], state=state) if rows else None


def _known(row: Sequence[Any], place: bytes, *, state: bool = True) -> Known:
    id_, path, device, inode, size, mtime_ns, archived, head, tools_offset, tools_line, offset = row[:11]
    log = LogFile(path, SessionId(""), size, mtime_ns, device, inode, bool(archived))
    return Known(id_, log, head, load_place(place, state=state), tools_offset, tools_line, offset)


def is_current(known: Known, log: LogFile) -> bool:
    """Whether the log is as it was when it was projected."""
    old = known.log
    return (old.device, old.inode, old.size, old.mtime_ns) == (
        _signed(log.device),
        _signed(log.inode),
        log.size,
        log.mtime_ns,
    )


def write_projections(
    connection: apsw.Connection, agent: str, store_path: str, projections: Sequence[Projection]
) -> None:
    """Write what was read of some logs; inside one transaction of the retrying writer."""
    texts = [(_write_log(connection, agent, store_path, projection), projection.talk) for projection in projections]
    _write_texts(connection, "talk", texts, store_path)


def write_tools(connection: apsw.Connection, projections: Iterable[tuple[Known, ToolsProjection]]) -> None:
    """Write the words of tool calls and results, if the log is still what it was when they were read."""
    texts: defaultdict[str, list[tuple[int, TextRows]]] = defaultdict(list)
    for known, projection in projections:
        changed = connection.execute(
            "UPDATE logs SET tools_offset = ?, tools_line = ? WHERE id = ? AND tools_offset = ? AND head = ?"
            " RETURNING store",
            (projection.offset, projection.line, known.id, known.tools_offset, known.head),
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
    """Take away logs that are gone, with their words: the mirror never leads."""
    for log_id in ids:
        _forget_texts(connection, log_id)
        connection.execute("DELETE FROM logs WHERE id = ?", (log_id,))


def _forget_texts(connection: apsw.Connection, log_id: int) -> None:
    ids = [row[0] for row in connection.execute("SELECT id FROM texts WHERE log = ?", (log_id,))]
    for table in ("talk", "tools"):
        connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", ((text_id,) for text_id in ids))
    connection.execute("DELETE FROM texts WHERE log = ?", (log_id,))


def _write_log(connection: apsw.Connection, agent: str, store_path: str, projection: Projection) -> int:
    log, place = projection.log, projection.place
    found = list(connection.execute("SELECT id, tools_offset, tools_line FROM logs WHERE path = ?", (log.path,)))
    tools = (0 if projection.indexed else -1, 1)
    if found and projection.fresh:
        _forget_texts(connection, found[0][0])
    elif found:
        tools = (found[0][1], found[0][2])
    connection.execute(
        "INSERT OR REPLACE INTO logs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            found[0][0] if found else None,
            agent,
            store_path,
            log.path,
            _signed(log.device),
            _signed(log.inode),
            log.size,
            log.mtime_ns,
            int(log.archived),
            projection.head,
            dump_place(place),
            projection.peek,
            projection.card,
            projection.requests,
            *tools,
            0 if place is None else place.offset,
        ),
    )
    return int(found[0][0]) if found else connection.last_insert_rowid()


def _write_texts(
    connection: apsw.Connection, table: str, texts: Iterable[tuple[int, TextRows]], store_path: str
) -> None:
    """In the order of their ids, because the word index wants growing ones."""
    rows: list[_Row] = []
    for log_id, some in texts:
        rows.extend(zip(some.ids, repeat(log_id), some.lines, some.offsets, some.lengths, some.words, strict=False))
    rows.sort(key=_ID)
    if not _put_places(connection, rows):
        seats = _free_ids(connection, [row[0] >> TIME_SHIFT << TIME_SHIFT for row in rows])
        rows = [(seat, *row[1:]) for seat, row in zip(seats, rows, strict=True)]
        connection.executemany(_PLACE, (row[:5] for row in rows))
    word = store_word(store_path)
    connection.executemany(
        f"INSERT INTO {table}(rowid, words) VALUES (?, ?)", ((row[0], f"{row[5]} {word}") for row in rows)
    )


_Row = tuple[int, int, int, int, int, str]
_ID: Final = itemgetter(0)
_PLACE: Final = "INSERT INTO texts VALUES (?, ?, ?, ?, ?)"


def _put_places(connection: apsw.Connection, rows: Sequence[_Row]) -> bool:
    """Write where the texts lie under the ids they have; ``False``, and nothing written: one of these was taken."""
    connection.execute("SAVEPOINT places")
    try:
        connection.executemany(_PLACE, (row[:5] for row in rows))
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
