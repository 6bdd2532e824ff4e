"""One rollout read line by line: its thread's row, requests, compactions, problems (facts/codex.md sections 2-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from hermes_tui.model import LineageKind, MessageKind, Problem, SessionId, SessionRow, StoreRef
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.codex.entries import Entry
from hermes_tui.stores.codex.live import LiveEntries
from hermes_tui.stores.codex.oldest import is_oldest, read_document
from hermes_tui.stores.codex.reader import LineReader, entry_id
from hermes_tui.stores.codex.rollout import Line, Meta, id_time, raw, seconds, string
from hermes_tui.stores.conversation import latest
from hermes_tui.stores.log_source import MALFORMED, LogFile, LogSummary, problem_of
from hermes_tui.text import RawText

SPARKLINE_POINTS: Final = 12
_STAMP_LENGTH: Final = len("2026-11-29T16:35:31.791Z")
_EVENT_REACH: Final = 140
"""Bytes of a line within which its types stand."""
_ITEM_REACH: Final = 460
"""Bytes of an ``item_completed`` line within which the item's type stands."""
_ITEMS_NEEDED: Final = (b'"UserMessage"', b'"ContextCompaction"')
"""Items that say more than a raw twin."""
_TWINS: Final = (
    b'"agent_message"', b'"agent_reasoning"', b'"agent_reasoning_raw_content"', b'"patch_apply_end"',
    b'"mcp_tool_call_end"', b'"web_search_end"', b'"image_generation_end"', b'"exec_command_end"',
)  # fmt: skip
"""Events that repeat a raw item."""
_NEW_SIZE: Final = b'"last_token_usage":{"input_tokens":0,'
"""In the count after a compaction: the only one that says more than the records (facts/codex.md section 5)."""
_SKIMMED: Final[dict[object, MessageKind]] = {
    "message": "reply", "reasoning": "reasoning", "function_call": "tool-call", "custom_tool_call": "tool-call",
    "function_call_output": "tool-result", "custom_tool_call_output": "tool-result",
}  # fmt: skip
_MOST_READ_AGAIN: Final = 32 << 20
"""Bytes of a log with an open turn that are read a second time: while a thread runs it is folded often."""


class CodexFold:
    """See :class:`hermes_tui.stores.log_source.LogFold`."""

    def __init__(self, ref: StoreRef, log: LogFile, state: bytes | None = None, *, precise: bool = False) -> None:
        self._ref = ref
        self._log = log
        self._precise = precise
        """Every line is looked at."""
        self._end = 0
        """Bytes fed so far."""
        self._stamp = ""
        self._reader = LineReader(log.path, self._take, self._seen)
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
        """Not events that repeat a raw item, while nothing is damaged; none of a document, which is read whole."""
        if self._oldest:
            return False
        if self._precise:
            return True
        head = line[:_EVENT_REACH]
        if b'"event_msg"' not in head:
            return True
        if b'"item_completed"' in head:
            return any(word in line[:_ITEM_REACH] for word in _ITEMS_NEEDED)
        if b'"token_count"' in head and self._reader.ledger.has_records:
            return _NEW_SIZE in line
        return not any(word in head for word in _TWINS)

    def feed(self, record: Record) -> None:
        """Take in one record."""
        self._end = record.end
        value = record.value
        if value is None or record.problem is not None:
            self._damage(record)
        elif type(value) is not dict:
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, "not a JSON object"))
        elif not self._precise and value.get("type") == "response_item" and self._skim(value, record):
            return
        self._reader.feed(record)

    def _skim(self, value: dict[str, Any], record: Record) -> bool:
        """Count an item of the model at once: what :meth:`LineReader.feed` would do, at a third of the price."""
        reader, payload = self._reader, value.get("payload")
        if reader.owner.copied or reader.assembler.waits or type(payload) is not dict:
            return False
        kind = _SKIMMED.get(payload.get("type"))
        if kind is None or (kind == "reply" and payload.get("role") != "assistant"):
            return False
        reader.skim(kind, payload, record.line)
        if kind != "reasoning":
            self._live.add(string(payload.get("id")) or f"{reader.tag}L{record.line}", kind)
        stamp = value.get("timestamp")
        if type(stamp) is str and stamp > self._stamp and len(stamp) == _STAMP_LENGTH:
            self._stamp = stamp
        return True

    def _damage(self, record: Record) -> None:
        if record.problem is not None:
            self._problems.append(problem_of(self._log.path, record))
        elif not record.rescued:
            reason = "null in place of a record"
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, reason))

    def feed_safely(self, record: Record) -> None:
        """The same, where nobody else counts records of an unexpected shape."""
        try:
            self.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, reason))

    def _seen(self, line: Line) -> None:
        stamp = line.stamp
        if stamp is not None:
            if self._first_at is None:
                self._first_at = seconds(stamp)
            if len(stamp) == _STAMP_LENGTH and stamp[-1] == "Z":
                # All alike: the later one is the greater string.
                if stamp > self._stamp:
                    self._stamp = stamp
            else:
                self._at = latest(self._at, seconds(stamp))
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
        if not self._precise and self._doubtful():
            return self._again()
        if not self._reader.assembler.waits:
            return self._summary()
        # Entries that still wait for a twin count as they are: on a copy, for their twins may be written yet.
        copy = CodexFold(self._ref, self._log, self.dump(), precise=self._precise)
        copy._reader.assembler.finish()
        return copy._summary()

    def _doubtful(self) -> bool:
        """Whether an event may stand for a raw item that is lost: by damage, or because the program was killed."""
        if self._problems or self._reader.assembler.open_calls:
            return True
        return self._reader.ledger.turn_open and self._end < _MOST_READ_AGAIN

    def _again(self) -> LogSummary:
        """The same stretch of the log with every line looked at."""
        precise = CodexFold(self._ref, self._log, precise=True)
        try:
            for record in read_records(self._log.path, end=self._end):
                precise.feed_safely(record)
        except OSError as error:
            precise._problems.append(Problem(self._log.path, None, None, f"cannot be read: {error.strerror or error}"))
        precise._reader.assembler.finish()
        return precise._summary()

    def _whole_document(self) -> LogSummary:
        fresh = CodexFold(self._ref, self._log, precise=True)
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
        sealed = meta is not None and not meta.paginated and any("UTF-8" in problem.reason for problem in problems)
        models = tuple(RawText(model) for model in ledger.models) or ((ledger.model,) if ledger.model else ())
        row = row_of(
            self._ref,
            self._log,
            meta,
            first_at=self._first_at,
            title=raw(self._title),
            preview=raw(self._title),
            model=ledger.model,
            models=models,
            provider=ledger.provider,
            folder=self._cwd,
            last_active_at=latest(self._at, seconds(self._stamp)),
            running=ledger.turn_open,
            # The program refuses a legacy file with bad UTF-8 as a whole (facts/codex.md section 7).
            unreadable=sealed,
            message_count=len(counted),
            tool_call_count=counted.count("tool-call"),
            problems=len(problems),
            compactions=len(ledger.compactions),
            hit_rates=tuple(request.usage.hit_rate for request in requests[-SPARKLINE_POINTS:]),
        )
        return LogSummary(row, requests, tuple(ledger.compactions), problems)

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
                "stamp": self._stamp,
                "end": self._end,
            }
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reader.restore(state["reader"])
        self._problems = [Problem(self._log.path, line, offset, reason) for line, offset, reason in state["problems"]]
        self._live.restore(state["live"])
        self._title, self._cwd = state["title"], state["cwd"]
        self._at, self._first_at = state["at"], state["first"]
        self._stamp, self._end = state["stamp"], state["end"]


def row_of(
    ref: StoreRef,
    log: LogFile,
    meta: Meta | None,
    *,
    first_at: float | None = None,
    folder: RawText | None = None,
    unreadable: bool = False,
    last_active_at: float | None = None,
    **facts: Any,
) -> SessionRow:
    """A row from file name, folder, meta and what else is known of a thread.

    Args:
        ref: the store.
        log: the file.
        meta: its own meta; ``None`` where that is lost.
        first_at: the time of the first line, Unix seconds.
        folder: the working folder where the meta names none.
        unreadable: the program itself would refuse the file.
        last_active_at: the newest time, Unix seconds.
        facts: further values of the row.
    """
    thread = meta.id if meta is not None and meta.id is not None else log.session_id
    if meta is not None:
        facts["parent_id"], facts["lineage_kind"] = parent_of(meta)
        facts["provider"] = facts.get("provider") or meta.provider
    started = (meta.at if meta is not None else None) or id_time(thread) or first_at
    return SessionRow(
        store=ref,
        id=thread,
        root_id=thread,
        tip_id=thread,
        archived=log.archived,
        origin="scan",
        started_at=started,
        last_active_at=last_active_at or started,
        resumable=meta is not None and not log.archived and not unreadable,
        source=None if meta is None else meta.source,
        cwd=(None if meta is None else meta.cwd) or folder,
        git_branch=None if meta is None else meta.git_branch,
        display_name=None if meta is None else meta.nickname,
        **facts,
    )


def parent_of(meta: Meta) -> tuple[SessionId | None, LineageKind]:
    """The thread this one came from, and how (facts/codex.md section 4)."""
    if meta.delegated:
        return meta.parent, "delegation"
    if meta.forked_from is not None and meta.forked_from != meta.id:
        return meta.forked_from, "fork"
    return None, "root"
