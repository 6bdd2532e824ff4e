"""One rollout read line by line: its thread's row, requests, compactions, problems (facts/codex.md sections 2-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hermes_tui.model import LineageKind, MessageKind, Problem, SessionId, SessionRow, StoreRef
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.codex.entries import LOOKAHEAD, TURN_ENDS, TURN_STARTS, Entry
from hermes_tui.stores.codex.items import CONTEXT, PROMPT, completed_text, message_text
from hermes_tui.stores.codex.ledger import Ledger
from hermes_tui.stores.codex.live import LiveEntries
from hermes_tui.stores.codex.oldest import is_oldest, read_document
from hermes_tui.stores.codex.reader import LineReader, entry_id
from hermes_tui.stores.codex.rollout import Line, Meta, id_time, is_usual_stamp, odd_time, raw, seconds, string, whole
from hermes_tui.stores.conversation import SPARKLINE_POINTS, latest
from hermes_tui.stores.log_source import MALFORMED, LogFile, LogSummary, problem_of
from hermes_tui.text import RawText

_ITEMS_NEEDED: Final = frozenset({"UserMessage", "ContextCompaction"})
"""Items of ``item_completed`` that say more than a raw twin."""
_TWINS: Final = frozenset(
    {
        "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "patch_apply_end", "mcp_tool_call_end",
        "web_search_end", "image_generation_end", "exec_command_end",
    }
)  # fmt: skip
"""Events that repeat a raw item."""
_PARTING: Final = TURN_STARTS | TURN_ENDS | {"thread_rolled_back"}
"""Events behind which no raw item is the twin of what stands before."""
_UNCOUNTED: Final = frozenset({"token_count", "agent_reasoning", "agent_reasoning_raw_content", "Reasoning"})
"""Those of them that stand for no counted entry."""
_REPEATED_KINDS: Final = frozenset({"reply", "reasoning", "tool-call", "tool-result"})
"""Kinds of raw items whose events say the same."""
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
        self._odd_time = False
        """A time was met that is none: which lines have one is told by looking at each."""
        self._record: Record | None = None
        """The one that is being fed."""
        self._awaited: dict[str, int] = {}
        """By id the lines of events that were passed over and whose raw twins did not come yet."""
        self._awaited_replies: dict[str, int] = {}
        """The same by text of events that name no id and repeat a reply."""
        self._parted = False
        """An event was passed over whose raw item comes too late to be its twin (entries.py), or never may."""
        self._reader = LineReader(log.path, self._take, self._seen)
        self._oldest = is_oldest(log.path)
        self._problems: list[Problem] = []
        self._live = LiveEntries()
        self._title: str | None = None
        self._cwd: RawText | None = None
        self._at: float | None = None
        self._first_at: float | None = None
        if state is not None:
            try:
                self._restore(load_json(state))
            except MALFORMED as error:
                raise ValueError("the state was put away by another version") from error

    def wants(self, line: bytes) -> bool:
        """Every line, for each that cannot be read is a problem; none of a document, which is read whole."""
        del line
        return not self._oldest

    def feed(self, record: Record) -> None:
        """Take in one record."""
        self._end, self._record = record.end, record
        value = record.value
        if value is None or record.problem is not None:
            self._damage(record)
        elif type(value) is not dict:
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, "not a JSON object"))
        elif not self._precise:
            kind, payload = value.get("type"), value.get("payload")
            if type(payload) is dict and (
                (kind == "event_msg" and self._repeats(payload, value, record))
                or (kind == "response_item" and self._skim(payload, value, record))
                or (kind == "token_usage_record" and self._spend(payload, value, record))
            ):
                return
        self._reader.feed(record)

    def _spend(self, payload: dict[str, Any], value: dict[str, Any], record: Record) -> bool:
        """Take in a usage record, which no entry of the transcript depends on."""
        reader, stamp = self._reader, value.get("timestamp")
        if reader.owner.copied or type(stamp) is not str or not is_usual_stamp(stamp):
            return False
        reader.pass_over()
        reader.ledger.feed(Line("token_usage_record", payload, stamp, None), record, copied=False)
        self._stamped(stamp)
        return True

    def _repeats(self, payload: dict[str, Any], value: dict[str, Any], record: Record) -> bool:
        """Whether an event says nothing that raw items and usage records have not said, while nothing is damaged."""
        kind = payload.get("type")
        if kind == "item_completed":
            item = payload.get("item")
            told = type(item) is dict and string(item.get("type")) not in _ITEMS_NEEDED
        elif kind == "token_count":
            told = self._reader.ledger.has_records and _size_told(payload) == self._reader.ledger.fill
        else:
            told = string(kind) in _TWINS
        if told:
            self._reader.pass_over()
            self._stamped(value.get("timestamp"))
            self._await(payload, record.line)
        return told

    # ---------------------------------------------------------------- lines told by their first bytes (skim.py)

    @property
    def document(self) -> bool:
        """Whether the file is one document of the oldest format."""
        return self._oldest

    @property
    def begun(self) -> bool:
        """Whether the file's own meta was read, so that lines may be told by their first bytes."""
        return self._reader.meta is not None and self._first_at is not None and not self._precise

    @property
    def own(self) -> bool:
        """Whether lines are the thread's own."""
        return not self._reader.owner.copied

    @property
    def usual(self) -> bool:
        """Whether lines are the thread's own and none waits for its twin, so that items count at once."""
        return not self._reader.owner.copied and not self._reader.assembler.waits

    @property
    def ledger(self) -> Ledger:
        """Requests and settings so far."""
        return self._reader.ledger

    def passed(self, end: int, stamp: str) -> None:
        """All lines up to this offset were taken in; of those told by their first bytes the newest time is this."""
        self._end = end
        if stamp:
            self._stamped(stamp)

    def twin_met(self, item: str, line: int) -> None:
        """An event that repeats the raw item of this id was met."""
        self._awaited[item] = line

    def reply_told(self, text: str, line: int) -> None:
        """An event that repeats the raw reply of this text was met; of two that wait one may be left alone."""
        if self._reader.owner.copied:
            return  # its reply does not count either
        self._parted = self._parted or text in self._awaited_replies
        self._awaited_replies[text] = line

    def output_met(self, item: str | None, call: str, line: int) -> None:
        """The output of a call was met."""
        self._reader.assembler.close(call)
        if call in self._awaited:
            self._came(call, line)
        self._live.add(item, "tool-result")

    def call_met(self, item: str | None, name: str, call: str, line: int) -> None:
        """The call of a function was met."""
        reader = self._reader
        if item in self._awaited:
            self._came(item, line)
        if reader.ledger.reply is None:
            reader.ledger.said(item or f"{reader.tag}L{line}")
        reader.assembler.open(call, name)
        self._live.add(item, "tool-call")

    def turn_started(self, window: int) -> None:
        """The start of a turn was met, with the tokens its context may hold; 0: they are not told."""
        reader = self._reader
        reader.pass_over()
        self._part()
        reader.ledger.turn_started(window)
        reader.assembler.turn_started()
        self._live.turn_started()

    def turn_ended(self) -> None:
        """The end of a turn was met, without an error."""
        self._reader.pass_over()
        self._part()
        self._reader.ledger.turn_ended(aborted=False)
        self._live.turn_ended()

    def user_met(
        self, record: Record, stamp: str, item: str | None, typed: str, whole: str, *, prompt: bool | None
    ) -> None:
        """A raw user message was met; see :meth:`Assembler.user` and :func:`items.is_prompt`."""
        said = CONTEXT if prompt is False else PROMPT
        self._reader.pass_over()
        self._reader.assembler.user(Entry(record, said, stamp, item), typed, whole, sure=prompt is not None)

    def prompt_told(self, record: Record, stamp: str, item: str | None, text: str) -> None:
        """An event was met that says what the user typed."""
        self._reader.pass_over()
        self._reader.assembler.prompt_told(Entry(record, PROMPT, stamp, item), text)

    def may_confirm(self, text: str) -> bool:
        """Whether the newest raw message that waits to be confirmed as a prompt says this."""
        return self._reader.assembler.newest_typed == text

    def prompt_confirmed(self, text: str) -> None:
        """An event was met that confirms it."""
        self._reader.pass_over()
        self._reader.assembler.confirm(text)

    def item_met(self, kind: MessageKind, item: str | None, line: int, text: str) -> None:
        """A reply or a thought was met."""
        reader = self._reader
        if reader.ledger.reply is None:
            reader.ledger.said(item or f"{reader.tag}L{line}")
        if item in self._awaited:
            self._came(item, line)
        if kind == "reply":
            if text in self._awaited_replies:
                self._reply_came(text, line)
            self._live.add(item, kind)

    def _await(self, payload: dict[str, Any], line: int) -> None:
        """Remember a passed-over event until its raw twin comes: one that never does is an entry itself."""
        if "item" in payload:
            payload = payload["item"]
        kind = string(payload.get("type"))
        if kind in _UNCOUNTED:
            return
        name = string(payload.get("call_id")) or string(payload.get("id"))
        if kind == "agent_message":
            self.reply_told(f"{payload.get('message')}", line)
        elif name is not None:
            self._awaited[name] = line
        elif kind == "AgentMessage":
            self.reply_told(completed_text(payload), line)
        else:
            self._parted = True

    def _came(self, name: str, line: int) -> None:
        """The raw item came whose event waited for it."""
        self._parted = self._parted or line > self._awaited.pop(name) + LOOKAHEAD

    def _reply_came(self, text: str, line: int) -> None:
        """The raw reply came whose event waited for it."""
        self._parted = self._parted or line > self._awaited_replies.pop(text) + LOOKAHEAD

    def _part(self) -> None:
        """Events that still wait where a turn begins or ends, or something is taken away, have no twin behind that."""
        if self._awaited or self._awaited_replies:
            self._parted = True

    def _skim(self, payload: dict[str, Any], value: dict[str, Any], record: Record) -> bool:
        """Count an item of the model at once: what :meth:`LineReader.feed` would do, at a third of the price."""
        reader = self._reader
        if reader.owner.copied or reader.assembler.waits:
            return False
        kind = _SKIMMED.get(string(payload.get("type")))
        if kind is None or (kind == "reply" and payload.get("role") != "assistant"):
            return False
        reader.skim(kind, payload, record.line)
        if self._awaited:
            name = string(payload.get("call_id" if kind == "tool-result" else "id"))
            if name in self._awaited:
                self._came(name, record.line)
        if kind == "reply" and self._awaited_replies and (text := message_text(payload)) in self._awaited_replies:
            self._reply_came(text, record.line)
        if kind != "reasoning":
            self._live.add(string(payload.get("id")), kind)
        self._stamped(value.get("timestamp"))
        return True

    def _stamped(self, stamp: object) -> None:
        if type(stamp) is str and is_usual_stamp(stamp):
            self._stamp = max(stamp, self._stamp)
        elif (at := seconds(stamp)) is not None:
            self._at = latest(self._at, at)
        else:
            self._odd_time = True

    def _damage(self, record: Record) -> None:
        if record.problem is not None or not record.rescued:
            self._problems.append(problem_of(self._log.path, record))

    def feed_safely(self, record: Record) -> None:
        """The same, where nobody else counts records of an unexpected shape."""
        try:
            self.feed(record)
        except MALFORMED as error:
            reason = f"a record of an unexpected shape ({type(error).__name__}: {error})"
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, reason))

    def _seen(self, line: Line) -> None:
        if line.enveloped or seconds(line.stamp) is not None:
            self._stamped(line.stamp)
        if self._first_at is None:
            self._first_at = seconds(line.stamp)
        record = self._record
        if self._precise and record is not None and (reason := odd_time(line)) is not None:
            self._problems.append(Problem(self._log.path, record.line or None, record.offset, reason))
        if line.type == "turn_context" and self._cwd is None:
            self._cwd = raw(line.payload.get("cwd"))
        elif line.type == "event_msg":
            if line.kind in _PARTING:
                self._part()
            self._live.look(line)
        elif line.type == "compacted":
            self._part()

    # ----------------------------------------------------------------------------------------------- counting

    def _take(self, entry: Entry) -> None:
        if entry.kind == "prompt" and self._title is None and entry.text and entry.text.strip():
            self._title = entry.text
        if self._awaited:
            name = entry.call_id if entry.kind == "tool-result" else entry.id
            if name in self._awaited:
                self._came(name, entry.line)
                # An item that damage gave another role or type is the twin of nothing (entries.py).
                self._parted = self._parted or entry.kind not in _REPEATED_KINDS
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
        copy = self._copy()
        copy._reader.assembler.finish()
        return copy._summary()

    def _copy(self) -> CodexFold:
        copy = CodexFold(self._ref, self._log, precise=self._precise)
        copy._reader.take_over(self._reader)
        copy._problems, copy._live = self._problems.copy(), self._live.copy()
        copy._awaited, copy._awaited_replies = self._awaited.copy(), self._awaited_replies.copy()
        copy._parted = self._parted
        copy._title, copy._cwd, copy._at, copy._first_at = self._title, self._cwd, self._at, self._first_at
        copy._stamp, copy._end, copy._odd_time = self._stamp, self._end, self._odd_time
        return copy

    def _doubtful(self) -> bool:
        """Whether an event may stand for a raw item that is lost: by damage, or because the program was killed."""
        if self._live.lost or self._odd_time:
            return True
        open_turn, small = self._reader.ledger.turn_open, self._end < _MOST_READ_AGAIN
        if open_turn and not small:
            # What waits for its twin or its output is mostly on its way; when the turn has ended it is looked at.
            return bool(self._problems)
        awaited = self._awaited or self._awaited_replies or self._parted
        return bool(open_turn or self._problems or awaited or self._reader.assembler.open_calls)

    def _again(self) -> LogSummary:
        """The log with every line looked at."""
        precise = CodexFold(self._ref, self._log, precise=True)
        try:
            for record in read_records(self._log.path):
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
        requests = ledger.requests.copy()
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
            hit_rates=requests.hit_rates(SPARKLINE_POINTS),
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
        return dump_json(
            {
                "reader": self._reader.dump(),
                "problems": [[p.line, p.offset, p.reason] for p in self._problems],
                "live": self._live.dump(),
                "title": self._title,
                "cwd": self._cwd,
                "at": self._at,
                "first": self._first_at,
                "stamp": self._stamp,
                "odd": self._odd_time,
                "end": self._end,
                "awaited": [self._awaited, self._awaited_replies, self._parted],
            }
        )

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._reader.restore(state["reader"])
        self._problems = [Problem(self._log.path, line, offset, reason) for line, offset, reason in state["problems"]]
        self._live.restore(state["live"])
        self._title, self._cwd = state["title"], state["cwd"]
        self._at, self._first_at = state["at"], state["first"]
        self._stamp, self._end, self._odd_time = state["stamp"], state["end"], state["odd"]
        self._awaited, self._awaited_replies, self._parted = state["awaited"]


def _size_told(payload: Mapping[str, Any]) -> int | None:
    """What a count of tokens says the context holds; ``None`` where it may say more.

    After a compaction all of it is zero but that size, and for rate limits there is none (facts/codex.md section 5).
    """
    info = payload.get("info")
    last = info.get("last_token_usage") if isinstance(info, dict) else None
    return whole(last.get("total_tokens")) if isinstance(last, dict) and last.get("input_tokens") else None


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
