"""What fold and transcript share: records in; entries, requests and ownership out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from hermes_tui.model import MessageKind
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.giant_values import load_in_steps
from hermes_tui.storage.jsonl import Record, read_piece
from hermes_tui.stores.codex.entries import Assembler, Entry
from hermes_tui.stores.codex.ledger import Ledger, Ownership
from hermes_tui.stores.codex.oldest import first_values
from hermes_tui.stores.codex.rollout import Line, Meta, line_of, read_meta, read_name, string

COMPACTED: Final = b'"compacted"'
MOST_WHOLE: Final = 256 << 20
"""Bytes of a line that is loaded although it is giant, because an answer depends on it."""
FROM_MODEL: Final[frozenset[MessageKind]] = frozenset({"reply", "reasoning", "tool-call"})
"""Kinds of entries a model's answer consists of."""
_META_KEPT: Final = frozenset({"base_instructions", "instructions", "dynamic_tools"})
"""Long parts of a meta that say nothing about the session."""


def place_tag(path: str) -> str:
    """What sets apart entries of different files of one thread: '' for its first, else the segment's uuid."""
    name = read_name(path.rpartition("/")[2])
    return "" if name.segment is None else f"{name.segment[-12:]}-"


def entry_id(entry: Entry, tag: str) -> str:
    """The item's own id where it has one; else its place."""
    return entry.id if entry.id is not None and not entry.event else f"{tag}L{entry.line}"


def names_thread(meta: Meta, name: str, *, first: bool) -> bool:
    """Whether a meta names the file's thread: the first line does, later ones may be copies of the source's."""
    return meta.id is not None and (first or meta.id == name)


def is_giant(record: Record) -> bool:
    """Whether a record was too long to load."""
    return record.value is None and record.length > len(record.raw) > 0


def whole_value(path: str, record: Record) -> object:
    """The value of a record, giant ones loaded too; ``None`` for one that is too large or damaged.

    Raises:
        OSError: the file cannot be read.
    """
    if record.value is not None or record.length <= len(record.raw) or record.length > MOST_WHOLE:
        return record.value
    try:
        value = load_in_steps(read_piece(path, record.offset, record.length), b"replacement_history")
    except orjson.JSONDecodeError:
        return None
    return value


class LineReader:
    """Takes the records of one file in order."""

    def __init__(self, path: str, sink: Callable[[Entry], None], look: Callable[[Line], None]) -> None:
        self.path = path
        self._look = look
        """Told of each line after its entries."""
        self.tag = place_tag(path)
        self.meta: Meta | None = None
        self.name = read_name(path.rpartition("/")[2]).thread_id
        """The thread by its file's name."""
        self.ledger = Ledger(path, self.name)
        self.owner = Ownership(self.name)
        self._lines = 0
        self.assembler = Assembler(sink, self._said)
        self._meta_line: Line | None = None

    def feed(self, record: Record) -> None:
        """Take in a record; its entries go to the sink."""
        self._lines += 1
        if record.value is None and is_giant(record):
            if COMPACTED not in record.raw[:400]:
                self.assembler.feed_giant(record, copied=self.owner.copied)
                return
            # What a compaction kept decides about everything before it.
            record = record._replace(value=whole_value(self.path, record))
        for part, value in enumerate(first_values(record)):
            line = line_of(value)
            if line is not None:
                self._line(line, record, part)

    def _line(self, line: Line, record: Record, part: int) -> None:
        if line.type == "session_meta":
            self._session_meta(line)
        else:
            copied = self.owner.copied and self.owner.look(line)
            self.ledger.feed(line, record, copied=copied)
            self.assembler.feed(line, record, copied=copied, part=part)
        self._look(line)

    def pass_over(self) -> None:
        """A line was taken in elsewhere: a meta after it is not the first line."""
        self._lines += 1

    def skim(self, kind: MessageKind, payload: Mapping[str, object], line: int) -> None:
        """Take in an item of the model that needs no twin: what ledger and later lines must know of it."""
        self._lines += 1
        if kind in FROM_MODEL:
            if self.ledger.reply is None:
                self.ledger.said(string(payload.get("id")) or f"{self.tag}L{line}")
            if kind == "tool-call":
                self.assembler.open_call(payload)
        elif kind == "tool-result":
            self.assembler.close_call(payload)

    def _session_meta(self, line: Line) -> None:
        if self.meta is not None:
            return
        meta = read_meta(line)
        if not names_thread(meta, self.name, first=self._lines == 1):
            # The file's own meta is lost and this is the source's: from here on lines are copies.
            self.owner.foreign()
        else:
            self.begin(line, meta)

    def begin(self, line: Line, meta: Meta) -> None:
        """Take a line and the meta it is for the file's own."""
        self.meta, self._meta_line = meta, line
        self.ledger.begin(meta)
        self.owner.begin(meta)

    def _said(self, entry: Entry) -> None:
        if entry.copied:
            return
        if entry.kind in FROM_MODEL:
            self.ledger.said(entry_id(entry, self.tag))
        elif entry.kind == "prompt":
            self.ledger.prompted()

    def dump(self) -> dict[str, object]:
        """The state as JSON values."""
        line = self._meta_line
        return {
            "meta": None
            if line is None
            else [{k: v for k, v in line.payload.items() if k not in _META_KEPT}, line.stamp, line.enveloped],
            "ledger": self.ledger.dump(),
            "owner": self.owner.dump(),
            "assembler": self.assembler.dump(),
        }

    def take_over(self, other: LineReader) -> None:
        """Become a copy of another, to finish while that one reads on."""
        self.meta, self._meta_line = other.meta, other._meta_line
        self.ledger = other.ledger.copy()
        self.owner.restore(other.owner.dump())
        self.assembler.restore(load_json(dump_json(other.assembler.dump())))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state again."""
        if state["meta"] is not None:
            payload, stamp, enveloped = state["meta"]
            line = Line("session_meta", payload, stamp, None, enveloped)
            self.begin(line, read_meta(line))
        self.ledger = Ledger.restore(self.path, state["ledger"])
        self.owner.restore(state["owner"])
        self.assembler.restore(state["assembler"])
