"""Which stretches of which files make up a thread: history bases, reverted segments (facts/codex.md section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hermes_tui.model import Problem, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import count_lines, read_piece, read_records
from hermes_tui.stores.codex.oldest import first_values, is_oldest, read_document
from hermes_tui.stores.codex.reader import names_thread
from hermes_tui.stores.codex.rollout import HistoryBase, Line, Meta, line_of, read_meta, read_name
from hermes_tui.stores.log_source import LogFile

HEAD_LINES: Final = 50
"""Lines within which a file's first meta is looked for: a damaged first line may stand before it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of one file, from a line's beginning."""

    path: str
    thread_id: SessionId
    start: int = 0
    line: int = 1
    """The number of the line at ``start``."""
    end: int | None = None
    """Decompressed bytes; ``None``: to the end of the file."""
    inherited: bool = False
    rewound: bool = False
    meta: Meta | None = None


def first_meta(path: str, end: int | None = None) -> tuple[Meta | None, Line | None]:
    """The meta that names a file's thread, and its line; of a segment without one, what its name and lines tell.

    Raises:
        OSError: the file cannot be read.
    """
    name, segment = read_name(path.rpartition("/")[2])
    after: Line | None = None
    records = (read_document(path),) if is_oldest(path) else read_records(path, end=end)
    for count, record in enumerate(records):
        for value in first_values(record):
            line = line_of(value)
            if line is not None and line.type == "session_meta":
                meta = read_meta(line)
                if names_thread(meta, name, first=count == 0):
                    return meta, line
            elif after is None and line is not None and line.ordinal:
                after = line
        if count >= HEAD_LINES:
            break
    return (None, None) if segment is None or after is None else (_segment_meta(name, after), None)


def _segment_meta(thread: SessionId, after: Line) -> Meta:
    """The meta of a reverted thread's segment whose first line is lost: the ordinals go on from the cut (section 4)."""
    base = {"thread_id": thread, "end_ordinal_exclusive": max(0, (after.ordinal or 0) - 1)}
    payload = {"id": thread, "history_mode": "paginated", "history_base": base}
    return read_meta(Line("session_meta", payload, after.stamp, None))


LogsOf = Callable[[SessionId], Sequence[LogFile]]
"""The files of a thread, oldest first."""


class ThreadFiles:
    """Works out the spans of threads from the files at hand; what is missing becomes a problem."""

    def __init__(self, logs_of: LogsOf, ends: Mapping[str, int] | None = None) -> None:
        self._logs_of = logs_of
        self._ends = ends or {}
        """Files that are read as if they ended after so many bytes."""
        self._metas: dict[str, Meta | None] = {}
        self.problems: list[Problem] = []

    def spans(self, thread_id: SessionId) -> tuple[Span, ...]:
        """The thread from its beginning, the turns a revert took away included, in the order of the store."""
        logs = list(self._logs_of(thread_id))
        if not logs:
            return ()
        head = max(logs, key=self._made)
        chain = self._chain(head.path, thread_id, frozenset())
        found = [self._marked(span, thread_id) for span in chain]
        found = self._with_removed(found, thread_id)
        told = {span.path for span in found}
        for log in logs:
            if log.path in told:
                continue
            if self._meta(log.path) is None:
                reason = "left out: it has no session metadata, so that nothing tells where it goes on"
                if all(problem.path != log.path for problem in self.problems):
                    self.problems.append(Problem(log.path, None, None, reason))
            else:
                found.insert(len(found) - 1, Span(log.path, thread_id, rewound=True, meta=self._meta(log.path)))
        return tuple(found)

    def live(self, thread_id: SessionId) -> tuple[Span, ...]:
        """What is still part of the thread: its spans without the turns a revert took away."""
        return tuple(span for span in self.spans(thread_id) if not span.rewound)

    def _made(self, log: LogFile) -> tuple[float, str]:
        meta = self._meta(log.path)
        return ((meta.at if meta is not None else None) or 0.0, log.path)

    def _meta(self, path: str) -> Meta | None:
        if path not in self._metas:
            try:
                self._metas[path] = first_meta(path, self._ends.get(path))[0]
            except OSError as error:
                self._metas[path] = None
                self.problems.append(Problem(path, None, None, f"cannot be read: {error.strerror or error}"))
        return self._metas[path]

    @staticmethod
    def _marked(span: Span, thread_id: SessionId) -> Span:
        return replace(span, inherited=span.thread_id != thread_id)

    @staticmethod
    def _with_removed(chain: Sequence[Span], thread_id: SessionId) -> list[Span]:
        """After each own stretch that a revert cut off, what it took away."""
        found: list[Span] = []
        for span in chain:
            found.append(span)
            if span.thread_id == thread_id and span.end is not None:
                line = _line_at(span.path, span.end)
                found.append(replace(span, start=span.end, line=line, end=None, rewound=True))
        return found

    def _chain(self, path: str, thread_id: SessionId, seen: frozenset[str]) -> list[Span]:
        """A file after the stretches it is based on."""
        meta = self._meta(path)
        own = Span(path, thread_id, meta=meta)
        if meta is None or meta.base is None:
            return [own]
        source = self._source(meta, meta.base, seen | {path})
        if source is None:
            reason = f"its history is missing: no rollout of {meta.base.thread_id} reaches the point it was cut from"
            self.problems.append(Problem(path, 1, 0, reason))
            return [own]
        source_path, end = source
        before = self._chain(source_path, meta.base.thread_id, seen | {path})
        before[-1] = replace(before[-1], end=end)
        return [*before, own]

    def _source(self, meta: Meta, base: HistoryBase, seen: frozenset[str]) -> tuple[str, int] | None:
        """The file a history base means, and where it was cut.

        A thread that was reverted has several files with the same ordinals: the byte offset tells them apart, then
        which of them was there when this file was made, then the newest.
        """
        made = meta.at or 0.0
        logs = [log for log in self._logs_of(base.thread_id) if log.path not in seen]
        if base.thread_id == meta.id:
            logs = [log for log in logs if self._made(log)[0] <= made]
        logs.sort(key=lambda log: (self._made(log)[0] <= made, self._made(log)), reverse=True)
        for cut_of in (_exact_cut, _ordinal_cut):
            for log in logs:
                end = cut_of(log.path, base)
                if end is not None:
                    return log.path, end
        return None


def _line_at(path: str, offset: int) -> int:
    return count_lines(path, offset) + 1


def _exact_cut(path: str, base: HistoryBase) -> int | None:
    """The byte offset of a history base, where a line of this file ends there and the ordinals agree (section 4)."""
    try:
        exact = base.end_offset is not None and _agrees(path, base.end_offset, base.end_ordinal)
    except OSError:
        # The caller says that no file fits.
        return None
    return base.end_offset if exact else None


def _ordinal_cut(path: str, base: HistoryBase) -> int | None:
    """The place of a history base's ordinal in this file; ``None`` when the file does not reach it."""
    try:
        return None if base.end_ordinal is None else _offset_of(path, base.end_ordinal)
    except OSError:
        # The caller says that no file fits.
        return None


def _agrees(path: str, offset: int, ordinal: int | None) -> bool:
    if offset == 0 or read_piece(path, offset - 1, 1) != b"\n":
        return False
    if ordinal is None:
        return True
    after = next(read_records(path, offset=offset), None)
    line = None if after is None else line_of(after.value)
    return line is None or line.ordinal is None or line.ordinal == ordinal


def _offset_of(path: str, ordinal: int) -> int | None:
    """Just behind the last line below an ordinal; ``None`` when none comes close."""
    end, last, first = None, None, None
    for record in read_records(path):
        line = line_of(record.value)
        if line is None or line.ordinal is None:
            continue
        first = line.ordinal if first is None else first
        if line.ordinal >= ordinal:
            break
        end, last = record.end, line.ordinal
    return end if last is not None and first is not None and first < ordinal and last == ordinal - 1 else None
