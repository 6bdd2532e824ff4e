"""What a resume would send: from the last compaction on, its summary, the lines it kept, and what followed.

Which lines: :mod:`hermes_tui.stores.claude.resume`. Here the parts the real program leaves out on the way (calls
without results, results without calls, thoughts without a reply, told errors) and what it adds after an unfinished turn
(facts/claude-code.md section 6). Held against the real program by tests/beside/test_claude_resume.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hermes_tui.model import (
    IgnoredRecord,
    Message,
    MessageHead,
    PowerCut,
    Recovery,
    SessionRow,
    StoreRef,
)
from hermes_tui.storage.jsonl import read_piece
from hermes_tui.stores.claude.lines import ABSURD_TIME, LOCAL_COMMAND, Entry
from hermes_tui.stores.claude.relations import NO_RELATION, Relation, as_far_as, without_copies
from hermes_tui.stores.claude.resume import resumed
from hermes_tui.stores.claude.transcript import (
    ClaudeTranscript,
    IndexedFold,
    LogView,
    PartHead,
    head_of,
    parts_of_lines,
    read_view,
)
from hermes_tui.stores.logs import with_requests
from hermes_tui.text import RawText

BLOCK: Final = 1 << 20
CONTINUE_TEXT: Final = "Continue from where you left off."
"""What the real program says for the user when a turn broke off before the reply."""
NO_REPLY_TEXT: Final = "No response requested."
"""What it says for the model, so that a user line never stands last."""


class SentPart(NamedTuple):
    """One part of a line that goes out."""

    entry: Entry
    place: int
    part: PartHead


class Addition(NamedTuple):
    """What a resume adds after an unfinished turn: behind which line, and whether the user's line is added too."""

    after: str
    asks: bool


def recover(
    ref: StoreRef,
    view: LogView,
    complete: Callable[[SessionRow], SessionRow],
    cut: PowerCut | None,
    relation: Relation = NO_RELATION,
) -> Recovery:
    """The recovery of one log, as if it ended at the cut.

    Args:
        ref: its store.
        view: the log.
        complete: makes the list's row of what the log says of itself.
        cut: where the power goes.
        relation: what the log copied, without the cut.

    Raises:
        OSError: it cannot be read.
    """
    limited = view if cut is None else replace(view, end=cut_offset(view.log.path, cut))
    fold = read_view(ref, limited, strict=True)
    lines, boundary = resumed(
        fold.looked_at(), fold.header.mark, fold.preserved, sidechain=fold.sidechain, built=fold.whole()
    )
    return Recovery(
        session_id=view.session_id,
        base_kind="start" if boundary is None else "compaction",
        base_at=boundary.at if boundary is not None else None,
        base_path=view.log.path if boundary is not None else None,
        base_line=boundary.line if boundary is not None else None,
        messages=tuple(_messages(ref, limited, fold, lines)),
        baseline=None,
        window=None,
        reinjects_context=True,
        ignored=_ignored(fold),
        row=complete(_row(fold if not fold.left_out else read_view(ref, limited), relation)),
    )


def _messages(ref: StoreRef, view: LogView, fold: IndexedFold, lines: Sequence[Entry]) -> Iterator[Message]:
    sent = list(sent_parts(view.log.path, fold, lines))
    addition = unfinished(sent, fold)
    transcript = ClaudeTranscript(ref, [view])
    transcript.adopt(view, fold)
    last_place = {part.entry.uuid: place for place, part in enumerate(sent)}
    heads = [head_of(view, fold.tool_names, entry, number, part, "live") for entry, number, part in sent]
    for place, (message, (entry, _, _)) in enumerate(zip(transcript.load(heads, sent=True), sent, strict=True)):
        yield message
        if addition is not None and addition.after == entry.uuid and last_place[entry.uuid] == place:
            yield from _added(view, entry, addition)


def _added(view: LogView, after: Entry, addition: Addition) -> Iterator[Message]:
    if addition.asks:
        yield _said(view, after, "resume-user", "user", CONTINUE_TEXT)
    yield _said(view, after, "resume-assistant", "assistant", NO_REPLY_TEXT)


def _said(view: LogView, after: Entry, name: str, role: str, text: str) -> Message:
    head = MessageHead(
        id=f"{name}-after-{after.uuid}",
        part=0,
        session_id=view.session_id,
        role=RawText(role),
        kind="context" if role == "user" else "notice",
        state="live",
        at=None,
        size=len(text),
    )
    return Message(head, RawText(text))


# ------------------------------------------------------------------------------------------------- what goes out


def sent_parts(path: str, fold: IndexedFold, lines: Sequence[Entry]) -> Iterator[SentPart]:
    """The parts of these lines that the real program sends.

    Raises:
        OSError: the log cannot be read any more.
    """
    going = [entry for entry in lines if _goes_out(entry)]
    parts = [
        SentPart(entry, place, part)
        for entry, some in zip(going, parts_of_lines(path, fold.parts, going), strict=True)
        for place, part in enumerate(some)
    ]
    calls = {part.tool_call_id for _, _, part in parts if part.kind == "tool-call"}
    results = {part.tool_call_id for _, _, part in parts if part.kind == "tool-result"}
    answered: set[str | None] = set()
    kept: list[SentPart] = []
    for sent in parts:
        part = sent.part
        if part.kind == "tool-call" and part.tool_call_id not in results:
            continue
        if part.kind == "tool-result":
            if part.tool_call_id not in calls or part.tool_call_id in answered:
                continue
            answered.add(part.tool_call_id)
        if part.blank and part.kind in ("reply", "notice"):
            continue
        kept.append(sent)
    spoken = {_reply_id(sent.entry) for sent in kept if sent.part.kind != "reasoning"}
    for sent in kept:
        if sent.part.kind != "reasoning" or _reply_id(sent.entry) in spoken:
            yield sent


def _goes_out(entry: Entry) -> bool:
    if entry.detached or entry.error:
        return False
    return entry.type in ("user", "assistant", "attachment") or entry.subtype == LOCAL_COMMAND


def _reply_id(entry: Entry) -> str:
    return entry.message_id or entry.uuid


def unfinished(sent: Sequence[SentPart], fold: IndexedFold) -> Addition | None:
    """What is added when the last turn has no reply; lines of the interactive screen's commands do not count."""
    turns: list[Entry] = []
    for part in sent:
        if part.entry.type != "system" and (not turns or turns[-1].uuid != part.entry.uuid):
            turns.append(part.entry)
    if any(entry.error for entry in fold.entries[-1:]) or not turns:
        return None
    last = turns[-1]
    if last.type == "attachment":
        spoken = [entry for entry in turns if entry.type != "attachment"]
        if not spoken or spoken[-1].type != "user" or spoken[-1].meta or spoken[-1].summary:
            return None
        return Addition(last.uuid, asks=True)
    if last.type != "user":
        return None
    return Addition(last.uuid, asks=last.has_result)


# -------------------------------------------------------------------------------------------------------- around


def cut_offset(path: str, cut: PowerCut) -> int:
    """Where the log ends when the power goes: behind a whole line, or behind so many of its bytes.

    Raises:
        OSError: the log cannot be read.
    """
    begin = _line_start(path, cut.line)
    if cut.byte is not None:
        return min(begin + max(0, cut.byte), _line_start(path, cut.line + 1))
    return _line_start(path, cut.line + 1)


def _line_start(path: str, line: int) -> int:
    """Bytes before a line (1-based); the size of the log when it has fewer."""
    offset, left = 0, line - 1
    while left > 0:
        block = read_piece(path, offset, BLOCK)
        if not block:
            return offset
        here = block.count(b"\n")
        if here < left:
            left -= here
            offset += len(block)
            continue
        at = -1
        for _ in range(left):
            at = block.index(b"\n", at + 1)
        return offset + at + 1
    return offset


def _ignored(fold: IndexedFold) -> tuple[IgnoredRecord, ...]:
    return tuple(
        IgnoredRecord(problem.path, problem.line, problem.reason)
        for problem in fold.problems
        if not problem.reason.startswith(ABSURD_TIME)  # the line itself is taken in
    )


def _row(fold: IndexedFold, relation: Relation) -> SessionRow:
    """What the log says of itself up to the cut, as a list reads it: with what can be cut out of damaged lines."""
    summary = fold.summary()
    if relation is not NO_RELATION:
        summary = without_copies(summary, as_far_as(relation, fold.trace()))
    return with_requests(summary)
