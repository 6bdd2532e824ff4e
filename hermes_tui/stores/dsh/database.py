"""Sessions DSH keeps in an SQLite file: the same events by another way (facts/dsh.md section 5).

No shipped build carries this provider; who finds such a file mounted it themselves.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final

import zstandard

from hermes_tui.model import MessageHead, Origin, PowerCut, SessionId, StoreRef
from hermes_tui.storage.errors import StorageError
from hermes_tui.storage.reading import Interrupts, ReadConnection, read_only
from hermes_tui.storage.stamps import FileStamp, file_stamp
from hermes_tui.stores.dsh.backend import AGAIN
from hermes_tui.stores.dsh.content import entry_id, json_value
from hermes_tui.stores.dsh.events import BadRow, Event, event_of
from hermes_tui.stores.dsh.fold import EventFold
from hermes_tui.stores.dsh.format import PACKED_TYPES, Header, moment, text_or_none, version_refusal, whole
from hermes_tui.stores.log_source import MALFORMED, NothingKept
from hermes_tui.stores.logs import LogFile, LogSummary, Pulse, no_pulse

APPLICATION_ID: Final = 1_146_308_688
USER_VERSION: Final = 17
SUFFIXES: Final = frozenset({".db", ".sqlite", ".sqlite3"})
FILE_NAME: Final = "sessions.db"
PAGE: Final = 2_000
"""Rows read at a time; the file is closed between two pages (design.md, rule 3)."""
LARGEST_EVENT: Final = 64 << 20
"""Bytes one compressed event may unpack to."""
KEPT_SUMMARIES: Final = 2_000
_BEFORE_ALL: Final = -(1 << 63)
"""A number below 0 is damage, and told like any other."""
_SESSION_COLUMNS: Final = frozenset({"id", "version", "created_at", "cwd", "parent_session", "seed_length"})
_EVENT_COLUMNS: Final = frozenset({"session_id", "seq", "type", "time", "data", "surface_op", "ignorable"})
_SESSIONS: Final = (
    "SELECT id, version, created_at, cwd, parent_session, seed_length, origin, delegation_depth, revision"
    " FROM sessions ORDER BY id"
)
_STRAYS: Final = "SELECT COUNT(*) FROM events WHERE session_id NOT IN (SELECT id FROM sessions)"
_EVENTS: Final = (
    "SELECT seq, type, time, data, surface_op, ignorable FROM events"
    " WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?"
)


class NoLinesToCut(StorageError):
    """A database has no lines at which the power could have gone."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} cannot be cut at a line", "its sessions are rows of a database, not lines of a log")


def is_database(path: Path) -> bool:
    """Whether a file is a database of DSH sessions, by its application id and columns."""
    try:
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            return False
        with read_only(str(path)) as connection:
            found = connection.one("PRAGMA application_id")
            if found is None or found[0] != APPLICATION_ID:
                return False
            return connection.columns("sessions") >= _SESSION_COLUMNS and connection.columns("events") >= _EVENT_COLUMNS
    except (OSError, StorageError):
        # What cannot be read, or not as SQLite, is no store of this kind.
        return False


class DatabaseBackend:
    """The events of sessions in one database; opened for each page of rows and closed again."""

    def __init__(self, store: StoreRef, interrupts: Interrupts) -> None:
        self._store = store
        self._path = store.path
        self._interrupts = interrupts
        self._lock = threading.Lock()
        self._listed: tuple[FileStamp, list[tuple[LogFile, Header]]] | None = None

    def stray_events(self) -> int:
        """How many rows of events name a session that is not in the database.

        Raises:
            StorageError: the database cannot be read.
        """
        with self._open() as connection:
            return int(str(connection.rows(_STRAYS)[0][0]))

    def user_version(self) -> int | None:
        """The schema's number."""
        with self._open() as connection:
            found = connection.one("PRAGMA user_version")
        return None if found is None else whole(found[0])

    def stamp(self) -> FileStamp:
        """Equal while nothing was written; nothing is opened."""
        return file_stamp(self._path)

    def sessions(self) -> list[tuple[LogFile, Header]]:
        """Every session with its header.

        Raises:
            StorageError: the database cannot be read.
        """
        stamp = self.stamp()
        with self._lock:
            if self._listed is not None and self._listed[0] == stamp:
                return self._listed[1]
        with self._open() as connection:
            rows = connection.rows(_SESSIONS)
        times = [stat[3] for stat in stamp[:2] if stat is not None]
        device, inode = (0, 0) if stamp[0] is None else stamp[0][:2]
        listed = []
        for row in rows:
            header = _header(row)
            revision = whole(row[8]) or 0
            path = f"{self._path}#{header.id}"
            listed.append((LogFile(path, header.id, revision, max(times, default=0), device, inode), header))
        with self._lock:
            self._listed = (stamp, listed)
        return listed

    def read(self, log: LogFile, cut: PowerCut | None = None) -> EventFold:
        """See :class:`Backend`.

        Raises:
            NoLinesToCut: a cut was asked for.
            StorageError: the database cannot be read.
        """
        if cut is not None:
            raise NoLinesToCut(self._path)
        fold = EventFold(self._store, self._path, log.session_id)
        header = next((header for known, header in self.sessions() if known.session_id == log.session_id), None)
        if header is None:
            fold.refuse("the session is no longer in the database")
            return fold
        fold.begin(header)
        refusal = version_refusal(header.version)
        if refusal is not None:
            fold.refuse(refusal)
            return fold
        for row in self._rows(log.session_id):
            if isinstance(row, BadRow):
                fold.spoil(row)
                continue
            try:
                fold.take(row)
            except MALFORMED as error:
                fold.name_odd(f"{row.type} of an unexpected shape ({error})", row)
        return fold

    def events(self, log: LogFile, cut: PowerCut | None = None) -> Iterator[Event]:
        """See :class:`Backend`."""
        del cut
        for row in self._rows(log.session_id):
            if not isinstance(row, BadRow):
                yield row

    def at(self, log: LogFile, heads: Sequence[MessageHead]) -> Iterator[tuple[MessageHead, Event | None]]:
        """See :class:`Backend`; rows have no place: they are found by the id of entries, a repeated one by seq."""
        wanted = {head.id.partition(AGAIN)[0] for head in heads}
        found: dict[tuple[str, float | None], Event] = {}
        numbered: dict[str, Event] = {}
        for event in self.events(log):
            name = entry_id(event)
            if name in wanted:
                found.setdefault((name, event.at), event)
                numbered.setdefault(f"{name}{AGAIN}{event.seq}", event)
        for head in heads:
            yield head, numbered.get(head.id) or found.get((head.id, head.at))

    def raw(self, log: LogFile, head: MessageHead, start: int, length: int) -> bytes:
        """See :class:`Backend`; rows are read whole."""
        del log, head, start, length
        return b""

    def _open(self) -> AbstractContextManager[ReadConnection]:
        return read_only(self._path, interrupts=self._interrupts)

    def _rows(self, session_id: SessionId) -> Iterator[Event | BadRow]:
        after = _BEFORE_ALL
        while True:
            with self._open() as connection:
                page = connection.rows(_EVENTS, (session_id, after, PAGE))
            for row in page:
                yield _event(row)
            if len(page) < PAGE:
                return
            after = page[-1][0]


def _header(row: Sequence[object]) -> Header:
    parent = text_or_none(row[4])
    seed_length = whole(row[5])
    version = whole(row[1])
    return Header(
        id=SessionId(str(row[0])),
        version=-1 if version is None else version,
        created_at=moment(row[2]),
        cwd=text_or_none(row[3]),
        parent=None if parent is None else SessionId(parent),
        origin=text_or_none(row[6]),
        depth=whole(row[7]) or 0,
        seeded=parent is not None and bool(seed_length),
        seed_length=seed_length if parent is not None else None,
    )


def _event(row: Sequence[object]) -> Event | BadRow:
    """One row; ``ignorable`` 0 marks a packed row, 1 an ignorable event, NULL a required one."""
    seq, event_type, time, stored, surface, ignorable = row
    try:
        data = _data(stored)
        operation = None if surface is None else json_value(str(surface).encode())
    except (ValueError, zstandard.ZstdError) as error:
        return BadRow(f"{event_type} (seq {seq}) cannot be read: {error}", None, None)
    value: dict[str, object] = {"type": event_type, "data": data}
    if event_type in PACKED_TYPES and ignorable == 0:
        value.update(seq0=seq, time0=time)
    else:
        value.update(seq=seq, time=time, surfaceOp=operation)
        if ignorable is not None:
            value["ignorable"] = True if ignorable == 1 else ignorable
    return event_of(value, None, None, 0)


def _data(stored: object) -> object:
    """JSON text, or the same as a zstd frame.

    Raises:
        ValueError, ZstdError: it is neither, or unpacks to more than an event may be.
    """
    if isinstance(stored, bytes):
        if zstandard.frame_content_size(stored) > LARGEST_EVENT:
            raise ValueError(f"it unpacks to more than {LARGEST_EVENT} bytes")
        stored = zstandard.ZstdDecompressor().decompress(stored, max_output_size=LARGEST_EVENT)
        return json_value(stored)
    return json_value(str(stored).encode("utf-8", "surrogatepass"))


class DatabaseSource(NothingKept):
    """Summaries of sessions in a database, remembered while it stays as it is."""

    origin: Origin = "store"

    def __init__(self, backend: DatabaseBackend) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._kept: OrderedDict[LogFile, LogSummary] = OrderedDict()

    def summaries(self, logs: Iterable[LogFile], pulse: Pulse = no_pulse) -> Iterator[tuple[LogFile, LogSummary]]:
        """See :class:`SummarySource`."""
        for log in logs:
            pulse()
            yield log, self.summary(log)

    def summary(self, log: LogFile) -> LogSummary:
        """One session, folded now or remembered; a session that vanished is told by its problem."""
        with self._lock:
            kept = self._kept.get(log)
        if kept is not None:
            return kept
        summary = unresumable(self._backend.read(log).summary())
        with self._lock:
            self._kept[log] = summary
            while len(self._kept) > KEPT_SUMMARIES:
                self._kept.popitem(last=False)
        return summary


def unresumable(summary: LogSummary) -> LogSummary:
    """No shipped command opens a session in a database (facts/dsh.md section 5)."""
    return replace(summary, row=replace(summary.row, resumable=False, origin="store"))
