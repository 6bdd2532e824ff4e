"""Which lines of which logs may answer a query: what the word index is asked for a search over logs.

A rare word is looked up once for all logs. A common one is looked up log by log, within the ids that log has, because a
page of the newest hits needs only a few logs and all hits of the word would be hundreds of thousands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import apsw

from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.ledger import is_current, known_logs
from hermes_tui.mirror.projector import Known
from hermes_tui.mirror.words import index_query
from hermes_tui.storage.fulltext import Matcher
from hermes_tui.stores.log_source import LogFile
from hermes_tui.stores.scan import Candidates

FEW: Final = 4_000
"""Lines of all logs together that are looked up at once."""
_NONE: Final[frozenset[int]] = frozenset()


class MirrorLines:
    """The word index of one store for one query; asked in one thread."""

    def __init__(self, database: MirrorDatabase, asked: str, known: dict[str, Known]) -> None:
        self._database = database
        self._asked = asked
        self._known = known
        self._few = self._all_lines()

    def candidates(self, log: LogFile) -> Candidates | None:
        """See :class:`hermes_tui.stores.scan.LineIndex`."""
        known = self._known.get(log.path)
        if known is None or known.tools_offset < 0:
            return None
        old = known.log
        if (old.device, old.inode) != (log.device, log.inode) or log.size < old.size:
            return None
        try:
            lines = self._few.get(known.id, _NONE) if self._few is not None else self._lines_of(known.id)
        except apsw.Error:
            return None
        return Candidates(lines, None if known.whole and is_current(known, log) else known.tools_line)

    def _all_lines(self) -> dict[int, frozenset[int]] | None:
        """Lines by log where there are few of them in all; ``None`` where there are many."""
        found: dict[int, set[int]] = {}
        left = FEW
        for table in ("talk", "tools"):
            rows = self._database.rows(
                f"SELECT log, line FROM (SELECT rowid AS id FROM {table} WHERE {table} MATCH ? LIMIT ?)"
                " JOIN texts USING (id)",
                (self._asked, left + 1),
            )
            left -= len(rows)
            if left < 0:
                return None
            for log_id, line in rows:
                found.setdefault(log_id, set()).add(line)
        return {log_id: frozenset(lines) for log_id, lines in found.items()}

    def _lines_of(self, log_id: int) -> frozenset[int]:
        first, last = self._database.rows("SELECT MIN(id), MAX(id) FROM texts WHERE log = ?", (log_id,))[0]
        if first is None:
            return _NONE
        found: set[int] = set()
        for table in ("talk", "tools"):
            found.update(
                line
                for (line,) in self._database.rows(
                    f"SELECT line FROM {table} JOIN texts ON texts.id = {table}.rowid"
                    f" WHERE {table} MATCH ? AND {table}.rowid BETWEEN ? AND ? AND texts.log = ?",
                    (self._asked, first, last, log_id),
                )
            )
        return frozenset(found)


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
            return MirrorLines(database, asked, known())
        except apsw.InterruptError:
            raise
        except apsw.Error:
            return None

    return lines_for
