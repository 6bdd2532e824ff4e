"""Reading a DSH session event by event: the surface, own requests, compactions, title (facts/dsh.md sections 2 to 4).

The surface is what the model sees; the history is everything. What a fork copied from its parent stands in front and is
cut off here. A row that is no event ends the session unless a turn ends behind it: then the log is corrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hermes_tui.model import CacheEvent, Compaction, DropCause, Problem, Request, SessionId, SessionRow, StoreRef
from hermes_tui.storage.jsonl import GIANT_LINE, Record
from hermes_tui.stores.conversation import SPARKLINE_POINTS, latest
from hermes_tui.stores.dsh.content import (
    CHECKPOINT,
    RUNTIME_CONTEXT,
    USER,
    counted_entries,
    digest_of,
    entry_id,
    items,
    mapping,
    plain_text,
    raw_text,
    source_kind,
    step_of,
    text_of,
    usage_of,
)
from hermes_tui.stores.dsh.events import BadRow, Event, Replace, event_of_record
from hermes_tui.stores.dsh.format import (
    ABSURD_TIME,
    NEWEST_VERSION,
    PACKED_TYPES,
    PACKED_VERSIONS,
    SEED_LENGTH_VERSIONS,
    Header,
    header_refusal,
    is_known,
    parse_header,
    text_or_none,
    whole,
)
from hermes_tui.stores.dsh.state import DshState, dump_state, load_state
from hermes_tui.stores.log_source import MALFORMED
from hermes_tui.stores.logs import LogSummary
from hermes_tui.text import RawText

PREVIEW_CHARACTERS: Final = 300
COMPACTION_TASK: Final = "compaction"
UNSUPPORTED: Final = "SessionFormatUnsupportedError"
MOST_BAD_ROWS: Final = 1_000
"""Rows named one by one; a log with more is named by its first ones and counted."""


class EventFold:
    """Takes in the events of one session in order, whichever backend they come from."""

    def __init__(self, store: StoreRef, path: str, session_id: SessionId, state: DshState | None = None) -> None:
        self.state = DshState() if state is None else state
        self._store = store
        self.path = path
        self._id = session_id

    # ------------------------------------------------------------------------------------------------ taking in

    def begin(self, header: Header, line: int | None = None, offset: int | None = None) -> None:
        """Take in the header of a session that is read."""
        self.state.header = header
        if header.created_at is None:
            self.state.bad.append(BadRow(f"{ABSURD_TIME} of the session's start; shown as unknown", line, offset))

    def refuse(self, reason: str, line: int | None = None, offset: int | None = None) -> None:
        """Read nothing of this session, for this reason."""
        self.state.refusal, self.state.refused_line, self.state.refused_offset = reason, line, offset

    def spoil(self, row: BadRow) -> None:
        """Take in a row that is no event: the session ends here unless a turn ends behind it."""
        state = self.state
        if state.refusal is not None:
            return
        if not state.broken:
            state.broken, state.broke_at = True, _at(row.reason, row.line)
        if len(state.bad) < MOST_BAD_ROWS:
            state.bad.append(row)

    def take(self, event: Event) -> None:
        """Take in one event."""
        state = self.state
        if state.refusal is not None:
            return
        if event.seq != state.met.due and not state.broken:
            reason = f"sequence number {event.seq} where {state.met.due} was due"
            self.spoil(BadRow(reason, event.line, event.offset))
        if not state.broken:
            self._apply(event)
            return
        state.suspended.append(event)
        if event.type == "turn/end":
            self._go_on()

    def _go_on(self) -> None:
        """A turn ended behind a bad row: the log is corrupt, but what can be read of it is."""
        state = self.state
        state.corrupt = state.corrupt or state.broke_at
        waiting, state.suspended, state.broken = state.suspended, [], False
        for event in waiting:
            # A row that was written twice must not be counted twice.
            if state.met.fits(event.seq):
                self._apply(event)

    def _apply(self, event: Event) -> None:
        state = self.state
        header = state.header
        version = NEWEST_VERSION if header is None else header.version
        packed = event.type in PACKED_TYPES and not event.ignorable and version in PACKED_VERSIONS
        if not (packed or event.ignorable or is_known(event.type, version)):
            reason = f"unknown event type {event.type!r} (seq {event.seq}), not marked as ignorable"
            self.refuse(_at(reason, event.line), event.line, event.offset)
            return
        if header is not None and header.seed_length:
            self._end_of_counted_seed(event, header.seed_length, version)
        state.met.meet(event.seq, event.span)
        state.events += event.span
        if event.type == "session/end-seed":
            self._end_of_marked_seed(event)
        if event.at is None:
            self.name_odd(f"{ABSURD_TIME} of {event.type} (seq {event.seq}); shown as unknown", event)
        else:
            state.last_at = event.at
        if event.surface is not None:
            self._stand(event)
        if not event.ignorable and (handler := _HANDLERS.get(event.type)) is not None:
            handler(self, event)

    # --------------------------------------------------------------------------------------------- seed, surface

    def _end_of_counted_seed(self, event: Event, length: int, version: int) -> None:
        """Cut off what was inherited by the header's count, in versions 0 and 1.

        A copied event may come behind one whose number damage made too high: then what was cut was not all of it.
        """
        if version not in SEED_LENGTH_VERSIONS:
            return
        if event.seq < length:
            self.state.cut = False
        elif not self.state.cut:
            self._forget_inherited(length)

    def _end_of_marked_seed(self, event: Event) -> None:
        """Cut off what was inherited behind the marker; the last one counts."""
        header = self.state.header
        counted = header is None or (header.seed_length is not None and header.version in SEED_LENGTH_VERSIONS)
        if not counted and event.data.get("inherited") is True:
            self._forget_inherited(event.seq + 1)

    def _forget_inherited(self, below: int) -> None:
        state = self.state
        state.inherited, state.cut = below, True
        state.odd_inherited = state.met.above(below)
        state.requests, state.apart, state.compactions, state.models, state.called = [], [], [], [], 0
        state.weights.clear()
        state.queued.clear()
        state.inbox.clear()
        state.prompts, state.preview, state.chunk_usage = 0, None, None
        parent = None if state.header is None else state.header.parent
        state.happened = []
        self._note("fork", f"the first {below} events are copied from {parent or 'another session'}")

    def _stand(self, event: Event) -> None:
        """Do to the surface what the event says."""
        state = self.state
        if isinstance(event.surface, Replace):
            self._replace(event, event.surface)
        else:
            state.surface.append(event.seq)
        weight = counted_entries(event)
        if weight:
            self._weigh(event, weight)

    def _weigh(self, event: Event, weight: int) -> None:
        """Count the entries of an event; a damaged number may be that of another one, and both are shown."""
        self.state.weights[event.seq] = self.state.weights.get(event.seq, 0) + weight

    def _replace(self, event: Event, operation: Replace) -> None:
        state = self.state
        try:
            start, end = state.surface.index(operation.start), state.surface.index(operation.end)
        except ValueError:
            start, end = 0, -1
        if start > end:
            reason = f"seq {event.seq} replaces {operation.start} to {operation.end}, which are not on the surface"
            self.name_odd(reason, event)
            state.corrupt = state.corrupt or _at(reason, event.line)
            state.surface.append(event.seq)
            return
        gone = state.surface[start : end + 1]
        state.surface[start : end + 1] = [event.seq]
        for seq in gone:
            state.weights.pop(seq, None)
            state.replaced[seq] = event.seq
        if source_kind(event.data) == CHECKPOINT:
            self._compacted(event, len(gone))
        else:
            self._note("compaction", f"{len(gone)} older messages were replaced (seq {event.seq})")

    def _compacted(self, event: Event, dropped: int) -> None:
        state = self.state
        summary = state.summaries.get(text_of(mapping(event.data.get("source")).get("compactionId")), {})
        tokens = whole(summary.get("tokens"))
        state.compactions.append(
            Compaction(
                at=event.at,
                trigger=None,
                before_tokens=tokens,
                after_tokens=whole(summary.get("after")),
                kept=len(state.surface) - 1,
                dropped=dropped,
                path=self.path,
                line=event.line,
            )
        )
        size = "" if tokens is None else f" ({tokens} tokens)"
        self._note("compaction", f"{dropped} messages{size} were replaced by a summary")

    def name_odd(self, reason: str, event: Event) -> None:
        """Count an event that was not understood; the session goes on."""
        if len(self.state.bad) < MOST_BAD_ROWS:
            self.state.bad.append(BadRow(reason, event.line, event.offset))

    def _note(self, cause: DropCause, evidence: str) -> None:
        self.state.happened.append(CacheEvent(cause, RawText(evidence)))

    # ---------------------------------------------------------------------------------------- what events mean

    def _title(self, event: Event) -> None:
        self.state.title = text_or_none(event.data.get("title")) or self.state.title

    def _queue(self, event: Event) -> None:
        """The inbox is a list a target: some places are taken out, others put in."""
        data = event.data
        inserted = items(data.get("inserted"))
        waiting = self.state.inbox.setdefault(text_of(data.get("target")), [])
        start, removed = whole(data.get("start")) or 0, whole(data.get("removedCount")) or 0
        waiting[start : start + max(removed, 0)] = [text_of(item.get("id")) for item in inserted]
        for item in inserted:
            if source_kind(item) == USER and isinstance(item.get("id"), str):
                self.state.queued[item["id"]] = plain_text(item.get("content"))

    def _user(self, event: Event) -> None:
        state = self.state
        kind = source_kind(event.data)
        state.queued.pop(text_of(event.data.get("id")), None)
        if kind == USER:
            state.prompts += 1
            if state.preview is None:
                state.preview = (plain_text(event.data.get("content"))[:PREVIEW_CHARACTERS]) or None
        elif kind == RUNTIME_CONTEXT:
            state.context_shown = True

    def _system(self, event: Event) -> None:
        digest = digest_of(mapping(event.data.get("message")).get("content"))
        if self.state.digests.get("system message", digest) != digest:
            self._note("context-change", "the system message is another one")
        self.state.digests["system message"] = digest

    def _request_header(self, event: Event) -> None:
        state = self.state
        header = mapping(event.data.get("header"))
        config = mapping(header.get("config"))
        state.config = dict(config)
        state.model = text_or_none(config.get("model")) or state.model
        state.provider = text_or_none(config.get("provider")) or state.provider
        settings = {key: value for key, value in config.items() if key not in ("model", "provider")}
        parts = {"system prompt": header.get("system"), "tool list": header.get("tools"), "settings": settings}
        for name, part in parts.items():
            digest = digest_of(part)
            if state.digests.get(name, digest) != digest:
                self._note("context-change", f"the {name} changed (seq {event.seq})")
            state.digests[name] = digest

    def _request_context(self, event: Event) -> None:
        state = self.state
        state.model = text_or_none(event.data.get("model")) or state.model
        state.provider = text_or_none(event.data.get("provider")) or state.provider
        state.window = whole(event.data.get("contextWindow")) or state.window

    def _chunk(self, event: Event) -> None:
        chunk = mapping(event.data.get("chunk"))
        if chunk.get("type") == "usage":
            self.state.chunk_usage = {"step": step_of(event.data), "usage": dict(mapping(chunk.get("usage")))}

    def _assistant(self, event: Event) -> None:
        message = mapping(event.data.get("message"))
        usage = event.data.get("usage")
        streamed, self.state.chunk_usage = self.state.chunk_usage, None
        if not isinstance(usage, dict) and streamed is not None and streamed["step"] == step_of(event.data):
            usage = streamed["usage"]
        source = mapping(message.get("source"))
        for block in items(message.get("content")):
            if block.get("type") == "tool-call":
                # Some models count their calls anew in each reply: the same id is another call.
                self.state.called += 1
                self.state.calls[text_of(block.get("id"))] = None
        model, provider = text_or_none(source.get("model")), text_or_none(source.get("provider"))
        self._requested(event, usage, model, provider, text_or_none(message.get("id")))

    def _attempt(self, event: Event) -> None:
        usage = event.data.get("usage")
        self._requested(event, usage, None, None, None)

    def _tool_call(self, event: Event) -> None:
        call_id = text_of(event.data.get("callId"))
        if not call_id or call_id not in self.state.calls:
            # No reply shows it: the call is an entry of its own.
            self._weigh(event, 1)
            self.state.called += 1
            self.state.calls[call_id] = None

    def _requested(
        self, event: Event, usage: object, model: str | None, provider: str | None, message_id: str | None
    ) -> None:
        """One model call: an answer, or an attempt that failed and usually has no usage."""
        state = self.state
        before = state.requests[-1].model if state.requests else None
        model, provider = model or state.model, provider or state.provider
        if before is not None and model is not None and before != model:
            self._note("model-change", f"{before} before, {model} now")
        state.model, state.provider = model, provider
        if model is not None and model not in state.models:
            state.models.append(model)
        counted = mapping(usage)
        state.requests.append(
            Request(
                session_id=self._id,
                chain=self._id,
                request_id=message_id or f"seq-{event.seq}",
                message_id=entry_id(event),
                at=event.at,
                model=raw_text(model),
                provider=raw_text(provider),
                usage=usage_of(counted),
                reports_writes="cacheWriteTokens" in counted,
                events=tuple(state.happened),
                cwd=raw_text(None if state.header is None else state.header.cwd),
            )
        )
        state.happened = []

    def _summary_event(self, event: Event) -> None:
        state = self.state
        data = event.data
        usage = usage_of(mapping(data.get("usage")))
        state.summaries[text_of(data.get("compactionId"))] = {
            "tokens": whole(data.get("shadowedTokenCount")),
            "after": usage.output or None,
        }
        state.apart.append(
            Request(
                session_id=self._id,
                chain=f"{self._id}/{COMPACTION_TASK}",
                request_id=text_or_none(data.get("compactionId")),
                message_id=None,
                at=event.at,
                model=raw_text(text_or_none(data.get("model")) or state.model),
                provider=raw_text(text_or_none(data.get("provider")) or state.provider),
                usage=usage,
                reports_writes="cacheWriteTokens" in mapping(data.get("usage")),
                task=COMPACTION_TASK,
                cwd=raw_text(None if state.header is None else state.header.cwd),
            )
        )

    def _offload(self, event: Event) -> None:
        self._note("context-change", f"images were taken out of the context (seq {event.seq})")

    # ------------------------------------------------------------------------------------------------ what it is

    @property
    def all_inherited(self) -> bool:
        """A fork that ends before the events it inherited do."""
        header = self.state.header
        return header is not None and header.seeded and not self.state.cut

    def problems(self) -> tuple[Problem, ...]:
        """Every place that is not read, with its reason."""
        state = self.state
        if state.refusal is not None:
            # Without a header nothing tells the format: then the log is damaged.
            reason = state.refusal if state.header is None else f"{UNSUPPORTED}: {state.refusal}"
            return (Problem(self.path, state.refused_line, state.refused_offset, reason),)
        odd = [Problem(self.path, row.line, row.offset, row.reason) for row in state.bad]
        odd += [
            Problem(self.path, event.line, event.offset, f"{event.type} (seq {event.seq}) follows an unreadable row")
            for event in state.suspended
        ]
        return tuple(odd)

    def summary(self) -> LogSummary:
        """What is known after the events taken in so far."""
        state = self.state
        problems = self.problems()
        if state.header is None or state.refusal is not None:
            return LogSummary(replace(self._header_row(), problems=len(problems)), (), (), problems)
        own = not self.all_inherited
        requests = tuple(state.requests) if own else ()
        row = self._header_row()
        filled = replace(
            row,
            title=raw_text(state.title),
            preview=raw_text(state.preview),
            model=raw_text(state.model),
            models=tuple(RawText(model) for model in state.models) if own else (),
            provider=raw_text(state.provider),
            last_active_at=latest(state.last_at, row.started_at),
            message_count=sum(state.weights.values()) if own else 0,
            tool_call_count=state.called if own else 0,
            resumable=row.resumable and state.corrupt is None,
            problems=len(problems),
            compactions=len(state.compactions) if own else 0,
            hit_rates=tuple(request.usage.hit_rate for request in requests[-SPARKLINE_POINTS:]),
        )
        compactions = tuple(state.compactions) if own else ()
        return LogSummary(filled, requests, compactions, problems, apart=tuple(state.apart) if own else ())

    def _header_row(self) -> SessionRow:
        return header_row(self._store, self._id, self.state.header, readable=self.state.refusal is None)


_HANDLERS: Final[Mapping[str, Callable[[EventFold, Event], None]]] = {
    "session/title": EventFold._title,
    "agent/inbox/spliced": EventFold._queue,
    "user/message": EventFold._user,
    "system/message": EventFold._system,
    "request/header": EventFold._request_header,
    "request/context": EventFold._request_context,
    "assistant/chunk": EventFold._chunk,
    "assistant/message": EventFold._assistant,
    "assistant/attempt": EventFold._attempt,
    "tool/call": EventFold._tool_call,
    "compaction/summary": EventFold._summary_event,
    "image/offload": EventFold._offload,
}


def header_row(store: StoreRef, session_id: SessionId, header: Header | None, *, readable: bool) -> SessionRow:
    """What the header alone tells of a session."""
    if header is None:
        return SessionRow(
            store=store, id=session_id, root_id=session_id, tip_id=session_id, resumable=False, origin="scan"
        )
    return SessionRow(
        store=store,
        id=session_id,
        root_id=session_id,
        tip_id=session_id,
        parent_id=header.parent,
        lineage_kind=header.kind,
        source=raw_text(header.origin),
        cwd=raw_text(header.cwd),
        started_at=header.created_at,
        last_active_at=header.created_at,
        # Sub-agents and forks cannot be driven directly (facts/dsh.md section 6).
        resumable=readable and not header.delegated and not header.seeded,
        origin="scan",
    )


class JsonlFold:
    """The fold of a log file: its first line is the header, the others are events."""

    def __init__(
        self, store: StoreRef, path: str, session_id: SessionId, generation: int, state: bytes | None = None
    ) -> None:
        self._generation = generation
        self._id = session_id
        self._torn: Record | None = None
        self.may_be_torn = not path.endswith(".zstd")
        """A plain log may end in half a line; a compressed one only where its last frame is cut short as well."""
        self.events = EventFold(store, path, session_id, None if state is None else load_state(state))

    def wants(self, line: bytes) -> bool:
        """Every line: sequence numbers are dense, so that each must be seen."""
        del line
        return True

    def feed(self, record: Record) -> None:
        """Take in one line."""
        state = self.events.state
        if not record.complete:
            # What tells of a frame that was cut short has no length and comes last.
            self._torn = record if record.length else None
        if state.header is None and state.refusal is None:
            self._header(record)
            return
        row = event_of_record(record, self.events.path)
        if isinstance(row, BadRow):
            self.events.spoil(row)
            return
        try:
            self.events.take(row)
        except MALFORMED as error:
            self.events.name_odd(f"{row.type} of an unexpected shape ({error})", row)
        if record.problem is not None and (row.giant or record.length <= GIANT_LINE):
            self.events.name_odd(record.problem, row)

    def _header(self, record: Record) -> None:
        header = parse_header(record.value)
        if header is None:
            reason = record.problem or "the first line is no session header"
            self.events.refuse(_at(reason, record.line), record.line, record.offset)
            return
        self.events.begin(header, record.line, record.offset)
        refusal = header_refusal(mapping(record.value), self._generation, self._id)
        if refusal is not None:
            self.events.refuse(refusal, record.line, record.offset)

    def summary(self) -> LogSummary:
        """What is known after the lines fed so far."""
        state = self.events.state
        if state.header is None and state.refusal is None:
            self.events.refuse("the log is empty: not even its header was written")
        if self._torn is not None and not self.may_be_torn:
            # Seen with the runtime 0.2.1rc2: "complete frame contains a torn JSONL record".
            reason, line = "half a line in a whole compressed frame", self._torn.line
            state.corrupt = state.corrupt or _at(reason, line)
            if all(row.line != line for row in state.bad):
                state.bad.append(BadRow(reason, line, self._torn.offset))
        return self.events.summary()

    def dump(self) -> bytes:
        """The state as JSON."""
        return dump_state(self.events.state)


def _at(reason: str, line: int | None) -> str:
    return reason if line is None else f"{reason} (line {line})"
