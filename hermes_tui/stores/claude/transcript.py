"""A transcript read piece by piece: first where every entry stands, then texts of what is on screen.

The order needs every parent, so the file is passed over once; of each line only kinds, sizes and places are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
from hermes_tui.storage.jsonl import Record, read_line_at, read_records
from hermes_tui.stores.claude.fold import TranscriptFold, mark_of
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
from hermes_tui.stores.claude.parts import Part, parts_of
from hermes_tui.stores.log_source import MALFORMED, PULSE_EVERY
from hermes_tui.stores.logs import LogFile, Pulse, no_pulse
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

BATCH: Final = 256
"""Heads given at a time."""


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
    """A fold that remembers the parts of every line as well, and lines of types nobody knows."""

    def __init__(
        self, ref: StoreRef, path: str, session_id: SessionId, *, agent: bool = False, strict: bool = False
    ) -> None:
        super().__init__(ref, path, session_id, agent=agent, strict=strict)
        self.parts: dict[str, tuple[PartHead, ...]] = {}
        self.tool_names: dict[str, str] = {}

    def note_parts(self, entry: Entry, fields: Fields) -> None:
        """Take in the parts of a line seen for the first time, or of one that says something else now."""
        super().note_parts(entry, fields)
        self._note(entry, parts_of(fields))

    def _note(self, entry: Entry, parts: Sequence[Part]) -> None:
        self.parts[entry.uuid] = tuple(part_head(part) for part in parts)
        for part in parts:
            if part.kind == "tool-call" and part.tool_call_id and part.tool_name:
                self.tool_names[part.tool_call_id] = part.tool_name

    def take_other(self, fields: Fields, record: Record) -> None:
        """A line that is no message; of an unknown type it is shown where it stands."""
        super().take_other(fields, record)
        parts = parts_of(fields)
        if parts:
            entry = stranger_of(fields, record, self.previous)
            self.entries.append(entry)
            self._note(entry, parts)


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
    """One log after the pass over it."""

    view: LogView
    fold: IndexedFold
    graph: Graph
    usages: dict[str, Usage] = field(default_factory=dict)
    compactions: dict[str, Compaction] = field(default_factory=dict)


def read_view(ref: StoreRef, view: LogView, pulse: Pulse = no_pulse, *, strict: bool = False) -> IndexedFold:
    """Pass over a log once; ``strict`` takes only what the real program reads.

    Raises:
        OSError: it cannot be read.
    """
    fold = IndexedFold(ref, view.log.path, view.session_id, agent=view.agent, strict=strict)
    fold.only = view.only
    for count, record in enumerate(read_records(view.log.path, end=view.end)):
        if count % PULSE_EVERY == 0:
            pulse()
        try:
            fold.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            fold.problems.append(Problem(view.log.path, record.line or None, record.offset, reason))
    return fold


def head_of(
    view: LogView, fold: IndexedFold, entry: Entry, place: int, part: PartHead, state: MessageState
) -> MessageHead:
    """One part of a line as a virtual list keeps it; a tool result has the name of its call."""
    name = part.tool_name
    if name is None and part.kind == "tool-result" and part.tool_call_id is not None:
        name = fold.tool_names.get(part.tool_call_id)
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
        self._shown: set[str] = set()

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems)

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry, all states, chain order then place."""
        batch: list[MessageHead] = []
        shown: set[str] = set()
        for view in self._views:
            for head in self._heads_of(view):
                if head.id not in shown:
                    batch.append(head)
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
            shown.update(entry.uuid for entry in self._read(view).graph.order if not entry.detached)
        if batch:
            yield batch

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries; the whole chain must be known for their order."""
        heads = [head for batch in self.heads() for head in batch]
        return heads[-count:] if count > 0 else []

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
        read = _Read(view, fold, graph)
        for request in fold.summary().requests:
            if request.message_id is not None:
                read.usages[request.message_id] = request.usage
        for entry in graph.order:
            if entry.boundary:
                read.compactions[entry.uuid] = fold.compaction(entry, graph)
        self._reads[view.log.path] = read
        return read

    def _heads_of(self, view: LogView) -> Iterator[MessageHead]:
        read = self._read(view)
        for entry in read.graph.order:
            state: MessageState = read.graph.states[entry.uuid]
            if view.inherited and state != "dead-branch" and mark_of(entry.uuid) in view.inherited:
                state = "inherited"
            for place, part in enumerate(read.fold.parts.get(entry.uuid, ())):
                yield head_of(read.view, read.fold, read.fold.replaced.get(entry.uuid, entry), place, part, state)

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
