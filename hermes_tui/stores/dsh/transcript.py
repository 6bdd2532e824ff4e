"""The entries of DSH sessions: every event in order of its log, with what became of it (facts/dsh.md section 2).

A first pass folds the log, for only its end tells what was replaced, inherited or dropped; the second gives the heads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from hermes_tui.model import (
    Compaction,
    Message,
    MessageHead,
    MessageState,
    Problem,
    SessionId,
)
from hermes_tui.storage.jsonl import GIANT_HEAD
from hermes_tui.stores.dsh.backend import AGAIN, Backend
from hermes_tui.stores.dsh.content import entry_id, raw_text
from hermes_tui.stores.dsh.entries import Entry, Reading
from hermes_tui.stores.dsh.events import MOST_WHOLE, Event
from hermes_tui.stores.dsh.fold import EventFold
from hermes_tui.stores.dsh.sequence import Numbers
from hermes_tui.stores.dsh.state import DshState
from hermes_tui.stores.giant_text import GiantText
from hermes_tui.stores.logs import LogFile
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

BATCH: Final = 300
"""Heads given at once."""


class DshTranscript:
    """The entries of one session, or of several one after another."""

    def __init__(self, backend: Backend, logs: Sequence[tuple[SessionId, LogFile]]) -> None:
        self._backend = backend
        self._logs = dict(logs)
        self._folds: dict[SessionId, EventFold] = {}
        self._problems: dict[SessionId, tuple[Problem, ...]] = {}
        self._giant: GiantText | None = None
        self._long: tuple[MessageHead, str] | None = None

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read, session by session."""
        return tuple(problem for found in self._problems.values() for problem in found)

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """See :meth:`Transcript.heads`; a message several sessions hold is given where it is met first."""
        seen: set[tuple[str, int]] | None = set() if len(self._logs) > 1 else None
        for session_id, log in self._logs.items():
            batch: list[MessageHead] = []
            for head in self._heads(session_id, log):
                if seen is not None and (head.id, head.part) in seen and not head.id.startswith("seq-"):
                    continue
                if seen is not None:
                    seen.add((head.id, head.part))
                batch.append(head)
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
            if batch:
                yield batch

    def tail(self, count: int) -> Sequence[MessageHead]:
        """See :meth:`Transcript.tail`; the log is read once, for compressed ones have no other way in."""
        last: deque[MessageHead] = deque(maxlen=count)
        for batch in self.heads():
            last.extend(batch)
        return tuple(last)

    def _fold(self, session_id: SessionId, log: LogFile) -> EventFold | None:
        if session_id not in self._folds and session_id not in self._problems:
            try:
                fold = self._backend.read(log)
            except OSError as error:
                self._problems[session_id] = (
                    Problem(log.path, None, None, f"cannot be read: {error.strerror or error}"),
                )
                return None
            self._folds[session_id] = fold
            self._problems[session_id] = fold.problems()
        return self._folds.get(session_id)

    def _heads(self, session_id: SessionId, log: LogFile) -> Iterator[MessageHead]:
        fold = self._fold(session_id, log)
        if fold is None or fold.state.refusal is not None or fold.state.header is None:
            return
        reading = reading_of(fold.state)
        seen: set[tuple[str, int]] = set()
        for event in kept_events(self._backend.events(log), fold.state):
            for entry in reading.entries(event):
                head = head_of(session_id, log.path, event, entry, state_of(event, fold))
                if (head.id, head.part) in seen:
                    head = replace(head, id=f"{head.id}{AGAIN}{event.seq}")
                seen.add((head.id, head.part))
                yield head

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """See :meth:`Transcript.load`; what is sent is what is stored."""
        del sent
        messages: list[Message] = []
        for session_id, group in groupby(heads, key=lambda head: head.session_id):
            asked = list(group)
            log = self._logs[session_id]
            fold = self._fold(session_id, log)
            if fold is None:
                messages += [Message(head, None) for head in asked]
                continue
            for head, event in self._backend.at(log, asked):
                messages.append(self._message(log, fold, head, event))
        return messages

    def _message(self, log: LogFile, fold: EventFold, head: MessageHead, event: Event | None) -> Message:
        if event is None:
            return Message(head, None)
        if event.giant:
            raw = self._backend.raw(log, head, 0, GIANT_HEAD)
            return Message(head, RawText(raw.decode("utf-8", "replace")), cut=True)
        entry = entry_of(fold.state, event, head.part)
        if entry is None:
            return Message(head, None)
        return message_of(head, entry, _compaction(fold.state, event))

    def _giant_text(self, path: str, head: MessageHead) -> GiantText:
        place = (path, head.offset or 0)
        if self._giant is None or self._giant.place != place:
            self._giant = GiantText(*place, head.length or 0)
        return self._giant

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """See :meth:`Transcript.piece`; of a line too long to be loaded, the stored bytes themselves."""
        log = self._logs[head.session_id]
        if (head.length or 0) > MOST_WHOLE:
            return RawText(self._giant_text(log.path, head).piece(start, length))
        if self._long is None or self._long[0] != head:
            # Pieces follow each other: the line is parsed once for all of them.
            self._long = (head, self._text_of(log, head))
        return RawText(self._long[1][start : start + length])

    def _text_of(self, log: LogFile, head: MessageHead) -> str:
        fold = self._fold(head.session_id, log)
        for _, event in self._backend.at(log, [head]):
            entry = None if event is None or fold is None else entry_of(fold.state, event, head.part)
            if entry is not None:
                return entry.text
        return ""


def reading_of(state: DshState) -> Reading:
    """How the events of this session are read from the beginning."""
    header = state.header
    version = 0 if header is None else header.version
    return Reading(version, delegated=header is not None and header.delegated, queued=state.queued)


def entry_of(state: DshState, event: Event, part: int) -> Entry | None:
    """One entry of an event read alone; the names earlier events gave are in its head."""
    return next((entry for entry in reading_of(state).entries(event) if entry.part == part), None)


def kept_events(events: Iterator[Event], state: DshState) -> Iterator[Event]:
    """The events the fold took in: without what stands there twice and what follows a row that ends the session."""
    dropped = {(event.seq, event.line) for event in state.suspended}
    met = Numbers()
    for event in events:
        if met.fits(event.seq) and (event.seq, event.line) not in dropped:
            met.meet(event.seq, event.span)
            yield event


def state_of(event: Event, fold: EventFold) -> MessageState:
    """What became of an event: copied from the parent, taken from the surface, or still there."""
    state = fold.state
    if event.seq < state.inherited or fold.all_inherited or _within(event.seq, state.odd_inherited):
        return "inherited"
    return "compacted" if event.seq in state.replaced else "live"


def _within(number: int, runs: list[list[int]]) -> bool:
    return any(first <= number < behind for first, behind in runs)


def head_of(session_id: SessionId, path: str, event: Event, entry: Entry, state: MessageState) -> MessageHead:
    """The head of one entry."""
    return MessageHead(
        id=entry_id(event),
        part=entry.part,
        session_id=session_id,
        role=raw_text(entry.role),
        kind=entry.kind,
        state=state,
        at=event.at,
        size=event.length if event.giant else len(entry.text.encode("utf-8", "surrogatepass")),
        tool_name=raw_text(entry.tool_name),
        tool_call_id=raw_text(entry.tool_call_id),
        path=None if event.line is None else path,
        line=event.line,
        offset=event.offset,
        length=event.length,
    )


def message_of(head: MessageHead, entry: Entry, compaction: Compaction | None) -> Message:
    """One entry with its text, cut where it is very long."""
    cut = head.size > TEXT_PIECE
    return Message(
        head=head,
        text=RawText(entry.text[:TEXT_PIECE] if cut else entry.text),
        model=raw_text(entry.model),
        usage=entry.usage,
        compaction=compaction if entry.kind == "summary" else None,
        cut=cut,
        attachments=tuple(RawText(text) for text in entry.attachments),
    )


def _compaction(state: DshState, event: Event) -> Compaction | None:
    return next((item for item in state.compactions if (item.line, item.at) == (event.line, event.at)), None)
