"""What the head and the tail of a DSH log tell of its session: all a list needs before a row is on screen."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hermes_tui.model import SessionRow
from hermes_tui.storage.jsonl import Record, read_head_tail, read_piece, read_records
from hermes_tui.stores.conversation import latest
from hermes_tui.stores.dsh.backend import JsonlBackend
from hermes_tui.stores.dsh.content import USER, json_value, plain_text, raw_text, source_kind
from hermes_tui.stores.dsh.events import BadRow, Event, event_of_record
from hermes_tui.stores.dsh.fold import PREVIEW_CHARACTERS
from hermes_tui.stores.dsh.format import text_or_none
from hermes_tui.stores.logs import LogFile

_TELLING: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"(session/title|user/message|session/end-seed|request/context)"')
"""Beginnings of the lines a peek parses."""
_HEADER: Final = b'{"type":"session",'
_TITLE: Final = b'\n{"type":"session/title",'
_CONTEXT: Final = b'\n{"type":"request/context",'
_PROMPT: Final = b'\n{"type":"user/message",'
_SEED: Final = b'\n{"type":"session/end-seed",'
LARGEST_AT_ONCE: Final = 16 << 20
"""Decompressed bytes up to which a log is held whole for a peek."""
_TYPED: Final = re.compile(rb'"kind"\s*:\s*"user"')


def peek(backend: JsonlBackend, log: LogFile) -> SessionRow:
    """Header, title, first prompt, model and last activity.

    Raises:
        OSError: the log cannot be read.
    """
    records = _compressed(log.path) if log.path.endswith(".zstd") else _plain(log.path)
    fold = backend.fold(log)
    for record in records[:1]:
        fold.feed(record)
    row = fold.summary().row
    if fold.events.state.refusal is not None:
        return row
    rows = (event_of_record(record) for record in records[1:])
    return _filled(row, [event for event in rows if not isinstance(event, BadRow)])


def _plain(path: str) -> list[Record]:
    head, tail = read_head_tail(path)
    return head + tail


def _compressed(path: str) -> list[Record]:
    """The telling lines and the last one: there is no way to the end of a compressed log but through it."""
    data = read_piece(path, 0, LARGEST_AT_ONCE)
    if len(data) < LARGEST_AT_ONCE and data.startswith(_HEADER):
        return _found(data)
    choice = _Choice()
    records = [record for record in read_records(path, wants=choice) if record.problem is None]
    if choice.last and (not records or records[-1].raw != choice.last):
        records += _parsed(choice.last)
    return records


def _found(data: bytes) -> list[Record]:
    """The same in a log that is held whole, by the beginnings of lines as the real program writes them."""
    seeded = data.rfind(_SEED)
    while seeded >= 0 and b'"inherited":true' not in _line_at(data, seeded + 1):
        seeded = data.rfind(_SEED, 0, seeded)
    prompt = data.find(_PROMPT, max(seeded, 0))
    while prompt >= 0 and _TYPED.search(_line_at(data, prompt + 1)) is None:
        prompt = data.find(_PROMPT, prompt + 1)
    places = {place + 1 for place in (data.rfind(_TITLE), data.rfind(_CONTEXT), prompt) if place >= 0}
    end = len(data.rstrip(b"\n"))
    last = data.rfind(b"\n", 0, end) + 1
    before = data.rfind(b"\n", 0, max(last - 1, 0)) + 1
    records = [record for place in sorted({0, before, last} | places) for record in _parsed(_line_at(data, place))]
    return records if data.find(b"\n") >= 0 else []


def _line_at(data: bytes, place: int) -> bytes:
    end = data.find(b"\n", place)
    return data[place:] if end < 0 else data[place:end]


class _Choice:
    """Which lines are parsed: the first, those that tell something, and of the prompts the first one."""

    def __init__(self) -> None:
        self.last = b""
        self._prompted = False

    def __call__(self, line: bytes) -> bool:
        first = not self.last
        self.last = line
        told = _TELLING.match(line)
        if told is None:
            return first
        if told[1] == b"user/message":
            if self._prompted or _TYPED.search(line) is None:
                return False
            self._prompted = True
        elif told[1] == b"session/end-seed":
            # What came before may have been copied: then the first prompt is yet to come.
            self._prompted = False
        return True


def _parsed(line: bytes) -> list[Record]:
    try:
        return [Record(0, 0, len(line), json_value(line), line)]
    except ValueError:
        # Half a line: the log is being written or was cut off, and the rows before it stand.
        return []


def _filled(row: SessionRow, events: Iterable[Event]) -> SessionRow:
    title, preview, model, last = None, None, None, row.started_at
    for event in events:
        if event.at is not None:
            last = event.at
        if event.type == "session/title":
            title = text_or_none(event.data.get("title")) or title
        elif event.type == "request/context":
            model = text_or_none(event.data.get("model")) or model
        elif event.type == "session/end-seed" and event.data.get("inherited") is True:
            preview = None
        elif event.type == "user/message" and source_kind(event.data) == USER and preview is None:
            preview = plain_text(event.data.get("content"))[:PREVIEW_CHARACTERS] or None
    return replace(
        row,
        title=raw_text(title),
        preview=raw_text(preview),
        model=raw_text(model),
        last_active_at=latest(row.started_at, last),
    )
