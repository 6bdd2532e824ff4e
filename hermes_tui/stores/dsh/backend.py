"""The two places DSH keeps sessions in, behind one seam: log files (here) and a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from hermes_tui.model import MessageHead, PowerCut, StoreRef
from hermes_tui.storage.jsonl import Record, read_line_at, read_piece, read_records
from hermes_tui.stores.dsh.discovery import log_generation
from hermes_tui.stores.dsh.events import BadRow, Event, event_of_record
from hermes_tui.stores.dsh.fold import EventFold, JsonlFold
from hermes_tui.stores.logs import LogFile

AGAIN: Final = "@seq-"
"""Stands before the sequence number of an entry whose message id another one of its session has."""


class Backend(Protocol):
    """Where the events of sessions come from."""

    def read(self, log: LogFile, cut: PowerCut | None = None) -> EventFold:
        """A session folded whole, or as if its log ended at a cut."""
        ...

    def events(self, log: LogFile, cut: PowerCut | None = None) -> Iterator[Event]:
        """Its events in order, those that are none left out."""
        ...

    def at(self, log: LogFile, heads: Sequence[MessageHead]) -> Iterator[tuple[MessageHead, Event | None]]:
        """The events these entries came from; ``None`` where none is any more."""
        ...

    def raw(self, log: LogFile, head: MessageHead, start: int, length: int) -> bytes:
        """Bytes of the stored line of an entry that is too long to be loaded."""
        ...


class JsonlBackend:
    """Log files, plain or of many zstd frames."""

    def __init__(self, store: StoreRef) -> None:
        self._store = store

    def fold(self, log: LogFile, state: bytes | None = None) -> JsonlFold:
        """A fold of this log, empty or from its dumped state."""
        generation = log_generation(log.path.replace("\\", "/").rpartition("/")[2])
        return JsonlFold(self._store, log.path, log.session_id, -1 if generation is None else generation, state)

    def read(self, log: LogFile, cut: PowerCut | None = None) -> EventFold:
        """See :class:`Backend`.

        Raises:
            OSError: the log cannot be read.
        """
        fold = self.fold(log)
        fold.may_be_torn = fold.may_be_torn or cut is not None
        for record in read_records(log.path, end=_end(log.path, cut)):
            fold.feed(record)
        fold.summary()
        return fold.events

    def events(self, log: LogFile, cut: PowerCut | None = None) -> Iterator[Event]:
        """See :class:`Backend`."""
        records = read_records(log.path, end=_end(log.path, cut))
        next(records, None)
        for record in records:
            row = event_of_record(record, log.path)
            if not isinstance(row, BadRow):
                yield row

    def at(self, log: LogFile, heads: Sequence[MessageHead]) -> Iterator[tuple[MessageHead, Event | None]]:
        """See :class:`Backend`; a compressed log is read once for all of them."""
        found = self._compressed(log, heads) if log.path.endswith(".zstd") else {}
        for head in heads:
            record = found.get(head.offset or 0)
            if record is None and not found:
                record = read_line_at(log.path, head.offset or 0, head.length or 0, head.line or 0)
            row = None if record is None else event_of_record(record, log.path)
            yield head, None if isinstance(row, BadRow) else row

    def _compressed(self, log: LogFile, heads: Sequence[MessageHead]) -> dict[int, Record]:
        places = {head.offset: head for head in heads if head.offset is not None}
        if not places:
            return {}
        first, last = min(places), max(places)
        end = last + (places[last].length or 0) + 1
        line = places[first].line or 1
        records = read_records(log.path, offset=first, line=line, end=end)
        return {record.offset: record for record in records if record.offset in places}

    def raw(self, log: LogFile, head: MessageHead, start: int, length: int) -> bytes:
        """See :class:`Backend`."""
        left = (head.length or 0) - start
        return read_piece(log.path, (head.offset or 0) + start, min(length, left)) if left > 0 else b""


def _end(path: str, cut: PowerCut | None) -> int | None:
    """Where a log ends that was cut at a line, in decompressed bytes; ``None``: nothing is cut."""
    if cut is None:
        return None
    for record in read_records(path):
        if record.line < cut.line:
            continue
        if record.line > cut.line:
            return record.offset
        return record.end if cut.byte is None else record.offset + min(cut.byte, record.end - record.offset)
    return None
