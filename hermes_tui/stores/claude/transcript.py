"""A transcript read piece by piece: first where every entry stands, then texts of what is on screen.

The order needs every parent, so the file is passed over once; of each line only its place in file and chain is kept.
What is in a line is looked at again when its turn comes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import ClassVar, Final, NamedTuple

import orjson

from hermes_tui.model import (
    Compaction,
    Message,
    MessageHead,
    MessageKind,
    MessageState,
    Problem,
    SessionId,
    StoreRef,
    Usage,
)
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import Record, read_line_at, read_records
from hermes_tui.storage.log_bytes import read_at
from hermes_tui.storage.log_lines import read_lines
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.giants import salvaged
from hermes_tui.stores.claude.graph import Graph
from hermes_tui.stores.claude.lines import (
    HEADER_TYPES,
    SYNTHETIC_MODEL,
    Entry,
    Fields,
    fields_of,
    message_of,
    text_of,
    time_of,
    values_of,
)
from hermes_tui.stores.claude.parts import CALL_BLOCKS, Part, parts_of
from hermes_tui.stores.claude.skim import ClaudeSkim
from hermes_tui.stores.claude.traces import mark_of
from hermes_tui.stores.log_source import MALFORMED, PULSE_EVERY
from hermes_tui.stores.logs import LogFile, Pulse, no_pulse
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

BATCH: Final = 256
"""Heads given at a time."""
ENTRIES: Final = 128
"""Lines that are read again at a time."""


class PartHead(NamedTuple):
    """One part without its text."""

    kind: MessageKind
    size: int
    role: str | None
    tool_name: str | None
    tool_call_id: str | None
    blank: bool


@dataclass(slots=True)
class LogView:
    """One log and what of it another file held first."""

    log: LogFile
    session_id: SessionId
    agent: bool = False
    inherited: frozenset[int] = frozenset()
    only: frozenset[str] | None = None
    """These lines alone: a sub-agent inside its session's file."""
    end: int | None = None
    """Read it as if it ended after so many bytes."""


class IndexedFold(TranscriptFold):
    """A fold that remembers the parts of unusual lines, the names of calls, and lines of types nobody knows."""

    keeps_parts: ClassVar[bool] = True

    def __init__(
        self, ref: StoreRef, path: str, session_id: SessionId, *, agent: bool = False, strict: bool = False
    ) -> None:
        super().__init__(ref, path, session_id, agent=agent, strict=strict)
        self.parts: dict[str, tuple[PartHead, ...]] = {}
        """Those of the lines that were fed one by one; the others' are read when asked for (:func:`parts_of_lines`)."""
        self.tool_names: dict[str, str] = {}

    def note_parts(self, entry: Entry, fields: Fields) -> None:
        """Take in the parts of a line seen for the first time, or of one that says something else now."""
        if entry.type == "user" and not entry.has_result:
            super().note_parts(entry, fields)
        else:
            self._note(entry.uuid, parts_of(fields))

    def note_prompt(self, uuid: str, parts: Sequence[Part]) -> None:
        """The same of a line that may be a prompt."""
        super().note_prompt(uuid, parts)
        self._note(uuid, parts)

    def note_calls(self, blocks: Iterable[Fields]) -> None:
        """Of the parts of a usual reply only the names of calls are kept."""
        for block in blocks:
            call_id, name = text_of(block.get("id")), text_of(block.get("name"))
            if call_id and name and text_of(block.get("type")) in CALL_BLOCKS:
                self.tool_names[call_id] = name

    def _note(self, uuid: str, parts: Sequence[Part]) -> None:
        self.parts[uuid] = tuple(part_head(part) for part in parts)
        for part in parts:
            if part.kind == "tool-call" and part.tool_call_id and part.tool_name:
                self.tool_names[part.tool_call_id] = part.tool_name

    def take_other(self, fields: Fields, record: Record) -> None:
        """A line that is no message; of an unknown type it is shown where it stands."""
        super().take_other(fields, record)
        parts = parts_of(fields)
        if parts:
            entry = stranger_of(fields, record, self.previous)
            self.keep(entry)
            self._note(entry.uuid, parts)


def parts_of_lines(
    path: str, known: Mapping[str, tuple[PartHead, ...]], entries: Sequence[Entry]
) -> list[tuple[PartHead, ...]]:
    """The parts of these lines: as the pass over the log noted them, else read again, for one opening.

    Raises:
        OSError: the log cannot be opened or read.
    """
    if all(entry.uuid in known for entry in entries):
        return [known[entry.uuid] for entry in entries]
    file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return [known[entry.uuid] if entry.uuid in known else _parts_at(file, entry) for entry in entries]
    finally:
        os.close(file)


def _parts_at(file: int, entry: Entry) -> tuple[PartHead, ...]:
    """The parts of one usual line; none where the log was written anew meanwhile and another line stands there."""
    try:
        fields = fields_of(orjson.loads(read_at(file, entry.length, entry.offset)))
    except orjson.JSONDecodeError:
        return ()
    if fields is None or fields.get("uuid") != entry.uuid:
        return ()
    return tuple(part_head(part) for part in parts_of(fields))


def stranger_of(fields: Fields, record: Record, previous: str | None) -> Entry:
    """A line of a type nobody knows, hung on the message line before it."""
    return Entry(
        uuid=f"line-{record.line}",
        parent=previous,
        logical_parent=None,
        type="unknown",
        subtype="",
        sidechain=fields.get("isSidechain") is True,
        at=time_of(fields.get("timestamp")),
        line=record.line,
        offset=record.offset,
        length=record.length,
        detached=True,
    )


def part_head(part: Part) -> PartHead:
    """A part without its text."""
    blank = not part.text or part.text.isspace()
    return PartHead(part.kind, _size(part.text), part.role, part.tool_name, part.tool_call_id, blank)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@dataclass(slots=True)
class _Read:
    """What is kept of one log after the pass over it."""

    view: LogView
    graph: Graph
    parts: Mapping[str, tuple[PartHead, ...]]
    tool_names: Mapping[str, str]
    replaced: Mapping[str, Entry]
    usages: Mapping[str, Usage]
    compactions: dict[str, Compaction] = field(default_factory=dict)


def read_view(ref: StoreRef, view: LogView, pulse: Pulse = no_pulse, *, strict: bool = False) -> IndexedFold:
    """Pass over a log once; ``strict`` takes only what the real program reads.

    Raises:
        OSError: it cannot be read.
    """
    path = view.log.path
    fold = IndexedFold(ref, path, view.session_id, agent=view.agent, strict=strict)
    fold.only = view.only

    def feed(record: Record) -> None:
        try:
            fold.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            fold.problems.append(Problem(path, record.line or None, record.offset, reason))

    usual = ClaudeSkim(fold, None)
    offset, line = 0, 1
    for lines in read_lines(path, end=view.end):
        pulse()
        offset, line = lines.end, usual.take(lines, line, feed)
    for count, record in enumerate(read_records(path, offset=offset, line=line, end=view.end)):
        if count % PULSE_EVERY == 0:
            pulse()
        feed(record)
    return fold


def head_of(
    view: LogView, tool_names: Mapping[str, str], entry: Entry, place: int, part: PartHead, state: MessageState
) -> MessageHead:
    """One part of a line as a virtual list keeps it; a tool result has the name of its call."""
    name = part.tool_name
    if name is None and part.kind == "tool-result" and part.tool_call_id is not None:
        name = tool_names.get(part.tool_call_id)
    return MessageHead(
        id=entry.uuid,
        part=place,
        session_id=view.session_id,
        role=RawText(part.role) if part.role else None,
        kind=part.kind,
        state=state,
        at=entry.at,
        size=part.size,
        tool_name=RawText(name) if name else None,
        tool_call_id=RawText(part.tool_call_id) if part.tool_call_id else None,
        path=view.log.path,
        line=entry.line,
        offset=entry.offset,
        length=entry.length,
    )


class ClaudeTranscript:
    """See :class:`hermes_tui.stores.protocol.Transcript`."""

    def __init__(self, ref: StoreRef, views: Sequence[LogView], pulse: Pulse = no_pulse) -> None:
        self._ref = ref
        self._views = tuple(views)
        self._pulse = pulse
        self._reads: dict[str, _Read] = {}
        self._problems: list[Problem] = []
        self._reading = threading.Lock()
        """Held during the pass over a log, so that who asks for its end meanwhile takes part in it."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems)

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry, all states, chain order then place."""
        batch: list[MessageHead] = []
        shown: set[str] = set()
        for view in self._views:
            order = self._read(view).graph.order
            for start in range(0, len(order), ENTRIES):
                heads = self._heads_of(view, order[start : start + ENTRIES])
                batch += [head for head in heads if head.id not in shown] if shown else heads
                while len(batch) >= BATCH:
                    yield batch[:BATCH]
                    del batch[:BATCH]
            if view is not self._views[-1]:
                shown.update(entry.uuid for entry in order if not entry.detached)
        if batch:
            yield batch

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries; the whole chain must be known for their order."""
        if count <= 0:
            return []
        if len(self._views) != 1:
            heads = [head for batch in self.heads() for head in batch]
            return heads[-count:]
        order = self._read(self._views[0]).graph.order
        found: list[MessageHead] = []
        for end in range(len(order), 0, -ENTRIES):
            found[:0] = self._heads_of(self._views[0], order[max(0, end - ENTRIES) : end])
            if len(found) >= count:
                break
        return found[-count:]

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """The same entries with their texts."""
        lines: dict[tuple[str, int, str], Fields | None] = {}
        messages = []
        for head in heads:
            key = (head.path or "", head.offset or 0, head.id)
            if key not in lines:
                lines[key] = self._fields(head)
            messages.append(self._message(head, lines[key], sent=sent))
        return messages

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """A piece of one long text, in characters."""
        fields = self._fields(head)
        part = _part(fields, head.part)
        return RawText(part.text[start : start + length] if part is not None else "")

    # -------------------------------------------------------------------------------------------------- reading

    def _read(self, view: LogView) -> _Read:
        with self._reading:
            known = self._reads.get(view.log.path)
            if known is not None:
                return known
            try:
                fold = read_view(self._ref, view, self._pulse)
            except OSError as error:
                reason = f"cannot be read: {error.strerror or error}"
                self._problems.append(Problem(view.log.path, None, None, reason))
                fold = IndexedFold(self._ref, view.log.path, view.session_id, agent=view.agent)
            return self.adopt(view, fold)

    def adopt(self, view: LogView, fold: IndexedFold) -> _Read:
        """Take over a pass that was made already."""
        self._problems += fold.problems
        graph = fold.graph()
        read = _Read(view, graph, fold.parts, fold.tool_names, fold.replaced, fold.usages())
        for entry in fold.boundaries():
            read.compactions[entry.uuid] = fold.compaction(entry, graph)
        self._reads[view.log.path] = read
        return read

    def _heads_of(self, view: LogView, entries: Sequence[Entry]) -> list[MessageHead]:
        read = self._read(view)
        try:
            parts = parts_of_lines(view.log.path, read.parts, entries)
        except OSError as error:
            reason = f"cannot be read any more: {error.strerror or error}"
            self._problems.append(Problem(view.log.path, None, None, reason))
            return []
        heads: list[MessageHead] = []
        for entry, some in zip(entries, parts, strict=True):
            state: MessageState = read.graph.states[entry.uuid]
            if view.inherited and state != "dead-branch" and mark_of(entry.uuid) in view.inherited:
                state = "inherited"
            stands = read.replaced.get(entry.uuid, entry)
            heads += [head_of(view, read.tool_names, stands, place, part, state) for place, part in enumerate(some)]
        return heads

    def _fields(self, head: MessageHead) -> Fields | None:
        """The stored line of an entry, read again."""
        if head.path is None or head.offset is None or head.length is None:
            return None
        try:
            record = read_line_at(head.path, head.offset, head.length, head.line or 0)
        except OSError as error:
            reason = f"cannot be read any more: {error.strerror or error}"
            self._problems.append(Problem(head.path, head.line, head.offset, reason))
            return None
        giant = salvaged(head.path, record) if record.problem is not None else None
        if giant is not None:
            return giant
        found = [fields for value in values_of(record) if (fields := fields_of(value)) is not None]
        for fields in found:
            if fields.get("uuid") == head.id:
                return fields
        for fields in found:
            if head.id == f"line-{head.line}" and text_of(fields.get("type")) not in HEADER_TYPES:
                return fields
        self._problems.append(Problem(head.path, head.line, head.offset, "the log changed: the entry is not there"))
        return None

    def _message(self, head: MessageHead, fields: Fields | None, *, sent: bool) -> Message:
        part = _part(fields, head.part)
        if fields is None or part is None:
            return Message(head, None)
        read = self._reads.get(head.path or "")
        first = head.part == 0
        model = text_of(message_of(fields).get("model"))
        text = part.text[:TEXT_PIECE] if head.size > TEXT_PIECE else part.text
        return Message(
            head=head,
            text=RawText(text),
            sent_text=RawText(part.sent) if sent and part.sent is not None else None,
            model=RawText(model) if model and model != SYNTHETIC_MODEL else None,
            usage=read.usages.get(head.id) if read is not None and first else None,
            compaction=read.compactions.get(head.id) if read is not None and first else None,
            cut=len(text) < len(part.text),
            attachments=tuple(RawText(name) for name in part.attachments),
        )


def _part(fields: Fields | None, place: int) -> Part | None:
    parts = parts_of(fields) if fields is not None else []
    return parts[place] if place < len(parts) else None
