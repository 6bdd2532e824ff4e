"""The transcript of a thread: its spans read one after another, every entry once, texts loaded when they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from hermes_tui.model import (
    Compaction,
    Message,
    MessageHead,
    MessageState,
    Problem,
    SessionId,
    Usage,
)
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import (
    GIANT_LINE,
    Record,
    count_lines,
    read_line_at,
    read_records,
    read_records_backward,
)
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import Entry
from hermes_tui.stores.codex.landmarks import Landmarks, find_landmarks
from hermes_tui.stores.codex.live import LiveEntries
from hermes_tui.stores.codex.oldest import first_values, is_oldest, read_document
from hermes_tui.stores.codex.reader import LineReader, entry_id, is_giant, place_tag
from hermes_tui.stores.codex.rollout import Line, line_of, mapping, odd_time, read_meta, seconds
from hermes_tui.stores.codex.spans import Span, first_meta
from hermes_tui.stores.giant_text import GiantText, PackedLines
from hermes_tui.stores.log_source import MALFORMED, PULSE_EVERY, Pulse, no_pulse, problem_of
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

FIRST_BATCH: Final = 64
"""Entries of the first batch: a screen, at once."""
BATCH: Final = 400
HELD_BATCHES: Final = 4
"""A batch waits this long for the usage of its last reply."""
TAIL_REACH: Final = 8 << 20
"""Bytes a tail goes back beyond what it needs, to begin where a turn begins."""


def span_records(span: Span, *, end: int | None = None) -> Iterator[Record]:
    """The records of a span.

    Raises:
        OSError: the file cannot be read.
    """
    if is_oldest(span.path):
        return iter((read_document(span.path),))
    return read_records(span.path, offset=span.start, line=span.line, end=span.end if end is None else end)


def span_tag(span: Span) -> str:
    """What sets the places of a span apart from those of the thread's first file."""
    return f"{span.thread_id[-12:]}-" + place_tag(span.path) if span.inherited else place_tag(span.path)


@dataclass(slots=True)
class _File:
    """What was learnt of one file while its entries were read."""

    reader: LineReader
    models: list[tuple[int, RawText | None]] = field(default_factory=list)
    usages: dict[str, Usage] = field(default_factory=dict)
    counted: int = 0

    def learn(self, offset: int) -> None:
        """Keep the usage of requests that were completed and the model in force."""
        ledger = self.reader.ledger
        if not self.models or self.models[-1][1] != ledger.model:
            self.models.append((offset, ledger.model))
        for request in ledger.requests[self.counted :]:
            if request.message_id is not None:
                self.usages[request.message_id] = request.usage
        self.counted = len(ledger.requests)

    def model_at(self, offset: int) -> RawText | None:
        """The model in force where a line stands."""
        found = None
        for place, model in self.models:
            if place > offset:
                break
            found = model
        return found

    def compaction_at(self, line: int) -> Compaction | None:
        """The compaction written on a line."""
        return next((item for item in self.reader.ledger.compactions if item.line == line), None)


class CodexTranscript:
    """See :class:`hermes_tui.stores.protocol.Transcript`."""

    def __init__(
        self, session_id: SessionId, spans: Sequence[Span], problems: Sequence[Problem] = (), pulse: Pulse = no_pulse
    ) -> None:
        self._session = session_id
        self._spans = tuple(spans)
        self._problems: dict[tuple[str | None, int | None, int | None, str], Problem] = {}
        self._pulse = pulse
        self._files: dict[str, _File] = {}
        self._marks: Landmarks | None = None
        self._giant: GiantText | None = None
        self._packed: PackedLines | None = None
        for problem in problems:
            self._tell(problem)

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far."""
        return tuple(self._problems.values())

    def _tell(self, problem: Problem) -> None:
        self._problems.setdefault((problem.path, problem.line, problem.offset, problem.reason), problem)

    # -------------------------------------------------------------------------------------------------- heads

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry in order, in batches."""
        marks = self._landmarks()
        seen: set[int] = set()
        wanted = FIRST_BATCH
        batch: list[MessageHead] = []
        for span in self._spans:
            entries: list[Entry] = []
            live = LiveEntries()
            for open_reply in self._read(span, entries, live):
                if len(entries) >= wanted and (not open_reply or len(entries) >= wanted * HELD_BATCHES):
                    batch.extend(self._head(span, entry, marks, seen) for entry in entries)
                    entries.clear()
                    yield batch
                    batch, wanted = [], BATCH
            batch.extend(self._head(span, entry, marks, seen) for entry in entries)
        if batch:
            yield batch

    def _landmarks(self) -> Landmarks:
        if self._marks is None:
            try:
                self._marks = find_landmarks(self._spans)
            except OSError as error:
                self._tell(Problem(error.filename, None, None, f"cannot be read: {error.strerror or error}"))
                self._marks = Landmarks({})
        return self._marks

    def _read(self, span: Span, entries: list[Entry], live: LiveEntries) -> Iterator[bool]:
        """Read a span; after each record, whether a reply is open whose usage is not known yet."""

        def look(line: Line) -> None:
            live.look(line)
            reason = odd_time(line)
            if reason is not None:
                self._tell(Problem(span.path, record.line or None, record.offset, reason))

        file = _File(LineReader(span.path, lambda entry: self._take(entry, entries, live, file), look))
        self._files.setdefault(_key(span), file)
        if span.start and span.meta is not None:
            self._begin_inside(file, span)
        failed = False
        try:
            for count, record in enumerate(span_records(span)):
                if count % PULSE_EVERY == 0:
                    self._pulse()
                self._feed(file, record)
                yield file.reader.ledger.reply is not None
        except OSError as error:
            self._tell(Problem(span.path, None, None, f"cannot be read: {error.strerror or error}"))
            failed = True
        file.reader.assembler.finish()
        if file.reader.meta is None and not failed:
            self._tell(Problem(span.path, 1, 0, "does not start with session metadata; the id is the file name's"))
        yield False

    @staticmethod
    def _begin_inside(file: _File, span: Span) -> None:
        line = first_meta(span.path)[1]
        if line is not None:
            file.reader.begin(line, read_meta(line))

    def _feed(self, file: _File, record: Record) -> None:
        path = file.reader.path
        if record.problem is not None or (record.value is None and not record.rescued):
            self._tell(problem_of(path, record))
        elif record.value is not None and not isinstance(record.value, dict):
            self._tell(Problem(path, record.line, record.offset, "not a JSON object"))
        try:
            file.reader.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            self._tell(Problem(path, record.line, record.offset, reason))
        file.learn(record.offset)

    @staticmethod
    def _take(entry: Entry, entries: list[Entry], live: LiveEntries, file: _File) -> None:
        entries.append(entry)
        if not entry.copied:
            weighed = live.take(entry, entry_id(entry, file.reader.tag))
            if weighed is not None:
                file.reader.ledger.weigh(*weighed)

    def _head(self, span: Span, entry: Entry, marks: Landmarks, seen: set[int]) -> MessageHead:
        tag = span_tag(span)
        name = entry_id(entry, tag)
        key = hash((name, entry.part))
        if key in seen:
            name = f"{name}@{tag}L{entry.line}"
        seen.add(key)
        return MessageHead(
            id=name,
            part=entry.part,
            session_id=self._session,
            role=None if entry.role is None else RawText(entry.role),
            kind=entry.kind,
            state=_state(span, entry, marks),
            at=seconds(entry.stamp),
            size=entry.length,
            tool_name=None if entry.name is None else RawText(entry.name),
            tool_call_id=None if entry.call_id is None else RawText(entry.call_id),
            path=span.path,
            line=entry.line,
            offset=entry.offset,
            length=entry.length,
        )

    # --------------------------------------------------------------------------------------------------- tail

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries; only the end of the last files is read."""
        marks = self._landmarks()
        found: list[MessageHead] = []
        seen: set[int] = set()
        for span in reversed(self._spans):
            try:
                part = self._cut_tail(span, count - len(found))
            except OSError as error:
                self._tell(Problem(span.path, None, None, f"cannot be read: {error.strerror or error}"))
                continue
            entries: list[Entry] = []
            for _ in self._read(part, entries, LiveEntries()):
                pass
            found = [self._head(span, entry, marks, seen) for entry in entries] + found
            if len(found) >= count:
                break
        return found[-count:] if count > 0 else []

    def _cut_tail(self, span: Span, count: int) -> Span:
        """The end of a span that holds at least so many entries, from the beginning of a turn where one is near."""
        if is_oldest(span.path) or span.path.endswith(".zst"):
            return span
        met, start, begin = 0, None, None
        for record in read_records_backward(span.path, end=span.end, numbered=False):
            if record.offset < span.start:
                break
            line = line_of(record.value)
            met += line is not None and line.type in ("response_item", "compacted")
            begin = record.offset
            if met > count and line is not None and line.kind in ("task_started", "turn_started"):
                start = record.offset
                break
            if met > count and start is None and record.offset < (span.end or record.offset) - TAIL_REACH:
                break
        start = begin if start is None else start
        if start is None or start <= span.start:
            return span
        return replace(span, start=start, line=count_lines(span.path, start) + 1)

    # --------------------------------------------------------------------------------------------------- load

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """The entries with their texts."""
        records = self._records(heads)
        return [self._message(head, records.get((head.path or "", head.offset or 0)), sent) for head in heads]

    def _records(self, heads: Sequence[MessageHead]) -> dict[tuple[str, int], Record]:
        """The stored lines of these entries."""
        found: dict[tuple[str, int], Record] = {}
        for head in heads:
            if head.path is None or head.offset is None or (head.path, head.offset) in found:
                continue
            try:
                found[head.path, head.offset] = self._record_at(head, head.path, head.offset)
            except OSError as error:
                reason = f"cannot be read: {error.strerror or error}"
                self._tell(Problem(head.path, head.line, head.offset, reason))
        return found

    def _record_at(self, head: MessageHead, path: str, offset: int) -> Record:
        if is_oldest(path):
            return read_document(path)
        length, line = head.length or 0, head.line or 0
        if not path.endswith(".zst"):
            return read_line_at(path, offset, length, line)
        if self._packed is None or self._packed.path != path:
            self._packed = PackedLines(path)
        return self._packed.record(offset, length, line)

    def _message(self, head: MessageHead, record: Record | None, sent: bool) -> Message:
        if record is None:
            return Message(head, None)
        if is_giant(record):
            return Message(head, RawText(record.raw.decode("utf-8", "ignore")), cut=True)
        line = _line_in(record, head.part)
        if line is None:
            return Message(head, RawText(record.raw.decode("utf-8", "replace")[:TEXT_PIECE]))
        text = shown_text(line)
        shown, cut = _piece(text)
        whole = sent_text(line) if sent else None
        file = self._files.get(f"{head.path}:{0 if head.state != 'rewound' else 1}") or self._any_file(head)
        return Message(
            head,
            shown,
            sent_text=None if whole is None or whole == text else RawText(whole[:TEXT_PIECE]),
            model=None if file is None or head.kind not in _ANSWERS else file.model_at(head.offset or 0),
            usage=None if file is None else file.usages.get(head.id),
            compaction=None if file is None or line.type != "compacted" else self._compaction(file, head, line),
            cut=cut,
            attachments=tuple(RawText(name) for name in attachments(line)),
        )

    def _any_file(self, head: MessageHead) -> _File | None:
        return next((file for key, file in self._files.items() if file.reader.path == head.path), None)

    @staticmethod
    def _compaction(file: _File, head: MessageHead, line: Line) -> Compaction:
        found = file.compaction_at(head.line or 0)
        return found or Compaction(line.at, None, path=head.path, line=head.line)

    def _giant_text(self, path: str, offset: int, size: int) -> GiantText:
        if self._giant is None or self._giant.place != (path, offset):
            self._giant = GiantText(path, offset, size)
        return self._giant

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """A piece of one long text; of a giant line, a piece of the line itself."""
        if head.path is None or head.offset is None or length <= 0:
            return RawText("")
        size = head.length or 0
        if size > GIANT_LINE and not is_oldest(head.path):
            return RawText(self._giant_text(head.path, head.offset, size).piece(start, length))
        record = self._records([head]).get((head.path, head.offset))
        if record is None:
            return RawText("")
        line = _line_in(record, head.part)
        text = record.raw.decode("utf-8", "replace") if line is None else shown_text(line) or ""
        return RawText(text[start : start + length])


_ANSWERS: Final = frozenset({"reply", "reasoning", "tool-call"})


def _key(span: Span) -> str:
    return f"{span.path}:{int(span.rewound)}"


def _state(span: Span, entry: Entry, marks: Landmarks) -> MessageState:
    if span.rewound or (span.path, entry.offset, entry.part) in marks.rewound:
        return "rewound"
    if span.inherited or entry.copied:
        return "inherited"
    if marks.before_compaction(span.path, entry.offset) and not marks.keeps(entry, entry_id(entry, span_tag(span))):
        return "compacted"
    return "live"


def _line_in(record: Record, part: int) -> Line | None:
    values = first_values(record)
    return line_of(values[part]) if part < len(values) else None


def _piece(text: str | None) -> tuple[RawText | None, bool]:
    if text is None:
        return None, False
    if len(text) <= TEXT_PIECE // 4:
        return RawText(text), False
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= TEXT_PIECE:
        return RawText(text), False
    return RawText(raw[:TEXT_PIECE].decode("utf-8", "ignore")), True


def shown_text(line: Line) -> str | None:
    """The text of a line as people read it."""
    payload = line.payload
    if line.type == "compacted":
        return compaction_text(payload)
    if line.type == "response_item":
        said = items.nature(payload)
        if said.kind == "prompt":
            return items.prompt_text(payload)
        return items.item_text(payload)
    if line.type == "event_msg":
        return items.event_text(payload)
    return items.marked({"type": line.type, "payload": dict(payload)} if line.enveloped else payload)


def compaction_text(payload: Mapping[str, object]) -> str | None:
    """The summary of a compaction; where that is opaque, of its readable replacement."""
    message = payload.get("message")
    if isinstance(message, str) and message:
        return message
    history = payload.get("replacement_history")
    last = history[-1] if isinstance(history, list) and history else None
    return items.item_text(mapping(last)) if mapping(last) else None


def sent_text(line: Line) -> str | None:
    """The text of a line as the model gets it; ``None`` for what it does not get."""
    return items.item_text(line.payload) if line.type == "response_item" else None


def attachments(line: Line) -> tuple[str, ...]:
    """Images and files that came with a line."""
    payload = line.payload
    if line.type == "response_item":
        return items.attachments(payload.get("content") if "content" in payload else payload.get("output"))
    item = mapping(payload.get("item"))
    if item:
        return items.attachments(item.get("content"))
    return tuple(
        text
        for key in ("images", "local_images")
        for text in _strings(payload.get(key))
        if not text.startswith("data:")
    )


def _strings(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
