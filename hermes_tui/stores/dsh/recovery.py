"""What the model would be sent if a DSH session were resumed now: its surface (facts/dsh.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hermes_tui.model import IgnoredRecord, Message, MessageKind, PowerCut, Recovery, SessionId, SessionRow
from hermes_tui.stores.dsh.backend import Backend
from hermes_tui.stores.dsh.content import CHECKPOINT, USER, items, mapping, source_kind, text_of, whole_text
from hermes_tui.stores.dsh.entries import Entry, result_of
from hermes_tui.stores.dsh.events import Event
from hermes_tui.stores.dsh.fold import EventFold
from hermes_tui.stores.dsh.format import SessionCorruptError, SessionFormatUnsupportedError, text_or_none
from hermes_tui.stores.dsh.transcript import head_of, kept_events, message_of, reading_of, state_of
from hermes_tui.stores.logs import LogFile

NEVER_STARTED: Final = (
    "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed."
)
OUTCOME_UNKNOWN: Final = (
    "The tool call was interrupted after it was recorded, but no result was durably recorded. Its outcome is unknown."
    " Decide whether to retry from the tool semantics: retry only if the operation is read-only or idempotent; if it"
    " may have side effects, first verify external state or ask the user. Do not retry blindly."
)


def recover(
    backend: Backend, session_id: SessionId, log: LogFile, fold: EventFold, row: SessionRow, cut: PowerCut | None
) -> Recovery:
    """The surface of a folded session in its order.

    Raises:
        SessionFormatUnsupportedError: the log is of a format that is not read.
        SessionCorruptError: the log is damaged where its own program does not read on.
    """
    state = fold.state
    if state.refusal is not None and state.header is None:
        raise SessionCorruptError(log.path, state.refusal)
    if state.refusal is not None:
        raise SessionFormatUnsupportedError(log.path, state.refusal)
    if state.corrupt is not None:
        raise SessionCorruptError(log.path, state.corrupt)
    repair = _Repair(session_id, log.path, fold)
    standing: dict[int, list[Message]] = {}
    base: Event | None = None
    ignored: list[IgnoredRecord] = []
    on_surface = set(state.surface)
    for event, messages in _read(backend, session_id, log, fold, cut):
        repair.see(event, standing=event.seq in on_surface)
        if event.seq in on_surface:
            standing[event.seq] = messages
            if event.type == "user/message" and source_kind(event.data) == CHECKPOINT:
                base = event
        elif (reason := _passed_over(event, state.replaced.get(event.seq))) is not None:
            ignored.append(IgnoredRecord(log.path, event.line, reason))
    ignored += [IgnoredRecord(problem.path, problem.line, problem.reason) for problem in fold.problems()]
    return Recovery(
        session_id=session_id,
        base_kind="start" if base is None else "compaction",
        base_at=None if base is None else base.at,
        base_path=None if base is None or base.line is None else log.path,
        base_line=None if base is None else base.line,
        messages=(
            *(message for seq in state.surface for message in standing.get(seq, ())),
            *repair.results(),
            *repair.waiting(),
        ),
        baseline=state.config,
        window=None,
        reinjects_context=not state.context_shown,
        ignored=tuple(ignored),
        row=row,
    )


class _Repair:
    """What the real program adds to a log that ends in the middle of a turn, before it goes on.

    Seen with the runtime 0.2.1rc2: each call without a result gets one that says so, in one of two wordings; then what
    still waits in the inbox is sent.
    """

    def __init__(self, session_id: SessionId, path: str, fold: EventFold) -> None:
        self._session_id = session_id
        self._path = path
        self._inbox = {item for waiting in fold.state.inbox.values() for item in waiting}
        self._open: dict[str, tuple[Event, str | None]] = {}
        self._started: set[str] = set()
        self._waiting: list[Message] = []

    def see(self, event: Event, *, standing: bool) -> None:
        """Note calls, their results and what is queued."""
        if event.type == "assistant/message" and standing:
            for block in items(mapping(event.data.get("message")).get("content")):
                if block.get("type") == "tool-call" and isinstance(block.get("id"), str):
                    self._open[block["id"]] = (event, text_or_none(block.get("name")))
                    # An earlier call of the same id says nothing of this one.
                    self._started.discard(block["id"])
        elif event.type == "tool/call":
            self._started.add(text_of(event.data.get("callId")))
        elif event.type == "tool/result":
            self._open.pop(result_of(event.data), None)
        elif event.type == "agent/inbox/spliced":
            self._queue(event, items(event.data.get("inserted")))

    def _queue(self, event: Event, inserted: list[Mapping[str, object]]) -> None:
        for part, item in enumerate(inserted):
            if text_of(item.get("id")) in self._inbox:
                kind: MessageKind = "prompt" if source_kind(item) == USER else "context"
                entry = Entry(part, kind, whole_text(item.get("content")), role="user")
                self._waiting.append(self._message(event, entry, text_of(item.get("id"))))

    def results(self) -> Iterator[Message]:
        """A result for each call that has none."""
        for call_id, (event, name) in self._open.items():
            text = OUTCOME_UNKNOWN if call_id in self._started else NEVER_STARTED
            entry = Entry(0, "tool-result", text, role="tool", tool_name=name, tool_call_id=call_id)
            yield self._message(event, entry, f"result-of-{call_id}")

    def waiting(self) -> list[Message]:
        """Prompts that were queued and never taken."""
        return self._waiting

    def _message(self, event: Event, entry: Entry, message_id: str) -> Message:
        head = head_of(self._session_id, self._path, event, entry, "live")
        return message_of(replace(head, id=message_id), entry, None)


def _read(
    backend: Backend, session_id: SessionId, log: LogFile, fold: EventFold, cut: PowerCut | None
) -> Iterator[tuple[Event, list[Message]]]:
    reading = reading_of(fold.state)
    for event in kept_events(backend.events(log, cut), fold.state):
        state = state_of(event, fold)
        messages = [
            message_of(head_of(session_id, log.path, event, entry, state), entry, None)
            for entry in reading.entries(event)
        ]
        yield event, messages


def _passed_over(event: Event, by: int | None) -> str | None:
    """Why a record that once was, or could be, part of a request is none now."""
    if by is not None:
        return f"{event.type} (seq {event.seq}) was replaced by seq {by}"
    if event.type == "assistant/attempt":
        return f"a failed attempt (seq {event.seq}) is never sent again"
    return None
