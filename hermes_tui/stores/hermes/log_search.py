"""Search in the logs a Hermes home has beside its database, and both merged (facts/hermes.md section 1).

The hits of the database and those of the logs are merged by time. A place in the order is the row id reached in the
database with the number of the entry given of it, then the place reached in the logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from hermes_tui.model import Message, SessionId, SessionRow
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.stores.hermes.legacy_logs import LegacyLog
from hermes_tui.stores.log_index import LogIndex, build_index
from hermes_tui.stores.log_source import LogFile, Pulse, no_pulse
from hermes_tui.stores.protocol import Neighbour, Neighbours, Proposed, Transcript
from hermes_tui.text import RawText

Place = tuple[float, ...]
BEFORE_ALL: Final = float(1 << 63)
"""Stands for "nothing given yet"; the same with a minus sign where the oldest come first."""


class _Reads(Protocol):
    """What is needed of the store."""

    def transcript(self, ids: Sequence[SessionId]) -> Transcript: ...

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]: ...


class LogsOfHome:
    """The logs of a home as something :func:`hermes_tui.stores.scan.scan_proposal` can read."""

    files = True

    def __init__(self, store: _Reads, logs: Mapping[str, LegacyLog]) -> None:
        self._store = store
        self._logs = logs

    def index(self) -> LogIndex:
        """Every log with its row."""
        ids = [SessionId(identity) for identity in self._logs]
        rows = {row.id: row for row in self._store.rows(ids, conversation=False)}
        return build_index(
            (log, rows[SessionId(identity)])
            for identity, one in self._logs.items()
            if identity in rows
            for path in one.paths
            if (log := _log_file(identity, path)) is not None
        )

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """The messages of logs."""
        return self._store.transcript(ids)

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        """The rows of logs."""
        return self._store.rows(ids, conversation=conversation)

    def pulse(self) -> Pulse:
        """Logs of a home are few and small."""
        return no_pulse

    def neighbours(self, message: Message) -> Neighbours:
        """The entries around a hit."""
        transcript = self._store.transcript([message.head.session_id])
        heads = [head for batch in transcript.heads() for head in batch]
        own = (message.head.id, message.head.part)
        place = next((at for at, head in enumerate(heads) if (head.id, head.part) == own), None)
        if place is None:
            return None, None
        before, after = heads[max(place - 1, 0) : place], heads[place + 1 : place + 2]
        loaded = transcript.load([*before, *after])
        return _neighbour(loaded[: len(before)]), _neighbour(loaded[len(before) :])


def _neighbour(messages: Sequence[Message]) -> Neighbour | None:
    return Neighbour(messages[0].head.role, messages[0].text or RawText("")) if messages else None


def _log_file(identity: str, path: str) -> LogFile | None:
    try:
        stat = Path(path).stat()
    except OSError:
        return None
    return LogFile(path, SessionId(identity), stat.st_size, stat.st_mtime_ns, stat.st_dev, stat.st_ino)


def start_places(after: Place | None) -> tuple[tuple[int, int] | None, Place | None]:
    """Where database and logs go on; ``None``: from their beginning."""
    if after is None:
        return None, None
    row = None if abs(after[0]) >= BEFORE_ALL else (int(after[0]), int(after[1]))
    logs = after[2:]
    return row, None if not logs or abs(logs[0]) >= BEFORE_ALL else logs


def merged(
    database: Iterable[Proposed], logs: Iterable[Proposed], after: Place | None, *, newest: bool
) -> Iterator[Proposed]:
    """Both as one, by time; an unknown time counts as the one before it in its stream."""
    sign = 1.0 if newest else -1.0
    row, place = start_places(after)
    reached: list[Place] = [
        (sign * BEFORE_ALL, 0) if row is None else row,
        (sign * BEFORE_ALL,) * 3 if place is None else place,
    ]
    failures: list[StorageError] = []
    streams = [_until_failure(database, failures), iter(logs)]
    heads = [next(stream, None) for stream in streams]
    times = [sign * BEFORE_ALL, sign * BEFORE_ALL]
    while any(head is not None for head in heads):
        for number, head in enumerate(heads):
            if head is not None and head.message.head.at is not None:
                times[number] = head.message.head.at
        ready = [number for number, head in enumerate(heads) if head is not None]
        chosen = max(ready, key=lambda number: sign * times[number])
        hit = heads[chosen]
        assert hit is not None
        reached[chosen] = hit.order
        yield replace(hit, order=(*reached[0], *reached[1]))
        heads[chosen] = next(streams[chosen], None)
    if failures:
        raise failures[0]


def _until_failure(hits: Iterable[Proposed], failures: list[StorageError]) -> Iterator[Proposed]:
    """The hits up to a failure of the database, which is told when the logs are read as well."""
    try:
        yield from hits
    except Interrupted:
        raise
    except StorageError as error:
        failures.append(error)
