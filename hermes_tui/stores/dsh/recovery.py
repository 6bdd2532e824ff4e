"""What the model would be sent if a DSH session were resumed now: its surface (facts/dsh.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_tui.model import IgnoredRecord, Message, PowerCut, Recovery, SessionId, SessionRow
from hermes_tui.stores.dsh.backend import Backend
from hermes_tui.stores.dsh.content import CHECKPOINT, source_kind
from hermes_tui.stores.dsh.events import Event
from hermes_tui.stores.dsh.fold import EventFold
from hermes_tui.stores.dsh.format import SessionCorruptError, SessionFormatUnsupportedError
from hermes_tui.stores.dsh.transcript import head_of, kept_events, message_of, reading_of, state_of
from hermes_tui.stores.logs import LogFile


def recover(
    backend: Backend, session_id: SessionId, log: LogFile, fold: EventFold, row: SessionRow, cut: PowerCut | None
) -> Recovery:
    """The surface of a folded session in its order.

    Raises:
        SessionFormatUnsupportedError: the log is of a format that is not read.
        SessionCorruptError: the log is damaged where its own program does not read on.
    """
    state = fold.state
    if state.refusal is not None:
        raise SessionFormatUnsupportedError(log.path, state.refusal)
    if state.corrupt is not None:
        raise SessionCorruptError(log.path, state.corrupt)
    standing: dict[int, list[Message]] = {}
    base: Event | None = None
    ignored: list[IgnoredRecord] = []
    on_surface = set(state.surface)
    for event, messages in _read(backend, session_id, log, fold, cut):
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
        messages=tuple(message for seq in state.surface for message in standing.get(seq, ())),
        baseline=state.config,
        window=None,
        reinjects_context=not state.context_shown,
        ignored=tuple(ignored),
        row=row,
    )


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
