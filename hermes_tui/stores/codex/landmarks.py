"""What the whole of a thread decides about each of its entries: the newest compaction and what was rolled back.

A transcript is read from its beginning, but what a later compaction cut is known only from the end. Looking for the few
lines that matter as bytes costs a tenth of reading them (210 MB: 0.1 s).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import GIANT_LINE, Record, read_piece, read_records
from hermes_tui.stores.codex.entries import PROMPTS_KEY, TURN_ENDS, TURN_STARTS, Entry, is_lost, kept_by
from hermes_tui.stores.codex.live import turn_count
from hermes_tui.stores.codex.oldest import is_oldest
from hermes_tui.stores.codex.reader import COMPACTED, LineReader, whole_value
from hermes_tui.stores.codex.rollout import Line, line_of
from hermes_tui.stores.codex.spans import Span

ROLLED_BACK: Final = b'"thread_rolled_back"'
BLOCK: Final = 1 << 20

Place = tuple[str, int, int]
"""Path, offset, part of an entry."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """What decides the state of own entries."""

    order: dict[str, int]
    """The number of each file in the thread."""
    compaction: tuple[int, int] | None = None
    """File number and offset of the newest compaction that still holds."""
    kept: frozenset[str] = frozenset()
    rewound: frozenset[Place] = frozenset()

    def before_compaction(self, path: str, offset: int) -> bool:
        """Whether an own entry at this place lies before the newest compaction."""
        return self.compaction is not None and (self.order.get(path, 0), offset) < self.compaction

    def keeps(self, entry: Entry, key: str) -> bool:
        """Whether that compaction left this entry in the model's view."""
        if entry.kind == "prompt" and PROMPTS_KEY in self.kept:
            return True
        return key in self.kept or entry.text_key in self.kept


def find_landmarks(spans: Sequence[Span]) -> Landmarks:
    """Look through the own, living spans of a thread.

    Raises:
        OSError: a file cannot be read.
    """
    order = {path: number for number, path in enumerate(dict.fromkeys(span.path for span in spans))}
    own = [span for span in spans if not span.inherited and not span.rewound and not is_oldest(span.path)]
    if any(_holds(span, ROLLED_BACK) for span in own):
        return _replayed(own, order)
    for span in reversed(own):
        record = newest_line(span, COMPACTED, "compacted")
        if record is not None:
            return Landmarks(order, (order[span.path], record.offset), _kept(span.path, record))
    return Landmarks(order)


def _kept(path: str, record: Record) -> frozenset[str]:
    line = line_of(whole_value(path, record))
    return frozenset() if line is None else kept_by(line.payload)


def _replayed(own: Sequence[Span], order: dict[str, int]) -> Landmarks:
    """Follow turns and rollbacks through the whole of a thread; both dialects keep them (facts/codex.md section 3)."""
    replay = _Replay()
    for span in own:
        reader = LineReader(span.path, partial(replay.take, span.path), replay.look)
        for record in read_records(span.path, offset=span.start, line=span.line, end=span.end):
            reader.feed(record)
        reader.assembler.finish()
    newest = next((place for place in reversed(replay.places) if place[1].kept is not None), None)
    compaction = None if newest is None else (order[newest[0]], newest[1].offset)
    kept = frozenset() if newest is None else newest[1].kept or frozenset()
    return Landmarks(order, compaction, kept, frozenset(replay.rewound))


class _Replay:
    def __init__(self) -> None:
        self.places: list[tuple[str, Entry]] = []
        self.rewound: set[Place] = set()
        self._turns: list[int] = []
        self._turn_start: int | None = None

    def take(self, path: str, entry: Entry) -> None:
        if entry.kind == "prompt" and not entry.copied:
            if self._turn_start is None:
                self._turns.append(len(self.places))
            elif not self._turns or self._turns[-1] != self._turn_start:
                self._turns.append(self._turn_start)
        self.places.append((path, entry))

    def look(self, line: Line) -> None:
        if line.type != "event_msg":
            return
        if line.kind in TURN_STARTS:
            self._turn_start = len(self.places)
        elif line.kind in TURN_ENDS:
            self._turn_start = None
        elif line.kind == "thread_rolled_back":
            self._roll_back(turn_count(line.payload.get("num_turns")))

    def _roll_back(self, count: int) -> None:
        """The notice of the rollback itself, just taken, stays."""
        if not count or not self._turns:
            return
        notice = self.places.pop()
        first = self._turns[-min(count, len(self._turns))]
        del self._turns[-min(count, len(self._turns)) :]
        self.rewound.update((path, entry.offset, entry.part) for path, entry in self.places[first:])
        del self.places[first:]
        self.places.append(notice)


# ------------------------------------------------------------------------------------------------ byte searches


def _is_packed(path: str) -> bool:
    return path.endswith(".zst")


def _holds(span: Span, mark: bytes) -> bool:
    if _is_packed(span.path):
        return next(read_records(span.path, end=span.end, wants=lambda raw: mark in raw), None) is not None
    return next(_marks_forward(span, mark), None) is not None


def _marks_forward(span: Span, mark: bytes) -> Iterator[int]:
    with Path(span.path).open("rb", buffering=0) as file:
        file.seek(span.start)
        at, carried = span.start, b""
        while block := file.read(BLOCK):
            text = carried + block
            place = text.find(mark)
            while place >= 0:
                yield at - len(carried) + place
                place = text.find(mark, place + 1)
            at += len(block)
            carried = text[-(len(mark) - 1) :]
            if span.end is not None and at >= span.end:
                return


def newest_line(span: Span, mark: bytes, kind: str) -> Record | None:
    """The last line of a type in a span, found by its mark.

    Raises:
        OSError: the file cannot be read.
    """
    if _is_packed(span.path):
        newest = None
        for packed in read_records(span.path, end=span.end, wants=lambda raw: mark in raw):
            if type_of(packed) == kind:
                newest = packed
        return newest
    for place in _marks_backward(span, mark):
        record = _line_around(span.path, place, span.end)
        if record is not None and type_of(record) == kind:
            return record
    return None


def type_of(record: Record) -> str | None:
    """The type of a line, told by its head where it is giant; ``None`` for one the program loses."""
    line = line_of(record.value)
    if line is not None:
        return None if is_lost(record) else line.type
    if record.length > len(record.raw) and COMPACTED in record.raw[:400]:
        return "compacted"
    return None


def _marks_backward(span: Span, mark: bytes) -> Iterator[int]:
    with Path(span.path).open("rb", buffering=0) as file:
        size = file.seek(0, 2)
        high = size if span.end is None else min(span.end, size)
        carried = b""
        while high > span.start:
            low = max(span.start, high - BLOCK)
            file.seek(low)
            text = file.read(high - low) + carried
            place = text.rfind(mark)
            while place >= 0:
                yield low + place
                place = text.rfind(mark, 0, place + len(mark) - 1)
            carried = text[: len(mark) - 1]
            high = low


def _line_around(path: str, place: int, end: int | None) -> Record | None:
    """The line a byte lies in; types stand near its beginning, unless somebody sorted the keys."""
    reach, low, newline = 400, place, -1
    while newline < 0 and low > 0 and reach <= 8 * GIANT_LINE:
        low = max(0, place - reach)
        newline = read_piece(path, low, place - low).rfind(b"\n")
        reach *= 8
    if newline < 0 and low > 0:
        return None
    return next(read_records(path, offset=low + newline + 1, end=end), None)
