"""What head and tail of a rollout tell, for two reads (facts/codex.md section 8, How a list is answered)."""

from __future__ import annotations

import os
import re
from typing import Final

import orjson

from hermes_tui.model import SessionRow, StoreRef
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import Record, read_piece, read_records, read_records_backward
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import TITLE_LENGTH, TURN_ENDS, TURN_STARTS
from hermes_tui.stores.codex.fold import CodexFold, row_of
from hermes_tui.stores.codex.oldest import is_oldest
from hermes_tui.stores.codex.reader import names_thread
from hermes_tui.stores.codex.rollout import Line, Meta, line_of, mapping, raw, read_meta, read_name, seconds
from hermes_tui.stores.conversation import RUNNING_SECONDS
from hermes_tui.stores.log_source import LogFile

HEAD_REACH: Final = 8 << 20
"""Bytes within which the first prompt is looked for: long instructions and copied context stand before it."""
TAIL_REACH: Final = 64 << 10
"""Bytes from the end within which the last whole line and the end of the last turn are looked for."""
QUICK_HEAD: Final = 64 << 10
QUICK_TAIL: Final = 8 << 10
"""Bytes of a quick look: enough where nothing is odd."""
QUICK_FIRST: Final = 16 << 10
"""Bytes of the head that are read first: they hold the first prompt of most threads."""
_WORD_REACH: Final = 600
"""Bytes of a line within which those words stand when they say what the line is."""
_TYPE_REACH: Final = 120
"""Bytes of a line as the program writes it within which its type stands: behind the time and the ordinal."""


@dataclass(slots=True)
class _Head:
    meta: Meta | None = None
    cwd: str | None = None
    model: str | None = None
    told: str | None = None
    """The first prompt an event tells."""
    raw_prompt: str | None = None
    """The first raw user message that may be a prompt: for files without events."""
    first_at: float | None = None
    problems: int = 0
    lines: int = 0

    @property
    def prompt(self) -> str | None:
        """The thread's first prompt."""
        return self.told or self.raw_prompt

    def take(self, record: Record, name: str) -> bool:
        """Take in a record; true when nothing is missing any more."""
        self.lines += 1
        if record.problem is not None and not record.problem.startswith("giant"):
            self.problems += 1
        for value in (record.value,) if record.value is not None else record.rescued:
            line = line_of(value)
            if line is not None:
                self._line(line, name)
        return self.meta is not None and self.told is not None

    def _line(self, line: Line, name: str) -> None:
        if self.first_at is None:
            self.first_at = seconds(line.stamp)
        if line.type == "session_meta":
            meta = read_meta(line)
            if self.meta is None and names_thread(meta, name, first=self.lines == 1):
                self.meta = meta
        elif line.type == "turn_context":
            self.cwd = self.cwd or raw(line.payload.get("cwd"))
            self.model = self.model or raw(line.payload.get("model"))
        elif line.type == "event_msg":
            self._event(line)
        elif line.type == "response_item":
            self._item(line)

    def _event(self, line: Line) -> None:
        if self.told is not None:
            return
        if line.kind == "user_message":
            self.told = _begun(items.event_prompt(line.payload))
        elif line.kind == "item_completed":
            item = mapping(line.payload.get("item"))
            if item.get("type") == "UserMessage":
                self.told = _begun(items.item_prompt(item))

    def _item(self, line: Line) -> None:
        payload = line.payload
        if payload.get("type") == "message" and payload.get("role") == "user" and self.told is None:
            sure = items.is_prompt(payload)
            text = None if sure is False else _begun(items.prompt_text(payload))
            if sure:
                self.told = text
            elif self.raw_prompt is None:
                self.raw_prompt = text


def _begun(text: str) -> str | None:
    return text[:TITLE_LENGTH] if text.strip() else None


def _worth_parsing(line: bytes) -> bool:
    """Whether a line may say something of the head; one test after another, for that is fastest."""
    head = line[:_WORD_REACH]
    return (
        b'"UserMessage"' in head
        or b'"user_message"' in head
        or b'"role":"user"' in head
        or b'"turn_context"' in head
        or b'"session_meta"' in head
        or b'"payload"' not in head
        or b'"role": "user"' in head
    )


def _read_head(log: LogFile) -> _Head:
    head = _Head()
    name = read_name(log.path.rpartition("/")[2]).thread_id
    for record in read_records(log.path, wants=_worth_parsing):
        if head.take(record, name) or record.offset > HEAD_REACH:
            break
        if head.raw_prompt is not None and head.meta is not None and not _has_events(head.meta):
            break
    return head


def _has_events(meta: Meta) -> bool:
    """Files of clients that name a source or a provider tell prompts by events."""
    return meta.paginated or meta.source is not None


@dataclass(frozen=True, slots=True)
class _Tail:
    at: float | None
    turn_open: bool
    problems: int


def _read_tail(log: LogFile) -> _Tail:
    """The newest time, and whether the last turn has no end."""
    at: float | None = None
    problems = 0
    for record in read_records_backward(log.path, numbered=False):
        if record.offset < log.size - TAIL_REACH and at is not None:
            break
        if record.problem is not None:
            problems += 1
        line = line_of(record.value)
        if line is None:
            continue
        moment = seconds(line.stamp)
        at = moment if at is None else at
        if line.type == "event_msg" and (line.kind in TURN_ENDS or line.kind in TURN_STARTS):
            return _Tail(at, line.kind in TURN_STARTS, problems)
        if record.offset < log.size - TAIL_REACH:
            break
    return _Tail(at, False, problems)


def peek(ref: StoreRef, log: LogFile, now: float) -> SessionRow:
    """A row from head and tail; documents of the oldest client are read whole.

    Args:
        ref: the store.
        log: the file.
        now: Unix seconds; whether a turn is open is asked only of a file that was active lately.

    Raises:
        OSError: the file cannot be read.
    """
    if is_oldest(log.path):
        return CodexFold(ref, log).summary().row
    head, ended = _quick_look(log)
    if head is None:
        head = _read_head(log)
    at = _quick_tail(ended)
    tail = _Tail(at, False, 0) if at is not None and at < now - RUNNING_SECONDS else _read_tail(log)
    return row_of(
        ref,
        log,
        head.meta,
        first_at=head.first_at,
        folder=raw(head.cwd),
        title=raw(head.prompt),
        preview=raw(head.prompt),
        model=raw(head.model),
        last_active_at=tail.at,
        running=tail.turn_open,
        problems=head.problems + tail.problems + (head.meta is None),
    )


def _quick_look(log: LogFile) -> tuple[_Head | None, bytes]:
    """What the beginning tells, if that is enough, and the last bytes, for one opening."""
    handle = os.open(log.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        begun = os.read(handle, QUICK_FIRST)
        head = _quick_head(log, begun)
        if head is None and len(begun) == QUICK_FIRST:
            head = _quick_head(log, begun + os.read(handle, QUICK_HEAD - QUICK_FIRST))
        size = os.fstat(handle).st_size
        if size <= len(begun):
            return head, begun[-QUICK_TAIL:]
        os.lseek(handle, max(0, size - QUICK_TAIL), os.SEEK_SET)
        return head, os.read(handle, QUICK_TAIL)
    finally:
        os.close(handle)


def _quick_head(log: LogFile, begun: bytes) -> _Head | None:
    """The head of a file as the program writes it; ``None`` when anything is odd or missing.

    The prompt is taken from its event; raw messages before it are not parsed, and of the settings only the model is
    looked for: with four lines parsed a list of 3,000 threads costs half of what it costs with eight.
    """
    if not begun.startswith(b'{"timestamp"'):
        return None
    head, name = _Head(), read_name(log.path.rpartition("/")[2]).thread_id
    start = 0
    while (end := begun.find(b"\n", start)) >= 0:
        reach = min(end, start + _WORD_REACH)
        event = begun.find(b'"event_msg"', start, min(end, start + _TYPE_REACH)) >= 0
        if start == 0 or (event and _PROMPT_EVENT.search(begun, start, reach) is not None):
            line = begun[start:end]
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                return None
            if head.take(Record(0, start, len(line), value, line), name):
                return head
            if head.meta is None or head.meta.cwd is None:
                return None
        elif head.model is None and begun.find(b'"turn_context"', start, reach) >= 0:
            found = _MODEL.search(begun, start, end)
            head.model = None if found is None else found[1].decode("utf-8", "replace")
        elif begun.find(b'"payload"', start, reach) < 0:
            return None
        start = end + 1
    return None


_PROMPT_EVENT: Final = re.compile(rb'"(?:UserMessage|user_message)"')
_MODEL: Final = re.compile(rb'"model":"([^"\\]{1,100})"')


def _quick_tail(ended: bytes) -> float | None:
    """The time of the last line when it is whole and begins as the program writes it."""
    if not ended.endswith(b"}\n"):
        return None
    begin = ended.rfind(b"\n", 0, -1) + 1
    found = _STAMP.match(ended, begin)
    return None if found is None or begin == 0 else seconds(found[1].decode("ascii"))


_STAMP: Final = re.compile(rb'\{"timestamp":"([0-9T:.Z+-]{20,35})"')
_FORK: Final = re.compile(rb'"forked_from_id"\s*:\s*"([0-9A-Za-z-]{1,64})"')
_FORK_REACH: Final = 2_048
"""Bytes of the first line within which it names the thread it was forked from (facts/codex.md section 2, key order)."""


def forked_from(path: str) -> str | None:
    """The thread a rollout was forked from, by the beginning of its first line: what the agent's mirror leaves out.

    Raises:
        OSError: the file cannot be read.
    """
    found = _FORK.search(read_piece(path, 0, _FORK_REACH).partition(b"\n")[0])
    return None if found is None else found[1].decode("ascii")
