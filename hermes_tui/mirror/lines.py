"""Which lines of which logs may answer a query: what the word index is asked for a search over logs.

The index gives the newest lines first, for its ids are times. They are taken in growing portions, as far back as the
log reaches that is asked for: a page of the newest hits of a common word needs few of them, and none is taken twice.
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import apsw

from hermes_tui.mirror.database import WORD_TABLES, MirrorDatabase
from hermes_tui.mirror.ledger import is_current, known_log, known_logs
from hermes_tui.mirror.projector import Known, grew
from hermes_tui.mirror.words import index_query, store_word
from hermes_tui.storage.fulltext import Matcher
from hermes_tui.stores.log_source import LogFile
from hermes_tui.stores.scan import Candidates

FIRST_PORTION: Final = 4_000
"""Lines taken from an index at first; each portion after it is four times as large."""


_BEHIND_ALL: Final = (1 << 63) - 1
_BEFORE_ALL: Final = -1


class MirrorLines:
    """The word index of one store for one query; asked in one thread."""

    def __init__(self, database: MirrorDatabase, asked: str, known: dict[str, Known]) -> None:
        self._database = database
        self._asked = asked
        self._known = known
        self._lines: defaultdict[int, array[int]] = defaultdict(lambda: array("L"))
        """By log, of all ids from ``_reached`` on."""
        self._reached = dict.fromkeys(WORD_TABLES, _BEHIND_ALL)
        self._portion = FIRST_PORTION
        self._present: frozenset[int] | None = None
        """Logs the mirror had when lines were last read."""

    def candidates(self, log: LogFile) -> Candidates | None:
        """See :class:`hermes_tui.stores.scan.LineIndex`."""
        known = self._known.get(log.path)
        if known is None or known.tools_offset < 0:
            return None
        current = is_current(known, log)
        try:
            lines = self._lines_of(known) if current or self._grew(known, log) else None
        except (OSError, apsw.Error):
            return None
        if lines is None:
            return None
        return Candidates(lines, None if known.whole and current else known.tools_line)

    def _grew(self, known: Known, log: LogFile) -> bool:
        """Whether what the index has of a log still stands in it: of one that was rewritten it knows nothing."""
        placed = known_log(self._database, log.path, state=False)
        return placed is not None and placed.id == known.id and grew(log, placed)

    def _lines_of(self, known: Known) -> frozenset[int] | None:
        """``None``: the mirror lost this log before its lines were read."""
        if known.since is not None and max(self._reached.values()) > known.since:
            self._reach(known.since)
        if self._present is not None and known.id not in self._present:
            return None
        # Not kept: a search asks for each log once.
        return frozenset(self._lines.pop(known.id, ()))

    def _reach(self, first: int) -> None:
        """Take lines as far back as a log reaches whose texts begin there."""
        while max(self._reached.values()) > first:
            for table, reached in self._reached.items():
                if reached > first:
                    self._reached[table] = self._reach_back(table, reached)
            self._portion *= 4
        # Asked after the lines: what is here now was here when they were read, for no id comes twice.
        self._present = frozenset(log_id for (log_id,) in self._database.rows("SELECT id FROM logs"))

    def _reach_back(self, table: str, reached: int) -> int:
        """Take the next older lines of an index; the id from which on all are taken."""
        rows = self._database.rows(
            f"SELECT id, log, line FROM (SELECT rowid AS id FROM {table} WHERE {table} MATCH ? AND rowid < ?"
            " ORDER BY rowid DESC LIMIT ?) LEFT JOIN texts USING (id) ORDER BY id DESC",
            (self._asked, reached, self._portion),
        )
        for _, log_id, line in rows:
            if log_id is not None:
                self._lines[log_id].append(line)
        return int(rows[-1][0]) if len(rows) == self._portion else _BEFORE_ALL


def line_index(database: MirrorDatabase, store_path: str) -> Callable[[Matcher], MirrorLines | None]:
    """What a log store asks before it scans."""
    remembered = threading.local()

    def known() -> dict[str, Known]:
        version = database.version()
        if getattr(remembered, "version", None) != version:
            remembered.known, remembered.version = known_logs(database, store_path), version
        found: dict[str, Known] = remembered.known
        return found

    def lines_for(matcher: Matcher) -> MirrorLines | None:
        asked = index_query(matcher)
        if asked is None:
            return None
        try:
            return MirrorLines(database, f'{asked} AND "{store_word(store_path)}"', known())
        except apsw.InterruptError:
            raise
        except apsw.Error:
            return None

    return lines_for
