"""The retrying writer: the only way anything is written to an SQLite file.

The protocol is the product's own (facts/hermes.md section 4), so that a foreign writer behaves like one more of its
processes: a short SQLite timeout, ``BEGIN IMMEDIATE``, and a jittered wait of our own between tries. With a fixed wait,
writers that collided once collide again in step; benchmarks/writer_contention.py shows what that costs.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, Literal, TypeVar

import apsw

from hermes_tui.locations import FILE_MODE
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError, StoreUnreadable, WriteFailed, WriteLost
from hermes_tui.storage.sharing import SHARING

TIMEOUT_MS: Final = 1000
"""SQLite's own wait for a lock (facts/hermes.md section 4: timeout=1.0)."""
TRIES: Final = 15
"""Tries in all (facts/hermes.md section 4); about 16 s when every one of them waits its full timeout."""
WAIT_S: Final = (0.020, 0.150)
"""Bounds of the random wait between tries (facts/hermes.md section 4: 20 to 150 ms)."""
CHECKPOINT_EVERY: Final = 50
"""Writes between two PASSIVE checkpoints (facts/hermes.md section 4); TRUNCATE corrupted big files."""
OPEN_WAIT_S: Final = 5.0
"""How long a reader of this process that takes no locks may keep the writer from opening."""

JournalMode = Literal["wal", "delete"]
T = TypeVar("T")
Pause = Callable[[], float]


def jitter() -> float:
    """Seconds to wait before the next try."""
    return random.uniform(*WAIT_S)


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """What a write gave and what it took to get through."""

    value: T
    tries: int
    """1 when the first went through."""
    waited_s: float
    """Seconds from the first ``BEGIN`` to the commit."""


class RetryingWriter:
    """Writes to one file, one transaction a call. Opened late, closed soon; not shared between threads.

    The journal mode of an existing file is never changed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        journal: JournalMode = "wal",
        pause: Pause = jitter,
        prepare: Callable[[apsw.Connection], object] | None = None,
        on_wait: Callable[[int, float], None] | None = None,
    ) -> None:
        """Open the file.

        Args:
            path: the database.
            create: make it (mode 0600) when it is not there; else that is an error.
            journal: the journal mode of a file that is made here.
            pause: seconds to wait before the next try.
            prepare: done to the connection before its first transaction, and again while the file is locked: register
                tokenizers here.
            on_wait: told the number of failed tries and the seconds since the first, before each wait.

        Raises:
            StoreUnreadable: there is no such file, or it is no database that may be written.
        """
        self.path = os.fspath(path)
        self._real = os.path.realpath(path)
        self._pause = pause
        self._on_wait = on_wait
        self._prepare = prepare
        self._writes = 0
        self._undo = contextlib.ExitStack()
        self._raw: apsw.Connection | None = None
        new = create and self._reserve()
        if not new:
            self._look()
        with contextlib.ExitStack() as failed:
            failed.callback(self.close)
            self._undo.enter_context(SHARING.locking(self._real, OPEN_WAIT_S))
            try:
                self._raw = self._connect()
                if new and journal == "wal":
                    self._raw.execute("PRAGMA journal_mode=WAL").fetchall()
            except apsw.Error as error:
                raise self._told(error) from error
            failed.pop_all()

    def __enter__(self) -> RetryingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def raw(self) -> apsw.Connection:
        """The connection, for reading between writes and for registering tokenizers."""
        if self._raw is None:
            raise WriteFailed(self.path, "the writer is closed")
        return self._raw

    def write(self, callback: Callable[[apsw.Connection], T]) -> Written[T]:
        """Run ``callback`` in one transaction; while the file is locked, again from its start.

        Args:
            callback: makes the change; it must be repeatable and must not commit.

        Raises:
            WriteLost: the file was locked through every try. Nothing is half done.
            WriteFailed: SQLite refused for another reason. Nothing is half done.
            Exception: what ``callback`` raised, after the rollback.
        """
        raw = self.raw
        begun = time.monotonic()
        for tries in range(1, TRIES + 1):
            try:
                value = self._once(raw, callback)
            except (apsw.BusyError, apsw.LockedError) as error:
                waited = time.monotonic() - begun
                if tries == TRIES:
                    raise WriteLost(self.path, tries, waited, _words(error)) from error
                if self._on_wait is not None:
                    self._on_wait(tries, waited)
                time.sleep(self._pause())
            except apsw.Error as error:
                raise self._told(error) from error
            else:
                written = Written(value, tries, time.monotonic() - begun)
                self._after_write(raw)
                return written
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Let go of the file. SQLite folds the log into it when we are the last, as after any of its users."""
        raw, self._raw = self._raw, None
        if raw is not None:
            raw.close()
        self._undo.close()

    def _reserve(self) -> bool:
        """Make the file with our mode before SQLite makes it with another; False when it was there."""
        try:
            handle = os.open(self._real, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE)
        except FileExistsError:
            return False
        except OSError as error:
            raise WriteFailed(self.path, f"it cannot be made: {error.strerror or error}") from error
        os.close(handle)
        return True

    def _look(self) -> None:
        if not Path(self._real).is_file():
            raise StoreUnreadable(self.path, "there is no such file")
        if not os.access(self._real, os.W_OK):
            raise WriteFailed(self.path, "you are not allowed to write it", "Run this as its owner.")
        if hasattr(os, "geteuid") and Path(self._real).stat().st_uid != os.geteuid():
            # The -wal and -shm we would make belong to us, and then the agent cannot write (facts/hermes.md section 4).
            raise WriteFailed(self.path, "it belongs to another user", "Run this as its owner.")

    def _connect(self) -> apsw.Connection:
        uri = f"{Path(self._real).as_uri()}?mode=rw"
        raw = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        # First of all: registering a tokenizer on a locked file fails without it (facts/hermes.md section 3).
        raw.set_busy_timeout(TIMEOUT_MS)
        raw.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        raw.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        raw.execute("PRAGMA foreign_keys=ON")
        if sys.platform == "darwin":
            # An fsync there does not reach the disk (facts/hermes.md section 4, pragmas).
            raw.execute("PRAGMA checkpoint_fullfsync=1; PRAGMA synchronous=FULL")
        return raw

    def _once(self, raw: apsw.Connection, callback: Callable[[apsw.Connection], T]) -> T:
        if self._prepare is not None:
            self._get_ready(raw, self._prepare)
            self._prepare = None
        raw.execute("BEGIN IMMEDIATE")
        try:
            value = callback(raw)
            raw.execute("COMMIT")
        except BaseException:
            # Whatever ends the callback, an interrupt too: no transaction stays open, and the caller is told.
            self._roll_back(raw)
            raise
        return value

    def _get_ready(self, raw: apsw.Connection, prepare: Callable[[apsw.Connection], object]) -> None:
        """Prepare the connection; on a locked file registering a tokenizer fails without a reason, so ask first."""
        look = "PRAGMA schema_version"
        raw.execute(look).fetchall()
        try:
            prepare(raw)
        except apsw.Error:
            # Locked meanwhile: then this says so.
            raw.execute(look).fetchall()
            raise

    def _roll_back(self, raw: apsw.Connection) -> None:
        """Undo what was begun; where SQLite has done so already (a full disk, a lost lock) there is nothing left."""
        if raw.in_transaction:
            raw.execute("ROLLBACK")

    def _after_write(self, raw: apsw.Connection) -> None:
        self._writes += 1
        if self._writes % CHECKPOINT_EVERY:
            return
        # Busy readers keep a checkpoint from finishing: the next one does it.
        with contextlib.suppress(apsw.BusyError, apsw.LockedError):
            raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _told(self, error: apsw.Error) -> StorageError:
        code = getattr(error, "extendedresult", 0)
        if isinstance(error, apsw.NotADBError):
            return StoreUnreadable(self.path, "it is not an SQLite database")
        advice = None
        if isinstance(error, apsw.FullError):
            advice = "Make room on the disk and try again."
        elif isinstance(error, apsw.CorruptError):
            advice = "The file or one of its indexes is damaged: use the agent's own repair command first."
        elif isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError):
            advice = "Run this as the owner of the file and its folder."
        return WriteFailed(self.path, _words(error), advice, code)


def _words(error: apsw.Error) -> str:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "another program held it"
    return str(error)
