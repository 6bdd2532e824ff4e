"""Logs from before the database, and messages the database would not take (facts/hermes.md section 1).

``sessions/<id>.jsonl`` and ``pending_messages/`` hold one JSON message a line. They are listed where state.db cannot
be read, and beside it for sessions it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hermes_tui.model import (
    COUNTED_KINDS,
    Message,
    MessageHead,
    MessageKind,
    Problem,
    SessionId,
    SessionRow,
    StoreRef,
)
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import GIANT_LINE, Record, read_line_at, read_records
from hermes_tui.stores.hermes.cells import filled_text, json_text, text_or_none, time_or_none
from hermes_tui.stores.hermes.content import ToolCall, tool_calls
from hermes_tui.stores.hermes.discovery import Home
from hermes_tui.stores.hermes.rows import PREVIEW_CHARACTERS
from hermes_tui.stores.protocol import TEXT_PIECE
from hermes_tui.text import RawText

BATCH: Final = 500
_STARTED: Final = re.compile(r"(?:^|_)(\d{8}_\d{6})(?:_|$)")
_SKIPPED: Final = ("request_dump_", "sessions")
_TIMES: Final = ("timestamp", "created_at", "time", "at")


@dataclass(frozen=True, slots=True)
class LegacyLog:
    """One session that is a file."""

    session_id: str
    paths: tuple[str, ...]


def find_logs(home: Home) -> list[LegacyLog]:
    """Every log of a home by session id; a session may have one in both folders."""
    found: dict[str, list[str]] = {}
    for folder in (home.legacy_sessions, home.pending):
        for path in _logs_in(folder):
            found.setdefault(path.stem, []).append(str(path))
    return [LegacyLog(identity, tuple(paths)) for identity, paths in found.items()]


def _logs_in(folder: Path) -> list[Path]:
    try:
        names = sorted(entry for entry in folder.iterdir() if entry.suffix == ".jsonl" and entry.is_file())
    except OSError:
        return []
    return [path for path in names if not path.name.startswith(_SKIPPED)]


@dataclass(frozen=True, slots=True)
class _Line:
    """One record with the file it is in."""

    path: str
    record: Record


def _lines(log: LegacyLog) -> Iterator[_Line]:
    for path in log.paths:
        for record in read_records(path):
            yield _Line(path, record)


def _message(value: object) -> dict[str, Any] | None:
    """The message in a record: bare, or wrapped with its session's id."""
    if not isinstance(value, dict):
        return None
    inner = value.get("message")
    if "role" not in value and isinstance(inner, dict):
        return inner
    return value if "role" in value else None


def _texts(message: dict[str, Any]) -> str:
    """The text of a message; structured parts by their texts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return "" if content is None else json_text(content)


def _calls(message: dict[str, Any]) -> list[ToolCall]:
    calls = message.get("tool_calls")
    return tool_calls(json_text(calls)) if calls else []


def _time(value: dict[str, Any] | None) -> float | None:
    for name in _TIMES if value is not None else ():
        cell = (value or {}).get(name)
        if isinstance(cell, str):
            try:
                return time_or_none(datetime.fromisoformat(cell).timestamp())
            except ValueError:
                continue
        if (found := time_or_none(cell)) is not None:
            return found
    return None


def started_by_name(session_id: str) -> float | None:
    """The start in an id, local time (facts/hermes.md section 1)."""
    match = _STARTED.search(session_id)
    if match is None:
        return None
    try:
        return time_or_none(datetime.strptime(match[1], "%Y%m%d_%H%M%S").timestamp())
    except (ValueError, OSError, OverflowError):
        return None


def legacy_row(ref: StoreRef, log: LegacyLog) -> SessionRow:
    """The list row of a log; reads the whole of it."""
    preview: RawText | None = None
    counted = calls = problems = 0
    first: float | None = None
    last: float | None = None
    for line in _lines(log):
        if line.record.problem is not None:
            problems += 1
        message = _message(line.record.value)
        if message is None:
            continue
        for kind in _kinds(message):
            counted += kind in COUNTED_KINDS
            calls += kind == "tool-call"
        at = _time(message)
        if at is not None:
            first = at if first is None else min(first, at)
            last = at if last is None else max(last, at)
        if preview is None and message.get("role") == "user":
            preview = (
                RawText(_texts(message)[:PREVIEW_CHARACTERS].replace("\r", " ").replace("\n", " ").strip()) or None
            )
    started = started_by_name(log.session_id)
    if started is None:
        started = first if first is not None else _oldest(log)
    identity = SessionId(log.session_id)
    return SessionRow(
        store=ref,
        id=identity,
        root_id=identity,
        tip_id=identity,
        preview=preview,
        started_at=started,
        last_active_at=last if last is not None else started,
        message_count=counted,
        tool_call_count=calls,
        resumable=False,
        origin="scan",
        problems=problems,
    )


def _oldest(log: LegacyLog) -> float | None:
    """The age of the file, where neither its name nor its lines tell a time."""
    times: list[float] = []
    for path in log.paths:
        try:
            times.append(Path(path).stat().st_mtime)
        except OSError:
            continue
    return time_or_none(min(times, default=None))


def _kinds(message: dict[str, Any]) -> list[MessageKind]:
    """The kinds of entries a message gives."""
    return [kind for kind, _, _ in _entries(message)]


def _entries(message: dict[str, Any]) -> list[tuple[MessageKind, str, ToolCall | None]]:
    found: list[tuple[MessageKind, str, ToolCall | None]] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        found.append(("reasoning", reasoning, None))
    calls = _calls(message)
    text = _texts(message)
    if text or not (found or calls):
        found.append((_kind(message), text, None))
    found += [("tool-call", call.arguments, call) for call in calls]
    return found


def _kind(message: dict[str, Any]) -> MessageKind:
    kinds: dict[str, MessageKind] = {
        "user": "prompt",
        "assistant": "reply",
        "tool": "tool-result",
        "system": "context",
        "session_meta": "notice",
    }
    return kinds.get(str(message.get("role")), "unknown")


class LegacyTranscript:
    """The messages of sessions that are files."""

    def __init__(self, logs: Sequence[LegacyLog]) -> None:
        self._logs = tuple(logs)
        self._problems: list[Problem] = []

    @property
    def problems(self) -> Sequence[Problem]:
        """Lines that could not be read; complete once the heads are read."""
        return tuple(self._problems)

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry in the order of the files."""
        batch: list[MessageHead] = []
        self._problems = []
        for log in self._logs:
            for line in _lines(log):
                batch += self._line_heads(log, line)
                if len(batch) >= BATCH:
                    yield tuple(batch)
                    batch = []
        if batch:
            yield tuple(batch)

    def _line_heads(self, log: LegacyLog, line: _Line) -> Iterator[MessageHead]:
        record = line.record
        if record.problem is not None:
            self._problems.append(Problem(line.path, record.line, record.offset, record.problem))
        message = _message(record.value)
        if message is None:
            if record.problem is None:
                self._problems.append(Problem(line.path, record.line, record.offset, "the line holds no message"))
            return
        for part, (kind, text, call) in enumerate(_entries(message)):
            yield MessageHead(
                id=f"{Path(line.path).parent.name}:{record.line}",
                part=part,
                session_id=SessionId(log.session_id),
                role=filled_text(message.get("role")),
                kind=kind,
                state="live",
                at=_time(message),
                size=len(text.encode("utf-8", "replace")),
                tool_name=text_or_none(call.name if call else message.get("tool_name") or message.get("name")),
                tool_call_id=text_or_none(call.id if call else message.get("tool_call_id")),
                path=line.path,
                line=record.line,
                offset=record.offset,
                length=record.length,
            )

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries; these logs are small."""
        return [head for batch in self.heads() for head in batch][-count:] if count > 0 else ()

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """The texts of these entries; a log holds no other text for the model."""
        del sent
        return [self._loaded(head) for head in heads]

    def _loaded(self, head: MessageHead) -> Message:
        text = self._text(head)
        raw = text.encode("utf-8", "replace")
        if len(raw) <= TEXT_PIECE:
            return Message(head, RawText(text))
        return Message(head, RawText(raw[:TEXT_PIECE].decode("utf-8", "ignore")), cut=True)

    def _text(self, head: MessageHead) -> str:
        if head.path is None or head.offset is None or head.length is None or head.length > GIANT_LINE:
            return ""
        message = _message(read_line_at(head.path, head.offset, head.length).value)
        entries = _entries(message) if message is not None else []
        return entries[head.part][1] if head.part < len(entries) else ""

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """Characters of one text."""
        return RawText(self._text(head)[start : start + length])


def unsaved_prints(log: LegacyLog) -> list[str]:
    """A mark of each message in a log, to look for in the store."""
    found: list[str] = []
    for line in _lines(log):
        message = _message(line.record.value)
        if message is not None and message.get("role") != "session_meta":
            found.append(message_print(str(message.get("role")), _texts(message)))
    return found


def message_print(role: str, text: str) -> str:
    """Equal for messages with the same role and text."""
    # Imported late: 2 ms that only a log beside the database needs.
    import hashlib

    return hashlib.sha1(f"{role}\0{text}".encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
