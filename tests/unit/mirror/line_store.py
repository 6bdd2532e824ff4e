"""A small log store for tests of the mirror: one JSON object a line, one file a session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermes_tui.model import (
    NO_USAGE,
    PowerCut,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
    Usage,
)
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.log_source import LogFile, LogSummary
from hermes_tui.stores.log_texts import LogText, TextPhase
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import ChangeVerb, Transcript
from hermes_tui.text import RawText


class LineFold:
    """Counts lines and adds up usage; its state is its numbers."""

    def __init__(self, store: StoreRef, log: LogFile, state: bytes | None) -> None:
        self.store, self.log = store, log
        self.seen: dict[str, Any] = json.loads(state) if state else {"lines": 0, "in": 0, "last": None, "title": None}

    def wants(self, line: bytes) -> bool:
        return True

    def feed(self, record: Record) -> None:
        value = record.value
        if not isinstance(value, dict):
            return
        self.seen["lines"] += 1
        self.seen["in"] += value.get("in", 0)
        self.seen["last"] = value.get("at", self.seen["last"])
        self.seen["title"] = value.get("title", self.seen["title"])

    def summary(self) -> LogSummary:
        session = self.log.session_id
        usage = Usage(input=self.seen["in"])
        request = Request(session, session, "r1", None, self.seen["last"], RawText("m"), None, usage)
        row = SessionRow(
            self.store,
            session,
            session,
            session,
            title=self.seen["title"],
            message_count=self.seen["lines"],
            last_active_at=self.seen["last"],
            usage=NO_USAGE,
            origin="scan",
        )
        return LogSummary(row, (request,), (), ())

    def dump(self) -> bytes:
        return json.dumps(self.seen).encode()


class LineTexts:
    """Lines with ``text`` are talk, lines with ``tool`` are tool output."""

    def phase(self, line: bytes) -> TextPhase | None:
        if b'"text"' in line[:200]:
            return "talk"
        return "tools" if b'"tool"' in line[:200] else None

    def texts(self, record: Record) -> list[LogText]:
        if not isinstance(record.value, dict):
            return []
        value = record.value
        return [LogText(record, value.get("text", value.get("tool", "")), value.get("at"))]

    def rest(self) -> list[LogText]:
        return []


class LineStore(LogStore):
    """One folder of ``*.jsonl``."""

    folds = 0

    def logs(self) -> Sequence[LogFile]:
        found = []
        for path in sorted(Path(self.ref.path).glob("*.jsonl")):
            stat = path.stat()
            name = SessionId(path.stem)
            found.append(LogFile(str(path), name, stat.st_size, stat.st_mtime_ns, stat.st_dev, stat.st_ino))
        return found

    def peek(self, log: LogFile) -> SessionRow:
        last = [record.value for record in read_records(log.path) if isinstance(record.value, dict)]
        at = last[-1].get("at") if last else None
        return SessionRow(self.ref, log.session_id, log.session_id, log.session_id, last_active_at=at, origin="scan")

    def fold(self, log: LogFile, state: bytes | None = None) -> LineFold:
        LineStore.folds += 1
        return LineFold(self.ref, log, state)

    def log_texts(self, log: LogFile) -> LineTexts:
        return LineTexts()

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        raise NotImplementedError

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        raise NotImplementedError

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        raise NotImplementedError

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        return None


def line_store(folder: Path) -> LineStore:
    """A store over this folder."""
    folder.mkdir(exist_ok=True)
    return LineStore(StoreRef("dsh", "lines", str(folder)))


def append(folder: Path, session: str, *values: dict[str, Any], torn: str = "") -> Path:
    """Add lines to a session's log, and half a line if asked."""
    path = folder / f"{session}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        for value in values:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.write(torn)
    return path
