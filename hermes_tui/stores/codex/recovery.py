"""What the model would be sent if a thread were resumed now (facts/codex.md section 9).

The log is read from its end. What counts is found in the newest stretch of it: the newest compaction that was not
rolled back is the base, and what stands before it is never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, Literal

from hermes_tui.model import IgnoredRecord, Message, MessageHead, MessageKind, PowerCut, Problem, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import BLOCK, Record, read_piece, read_records, read_records_backward
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import TURN_ENDS, TURN_STARTS, is_lost
from hermes_tui.stores.codex.live import turn_count
from hermes_tui.stores.codex.oldest import first_values, is_oldest, read_document
from hermes_tui.stores.codex.reader import COMPACTED, is_giant, whole_value
from hermes_tui.stores.codex.rollout import SETTINGS_TYPES, Line, line_of, mapping, string
from hermes_tui.stores.codex.spans import Span
from hermes_tui.stores.codex.transcript import span_tag
from hermes_tui.text import RawText

ABORTED: Final = "aborted"
"""The output the program gives a call whose own is missing (section 9, step 6)."""
_OUTPUTS: Final = frozenset(items.OUTPUT_OF.values())
_LEFT_OUT_ROLES: Final = frozenset({"system"})
_KNOWN_TYPES: Final = SETTINGS_TYPES | {
    "response_item", "event_msg", "compacted", "inter_agent_communication", "inter_agent_communication_metadata",
    "retained_context", "realtime_item", "security_risk_score", "agent_response_observation", "tool_manifest",
    "rollout_reference",
}  # fmt: skip
"""Types of lines the program knows (facts/codex.md section 2)."""
_NOT_SENT: Final = frozenset({"ghost_snapshot"})
SUMMARY_BEGINNING: Final = "Another language model started to solve this problem"
"""How the summaries of the program's compactions begin: a later one does not keep them as user messages."""
NO_SUMMARY: Final = "(no summary available)"
"""What the program sends for an empty one."""


@dataclass(slots=True)
class Item:
    """One item of the history the model is sent, and where it stands."""

    payload: Mapping[str, object]
    span: Span | None
    record: Record | None
    part: int = 0
    at: float | None = None
    from_compaction: bool = False


@dataclass(slots=True)
class _Met:
    """A line met on the way back: where it stands and, once known, whether its turn was rolled back."""

    line: Line
    record: Record
    span: Span
    part: int
    segment: _Segment | None = None


@dataclass(slots=True)
class _Segment:
    """The lines of one turn, met from its end to its beginning."""

    turn_id: str | None = None
    is_user: bool = False
    compacted: bool = False
    renewed: bool = False
    """The whole world state was told since its last compaction."""
    base: _Met | None = None
    baseline: Literal["unset", "cleared"] | Mapping[str, object] = "unset"
    dropped: bool = False


@dataclass(slots=True)
class Rebuilt:
    """What the way back found."""

    items: list[Item]
    base: _Met | None
    baseline: dict[str, object] | None
    window: int
    ignored: list[IgnoredRecord]


@dataclass(slots=True)
class _WayBack:
    """The state of the way back through the log (section 9, step 2)."""

    met: list[_Met] = field(default_factory=list)
    ignored: list[IgnoredRecord] = field(default_factory=list)
    base: _Met | None = None
    baseline: Literal["unset", "cleared"] | Mapping[str, object] = "unset"
    rollbacks: int = 0
    segment: _Segment | None = None

    def take(self, met: _Met) -> bool:
        """Take in one line; true when nothing older can matter."""
        line = met.line
        kind = line.kind if line.type == "event_msg" else ""
        if line.type == "compacted":
            self._compacted(met)
        elif line.type == "turn_context":
            self._turn_context(line.payload)
        elif kind == "thread_rolled_back":
            self.rollbacks += turn_count(line.payload.get("num_turns"))
        elif kind in TURN_ENDS:
            self._named(string(line.payload.get("turn_id")))
        elif line.type == "world_state":
            self._world_state(line.payload)
        elif begins_turn(line):
            self._open().is_user = True
        met.segment = self.segment
        if line.type in ("response_item", "compacted", "world_state") or kind == "thread_rolled_back":
            self.met.append(met)
        if kind in TURN_STARTS:
            self._close_turn(string(line.payload.get("turn_id")))
        elif not kind and line.type == "response_item" and self._cuts_bare_turn(line):
            self._close()
        return self.base is not None and self.baseline != "unset"

    @staticmethod
    def _cuts_bare_turn(line: Line) -> bool:
        """The formats before turn events cut turns at user messages."""
        return not line.enveloped and line.payload.get("role") == "user" and items.is_prompt(line.payload) is not False

    def _open(self) -> _Segment:
        if self.segment is None:
            self.segment = _Segment()
        return self.segment

    def _named(self, turn_id: str | None) -> None:
        segment = self._open()
        if segment.turn_id is None:
            segment.turn_id = turn_id

    def _compacted(self, met: _Met) -> None:
        segment = self._open()
        segment.compacted = True
        if segment.baseline == "unset":
            segment.baseline = "cleared"
        if segment.base is None and isinstance(met.line.payload.get("replacement_history"), list):
            segment.base = met

    def _world_state(self, payload: Mapping[str, object]) -> None:
        segment = self._open()
        segment.renewed = segment.renewed or (payload.get("full") is not False and not segment.compacted)

    def _turn_context(self, payload: Mapping[str, object]) -> None:
        segment = self._open()
        turn_id = string(payload.get("turn_id"))
        if segment.turn_id is None:
            segment.turn_id = turn_id
        if segment.baseline == "unset" and (turn_id is None or segment.turn_id in (None, turn_id)):
            segment.baseline = payload

    def _close_turn(self, turn_id: str | None) -> None:
        segment = self.segment
        if segment is not None and (segment.turn_id is None or turn_id is None or segment.turn_id == turn_id):
            self._close()

    def _close(self) -> None:
        segment, self.segment = self.segment, None
        if segment is None:
            return
        if self.rollbacks:
            segment.dropped = True
            self.rollbacks -= segment.is_user
            return
        if self.base is None:
            self.base = segment.base
        if self.baseline == "unset" and (segment.is_user or segment.renewed or segment.baseline == "cleared"):
            self.baseline = segment.baseline

    def finish(self) -> None:
        """The beginning of the log was reached."""
        self._close()


def begins_turn(line: Line) -> bool:
    """Whether a line makes its turn one of the user's: a prompt, raw or told, or another agent's order (section 9)."""
    if line.type == "response_item":
        return _is_user_turn(line.payload)
    if line.type == "event_msg" and line.kind == "item_completed":
        return mapping(line.payload.get("item")).get("type") == "UserMessage"
    return line.type == "inter_agent_communication" or (line.type == "event_msg" and line.kind == "user_message")


def backward(spans: Sequence[Span], ends: Mapping[str, int], ignored: list[IgnoredRecord]) -> Iterator[_Met]:
    """The lines of a thread from its end, bad ones told; the program loses glued lines, so they are not cut apart."""
    for span in reversed(spans):
        for record in _records_backward(span, ends.get(span.path)):
            if is_giant(record):
                record = record._replace(value=whole_value(span.path, record))
            if _is_lost(record, span.path):
                reason = record.problem or "null in place of a record"
                ignored.append(IgnoredRecord(span.path, record.line or None, reason))
                continue
            values = first_values(record)
            for part in range(len(values) - 1, -1, -1):
                line = line_of(values[part])
                if line is None:
                    ignored.append(IgnoredRecord(span.path, record.line or None, "not a JSON object"))
                elif line.type not in _KNOWN_TYPES:
                    reason = f"an unknown record of type {line.type!r}"
                    ignored.append(IgnoredRecord(span.path, record.line or None, reason))
                else:
                    yield _Met(line, record, span, part)


def _is_lost(record: Record, path: str) -> bool:
    """Whether the program drops a line; a document of the oldest format is read whole."""
    return not is_oldest(path) and is_lost(record)


def _records_backward(span: Span, cut: int | None) -> Iterator[Record]:
    if is_oldest(span.path):
        yield read_document(span.path)
        return
    ends = [end for end in (span.end, cut) if end is not None]
    yield from read_records_backward(span.path, end=min(ends, default=None))


def cut_offset(path: str, cut: PowerCut) -> int | None:
    """Bytes of a log that a power cut leaves; ``None``: the cut lies behind its end.

    Raises:
        OSError: the file cannot be read.
    """
    begin = line_offset(path, cut.line)
    if begin is None:
        return None
    record = next(read_records(path, offset=begin, line=cut.line), None)
    if record is None or record.line != cut.line:
        # A blank line: nothing of it is kept or lost.
        return begin
    return record.end if cut.byte is None else record.offset + min(max(cut.byte, 0), record.length + 1)


def line_offset(path: str, line: int) -> int | None:
    """Where a line begins in the decompressed log; ``None`` when there are not so many lines.

    Raises:
        OSError: the file cannot be read.
    """
    place, left = 0, line - 1
    while left > 0:
        block = read_piece(path, place, BLOCK)
        if not block:
            return None
        count = block.count(b"\n")
        if count < left:
            place, left = place + len(block), left - count
            continue
        inside = 0
        for _ in range(left):
            inside = block.index(b"\n", inside) + 1
        return place + inside
    return place


# --------------------------------------------------------------------------------------------------- rebuilding


def rebuild(spans: Sequence[Span], ends: Mapping[str, int] | None = None) -> Rebuilt:
    """Work out what a resume sends, before the next prompt is added.

    Args:
        spans: the living stretches of the thread.
        ends: files that are read as if they ended after so many bytes.

    Raises:
        OSError: a file cannot be read.
    """
    way = _WayBack()
    lines = backward(spans, ends or {}, way.ignored)
    ended = True
    for met in lines:
        if way.take(met):
            ended = False
            break
    if ended:
        way.finish()
    way.ignored.reverse()
    suffix = _after_base(way)
    history = _replay(way.base, suffix, way.ignored)
    world = _world_state(suffix)
    window = _window(way.base, suffix, spans)
    baseline: dict[str, object] | None = None
    if isinstance(way.baseline, Mapping) and not any(_keeps_no_history(met) for met in suffix):
        baseline = {**way.baseline, "world_state": world}
    return Rebuilt(_paired(history, way.ignored), way.base, baseline, window, way.ignored)


def _after_base(way: _WayBack) -> list[_Met]:
    """What else is replayed, oldest first."""
    suffix: list[_Met] = []
    for met in way.met:
        if met is way.base:
            break
        suffix.append(met)
    suffix.reverse()
    return suffix


def _replay(base: _Met | None, suffix: Sequence[_Met], ignored: list[IgnoredRecord]) -> list[Item]:
    """Step 3: replacement history, then what came after it."""
    history = [] if base is None else _replacement(base)
    for met in suffix:
        payload = met.line.payload
        if met.line.type == "response_item":
            reason = _why_not_sent(payload)
            if reason is None:
                history.append(Item(payload, met.span, met.record, met.part, met.line.at))
            else:
                ignored.append(IgnoredRecord(met.span.path, met.record.line or None, reason))
        elif met.line.type == "compacted":
            if _keeps_no_history(met):
                history = _old_compaction(history, met)
        elif met.line.type == "event_msg":
            history = _rolled_back(history, turn_count(payload.get("num_turns")))
    return history


def _why_not_sent(payload: Mapping[str, object]) -> str | None:
    kind = string(payload.get("type"))
    if kind == "message":
        return "a system message is not sent" if string(payload.get("role")) in _LEFT_OUT_ROLES else None
    if kind in _NOT_SENT or items.nature(payload).kind == "unknown":
        return f"an item of type {payload.get('type')} is not sent"
    return None


def _replacement(met: _Met) -> list[Item]:
    history = met.line.payload.get("replacement_history")
    found = history if isinstance(history, list) else []
    return [
        Item(item, met.span, met.record, part, met.line.at, from_compaction=True)
        for part, item in enumerate(found)
        if isinstance(item, dict)
    ]


def _keeps_no_history(met: _Met) -> bool:
    """Whether a line is a compaction of 2025, which has only a message: those are never a base, but replayed."""
    return met.line.type == "compacted" and not isinstance(met.line.payload.get("replacement_history"), list)


def _old_compaction(history: list[Item], met: _Met) -> list[Item]:
    """A compaction of 2025 kept all user messages and its summary as one more (section 9, step 3)."""
    kept = [item for item in history if _is_user_turn(item.payload) and not _is_told_summary(item.payload)]
    text = met.line.payload.get("message")
    if not isinstance(text, str):
        return kept
    content = [{"type": "input_text", "text": text or NO_SUMMARY}]
    payload = {"type": "message", "role": "user", "content": content}
    return [*kept, Item(payload, met.span, met.record, 0, met.line.at, from_compaction=True)]


def _is_user_turn(payload: Mapping[str, object]) -> bool:
    """Whether an item is where a rollback may cut: summaries are as well."""
    if payload.get("type") == "agent_message":
        return True
    return payload.get("type") == "message" and payload.get("role") == "user" and not items.is_contextual(payload)


def _is_told_summary(payload: Mapping[str, object]) -> bool:
    """Whether a message is another agent's, or says itself that it is a summary."""
    return payload.get("type") != "message" or items.message_text(payload).startswith(SUMMARY_BEGINNING)


def _is_context(payload: Mapping[str, object]) -> bool:
    if payload.get("type") != "message":
        return False
    return payload.get("role") == "developer" or (payload.get("role") == "user" and not _is_user_turn(payload))


def _rolled_back(history: list[Item], turns: int) -> list[Item]:
    """Drop the last user turns and the context put right before them; what the first turn began with stays."""
    starts = [place for place, item in enumerate(history) if _is_user_turn(item.payload)]
    if not turns or not starts:
        return history
    cut = starts[-turns] if turns < len(starts) else starts[0]
    while cut > starts[0] and _is_context(history[cut - 1].payload):
        cut -= 1
    return history[:cut]


def _world_state(suffix: Sequence[_Met]) -> object:
    """Step 4: full states replace, patches are merged, a compaction resets, a patch without a base is passed over."""
    state: object = None
    for met in suffix:
        if met.segment is not None and met.segment.dropped:
            continue
        if met.line.type == "compacted":
            state = None
        elif met.line.type == "world_state":
            new = met.line.payload.get("state")
            if met.line.payload.get("full") is not False:
                state = new
            elif state is not None:
                state = merge_patch(state, new)
    return state


def merge_patch(target: object, patch: object) -> object:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _window(base: _Met | None, suffix: Sequence[_Met], spans: Sequence[Span]) -> int:
    """Step 5: the newest window number, else how many compactions there were."""
    own = [met for met in suffix if met.line.type == "compacted" and not (met.segment and met.segment.dropped)]
    for met in (*reversed(own), *(() if base is None else (base,))):
        number = met.line.payload.get("window_number")
        if isinstance(number, int) and not isinstance(number, bool):
            return number
    older = 0 if base is None else 1 + _count_before(base, spans)
    return older + sum(met.line.type == "compacted" for met in suffix)


def _count_before(base: _Met, spans: Sequence[Span]) -> int:
    """Compactions before the base, counted where they carry no number."""
    count = 0
    for span in spans:
        end = base.record.offset if span.path == base.span.path else span.end
        for record in read_records(span.path, offset=span.start, end=end, wants=lambda raw: COMPACTED in raw[:400]):
            line = line_of(record.value)
            count += line is not None and line.type == "compacted"
        if span.path == base.span.path:
            break
    return count


def _paired(history: Sequence[Item], ignored: list[IgnoredRecord]) -> list[Item]:
    """Step 6: a call without output gets one, an output without its call is dropped."""
    calls = {_call_id(item.payload) for item in history if string(item.payload.get("type")) in items.PAIRED_CALLS}
    outputs = {string(item.payload.get("call_id")) for item in history if string(item.payload.get("type")) in _OUTPUTS}
    found: list[Item] = []
    for item in history:
        kind, call_id = string(item.payload.get("type")), _call_id(item.payload)
        if kind in _OUTPUTS and call_id is not None and call_id not in calls:
            _ignore_orphan(item, ignored)
            continue
        found.append(item)
        if kind in items.PAIRED_CALLS and call_id is not None and call_id not in outputs:
            payload = {"type": items.OUTPUT_OF[str(kind)], "call_id": call_id, "output": ABORTED}
            found.append(Item(payload, item.span, None, 0, item.at))
    return found


def _call_id(payload: Mapping[str, object]) -> str | None:
    return string(payload.get("call_id")) or (
        string(payload.get("id")) if payload.get("type") == "local_shell_call" else None
    )


def _ignore_orphan(item: Item, ignored: list[IgnoredRecord]) -> None:
    path = None if item.span is None else item.span.path
    line = None if item.record is None else item.record.line or None
    ignored.append(IgnoredRecord(path, line, f"the output of call {item.payload.get('call_id')}, whose call is lost"))


def ignored_of(problem: Problem) -> IgnoredRecord:
    """A problem with the files of a thread as something the recovery does without."""
    return IgnoredRecord(problem.path, problem.line, problem.reason)


# ---------------------------------------------------------------------------------------------------- messages


def messages(rebuilt: Rebuilt, session_id: SessionId) -> tuple[Message, ...]:
    """The rebuilt history as messages; texts are what the model is sent."""
    names = {
        _call_id(item.payload): string(item.payload.get("name"))
        for item in rebuilt.items
        if string(item.payload.get("type")) in items.PAIRED_CALLS
    }
    return tuple(_message(item, session_id, names) for item in rebuilt.items)


def _is_summary(item: Item) -> bool:
    """Whether an item is what a compaction wrote in place of what it dropped."""
    if not item.from_compaction:
        return False
    owner = None if item.record is None else line_of(item.record.value)
    message = None if owner is None else string(owner.payload.get("message"))
    return message is not None and items.message_text(item.payload) == message


def sent(payload: Mapping[str, object]) -> str | None:
    """An item as the model gets it, in one string: images by their type, reasoning sealed."""
    kind = payload.get("type")
    if kind == "reasoning":
        return ""
    if kind == "message":
        parts = items.parts_of(payload.get("content"))
        return "".join(string(part.get("text")) or string(part.get("type")) or "" for part in parts)
    return items.item_text(payload)


def _summary_of(payload: Mapping[str, object]) -> RawText | None:
    """What can be read of sealed reasoning."""
    if payload.get("type") != "reasoning":
        return None
    texts = items.reasoning_texts(payload)
    return RawText("\n".join(texts)) if texts else None


def _message(item: Item, session_id: SessionId, names: Mapping[str | None, str | None]) -> Message:
    payload = item.payload
    said = items.nature(payload)
    text = sent(payload)
    kind: MessageKind = "summary" if _is_summary(item) else said.kind
    record, span = item.record, item.span
    inherited = span is not None and span.inherited
    call_id = _call_id(payload)
    name = said.name or names.get(call_id)
    place = f"{'' if span is None else span_tag(span)}L{record.line}" if record is not None else f"{call_id}-{ABORTED}"
    return Message(
        MessageHead(
            id=string(payload.get("id")) or place,
            part=item.part,
            session_id=session_id,
            role=None if said.role is None else RawText(said.role),
            kind=kind,
            state="inherited" if inherited else "live",
            at=item.at,
            size=0 if text is None else len(text),
            tool_name=None if name is None else RawText(name),
            tool_call_id=None if call_id is None else RawText(call_id),
            path=None if record is None or span is None else span.path,
            line=None if record is None else record.line or None,
            offset=None if record is None else record.offset,
            length=None if record is None else record.length,
        ),
        None if text is None else RawText(text),
        sent_text=_summary_of(payload),
        attachments=tuple(RawText(name) for name in items.attachments(payload.get("content"))),
    )
