"""JSON Lines as they are found on disk: every line is given with its place, damaged ones with the reason.

A line ends at a newline byte and nowhere else (U+2028 inside a string is text). Offsets are bytes of the decompressed
log, lines count from 1. Blank lines hold nothing and are passed over, but they are counted. Logs that begin with the
zstd magic number are decompressed on the way, frame after frame (facts/dsh.md section 1, facts/codex.md section 1).
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, Final, NamedTuple

import orjson

from hermes_tui.storage.log_bytes import (
    BLOCK as BLOCK,
)
from hermes_tui.storage.log_bytes import (
    FIRST_BLOCK,
    Bounded,
    PlainSource,
    Seekable,
    Source,
    ZstdSource,
    exactly,
    is_zstd,
    newlines,
    open_log,
    source_of,
)

GIANT_LINE: Final = 4 << 20
"""Bytes; a longer line is named, not loaded (issue 5)."""
GIANT_HEAD: Final = 64 << 10
"""Bytes of a giant line that are kept."""
SPOOL: Final = 8 << 20
"""Bytes of decompressed log that are held in memory when it is read backwards; more goes to a private file."""
MOST_RESCUES: Final = 1000
"""Values cut out of one damaged line; no writer glues more."""
TORN_TAIL: Final = "torn tail"
_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"
_DECODER: Final = json.JSONDecoder()
_RECORD: Final = tuple.__new__
"""Makes a record without the detour of its own constructor."""

Wants = Callable[[bytes], bool]


class Record(NamedTuple):
    """One line of a log. A tuple, because a log has a million of them."""

    line: int
    """1-based; 0 where it was not counted (the tail of :func:`read_head_tail`)."""
    offset: int
    """Bytes from the start of the decompressed log to the first byte of the line."""
    length: int
    """Bytes of the line without its newline."""
    value: object
    """What the JSON says; ``None`` when it could not be read, and for the JSON ``null``."""
    raw: bytes
    """The bytes of the line without its newline; of a giant line only the head."""
    problem: str | None = None
    """Why it could not be read; with a value only where bad UTF-8 was replaced."""
    rescued: tuple[object, ...] = ()
    """Whole JSON values found in a line that is not one value: the store decides whether its agent would use them."""
    complete: bool = True
    """False: the last line, and its newline is not there (yet)."""

    @property
    def end(self) -> int:
        """Bytes from the start to where the next line begins."""
        return self.offset + self.length + (1 if self.complete else 0)


def read_records(
    path: str | os.PathLike[str],
    *,
    offset: int = 0,
    line: int = 1,
    wants: Wants | None = None,
    end: int | None = None,
) -> Iterator[Record]:
    """Read a log forward.

    Args:
        path: the log, plain or zstd.
        offset: decompressed bytes to pass over; must be where a line begins.
        line: the number of the line at ``offset``.
        wants: asked with the bytes of each line, with or without its newline (of a giant one the head); lines it says
            no to are not given, whatever state they are in.
        end: the log is read as if it ended after so many decompressed bytes.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        yield from _forward(source_of(file, offset), offset, line, wants, end)


def read_records_backward(
    path: str | os.PathLike[str], *, end: int | None = None, wants: Wants | None = None, numbered: bool = True
) -> Iterator[Record]:
    """Read a log from its end (or from ``end`` decompressed bytes) towards its beginning.

    Args:
        path: the log, plain or zstd.
        end: as in :func:`read_records`.
        wants: as in :func:`read_records`.
        numbered: count the lines before, which costs one pass at the speed of the disk; else ``line`` is 0.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        if not is_zstd(file):
            yield from _backward(file, end, wants, numbered)
            return
        source = ZstdSource(file, 0)
        # Imported late: 5 ms that only a compressed log needs.
        import tempfile

        with tempfile.SpooledTemporaryFile(max_size=SPOOL) as unpacked:
            lines, last = 0, b"\n"
            while block := source.read():
                unpacked.write(block)
                lines, last = lines + block.count(b"\n"), block[-1:]
            size = unpacked.tell()
            if source.problem is not None and (end is None or end > size):
                line = lines + (1 if last == b"\n" else 2)
                yield Record(line if numbered else 0, size, 0, None, b"", source.problem, (), False)
            yield from _backward(unpacked, end, wants, numbered)


def read_line_at(path: str | os.PathLike[str], offset: int, length: int, line: int = 0) -> Record:
    """Read one line whose place is known, of up to :data:`GIANT_LINE` bytes.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        raw = exactly(source_of(file, offset), line_bytes(length))
    return line_in(raw, offset, length, line)


def line_bytes(length: int) -> int:
    """How many bytes :func:`line_in` needs of a line."""
    return (length if length <= GIANT_LINE else GIANT_HEAD) + 1


def line_in(raw: bytes, offset: int, length: int, line: int) -> Record:
    """The record of a line whose place is known, from the bytes there: the line, of a giant one its head, and one more.

    The byte behind the line tells a complete line from the last one.
    """
    if length > GIANT_LINE:
        return _giant(line, offset, length, raw[:GIANT_HEAD], complete=True)
    text, newline = raw[:length], raw[length : length + 1]
    if len(text) < length or newline not in (b"", b"\n") or b"\n" in text:
        return Record(line, offset, length, None, text, "the log changed: no line is at this place any more")
    record = _record(line, offset, text, complete=newline == b"\n")
    return record or Record(line, offset, length, None, text, "the line is blank")


def read_piece(path: str | os.PathLike[str], offset: int, length: int) -> bytes:
    """Read bytes of the decompressed log; fewer at its end.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        return exactly(source_of(file, offset), length)


def read_head_tail(path: str | os.PathLike[str], size: int = 65_536) -> tuple[list[Record], list[Record]]:
    """The lines within the first and the last ``size`` bytes, without what lies between; no line is given twice.

    A line that only begins within the head is read to its end. Of the tail, the first line that begins within it is the
    first given; its lines have no number (0) unless the two meet. A zstd log is read whole for it.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        if is_zstd(file):
            records = list(_forward(ZstdSource(file, 0), 0, 1, None))
            # What tells of damage comes last, wherever that lies.
            told = records.pop() if records and records[-1].problem and not records[-1].length else None
            after = records[-1].end if records else 0
            head = [record for record in records if record.offset < size]
            tail = [record for record in records[len(head) :] if record.offset >= after - size]
            return head, tail if told is None else [*tail, told]
        total = os.fstat(file.fileno()).st_size
        head, next_offset, next_line = _head(file, size)
        start = max(total - size, next_offset)
        if start == next_offset:
            return head, list(_forward(PlainSource(file, start), start, next_line, None))
        file.seek(start - 1)
        first = file.read(size + 1)
        newline = first.find(b"\n")
        if newline < 0:
            return head, []
        begin = start + newline
        return head, [r._replace(line=0) for r in _forward(PlainSource(file, begin), begin, 0, None)]


def count_lines(path: str | os.PathLike[str], end: int | None = None) -> int:
    """Newlines within the first ``end`` bytes of a log.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        source = source_of(file, 0)
        return newlines(source if end is None else Bounded(source, end))


def _forward(source: Source, offset: int, line: int, wants: Wants | None, end: int | None = None) -> Iterator[Record]:
    """Read line after line. What this loop does with a line nobody wants is what the speed of a scan is made of."""
    limit = sys.maxsize if end is None else end
    if offset >= limit:
        return
    reader = source.reader()
    try:
        # A giant line comes in pieces, so that it is never held.
        for raw in iter(partial(reader.readline, GIANT_LINE + 1), b""):
            length = len(raw)
            # The newline is not of the line.
            if length > GIANT_LINE and raw[GIANT_LINE:] != b"\n":
                head = raw[:GIANT_HEAD]
                length, complete = _measure(reader, raw)
                if offset + length > limit:
                    length, complete = limit - offset, False
                if wants is None or wants(head):
                    yield _giant(line, offset, length - complete, head, complete=complete)
            else:
                if offset + length > limit:
                    raw = raw[: limit - offset]
                    length = len(raw)
                if wants is None or wants(raw):
                    record = _record_of_line(line, offset, raw)
                    if record is not None:
                        yield record
            offset += length
            line += 1
            if offset >= limit:
                return
    except OSError as error:
        source.problem = f"reading stopped: {error.strerror or error}"
    finally:
        reader.detach()
    if source.problem is not None:
        line, offset = source.damaged() or (line, offset)
        yield Record(line, offset, 0, None, b"", source.problem, (), False)


def _measure(reader: io.BufferedReader, piece: bytes) -> tuple[int, bool]:
    """Read on to the end of a giant line: its bytes with the newline, and whether that is there."""
    length = len(piece)
    while piece and not piece.endswith(b"\n"):
        piece = reader.readline(GIANT_LINE)
        length += len(piece)
    return length, piece.endswith(b"\n")


def _record_of_line(line: int, offset: int, raw: bytes) -> Record | None:
    if raw[-1:] == b"\n":
        try:
            # As _record does it, without the calls: a million lines come this way.
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return _record(line, offset, raw[:-1], complete=True)
        return _RECORD(Record, (line, offset, len(raw) - 1, value, raw[:-1], None, (), True))
    return _record(line, offset, raw, complete=False) if raw else None


def complete_record(line: int, offset: int, raw: bytes) -> Record | None:
    """The record of a line with a newline behind it, which ``raw`` leaves out; ``None`` for a blank one."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _record(line, offset, raw, complete=True)
    return _RECORD(Record, (line, offset, len(raw), value, raw, None, (), True))


def _giant(line: int, offset: int, length: int, head: bytes, *, complete: bool) -> Record:
    return Record(line, offset, length, None, head, f"giant line of {length:,} bytes, not loaded", (), complete)


def _record(line: int, offset: int, raw: bytes, *, complete: bool) -> Record | None:
    """Parse one line; ``None`` for a blank one."""
    if len(raw) > GIANT_LINE:
        return _giant(line, offset, len(raw), raw[:GIANT_HEAD], complete=complete)
    try:
        return Record(line, offset, len(raw), orjson.loads(raw), raw, None, (), complete)
    except orjson.JSONDecodeError:
        pass
    if not raw.strip(_BLANK):
        return None
    value, problem, rescued = _second_try(raw)
    if problem is not None and value is None and not complete:
        problem = TORN_TAIL
    return Record(line, offset, len(raw), value, raw, problem, rescued, complete)


def _second_try(raw: bytes) -> tuple[object, str | None, tuple[object, ...]]:
    """What orjson refused: (value, problem, rescued values)."""
    body = raw.removeprefix(_BOM).strip(_BLANK)
    bare = body.strip(b"\0" + _BLANK)
    if not bare:
        return None, f"{len(body):,} NUL bytes" if body else "a byte-order mark and nothing else", ()
    try:
        text, problem = bare.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text, problem = bare.decode("utf-8", "replace"), f"bad UTF-8 at byte {error.start} of the line"
    # json takes what orjson refuses: lone surrogates, NaN, integers over 64 bits.
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, problem or _reason(error), _rescue(text)
    if bare != body:
        return None, f"{len(body) - len(bare):,} NUL bytes beside the record", (value,)
    return value, problem, ()


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.pos}"
    if isinstance(error, RecursionError):
        return "not JSON: nested too deeply"
    return f"not JSON: {error}"


def _rescue(text: str) -> tuple[object, ...]:
    """Cut whole JSON objects out of a line of glued records and halves of records.

    Where parsing fails tells where the next record can begin: at the failure, or up to three characters before it when
    the half record broke off inside a string (its opening ``{"`` then closed that string). So objects nested in a half
    record are not taken for records, and the whole costs one pass.
    """
    found: list[object] = []
    start = text.find("{")
    for _ in range(MOST_RESCUES):
        if start < 0:
            break
        try:
            value, after = _DECODER.raw_decode(text, start)
            found.append(value)
            start = text.find("{", after)
        except json.JSONDecodeError as error:
            start = text.find('{"', max(start + 1, error.pos - 3))
        except (ValueError, RecursionError):
            break
    return tuple(found)


def _head(file: BinaryIO, size: int) -> tuple[list[Record], int, int]:
    """Records that begin within ``size`` bytes, with the offset and number of the line after them."""
    records: list[Record] = []
    next_offset, next_line = 0, 1
    for record in _forward(PlainSource(file, 0), 0, 1, None):
        if record.offset >= size:
            break
        records.append(record)
        next_offset, next_line = record.end, record.line + 1
        if next_offset >= size:
            break
    return records, next_offset, next_line


def _backward(file: Seekable, end: int | None, wants: Wants | None, numbered: bool) -> Iterator[Record]:
    """Cut blocks at newlines from the end; a line is known when the newline before it is found."""
    file.seek(0, os.SEEK_END)
    position = file.tell() if end is None else min(end, file.tell())
    line = 0
    if numbered:
        line = newlines(Bounded(PlainSource(file, 0), position)) + 1
    begun = _BegunBackward(complete=False)
    size = FIRST_BLOCK
    while position:
        start = max(0, position - size)
        file.seek(start)
        block = _fill(file, position - start)
        if block is None:
            yield Record(line, position, 0, None, b"", "the log changed while it was read")
            return
        size = BLOCK
        lines = block.split(b"\n")
        after = position
        for raw in reversed(lines[1:]):
            begun.add(raw)
            after -= len(raw)
            record = begun.record(line, after, wants)
            if record is not None:
                yield record
            begun = _BegunBackward(complete=True)
            after -= 1
            line -= 1 if numbered else 0
        begun.add(lines[0])
        position = start
    record = begun.record(line, 0, wants)
    if record is not None:
        yield record


class _BegunBackward:
    """A line whose beginning is not read yet; the pieces come last first."""

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        self._length = 0
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self._length += len(piece)
        self._pieces.append(piece)
        if self._length > GIANT_LINE:
            # Only the head will be shown, and the head is what came last.
            kept = b"".join(reversed(self._pieces))[:GIANT_HEAD]
            self._pieces = [kept]

    def record(self, line: int, offset: int, wants: Wants | None) -> Record | None:
        if not self._length:
            return None
        raw = b"".join(reversed(self._pieces))
        if self._length > GIANT_LINE:
            raw = raw[:GIANT_HEAD]
        if wants is not None and not wants(raw):
            return None
        if self._length > GIANT_LINE:
            return _giant(line, offset, self._length, raw, complete=self._complete)
        return _record(line, offset, raw, complete=self._complete)


def _fill(file: Seekable, length: int) -> bytes | None:
    """Exactly so many bytes; ``None`` when the file became shorter."""
    pieces: list[bytes] = []
    while length:
        piece = file.read(length)
        if not piece:
            return None
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
