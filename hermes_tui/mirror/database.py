"""The mirror's database file: its tables, its format, and how it is opened.

It is ours and it is rebuildable: when anything is wrong with it, it is set aside and made again. It is read mode=ro,
one connection a thread; only the retrying writer opens it for writing (design.md, Layers).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal

import apsw

from hermes_tui import __version__
from hermes_tui.locations import FILE_MODE, private_folder
from hermes_tui.mirror.codec import SHAPE
from hermes_tui.storage.writing import RetryingWriter

MirrorState = Literal["ready", "missing", "corrupt", "locked", "other-format"]

BUSY_MS: Final = 1_000
_SIDES: Final = ("", "-wal", "-shm", "-journal")
WORD_TABLES: Final = ("talk", "tools")
"""The word indexes: of prompts and replies, of what tools were given and gave."""
SEGMENTS: Final = 8
"""So many pieces of a word index are made before they are put together: fewer make writing slower, more reading."""

_DDL: Final = (
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # No id comes twice: who still knows that of a log that is gone must not be given another's texts.
    """CREATE TABLE logs(
        id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, store TEXT NOT NULL, path TEXT NOT NULL UNIQUE,
        device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
        archived INTEGER NOT NULL, head BLOB NOT NULL,
        tools_offset INTEGER NOT NULL, tools_line INTEGER NOT NULL, offset INTEGER NOT NULL, since INTEGER,
        place BLOB NOT NULL, peek BLOB NOT NULL, card BLOB NOT NULL, requests BLOB NOT NULL)""",
    "CREATE INDEX logs_by_store ON logs(store)",
    # Those of a log are found from its ``since`` on: an index for it would be a sixth of the time of writing.
    """CREATE TABLE texts(
        id INTEGER PRIMARY KEY, log INTEGER NOT NULL, line INTEGER NOT NULL, offset INTEGER NOT NULL)""",
    *(
        statement
        for table in WORD_TABLES
        for statement in (
            # No positions: the matcher reads the log anyway, and without them the index is half the size. No lengths:
            # nobody weighs texts. Words of texts that are gone stay (ledger.py): the index proposes more than it need.
            f"CREATE VIRTUAL TABLE {table} USING fts5(words, content='', columnsize=0, detail=none,"
            " tokenize='unicode61 remove_diacritics 2')",
            f"INSERT INTO {table}({table}, rank) VALUES ('automerge', {SEGMENTS})",
        )
    ),
    "CREATE TABLE lease(name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at REAL NOT NULL) WITHOUT ROWID",
    """CREATE TABLE annotations(
        agent TEXT NOT NULL, store TEXT NOT NULL, session TEXT NOT NULL,
        pinned INTEGER NOT NULL, tags TEXT NOT NULL, note TEXT,
        PRIMARY KEY (agent, store, session)) WITHOUT ROWID""",
)

FORMAT: Final = hashlib.sha256("\n".join((__version__, SHAPE, *_DDL)).encode()).hexdigest()[:16]
"""Names tables and field order, and the version, for another one may read logs otherwise. Another format is thrown
away: building it again costs seconds, a migration bugs."""


class MirrorDatabase:
    """One mirror file: reads on a connection of the calling thread, writes through the retrying writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: set[apsw.Connection] = set()

    # ------------------------------------------------------------------------------------------------- reading

    def state(self) -> MirrorState:
        """Whether it can be used, and if not, why."""
        if not self.path.exists():
            return "missing"
        try:
            found = self.rows("SELECT value FROM meta WHERE key = 'format'")
        except (apsw.BusyError, apsw.LockedError):
            return "locked"
        except apsw.SQLError:
            return "other-format"
        except apsw.CantOpenError:
            return "missing"
        except apsw.Error:
            return "corrupt"
        return "ready" if found and found[0][0] == FORMAT else "other-format"

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query.

        Raises:
            apsw.Error: the file is missing, locked or damaged; callers fall back to the log and count the reason.
        """
        return list(self._reader().execute(sql, bindings))

    def iterate(self, sql: str, bindings: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a query one by one; close the iterator or exhaust it.

        Raises:
            apsw.Error: as :meth:`rows`.
        """
        yield from self._reader().execute(sql, bindings)

    def logs_known(self) -> int | None:
        """How many logs it knows; ``None`` where it cannot be read."""
        try:
            return int(self.rows("SELECT COUNT(*) FROM logs")[0][0])
        except apsw.Error:
            return None

    def version(self) -> tuple[int | None, int]:
        """Equal to an earlier one, asked in the same thread, while nothing was written.

        Raises:
            apsw.Error: as :meth:`rows`.
        """
        return self._inode(), int(self.rows("PRAGMA data_version")[0][0])

    def _reader(self) -> apsw.Connection:
        held: apsw.Connection | None = getattr(self._local, "connection", None)
        inode = self._inode()
        if held is not None and self._local.inode == inode:
            return held
        if held is not None:
            self._drop(held)
        connection = apsw.Connection(f"{self.path.absolute().as_uri()}?mode=ro", flags=_READ_FLAGS)
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("PRAGMA query_only=1")
        with self._lock:
            self._open.add(connection)
        self._local.connection, self._local.inode = connection, inode
        return connection

    def _inode(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except OSError:
            return None

    def _drop(self, connection: apsw.Connection) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def interrupt(self) -> None:
        """End queries that run in other threads."""
        with self._lock:
            for connection in self._open:
                connection.interrupt()

    def close(self) -> None:
        """Close the connection of this thread."""
        held = getattr(self._local, "connection", None)
        if held is not None:
            self._drop(held)
            self._local.connection = None

    # ------------------------------------------------------------------------------------------------- writing

    def writer(self) -> RetryingWriter:
        """The one way to change it; close it when done. Makes the file when it is missing.

        Raises:
            OSError: our folder cannot be made.
            StorageError: the file cannot be written.
        """
        private_folder(self.path.parent)
        fresh = not self.path.exists()
        writer = RetryingWriter(self.path, create=True)
        if fresh:
            self.path.chmod(FILE_MODE)
        writer.write(_make_tables)
        return writer

    def set_aside(self) -> Path | None:
        """Rename a file that cannot be used, so that a new one can be made; the old one's new path."""
        self.close()
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        target = self.path.with_name(f"{self.path.name}.set-aside-{stamp}")
        moved = None
        for side in _SIDES:
            file = Path(f"{self.path}{side}")
            if file.exists():
                file.rename(f"{target}{side}")
                moved = target
        return moved

    def drop(self) -> list[Path]:
        """Delete it; nothing is lost that the logs do not hold."""
        self.close()
        gone = []
        for side in _SIDES:
            file = Path(f"{self.path}{side}")
            if file.exists():
                file.unlink()
                gone.append(file)
        return gone

    def bytes_on_disk(self) -> int:
        """Size of the file and what lies beside it."""
        files = [Path(f"{self.path}{side}") for side in _SIDES]
        return sum(file.stat().st_size for file in files if file.exists())


_READ_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def _make_tables(connection: apsw.Connection) -> None:
    """Inside one write: all tables or none."""
    with closing(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'")) as found:
        if found.fetchone() is not None:
            return
    for statement in _DDL:
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('format', ?)", (FORMAT,))
