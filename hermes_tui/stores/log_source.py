"""Where the summaries of logs come from: folding files now (here), or an index that folded them before.

A fold is put away as bytes with the place it reached, so that of a log that grew only the new bytes are read.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from hermes_tui.model import Compaction, ListQuery, Origin, Problem, Request, SessionId, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.storage.jsonl import Record, complete_record, read_piece, read_records
from hermes_tui.storage.log_lines import Lines, placed, read_lines
from hermes_tui.stores.kept_requests import KeptRequests

CACHED_REQUESTS: Final = 60_000
"""Requests all cached summaries may hold together: about 25 MB."""
CACHED_LOG_WEIGHT: Final = 8
"""What a summary costs besides its requests, in requests."""
GROWING_SECONDS: Final = 3_600.0
"""A log written to so recently may grow: the state of its fold is kept as well."""
PULSE_EVERY: Final = 512
"""Records between two looks at whether somebody asked to stop."""
GUARD_BYTES: Final = 4_096
"""Bytes of the last record that must still be there before a fold is taken up again."""
MALFORMED: Final = (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError, RecursionError)
"""What a record of an unexpected shape makes a reader raise; each is counted as a problem, none ends the log."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One log on disk as the folder shows it; nothing read yet."""

    path: str
    session_id: SessionId
    """By its name; the log itself may say otherwise."""
    size: int
    mtime_ns: int
    device: int
    inode: int
    archived: bool = False

    @property
    def mtime(self) -> float:
        """Last change, Unix seconds."""
        return self.mtime_ns / 1e9


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What one log tells list, ledger, lineage and cache screen."""

    row: SessionRow
    requests: Sequence[Request]
    """Own requests only, each once."""
    compactions: tuple[Compaction, ...]
    problems: tuple[Problem, ...]
    apart: tuple[Request, ...] = ()
    """Calls that are billed but that the agent's own totals leave out: shown only by task (facts/dsh.md section 4)."""


class LogFold(Protocol):
    """Reads a log line by line and can be put away and taken up again at a byte offset."""

    def wants(self, line: bytes) -> bool:
        """Whether this line must be parsed; told by its first bytes, so that most lines never are."""
        ...

    def feed(self, record: Record) -> None:
        """Take in one record; records come in file order."""
        ...

    def summary(self) -> LogSummary:
        """What is known after the records fed so far."""
        ...

    def dump(self) -> bytes:
        """The state as JSON bytes; :class:`LogFold` implementations can be made from them again."""
        ...


Feed = Callable[[Record], None]
"""Takes in a record whatever its shape."""


Say = Callable[[int, int, float | None, str], None]
"""Takes a text for the word index: the number and offset of its line, its time in Unix seconds, the text."""


class LineTaker(Protocol):
    """Takes in the lines of a log for its fold, most of them by their first bytes; those it cannot tell are fed."""

    def take(self, lines: Lines, line: int, feed: Feed) -> int:
        """Take in lines that follow what was taken in before, and begin with this one; the number of the next."""
        ...


Skim = Callable[[LogFold], LineTaker | None]
"""What takes in lines for a fold; ``None``: each must be parsed."""
FoldMaker = Callable[[LogFile, bytes | None], LogFold]
"""Makes the fold of a log, empty or from what :meth:`LogFold.dump` gave."""
Pulse = Callable[[], None]
"""Called now and then by whatever takes long; raises ``Interrupted`` when somebody asked to stop."""


def no_pulse() -> None:
    """Nobody asks to stop."""


@dataclass(frozen=True, slots=True)
class FoldPlace:
    """Where a fold was put away: its state and where the log goes on."""

    state: bytes
    offset: int
    """Decompressed bytes fed so far; a line begins there."""
    line: int
    """The number of the line that begins there."""
    guard_offset: int = 0
    guard: bytes = b""
    """The beginning of the last record fed: when it is not there any more, the log was rewritten."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A summary and, when it was asked for, the place to go on from."""

    summary: LogSummary
    place: FoldPlace | None


def problem_of(path: str, record: Record) -> Problem:
    """The problem of a record that could not be read."""
    return Problem(path, record.line or None, record.offset, record.problem or "null in place of a record")


def fold_log(
    log: LogFile,
    make: FoldMaker,
    start: FoldPlace | None = None,
    *,
    keep: bool = False,
    pulse: Pulse = no_pulse,
    skim: Skim | None = None,
    end: int | None = None,
) -> Folded:
    """Fold a log from its beginning or from where an earlier fold was put away; never raises for a damaged log.

    Args:
        log: the log.
        make: makes its fold.
        start: from where to go on; checked with :func:`still_there` by the caller.
        keep: give the place to go on from as well. What follows the last newline is in the summary but not in the
            place: a line half written is read whole the next time.
        pulse: called every few hundred records.
        skim: lines are taken in by their first bytes where that tells enough; damage behind them is not seen.
        end: the log is read as if it ended after so many decompressed bytes.

    Raises:
        Interrupted: by ``pulse``.
    """
    fold = make(log, None if start is None else start.state)
    odd: list[Problem] = []
    place = start
    last: Record | None = None
    held = False
    offset, line = (0, 1) if start is None else (start.offset, start.line)

    def feed(record: Record) -> None:
        try:
            fold.feed(record)
        except MALFORMED as error:
            odd.append(Problem(log.path, record.line or None, record.offset, _shape(error)))

    taker = None if skim is None else skim(fold)
    each = _EachLine(fold.wants)
    ended = False
    try:
        for lines in read_lines(log.path, offset=offset, end=end):
            pulse()
            offset, line = lines.end, (taker or each).take(lines, line, feed)
            last = (each.last if taker is None else _last_record(lines, line)) or last
            ended = lines.last
        rest = () if ended else read_records(log.path, offset=offset, line=line, wants=fold.wants, end=end)
        for count, record in enumerate(rest):
            if count % PULSE_EVERY == 0:
                pulse()
            if not record.complete and not held:
                held = True
                place = _place(fold, last, start) if keep else None
            feed(record)
            if record.complete:
                last = record
    except Interrupted:
        raise
    except (OSError, StorageError) as error:
        odd.append(Problem(log.path, None, None, _why(error)))
        if start is None and offset == 0 and last is None:
            return Folded(_unread(fold.summary(), odd[-1]), None)
    if keep and not held:
        place = _place(fold, last, start)
    return Folded(_with_problems(fold.summary(), odd), place if keep else None)


class _EachLine:
    """Parses every line its fold wants: in blocks, which is quicker than one by one."""

    def __init__(self, wants: Callable[[bytes], bool]) -> None:
        self._wants = wants
        self.last: Record | None = None
        """What was fed last."""

    def take(self, lines: Lines, line: int, feed: Feed) -> int:
        """See :class:`LineTaker`."""
        wants, last, raws = self._wants, self.last, lines.cut()
        for number, offset, raw in placed(raws, line, lines.offset):
            if wants(raw):
                record = complete_record(number, offset, raw[:-1])
                if record is not None:
                    feed(record)
                    last = record
        self.last = last
        return line + len(raws)


def _last_record(lines: Lines, following: int) -> Record | None:
    """The place and the bytes of the last line that is not blank; ``following`` is the number of the line behind."""
    block, end, line = lines.block, lines.size - 1, following - 1
    while end >= 0:
        start = block.rfind(b"\n", 0, end) + 1
        raw = block[start:end]
        if raw.strip():
            return Record(line, lines.offset + start, len(raw), None, raw)
        end, line = start - 1, line - 1
    return None


def _place(fold: LogFold, last: Record | None, start: FoldPlace | None) -> FoldPlace | None:
    """Just behind the last whole record; unwanted lines behind it are cheap to pass over again."""
    if last is None:
        return start
    return FoldPlace(fold.dump(), last.end, last.line + 1, last.offset, last.raw[:GUARD_BYTES])


def still_there(log: LogFile, place: FoldPlace) -> bool:
    """Whether the log still holds the last record of an earlier fold where that found it."""
    try:
        return read_piece(log.path, place.guard_offset, len(place.guard)) == place.guard
    except OSError:
        return False


def _unread(summary: LogSummary, problem: Problem) -> LogSummary:
    """A log that could not even be opened: what it holds is not known, which is not nothing."""
    row = replace(
        summary.row, message_count=None, tool_call_count=None, request_count=None, problems=1, resumable=False
    )
    return LogSummary(row, (), (), (problem,))


def _with_problems(summary: LogSummary, odd: Sequence[Problem]) -> LogSummary:
    if not odd:
        return summary
    problems = (*summary.problems, *odd)
    return replace(summary, row=replace(summary.row, problems=len(problems)), problems=problems)


def _shape(error: Exception) -> str:
    return f"a record of an unexpected shape ({type(error).__name__}: {error})"


def _why(error: OSError | StorageError) -> str:
    return str(error) if isinstance(error, StorageError) else f"cannot be read: {error.strerror or error}"


class SummarySource(Protocol):
    """Gives the summaries of logs, from wherever they are had fastest."""

    @property
    def origin(self) -> Origin:
        """What rows made of these summaries say about where they come from."""
        ...

    def summaries(self, logs: Iterable[LogFile], pulse: Pulse = no_pulse) -> Iterator[tuple[LogFile, LogSummary]]:
        """One summary a log, in the same order; logs that vanished are told by their problems."""
        ...

    def peeks(self, logs: Sequence[LogFile]) -> Iterable[tuple[LogFile, SessionRow]]:
        """The peeks of those logs whose peek is kept."""
        ...

    def lag(self, logs: Sequence[LogFile]) -> int | None:
        """How many of these logs are not kept as they are now; ``None``: nothing is kept beyond this process."""
        ...

    def half_read(self) -> Collection[str]:
        """The paths of logs of which what is kept was told by the first bytes of some lines: damage may be missing."""
        ...

    @property
    def parsed(self) -> bool:
        """Whether every line was parsed of all that is remembered: what is not may be told otherwise afterwards."""
        ...

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """Why logs were read although something is kept: reason and how often."""
        ...


@dataclass(slots=True)
class _Kept:
    log: LogFile
    folded: Folded


class NothingKept:
    """What a source says that keeps nothing beyond this process."""

    def peeks(self, logs: Sequence[LogFile]) -> Iterable[tuple[LogFile, SessionRow]]:
        """None are kept."""
        del logs
        return ()

    def lag(self, logs: Sequence[LogFile]) -> int | None:
        """Nothing to lag behind."""
        del logs
        return None

    def half_read(self) -> Collection[str]:
        """None: every line is parsed."""
        return ()

    @property
    def parsed(self) -> bool:
        """Every line is."""
        return True

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """Reading is what it does; it falls back on nothing."""
        return {}


READ_AT_ONCE: Final = 8 << 20
"""Bytes of logs that are read whole for a filter: a tenth of a second."""


def soon_read(source: SummarySource, logs: Sequence[LogFile], query: ListQuery) -> bool:
    """Whether a filter can go by what stands in the middle of logs at little cost: clocks jump, and sessions move.

    Of a large store that no index holds, a peek at both ends of a log tells its times and folder.
    """
    if query.cwd is None and query.since is None and query.until is None:
        return False
    return sum(log.size for log in logs) <= READ_AT_ONCE or source.lag(logs) == 0


class ScanSource(NothingKept):
    """Folds files when asked and remembers what it folded while the files stay as they are."""

    origin: Origin = "scan"

    def __init__(
        self, make: FoldMaker, *, capacity: int = CACHED_REQUESTS, clock: Callable[[], float] = time.time
    ) -> None:
        self._make = make
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._weight = 0

    def summaries(self, logs: Iterable[LogFile], pulse: Pulse = no_pulse) -> Iterator[tuple[LogFile, LogSummary]]:
        """Fold each log, or take what is remembered of it."""
        for log in logs:
            pulse()
            yield log, self._summary(log, pulse)

    def _summary(self, log: LogFile, pulse: Pulse) -> LogSummary:
        with self._lock:
            kept = self._kept.get(log.path)
            if kept is not None:
                self._kept.move_to_end(log.path)
        if kept is not None and _same_state(kept.log, log):
            return kept.folded.summary
        place = kept.folded.place if kept is not None and _grown(kept.log, log) else None
        if place is not None and not still_there(log, place):
            place = None
        keep = self._clock() - log.mtime < GROWING_SECONDS
        folded = fold_log(log, self._make, place, keep=keep, pulse=pulse)
        self._remember(log, folded)
        return folded.summary

    def remembers(self, log: LogFile) -> bool:
        """Whether this log, as it is now, need not be read."""
        with self._lock:
            kept = self._kept.get(log.path)
        return kept is not None and _same_state(kept.log, log)

    def remember(self, log: LogFile, folded: Folded) -> None:
        """Take what was folded elsewhere; used while the log is as it was then, or to go on from its place."""
        self._remember(log, folded)

    def forget(self, path: str) -> None:
        """Read this log again when it is asked for."""
        with self._lock:
            self._drop(path)

    def _drop(self, path: str) -> None:
        """Under the lock."""
        old = self._kept.pop(path, None)
        if old is not None:
            self._weight -= _weight(old)

    def _remember(self, log: LogFile, folded: Folded) -> None:
        with self._lock:
            self._drop(log.path)
            kept = _Kept(log, folded)
            self._kept[log.path] = kept
            self._weight += _weight(kept)
            while self._weight > self._capacity and len(self._kept) > 1:
                self._weight -= _weight(self._kept.popitem(last=False)[1])


def _weight(kept: _Kept) -> int:
    state, requests = kept.folded.place, kept.folded.summary.requests
    held = len(requests) >> 3 if isinstance(requests, KeptRequests) else len(requests)
    return CACHED_LOG_WEIGHT + held + (len(state.state) >> 9 if state else 0)


def _same_file(old: LogFile, new: LogFile) -> bool:
    return (old.device, old.inode) == (new.device, new.inode)


def _same_state(old: LogFile, new: LogFile) -> bool:
    return _same_file(old, new) and (old.size, old.mtime_ns) == (new.size, new.mtime_ns)


def _grown(old: LogFile, new: LogFile) -> bool:
    return _same_file(old, new) and new.size > old.size
