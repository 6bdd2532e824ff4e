"""Summaries from the mirror where it is current, from the log where it is not; and how often which, with the reason."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import apsw

from hermes_tui.mirror.codec import load_peek, load_summary
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.ledger import is_current, known_logs
from hermes_tui.mirror.projector import Known, head_hash, load_place, same_file
from hermes_tui.model import Origin, SessionId, SessionRow
from hermes_tui.stores.log_source import Folded, FoldPlace, LogFile, LogSummary, Pulse, ScanSource, no_pulse
from hermes_tui.stores.logs import LogStore

_NO_SESSION: Final = SessionId("")
ONE_BY_ONE: Final = 64
"""Up to so many logs are asked for one by one; more are read with the store's other logs in one pass."""


class MirrorSource:
    """A scan that is handed what the mirror remembers: an answer is as right as the log, only sooner."""

    origin: Origin = "mirror"

    def __init__(self, database: MirrorDatabase, store: LogStore, scan: ScanSource) -> None:
        self._database = database
        self._store = store
        self._scan = scan
        self._lock = threading.Lock()
        self._counted: Counter[str] = Counter()
        self._half: set[str] = set()
        """Logs the scan was handed as they were told by first bytes."""

    def summaries(self, logs: Iterable[LogFile], pulse: Pulse = no_pulse) -> Iterator[tuple[LogFile, LogSummary]]:
        """One summary a log, in the same order; see :class:`ScanSource`."""
        asked = list(logs)
        self._let_go_of_half_read()
        self._prime([log for log in asked if not self._scan.remembers(log)])
        yield from self._scan.summaries(asked, pulse)

    def peeks(self, logs: Sequence[LogFile]) -> Iterator[tuple[LogFile, SessionRow]]:
        """The rows of those logs that are as they were when they were projected."""
        wanted = {log.path: log for log in logs}
        for row in self._kept("path, device, inode, size, mtime_ns, peek", wanted):
            log = wanted[row[0]]
            if is_current(_known(row), log):
                peeked, extra = load_peek(row[5], self._store.ref)
                self._store.take_peek_extra(log, extra)
                yield log, peeked

    def lag(self, logs: Sequence[LogFile]) -> int | None:
        """How many of these logs are not in the mirror as they are now; ``None`` where it cannot be read."""
        try:
            known = known_logs(self._database, self._store.ref.path)
        except apsw.Error:
            return None
        return sum(1 for log in logs if log.path not in known or not is_current(known[log.path], log))

    def lead(self, logs: Sequence[LogFile]) -> int:
        """Logs in the mirror that are not on disk: what its next update takes away."""
        try:
            known = known_logs(self._database, self._store.ref.path)
        except apsw.Error:
            return 0
        return len(known.keys() - {log.path for log in logs})

    def half_read(self) -> Collection[str]:
        """Logs whose second phase is to come: there every line is parsed (projector.project_tools)."""
        if not self._store.passes_over:
            return ()
        try:
            asked = "SELECT path FROM logs WHERE store = ? AND tools_offset BETWEEN 0 AND offset - 1"
            return frozenset(path for (path,) in self._database.rows(asked, (self._store.ref.path,)))
        except apsw.Error:
            return ()

    @property
    def parsed(self) -> bool:
        """Whether the scan remembers nothing that was told by first bytes."""
        with self._lock:
            return not self._half

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """Why logs were read instead: reason and how often."""
        with self._lock:
            return dict(self._counted)

    def _let_go_of_half_read(self) -> None:
        """What was told by first bytes is taken from the mirror again once that parsed every line."""
        with self._lock:
            half = frozenset(self._half)
        for path in half.difference(self.half_read()) if half else ():
            self._scan.forget(path)
            with self._lock:
                self._half.discard(path)

    def _prime(self, missing: list[LogFile]) -> None:
        """Give the scan what the mirror has of these logs; their rows say so."""
        if not missing:
            return
        wanted = {log.path: log for log in missing}
        columns = "path, device, inode, size, mtime_ns, card, requests, place, tools_offset, offset, head"
        for row in self._kept(columns, wanted):
            log = wanted.pop(row[0])
            if is_current(_known(row), log):
                self._hand_over(row, log, None)
            elif log.size > row[3] and _begins_alike(row, log):
                # It grew: only what is new must be read.
                self._count("behind")
                old = replace(log, size=row[3], mtime_ns=row[4])
                place = load_place(row[7])
                self._hand_over(row, old, place if place and place.state else None)
            else:
                self._count("changed")
        for _ in wanted:
            self._count("not-in-mirror")

    def _hand_over(self, row: tuple[Any, ...], log: LogFile, place: FoldPlace | None) -> None:
        self._scan.remember(log, Folded(load_summary(row[5], row[6], self._store.ref), place))
        tools_offset, offset = row[8:10]
        if self._store.passes_over and 0 <= tools_offset < offset:
            with self._lock:
                self._half.add(log.path)

    def _kept(self, columns: str, wanted: Mapping[str, LogFile]) -> list[tuple[Any, ...]]:
        """These columns of the logs asked for, as far as the mirror has them."""
        try:
            if len(wanted) <= ONE_BY_ONE:
                asked = f"SELECT {columns} FROM logs WHERE path = ?"
                return [row for path in wanted for row in self._database.rows(asked, (path,))]
            asked = f"SELECT {columns} FROM logs WHERE store = ?"
            return [row for row in self._database.iterate(asked, (self._store.ref.path,)) if row[0] in wanted]
        except apsw.Error as error:
            self._count(_reason(error))
            return []

    def _count(self, reason: str) -> None:
        with self._lock:
            self._counted[reason] += 1


def _known(row: tuple[Any, ...]) -> Known:
    path, device, inode, size, mtime_ns = row[:5]
    log = LogFile(path, _NO_SESSION, size, mtime_ns, device, inode)
    return Known(0, log, b"", None, 0, 1)


def _begins_alike(row: tuple[Any, ...], log: LogFile) -> bool:
    """Whether a log that is longer now is the one it was; whether its last record still stands there, the scan asks."""
    try:
        return same_file(log, _known(row).log) and head_hash(log, row[3]) == row[10]
    except OSError:
        return False


def _reason(error: apsw.Error) -> str:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "locked"
    if isinstance(error, apsw.InterruptError):
        return "interrupted"
    if isinstance(error, apsw.CantOpenError):
        return "missing"
    return "unreadable"
