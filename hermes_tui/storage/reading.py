"""Read somebody else's SQLite file and leave nothing behind.

A connection is for one question: open late, read, close. How a file is opened follows from its header and from what
lies beside it, by the table "Reading without leaving anything behind" of facts/hermes.md section 5:

=========  ============================  =====================================================================
header     beside it                     way
=========  ============================  =====================================================================
rollback   no hot journal                ``plain``: mode=ro
rollback   hot journal                   ``copy``: a private copy rolls the cut-off write back
WAL        no -wal, or an empty one      ``immutable``: mode=ro&immutable=1
WAL        -wal with bytes, no -shm      ``private-index``: no locks, the wal-index in memory
           (or an empty one)
WAL        -wal and -shm                 ``plain``: somebody is or was connected
=========  ============================  =====================================================================

``immutable`` and ``private-index`` see no later commit, so the files are looked at (stat) before the first and after
every statement; when they changed, the answer is thrown away, the way is chosen again and the statement is repeated.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal, TypeVar

import apsw

from hermes_tui.locations import FOLDER_MODE
from hermes_tui.model import Finding
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import (
    DeadlineExceeded,
    Interrupted,
    QueryFailed,
    SchemaDrift,
    StorageError,
    StoreBusy,
    StoreDamaged,
    StoreUnreadable,
)
from hermes_tui.storage.interrupts import Interrupts as Interrupts
from hermes_tui.storage.sharing import SHARING
from hermes_tui.storage.stamps import FileStamp, stamp_of
from hermes_tui.storage.statement import Parameters, Row, Statement

Way = Literal["plain", "immutable", "private-index", "copy", "empty"]

DEADLINE_S: Final = 30.0
BUSY_MS: Final = 5000
"""The product's own busy timeout for reads (facts/hermes.md section 5)."""
IOERR_TRIES: Final = 3
IOERR_PAUSE_S: Final = 0.05
"""A reader may see a passing I/O error while a writer checkpoints (facts/hermes.md section 5)."""
CHOICES: Final = 8
"""How often a way is chosen before a store counts as too busy to read."""
CHOICE_PAUSE_S: Final = 0.02
PROGRESS_STEPS: Final = 20_000
"""Instructions between two looks at the clock: a fraction of a millisecond."""
COPY_BLOCK: Final = 1 << 20
MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_PRIVATE_VFS: Final = "unix-none"

_FROZEN: Final[frozenset[Way]] = frozenset({"immutable", "private-index", "empty"})
T = TypeVar("T")


@dataclass(slots=True)
class _Opened:
    """A connection with how it came about and what must be undone after it."""

    raw: apsw.Connection
    way: Way
    stamp: FileStamp
    undo: contextlib.ExitStack
    findings: tuple[Finding, ...] = ()

    def close(self) -> None:
        self.raw.close()
        self.undo.close()


class ReadConnection:
    """One short look into a database. Made by :func:`read_only`."""

    def __init__(self, path: str, deadline_s: float, busy_ms: int) -> None:
        self.path = path
        """As it was asked for."""
        self._real = os.path.realpath(path)
        self._deadline_s = deadline_s
        self._busy_s = busy_ms / 1000
        self._until = 0.0
        self._busy_since = 0.0
        self._stopped = False
        self._preparations: list[Callable[[apsw.Connection], object]] = []
        self._opened: _Opened | None = None
        self.detour: Callable[[ReadConnection], bool] | None = None
        """Asked once, when a statement meets damage: whether it found a way around, so that asking again helps."""

    def open(self) -> None:
        """Open the file now, so that what is wrong with it shows."""
        self._current()

    @property
    def way(self) -> Way:
        """How the file is open."""
        return self._current().way

    @property
    def raw(self) -> apsw.Connection:
        """APSW's connection. It may be replaced between two statements: hand what must stay to :meth:`prepare`."""
        return self._current().raw

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the opening itself has to say."""
        return self._current().findings

    def prepare(self, preparation: Callable[[apsw.Connection], object]) -> None:
        """Do this to the connection (register a tokenizer or a function), now and whenever it is opened again."""
        self._preparations.append(preparation)
        self._get_ready(self._current().raw, preparation)

    def rows(self, sql: str, params: Parameters = ()) -> list[Row]:
        """Every row of one statement; text that is not UTF-8 comes with U+FFFD in it.

        Raises:
            SchemaDrift: a table or column is gone: read the schema again.
            QueryFailed: SQLite refuses the statement.
            StoreUnreadable: the file cannot be read.
            Interrupted: another thread asked for that.
            DeadlineExceeded: it took too long.
        """
        for _ in range(CHOICES):
            opened = self._current()
            stream = Statement(opened.raw, sql, params)
            try:
                found = self._ask(stream.everything)
            except (StoreUnreadable, QueryFailed) as error:
                # A frozen view of a file that is being written looks damaged.
                if not self._outdated(opened):
                    if isinstance(error, StoreDamaged) and self._takes_detour():
                        return self.rows(sql, params)
                    raise
            else:
                if not self._outdated(opened):
                    return found
            self.close()
            time.sleep(CHOICE_PAUSE_S)
        raise StoreBusy(self.path, "it changed during every try to read it", "Try again in a moment.")

    def _takes_detour(self) -> bool:
        detour, self.detour = self.detour, None
        return detour is not None and detour(self)

    def one(self, sql: str, params: Parameters = ()) -> Row | None:
        """The first row, or ``None``; raises as :meth:`rows` does."""
        found = self.rows(sql, params)
        return found[0] if found else None

    def iterate(self, sql: str, params: Parameters = ()) -> Iterator[Row]:
        """The rows one after another, for answers too large for memory. The file is held meanwhile: be quick.

        Raises:
            StoreBusy: the file was written under a frozen view after rows were given.
            StorageError: as :meth:`rows` does.
        """
        given = False
        for _ in range(CHOICES):
            opened = self._current()
            stream = Statement(opened.raw, sql, params)
            try:
                while batch := self._ask(stream.batch):
                    if self._outdated(opened):
                        break
                    given = True
                    yield from batch
                else:
                    if not self._outdated(opened):
                        return
            finally:
                stream.close()
            if given:
                break
            self.close()
            time.sleep(CHOICE_PAUSE_S)
        raise StoreBusy(self.path, "it changed while it was read", "Try again in a moment.")

    def columns(self, table: str) -> frozenset[str]:
        """Names of a table's columns; empty when there is no such table."""
        return frozenset(row[0] for row in self.rows("SELECT name FROM pragma_table_info(?)", (table,)))

    def tables(self) -> dict[str, str]:
        """Tables and views by name with the SQL that made them."""
        found = self.rows("SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'view')")
        return {name: sql or "" for name, sql in found}

    def stop(self) -> None:
        """End what this connection does, from another thread."""
        self._stopped = True
        opened = self._opened
        if opened is not None:
            with contextlib.suppress(apsw.ConnectionClosedError):
                opened.raw.interrupt()

    def close(self) -> None:
        """Let go of the file."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _current(self) -> _Opened:
        if self._opened is None:
            self._opened = self._choose()
            for preparation in self._preparations:
                self._get_ready(self._opened.raw, preparation)
        return self._opened

    def _get_ready(self, raw: apsw.Connection, preparation: Callable[[apsw.Connection], object]) -> None:
        """On a locked file registering a tokenizer fails without a reason, so ask first."""
        self._ask(lambda: raw.execute("PRAGMA schema_version").fetchall())
        self._ask(lambda: preparation(raw))

    def _outdated(self, opened: _Opened) -> bool:
        return opened.way in _FROZEN and stamp_of(self._real) != opened.stamp

    def _ask(self, call: Callable[[], T]) -> T:
        """Run one call with a deadline; a passing I/O error is tried again on the same connection."""
        for tries_left in reversed(range(IOERR_TRIES + 1)):
            if self._stopped:
                raise Interrupted
            self._until = time.monotonic() + self._deadline_s
            try:
                return call()
            except apsw.IOError as error:
                if not tries_left:
                    raise self._told(error) from error
                time.sleep(IOERR_PAUSE_S)
            except apsw.Error as error:
                raise self._told(error) from error
        raise AssertionError("unreachable")

    def _tick(self) -> bool:
        """Asked by SQLite now and then: give up?"""
        return self._stopped or time.monotonic() > self._until

    def _wait(self, tries: int) -> bool:
        """Asked by SQLite when the file is locked: wait longer?"""
        if tries == 0:
            self._busy_since = time.monotonic()
        if self._stopped or time.monotonic() - self._busy_since > self._busy_s:
            return False
        time.sleep(min(0.002 * (tries + 1), 0.05))
        return True

    def _told(self, error: apsw.Error) -> StorageError:
        """Our error for SQLite's."""
        code = getattr(error, "extendedresult", 1)
        if isinstance(error, apsw.InterruptError):
            return Interrupted() if self._stopped else DeadlineExceeded(self._deadline_s)
        if isinstance(error, apsw.NotADBError):
            return StoreUnreadable(self.path, "it is not an SQLite database")
        if isinstance(error, apsw.CorruptError):
            advice = "The agent's own repair command may help; copy the file first."
            return StoreDamaged(self.path, f"it is damaged ({error})", advice, code)
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(
                self.path, f"another program held it for {self._busy_s:g} seconds", "Try again in a moment."
            )
        if isinstance(error, apsw.SQLError):
            if "no such column" in str(error) or "no such table" in str(error):
                return SchemaDrift(self.path, str(error))
            return QueryFailed(self.path, str(error), code)
        if isinstance(
            error, apsw.IOError | apsw.CantOpenError | apsw.ReadOnlyError | apsw.FullError | apsw.ProtocolError
        ):
            return StoreUnreadable(self.path, str(error))
        return QueryFailed(self.path, str(error), code)

    def _choose(self) -> _Opened:
        """Open the file by the table of the module."""
        busy: StoreBusy | None = None
        for _ in range(CHOICES):
            stamp = stamp_of(self._real)
            self._refuse_what_is_no_file()
            try:
                opened = self._open(stamp)
            except StoreBusy as error:
                busy = error
            except apsw.Error as error:
                if stamp_of(self._real) == stamp:
                    raise self._told(error) from error
            else:
                if opened is not None:
                    return opened
            time.sleep(CHOICE_PAUSE_S)
        raise busy or StoreBusy(self.path, "it changed during every try to open it", "Try again in a moment.")

    def _refuse_what_is_no_file(self) -> None:
        try:
            mode = Path(self._real).stat().st_mode
        except FileNotFoundError:
            raise StoreUnreadable(self.path, "there is no such file") from None
        except OSError as error:
            raise StoreUnreadable(self.path, error.strerror or str(error)) from error
        if not stat.S_ISREG(mode):
            raise StoreUnreadable(self.path, "it is not a file")
        if not os.access(self._real, os.R_OK):
            raise StoreUnreadable(self.path, "you are not allowed to read it", "Ask its owner, or copy it.")

    def _open(self, stamp: FileStamp) -> _Opened | None:
        """One try; ``None`` when the files changed meanwhile."""
        undo = contextlib.ExitStack()
        with contextlib.ExitStack() as failed:
            failed.callback(undo.close)
            opened = self._by_header(stamp, undo)
            if opened is not None:
                failed.pop_all()
        return opened

    def _by_header(self, stamp: FileStamp, undo: contextlib.ExitStack) -> _Opened | None:
        database, wal, shm, journal = stamp
        frozen = self._connect("mode=ro&immutable=1")
        keep = False
        try:
            size = database[2] if database else 0
            header = frozen.read("main", 0, 0, _HEADER)[1] if size >= _HEADER else b""
            if stamp_of(self._real) != stamp:
                return None
            if size and header[:16] != MAGIC:
                raise StoreUnreadable(self.path, "it is not an SQLite database")
            wal_bytes = wal[2] if wal else 0
            if not size:
                keep = True
                return _Opened(frozen, "empty", stamp, undo)
            if header[18:20] == b"\x02\x02":
                if journal and journal[2]:
                    return self._copy(frozen, stamp, undo)
                if not wal_bytes:
                    keep = True
                    return _Opened(frozen, "immutable", stamp, undo)
                if shm is None or not shm[2]:
                    if _PRIVATE_VFS in apsw.vfs_names():
                        return self._private_index(stamp, undo)
                    return self._copy(frozen, stamp, undo)
            try:
                return self._plain(stamp, undo)
            except (apsw.ReadOnlyError, apsw.CantOpenError):
                # 776: a hot journal; 264, 1288, 1544 or 14: no way to the wal-index in this folder.
                return self._copy(frozen, stamp, undo)
        finally:
            if not keep:
                frozen.close()

    def _connect(self, query: str, path: str | None = None, flags: int = apsw.SQLITE_OPEN_READONLY) -> apsw.Connection:
        uri = f"{Path(path or self._real).as_uri()}?{query}"
        raw = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI)
        raw.set_busy_handler(self._wait)
        raw.set_progress_handler(self._tick, PROGRESS_STEPS)
        raw.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        self._until = time.monotonic() + self._deadline_s
        raw.execute("PRAGMA query_only=1")
        return raw

    def _plain(self, stamp: FileStamp, undo: contextlib.ExitStack) -> _Opened:
        undo.enter_context(SHARING.locking(self._real, self._busy_s))
        raw = self._looked_into("mode=ro")
        return _Opened(raw, "plain", stamp, undo)

    def _private_index(self, stamp: FileStamp, undo: contextlib.ExitStack) -> _Opened | None:
        undo.enter_context(SHARING.lockless(self._real))
        if stamp_of(self._real) != stamp:
            return None
        raw = self._connect(f"mode=ro&vfs={_PRIVATE_VFS}")
        # Without it, closing deletes a -wal that holds no valid frame.
        raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        raw.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        return _Opened(raw, "private-index", stamp, undo)

    def _looked_into(
        self, query: str, path: str | None = None, flags: int = apsw.SQLITE_OPEN_READONLY
    ) -> apsw.Connection:
        """A connection after its first look; closed when that fails or is interrupted."""
        raw = self._connect(query, path, flags)
        with contextlib.ExitStack() as failed:
            failed.callback(raw.close)
            self._first_look(raw)
            failed.pop_all()
        return raw

    def _first_look(self, raw: apsw.Connection) -> None:
        """Take the first lock: what is wrong with the way shows here, not when the file is opened."""
        for tries_left in reversed(range(IOERR_TRIES + 1)):
            try:
                raw.execute("PRAGMA schema_version").fetchall()
                return
            except apsw.IOError:
                if not tries_left:
                    raise
                time.sleep(IOERR_PAUSE_S)

    def _copy(self, frozen: apsw.Connection, stamp: FileStamp, undo: contextlib.ExitStack) -> _Opened | None:
        """Copy database and log to a private folder and open that; SQLite puts right there what was cut off."""
        try:
            # Imported late: 5 ms that only a private copy needs.
            import shutil
            import tempfile

            from hermes_tui.storage.whole_file import unused_name

            folder = unused_name(tempfile.gettempdir())
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir(FOLDER_MODE)
            target = f"{folder}/copy.db"
            _copy_database(frozen, stamp[0][2] if stamp[0] else 0, target)
            for suffix in ("-wal", "-journal"):
                if Path(self._real + suffix).exists():
                    shutil.copyfile(self._real + suffix, target + suffix)
        except OSError as error:
            reason = f"it has to be copied to be read, and that failed: {error.strerror or error}"
            raise StoreUnreadable(self.path, reason, "Make room in the temporary folder.") from error
        if stamp_of(self._real) != stamp:
            return None
        raw = self._looked_into("mode=rw", target, apsw.SQLITE_OPEN_READWRITE)
        findings: tuple[Finding, ...] = ()
        if stamp[3] and stamp[3][2]:
            detail = (
                "A write was cut off before it was finished; what it had changed is taken back in what is shown here."
            )
            advice = "The agent puts the file right when it opens it next."
            findings = (Finding("write-cut-off", "warn", detail, advice=advice, paths=(self._real,)),)
        return _Opened(raw, "copy", stamp, undo, findings)


def _copy_database(source: apsw.Connection, size: int, target: str) -> None:
    """Copy a database through SQLite's own handle: a plain close() would drop locks of this process."""
    with Path(target).open("wb") as file:
        for offset in range(0, size, COPY_BLOCK):
            length = min(COPY_BLOCK, size - offset)
            file.write(source.read("main", 0, offset, length)[1])


@contextlib.contextmanager
def read_only(
    path: str | os.PathLike[str],
    *,
    deadline_s: float = DEADLINE_S,
    busy_ms: int = BUSY_MS,
    interrupts: Interrupts | None = None,
) -> Iterator[ReadConnection]:
    """Open a database for one question.

    Args:
        path: the file; what lies beside the file a symbolic link points to is looked at.
        deadline_s: seconds one statement may take (one batch of :meth:`ReadConnection.iterate`).
        busy_ms: milliseconds to wait for another program's lock.
        interrupts: where the connection can be found by a thread that wants to end it.

    Raises:
        StoreUnreadable: there is no such file, it may not be read, it is no database, or it is locked.
    """
    connection = ReadConnection(os.fspath(path), deadline_s, busy_ms)
    if interrupts is not None:
        interrupts.add(connection)
    try:
        connection.open()
        yield connection
    finally:
        if interrupts is not None:
            interrupts.remove(connection)
        connection.close()
