"""From a log to what the mirror keeps of it: one pass over the new lines gives summary, words and the place to go on.

A projection is worked out without touching the mirror, in whatever process, and written by the one writer afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Final

from hermes_tui.mirror.codec import dump_card, dump_peek, dump_requests
from hermes_tui.mirror.index_rows import NO_ROWS, IndexedText, TextRows, base_of, rows_of
from hermes_tui.mirror.words import index_words
from hermes_tui.records import dataclass
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.storage.log_bytes import open_log
from hermes_tui.storage.packing import packed, unpacked
from hermes_tui.stores.log_source import (
    MALFORMED,
    FoldPlace,
    LineTaker,
    LogFile,
    LogFold,
    LogSummary,
    fold_log,
    still_there,
)
from hermes_tui.stores.log_texts import LogText, LogTexts
from hermes_tui.stores.logs import LogStore

GROWING_SECONDS: Final = 2 * 86_400.0
"""A log written to so recently may grow: the state of its fold is kept, so that only what is new is read."""
LARGE_BYTES: Final = 32 << 20
"""Of a log so large it is kept however old: reading all of it again takes more than a second."""
_TALK: Final = ("talk", "both")
_TOOLS: Final = ("tools", "both")
HEAD_BYTES: Final = 4_096
"""Bytes at the start of a log that tell whether it is still the same one."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the mirror has of a log already."""

    id: int
    log: LogFile
    head: bytes
    place: FoldPlace | None
    tools_offset: int
    """Decompressed bytes whose tool words are indexed; -1: no words of this log are."""
    tools_line: int
    """The line that begins there."""
    offset: int = 0
    """Decompressed bytes that were projected."""
    since: int | None = None
    """No id of its texts lies before this one; ``None``: it has none."""

    @property
    def whole(self) -> bool:
        """Whether everything was projected and indexed; how long a packed log is unpacked, its size does not say."""
        packed = self.log.path.endswith((".zst", ".zstd"))
        return self.tools_offset >= self.offset and (packed or self.offset >= self.log.size)


@dataclass(frozen=True, slots=True)
class Projection:
    """Everything one transaction writes about one log."""

    log: LogFile
    head: bytes
    fresh: bool
    """What was known before is thrown away."""
    place: FoldPlace | None
    peek: bytes
    card: bytes
    requests: bytes
    talk: TextRows
    indexed: bool
    """Whether words of it are indexed at all."""


@dataclass(frozen=True, slots=True)
class Anew:
    """A projection without words, made by parsing every line."""

    place: FoldPlace | None
    card: bytes
    requests: bytes


@dataclass(frozen=True, slots=True)
class ToolsProjection:
    """The words of tool calls and results between two places of a log."""

    log: LogFile
    offset: int
    line: int
    texts: TextRows
    anew: Anew | None = None
    """What the log says when every line is parsed, where one that was passed over says something else."""


def head_hash(log: LogFile, size: int) -> bytes:
    """A hash of a log's first bytes as they are on disk; of a short log, of so many as its size was.

    Raises:
        OSError: the log cannot be read.
    """
    with open_log(log.path) as file:
        return hashlib.blake2b(file.read(min(HEAD_BYTES, size)), digest_size=8).digest()


def dump_place(place: FoldPlace | None) -> bytes:
    """A place as bytes."""
    if place is None:
        return b""
    head = dump_json([place.offset, place.line, place.guard_offset, len(place.guard)])
    return b"\n".join((head, place.guard + packed(place.state)))


def load_place(data: bytes, *, state: bool = True) -> FoldPlace | None:
    """What :func:`dump_place` wrote; where the state is not wanted, it is left out."""
    if not data:
        return None
    head, rest = data.split(b"\n", 1)
    offset, line, guard_offset, guard_length = load_json(head)
    kept = unpacked(rest[guard_length:]) if state else b""
    return FoldPlace(kept, offset, line, guard_offset, rest[:guard_length])


@dataclass(slots=True)
class _Collector:
    """A fold that also keeps the words of prompts and replies on their way past."""

    fold: LogFold
    texts: LogTexts | None
    growing: bool
    """Whether the state is worth keeping."""
    mtime: float
    """The time of texts that have none."""
    found: list[IndexedText] = field(default_factory=list)

    def wants(self, line: bytes) -> bool:
        return self.fold.wants(line) or (self.texts is not None and self.texts.phase(line) in _TALK)

    def feed(self, record: Record) -> None:
        if self.texts is not None and record.complete and self.texts.phase(record.raw) in _TALK:
            self.found.extend(_indexed(self.texts.texts(record), self.mtime))
        if self.fold.wants(record.raw):
            self.fold.feed(record)

    def skim(self, store: LogStore) -> LineTaker | None:
        return store.skim(self.fold, self.texts, None if self.texts is None else self.say)

    def say(self, line: int, offset: int, at: float | None, text: str) -> None:
        words = index_words(text)
        if words:
            self.found.append((base_of(self.mtime if at is None else at), line, offset, words))

    def summary(self) -> LogSummary:
        return self.fold.summary()

    def dump(self) -> bytes:
        """Nothing where it is not: a sixth of a tree would be kept twice."""
        return self.fold.dump() if self.growing else b""


def _indexed(texts: Iterable[LogText], mtime: float) -> Iterator[IndexedText]:
    for text in texts:
        words = index_words(text.text)
        if words:
            record = text.record
            base = base_of(mtime if text.at is None else text.at)
            yield base, record.line, record.offset, words


def project(store: LogStore, log: LogFile, known: Known | None) -> Projection:
    """Read what is new in a log, or all of it where it is not the log that was known.

    Raises:
        OSError: the log is gone or cannot be read.
    """
    head = head_hash(log, log.size)
    start = known.place if known is not None and known.place and known.place.state and grew(log, known) else None
    growing = _growing(store, log)
    texts = store.log_texts(log)
    made: list[_Collector] = []

    def make(log: LogFile, state: bytes | None) -> LogFold:
        made.append(_Collector(store.fold(log, state), texts, growing, log.mtime))
        return made[-1]

    folded = fold_log(log, make, start, keep=True, skim=lambda _: made[-1].skim(store))
    if texts is not None:
        made[-1].found.extend(_indexed(texts.rest(), log.mtime))
    return Projection(
        log=log,
        head=head,
        fresh=start is None,
        place=_kept(store, log, folded.place),
        peek=_peek_of(store, log),
        card=dump_card(folded.summary),
        requests=dump_requests(folded.summary),
        talk=rows_of(log.path, made[-1].found),
        indexed=texts is not None,
    )


def _peek_of(store: LogStore, log: LogFile) -> bytes:
    row = store.peeked(log)
    try:
        return dump_peek(row, store.peek_extra(log))
    except (OSError, *MALFORMED):
        # Its row tells that it cannot be read.
        return dump_peek(row, None)


def grew(log: LogFile, known: Known) -> bool:
    """Grown, not replaced, rewritten, cut or compressed; ``known`` must have its place, the state left out or not.

    A log that was written to and is as long as before was changed within.

    Raises:
        OSError: the log is gone or cannot be read.
    """
    old, place = known.log, known.place
    if place is None or not same_file(log, old) or log.size <= old.size:
        return False
    return head_hash(log, old.size) == known.head and still_there(log, place)


def same_file(log: LogFile, old: LogFile) -> bool:
    """Whether a path leads to the file it led to when the mirror read it."""
    return (old.device, old.inode) == (signed(log.device), signed(log.inode))


def signed(number: int) -> int:
    """An unsigned 64-bit file number as SQLite can hold it."""
    return number - (1 << 64) if number >= 1 << 63 else number


def project_tools(store: LogStore, log: LogFile, known: Known, most_bytes: int) -> ToolsProjection:
    """The words of tool calls and results from where the last run stopped, up to what was projected of the log.

    Every line is parsed here. Where one says something else than its first bytes told, the log is folded again.

    Args:
        store: whose log it is.
        log: the log as it is now.
        known: the log as it was projected.
        most_bytes: about so many are read.

    Raises:
        OSError: the log is gone or cannot be read.
    """
    texts = store.log_texts(known.log)
    end = known.place.offset if known.place is not None else 0
    if texts is None or known.tools_offset >= end:
        return ToolsProjection(known.log, max(end, known.tools_offset), known.tools_line, NO_ROWS)
    found: list[IndexedText] = []
    offset, line = known.tools_offset, known.tools_line
    damaged = False
    for record in read_records(known.log.path, offset=offset, line=line, end=end):
        if record.offset - known.tools_offset >= most_bytes:
            offset, line = record.offset, record.line
            break
        odd = store.misread(record)
        damaged = damaged or odd
        # Such a line, and what was cut out of a damaged one, may be of any kind, whatever it begins with.
        if record.complete and (odd or record.rescued or texts.phase(record.raw) in _TOOLS):
            found.extend(_indexed(texts.texts(record), known.log.mtime))
    else:
        offset, line = end, known.place.line if known.place is not None else line
    anew = _anew(store, log, known) if damaged else None
    found.extend(_indexed(texts.rest(), known.log.mtime))
    return ToolsProjection(known.log, offset, line, rows_of(log.path, found), anew)


def _anew(store: LogStore, log: LogFile, known: Known) -> Anew:
    same = (log.size, log.mtime_ns) == (known.log.size, known.log.mtime_ns)
    end = None if same or known.place is None else known.place.offset
    folded = fold_log(log, store.fold, keep=True, end=end)
    return Anew(_kept(store, log, folded.place), dump_card(folded.summary), dump_requests(folded.summary))


def _kept(store: LogStore, log: LogFile, place: FoldPlace | None) -> FoldPlace | None:
    """A place as the mirror keeps it: of a log that will not grow it says how far it was read, and nothing else."""
    return place if place is None or _growing(store, log) else replace(place, state=b"", guard=b"")


def _growing(store: LogStore, log: LogFile) -> bool:
    return log.size >= LARGE_BYTES or store.clock() - log.mtime < GROWING_SECONDS
