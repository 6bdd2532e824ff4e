"""One event of a DSH session, from a line of a log or a row of a database (facts/dsh.md sections 2 and 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import GIANT_LINE, Record, read_piece
from hermes_tui.stores.dsh.format import MESSAGE_TYPES, PACKED_TYPES, moment, whole

_GIANT_HEAD: Final = re.compile(
    rb'^\{\s*"type"\s*:\s*"([a-z/-]{1,80})"\s*,\s*"seq"\s*:\s*(\d{1,15})\s*,\s*"time"\s*:\s*(\d{1,16})\s*,'
)
MOST_WHOLE: Final = 64 << 20
"""Bytes of a line that is loaded although it is giant: it may hold a call's usage, or what was said."""
APPEND: Final = "append"
_NO_DATA: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True)
class Replace:
    """Takes out what stands on the surface from one event's place to another's, and stands there itself."""

    start: int
    end: int


@dataclass(slots=True)
class Event:
    """One event with its place. Not frozen, for a large store has millions of them and freezing costs most of it."""

    type: str
    seq: int
    span: int
    """How many events the row stands for; 1 but for packed chunks."""
    at: float | None
    """Unix seconds."""
    data: Mapping[str, object]
    surface: str | Replace | None
    """``append``, a replacement, or nothing: the event is not part of what the model sees."""
    ignorable: bool
    line: int | None
    offset: int | None
    """Decompressed bytes."""
    length: int
    giant: bool = False
    """Too big to be loaded: ``data`` is empty."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no event of this format."""

    reason: str
    line: int | None
    offset: int | None


def event_of_record(record: Record, path: str | None = None) -> Event | BadRow:
    """The event of one line; giant ones are loaded where the log's ``path`` is given."""
    if record.length > GIANT_LINE:
        value = None if path is None else _loaded(path, record)
        if value is None:
            return _giant(record)
        return event_of(value, record.line, record.offset, record.length)
    if record.problem is not None and not isinstance(record.value, dict):
        return BadRow(record.problem, record.line, record.offset)
    return event_of(record.value, record.line, record.offset, record.length)


def _loaded(path: str, record: Record) -> dict[str, object] | None:
    """A giant line that can be held at once; ``None`` for a larger one, and for what is no object."""
    if record.length > MOST_WHOLE:
        return None
    try:
        value = orjson.loads(read_piece(path, record.offset, record.length))
    except (OSError, orjson.JSONDecodeError):
        # It was cut off or replaced since: its head tells what it was.
        return None
    return value if isinstance(value, dict) else None


def _giant(record: Record) -> Event | BadRow:
    """Place and type of a line too long to be loaded, from its head; message types are taken to be appended."""
    head = _GIANT_HEAD.match(record.raw)
    if head is None:
        return BadRow(record.problem or "a giant line that does not begin like an event", record.line, record.offset)
    event_type = head[1].decode()
    surface = APPEND if event_type in MESSAGE_TYPES else None
    at = moment(int(head[3]))
    return Event(
        event_type, int(head[2]), 1, at, _NO_DATA, surface, False, record.line, record.offset, record.length, giant=True
    )


def event_of(value: object, line: int | None, offset: int | None, length: int) -> Event | BadRow:
    """The event an object of the log stands for."""
    if not isinstance(value, dict):
        return BadRow("not an object", line, offset)
    event_type, data = value.get("type"), value.get("data")
    if not isinstance(event_type, str) or not isinstance(data, dict):
        return BadRow("an event without type or data", line, offset)
    ignorable = value.get("ignorable")
    if event_type in PACKED_TYPES and "seq0" in value:
        return _packed(event_type, value, data, line, offset, length)
    seq = whole(value.get("seq"))
    if seq is None or seq < 0:
        return BadRow(f"{event_type} without a sequence number", line, offset)
    if ignorable not in (None, True):
        return BadRow(f"{event_type} (seq {seq}) says ignorable: {ignorable!r}, which no writer does", line, offset)
    surface = surface_of(event_type, value.get("surfaceOp"))
    if isinstance(surface, BadRow):
        return BadRow(f"{surface.reason} (seq {seq})", line, offset)
    return Event(event_type, seq, 1, moment(value.get("time")), data, surface, ignorable is True, line, offset, length)


def _packed(
    event_type: str,
    value: Mapping[str, object],
    data: Mapping[str, object],
    line: int | None,
    offset: int | None,
    length: int,
) -> Event | BadRow:
    seq, steps = whole(value.get("seq0")), data.get("dt")
    if seq is None or seq < 0 or not isinstance(steps, Sequence) or isinstance(steps, str):
        return BadRow(f"{event_type} without its first sequence number or its steps", line, offset)
    return Event(event_type, seq, len(steps) + 1, moment(value.get("time0")), data, None, False, line, offset, length)


def surface_of(event_type: str, operation: object) -> str | Replace | BadRow | None:
    """What an event does to the surface."""
    if operation is None:
        return BadRow(f"{event_type} without surfaceOp", None, None) if event_type in MESSAGE_TYPES else None
    if operation == APPEND:
        return APPEND
    if isinstance(operation, dict) and operation.get("op") == "replace":
        start, end = whole(operation.get("startSeq")), whole(operation.get("endSeq"))
        if start is not None and end is not None:
            return Replace(start, end)
    return BadRow(f"{event_type} with an unknown surfaceOp", None, None)
