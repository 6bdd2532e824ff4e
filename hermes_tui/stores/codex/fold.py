"""One rollout read line by line: its thread's row, requests, compactions, problems (facts/codex.md sections 2-5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from hermes_tui.model import LineageKind, Problem, SessionId, SessionRow, StoreRef
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.codex.entries import Entry
from hermes_tui.stores.codex.live import LiveEntries
from hermes_tui.stores.codex.oldest import is_oldest, read_document
from hermes_tui.stores.codex.reader import LineReader, entry_id
from hermes_tui.stores.codex.rollout import Line, Meta, id_time, raw, seconds
from hermes_tui.stores.log_source import MALFORMED, LogFile, LogSummary, problem_of
from hermes_tui.text import RawText

SPARKLINE_POINTS: Final = 12


class CodexFold:
    """See :class:`hermes_tui.stores.log_source.LogFold`."""

    def __init__(self, ref: StoreRef, log: LogFile, state: bytes | None = None) -> None:
        self._ref = ref
        self._log = log
        self._reader = LineReader(log.path, self._take)
        self._oldest = is_oldest(log.path)
        self._problems: list[Problem] = []
        self._live = LiveEntries()
        self._title: str | None = None
        self._cwd: RawText | None = None
        self._at: float | None = None
        self._first_at: float | None = None
        if state is not None:
            self._restore(orjson.loads(state))

    def wants(self, line: bytes) -> bool:
        """Every line, for counts must be those of the transcript; none of a document, which is read whole."""
        del line
        return not self._oldest

    def feed(self, record: Record) -> None:
        """Take in one record."""
        if record.problem is not None:
            self._problems.append(problem_of(self._log.path, record))
        elif record.value is not None and not isinstance(record.value, dict):
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, "not a JSON object"))
        elif record.value is None and not record.rescued:
            self._problems.append(
                Problem(self._log.path, record.line or None, record.offset, "null in place of a record")
            )
        for line, _ in self._reader.feed(record):
            self._seen(line)

    def feed_safely(self, record: Record) -> None:
        """The same, where nobody else counts records of an unexpected shape."""
        try:
            self.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, reason))

    def _seen(self, line: Line) -> None:
        at = seconds(line.stamp)
        if at is not None:
            self._at = at if self._at is None or at > self._at else self._at
            if self._first_at is None:
                self._first_at = at
        if line.type == "turn_context" and self._cwd is None:
            self._cwd = raw(line.payload.get("cwd"))
        elif line.type == "event_msg":
            self._live.look(line)

    # ----------------------------------------------------------------------------------------------- counting

    def _take(self, entry: Entry) -> None:
        if entry.kind == "prompt" and self._title is None and entry.text and entry.text.strip():
            self._title = entry.text
        if entry.copied:
            return
        weighed = self._live.take(entry, entry_id(entry, self._reader.tag))
        if weighed is not None:
            self._reader.ledger.weigh(*weighed)

    # ------------------------------------------------------------------------------------------------ summary

    def summary(self) -> LogSummary:
        """What is known so far; a fold that is asked may still be fed."""
        if self._oldest:
            return self._whole_document()
        if not self._reader.assembler.waits:
            return self._summary()
        # Entries that still wait for a twin count as they are: on a copy, for their twins may be written yet.
        copy = CodexFold(self._ref, self._log, self.dump())
        copy._reader.assembler.finish()
        return copy._summary()

    def _whole_document(self) -> LogSummary:
        fresh = CodexFold(self._ref, self._log)
        try:
            fresh.feed(read_document(self._log.path))
        except OSError as error:
            fresh._problems.append(Problem(self._log.path, None, None, f"cannot be read: {error.strerror or error}"))
        fresh._reader.assembler.finish()
        return fresh._summary()

    def _summary(self) -> LogSummary:
        ledger, meta = self._reader.ledger, self._reader.meta
        requests = tuple(ledger.requests)
        problems = tuple(self._problems) if meta is not None else (self._headless(), *self._problems)
        counted = [link[2] for link in self._live]
        base = row_of(self._ref, self._log, meta)
        sealed = meta is not None and not meta.paginated and any("UTF-8" in problem.reason for problem in problems)
        row = replace(
            base,
            title=raw(self._title),
            preview=raw(self._title),
            model=ledger.model,
            models=tuple(RawText(model) for model in ledger.models) or ((ledger.model,) if ledger.model else ()),
            provider=ledger.provider,
            cwd=base.cwd or self._cwd,
            started_at=base.started_at or self._first_at,
            last_active_at=self._at or base.started_at,
            running=ledger.turn_open,
            # The program refuses a legacy file with bad UTF-8 as a whole (facts/codex.md section 7).
            resumable=base.resumable and not sealed,
            message_count=len(counted),
            tool_call_count=counted.count("tool-call"),
            problems=len(problems),
            compactions=len(ledger.compactions),
            hit_rates=tuple(request.usage.hit_rate for request in requests[-SPARKLINE_POINTS:]),
        )
        own = tuple(replace(r, session_id=row.id, chain=row.id, source=row.source, cwd=row.cwd) for r in requests)
        return LogSummary(row, own, tuple(ledger.compactions), problems)

    def _headless(self) -> Problem:
        """The program refuses such a file; we name the thread by its file (facts/codex.md section 7)."""
        if self._log.size == 0:
            return Problem(self._log.path, None, None, "the file is empty")
        return Problem(self._log.path, 1, 0, "does not start with session metadata; the id is the file name's")

    # -------------------------------------------------------------------------------------------------- state

    def dump(self) -> bytes:
        """The state as JSON bytes."""
        return orjson.dumps(
            {
                "reader": self._reader.dump(),
                "problems": [[p.line, p.offset, p.reason] for p in self._problems],
                "live": self._live.dump(),
                "title": self._title,
                "cwd": self._cwd,
                "at": self._at,
                "first": self._first_at,
            }
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reader.restore(state["reader"])
        self._problems = [Problem(self._log.path, line, offset, reason) for line, offset, reason in state["problems"]]
        self._live.restore(state["live"])
        self._title, self._cwd = state["title"], state["cwd"]
        self._at, self._first_at = state["at"], state["first"]


def row_of(ref: StoreRef, log: LogFile, meta: Meta | None) -> SessionRow:
    """What file name, folder and meta say of a thread."""
    thread = SessionId(meta.id) if meta is not None and meta.id is not None else log.session_id
    row = SessionRow(
        store=ref,
        id=thread,
        root_id=thread,
        tip_id=thread,
        archived=log.archived,
        origin="scan",
        started_at=id_time(thread),
        resumable=meta is not None and not log.archived,
    )
    if meta is None:
        return row
    parent, kind = parent_of(meta)
    return replace(
        row,
        parent_id=parent,
        lineage_kind=kind,
        source=meta.source,
        provider=meta.provider,
        cwd=meta.cwd,
        git_branch=meta.git_branch,
        display_name=meta.nickname,
        started_at=meta.at or row.started_at,
    )


def parent_of(meta: Meta) -> tuple[SessionId | None, LineageKind]:
    """The thread this one came from, and how (facts/codex.md section 4)."""
    if meta.delegated:
        return meta.parent, "delegation"
    if meta.forked_from is not None and meta.forked_from != meta.id:
        return meta.forked_from, "fork"
    return None, "root"
