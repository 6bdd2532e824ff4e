"""What a rollout says of requests, compactions and settings, line by line (facts/codex.md sections 5 and 9)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from hermes_tui.model import CacheEvent, Compaction, DropCause, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.codex.entries import TURN_ENDS, TURN_STARTS
from hermes_tui.stores.codex.rollout import Line, Meta, id_time, mapping, raw, sane, string, whole
from hermes_tui.stores.request_rows import Counts, RequestRows
from hermes_tui.text import RawText

COPY_GAP: Final = 1.0
"""Seconds after which a line of an old fork can't have been copied: copies are stamped with the fork's own time."""
CONTEXT_KEYS: Final = (
    "cwd", "effort", "summary", "approval_policy", "sandbox_policy", "permission_profile", "collaboration_mode",
    "personality", "comp_hash", "user_instructions", "developer_instructions",
)  # fmt: skip
"""Settings of a turn whose change can change what the model is sent."""
EVIDENCE_LENGTH: Final = 60
_COUNTERS: Final = (
    "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens",
)  # fmt: skip


def counts_from(counts: Mapping[str, object]) -> Counts:
    """A usage object of Codex, whose ``input_tokens`` count what was cached as well (facts/codex.md section 5)."""
    read = whole(counts.get("cached_input_tokens"))
    write = whole(counts.get("cache_write_input_tokens"))
    return (
        max(0, whole(counts.get("input_tokens")) - read - write),
        whole(counts.get("output_tokens")),
        read,
        write,
        whole(counts.get("reasoning_output_tokens")),
    )


def is_own_turn(payload: Mapping[str, object], born: float | None) -> bool:
    """Whether a turn was begun by the thread itself rather than copied: not before the thread was made."""
    if born is None:
        return True
    begun = id_time(string(payload.get("turn_id")) or "")
    if begun is not None:
        return begun >= born
    started = sane(payload.get("started_at"))
    # In whole seconds; the clock of one machine wrote both.
    return started is None or started >= int(born)


class Ownership:
    """Tells lines of a thread from lines copied out of the one it was forked from (facts/codex.md section 4)."""

    def __init__(self, thread: str) -> None:
        self.copied = False
        self._thread: str | None = thread
        self._born: float | None = id_time(thread)
        self._turns = False

    def begin(self, meta: Meta) -> None:
        """Take the file's first meta."""
        self._thread = meta.id
        told = [at for at in (id_time(meta.id or ""), meta.at) if at is not None]
        self._born = min(told, default=None)
        self.copied = meta.may_hold_copies

    def foreign(self) -> None:
        """A meta of another thread was met, and none of this one before it."""
        self.copied = True

    def look(self, line: Line) -> bool:
        """Whether this line is a copy."""
        if not self.copied:
            return False
        payload = line.payload
        if line.type in ("token_usage_record", "event_msg") and string(payload.get("thread_id")) == self._thread:
            self.copied = False
        elif line.type == "event_msg" and line.kind in TURN_STARTS:
            self._turns = True
            self.copied = not is_own_turn(payload, self._born)
        elif not self._turns and self._later(line):
            self.copied = False
        return self.copied

    def _later(self, line: Line) -> bool:
        at = line.at
        return at is not None and self._born is not None and at - self._born > COPY_GAP

    def dump(self) -> dict[str, object]:
        """The state as JSON values."""
        return {"copied": self.copied, "thread": self._thread, "born": self._born, "turns": self._turns}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state again."""
        self.copied, self._thread, self._born = state["copied"], state["thread"], state["born"]
        self._turns = state["turns"]


@dataclass(slots=True)
class Ledger:
    """Requests, compactions and settings of one rollout so far."""

    path: str
    thread: SessionId | None = None
    provider: RawText | None = None
    model: RawText | None = None
    requests: RequestRows = field(default_factory=RequestRows)
    compactions: list[Compaction] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    context_window: int | None = None
    fill: int | None = None
    """Tokens in the context by the newest count."""
    turn_open: bool = False
    turn_prompts: int = 0
    reply: str | None = None
    """The entry the next request's usage belongs to: its first since the request before."""
    has_records: bool = False
    """Usage records were met: running totals are not needed any more."""
    source: RawText | None = None
    cwd: RawText | None = None
    _settings: Mapping[str, object] | None = None
    _events: list[CacheEvent] = field(default_factory=list)
    _seen: set[str | None] | None = None
    """The ids of all requests; ``None``: not worked out since it was taken up."""
    _totals: dict[str, int] = field(default_factory=dict)
    _last_count: dict[str, int] = field(default_factory=dict)
    """The newest count of a file that keeps no totals: it is written twice around a compaction."""
    _inherits: bool = False
    """The thread came out of another one, and running totals start at that one's."""
    _continues: bool = False
    """The history before this file stands in another one: a count without an answer before it repeats that one's."""
    _fill_before: int | None = None
    _last_response: str | None = None
    _settle: int | None = None
    """Index of the compaction of this turn whose trigger is not known yet."""
    _weigh: int | None = None
    """Index of the compaction whose size afterwards is not known yet."""

    def begin(self, meta: Meta) -> None:
        """Take the file's first meta."""
        self.thread = meta.id
        self.provider = meta.provider
        self.source, self.cwd = meta.source, meta.cwd
        self._continues = meta.base is not None
        self._inherits = meta.forked_from is not None or meta.delegated or self._continues
        if meta.is_revert:
            self._note("rewind", "the thread was reverted to an earlier turn")
        elif meta.forked_from is not None:
            self._note("fork", f"forked from {meta.forked_from}")

    def feed(self, line: Line, record: Record, *, copied: bool) -> None:
        """Take in one line."""
        kind = line.type
        payload = line.payload
        if kind == "token_usage_record":
            self._record(line, payload)
        elif kind == "turn_context":
            self._turn_context(payload)
        elif kind == "world_state":
            self._world_state(payload)
        elif kind == "compacted":
            self._compacted(line, record, payload, copied=copied)
        elif kind == "event_msg":
            self._event(line, payload, copied=copied)

    def prompted(self) -> None:
        """A prompt was met in this turn."""
        self.turn_prompts += 1
        self._decide("automatic")

    def said(self, entry_id: str) -> None:
        """The model gave an entry: the first since the request before is where the next usage is shown."""
        if self.reply is None:
            self.reply = entry_id

    # ---------------------------------------------------------------------------------------------- requests

    def _record(self, line: Line, payload: Mapping[str, object]) -> None:
        usage = mapping(payload.get("usage"))
        thread, response = string(payload.get("thread_id")), string(payload.get("response_id"))
        self.record(line.at, thread, response, counts_from(usage), whole(usage.get("total_tokens")))

    def record(self, at: float | None, thread: str | None, response: str | None, counts: Counts, total: int) -> None:
        """Take in a usage record: a request, unless it is another thread's or known."""
        self.has_records = True
        self._last_response = response
        self._fill_before = self.fill
        self.fill = total or self.fill
        seen = self._known_responses()
        if (thread is not None and self.thread is not None and thread != self.thread) or (
            response is not None and response in seen
        ):
            self.reply = None
            return
        seen.add(response)
        self._request(at, response, counts)

    def record_met(self) -> str | None:
        """A usage record was met that is given to :meth:`records` later: the entry its usage belongs to."""
        reply, self.reply, self.has_records = self.reply, None, True
        return reply

    def records(
        self,
        replies: Sequence[str | None],
        times: Sequence[float],
        threads: Sequence[str],
        responses: Sequence[str],
        counts: Sequence[Sequence[int]],
        totals: Sequence[int],
    ) -> None:
        """Take in usage records that were met since the last line that was fed, each as :meth:`record` does.

        Args:
            replies: what :meth:`record_met` gave.
            times: Unix seconds.
            threads: whose they are.
            responses: their ids.
            counts: tokens in the order of :class:`Usage`, a list for each count.
            totals: all tokens of each.
        """
        seen = self._known_responses()
        new = set(responses)
        if self._events or set(threads) != {self.thread} or len(new) < len(responses) or not seen.isdisjoint(new):
            later = self.reply
            for reply, *record in zip(
                replies, times, threads, responses, zip(*counts, strict=True), totals, strict=True
            ):
                self.reply = reply
                self.record(*record)
            self.reply = later
            return
        seen |= new
        for total in totals:
            self._fill_before, self.fill = self.fill, total or self.fill
        self._last_response = responses[-1]
        self.requests.extend(
            self.thread or "", responses, replies, times, self.model, self.provider, counts, self.source, self.cwd
        )
        if self.model is not None:
            self.models.setdefault(self.model)

    def _known_responses(self) -> set[str | None]:
        if self._seen is None:
            self._seen = set(self.requests.request_ids)
        return self._seen

    def _request(self, at: float | None, response: str | None, counts: Counts) -> None:
        model = self.model
        events: tuple[tuple[str, str], ...] = ()
        if self._events:
            events, self._events = tuple((event.cause, event.evidence) for event in self._events), []
        self.requests.add(
            self.thread or "", response, self.reply, at, model, self.provider, counts, events, self.source, self.cwd
        )
        self.reply = None
        if model is not None:
            self.models.setdefault(model)

    def _token_count(self, line: Line, payload: Mapping[str, object], *, copied: bool) -> None:
        info = mapping(payload.get("info"))
        if not info:
            return
        last = mapping(info.get("last_token_usage"))
        self.context_window = whole(info.get("model_context_window")) or self.context_window
        size = whole(last.get("total_tokens"))
        if size:
            self.fill = size
            if self._weigh is not None and not whole(last.get("input_tokens")):
                self.compactions[self._weigh] = replace(self.compactions[self._weigh], after_tokens=size)
                self._weigh = None
        if not self.has_records:
            self._count_delta(line, info, last, copied=copied)

    def _count_delta(self, line: Line, info: Mapping[str, object], last: Mapping[str, object], *, copied: bool) -> None:
        """A request of an older file: the difference of two running totals (facts/codex.md section 5)."""
        total = mapping(info.get("total_token_usage"))
        if total and not self._totals and self._inherits:
            # The running total begins with the source's, of which nothing stands in this file.
            self._totals = {key: whole(total.get(key)) for key in _COUNTERS}
            if self._continues and self.reply is None:
                return
            delta = {key: whole(last.get(key)) for key in _COUNTERS}
        elif total:
            now = {key: whole(total.get(key)) for key in _COUNTERS}
            before = self._totals
            self._totals = now
            delta = {key: now[key] - before.get(key, 0) for key in _COUNTERS}
            if any(value < 0 for value in delta.values()):
                delta = now
        else:
            delta = {key: whole(last.get(key)) for key in _COUNTERS}
            repeated, self._last_count = delta == self._last_count, delta
            if repeated:
                return
        if not copied and any(delta.values()):
            self._request(line.at, None, counts_from(delta))

    # ------------------------------------------------------------------------------------------------- events

    def _event(self, line: Line, payload: Mapping[str, object], *, copied: bool) -> None:
        kind = line.kind
        if kind == "token_count":
            self._token_count(line, payload, copied=copied)
        elif kind in TURN_STARTS:
            self.turn_started(whole(payload.get("model_context_window")))
        elif kind in TURN_ENDS:
            self.turn_ended(aborted=kind == "turn_aborted")
        elif kind == "thread_settings_applied":
            settings = mapping(payload.get("thread_settings"))
            self._owned_settings(settings, string(payload.get("thread_id")))
        elif kind == "thread_rolled_back":
            self._note("rewind", f"{payload.get('num_turns')} turn(s) rolled back")

    def turn_started(self, window: int) -> None:
        """A turn began; of so many tokens its context is, 0 where that is not told."""
        self._settle = None
        self.reply = None
        self.turn_open, self.turn_prompts = True, 0
        self.context_window = window or self.context_window

    def turn_ended(self, *, aborted: bool) -> None:
        """The turn ended."""
        if not self.turn_prompts and not aborted:
            self._decide("manual")
        self.turn_open = False

    def _owned_settings(self, settings: Mapping[str, object], thread: str | None) -> None:
        if thread is not None and self.thread is not None and thread != self.thread:
            return
        self.provider = raw(settings.get("model_provider_id")) or self.provider
        if self.model is None:
            self.model = raw(settings.get("model"))

    def _turn_context(self, payload: Mapping[str, object]) -> None:
        model = raw(payload.get("model"))
        if model is not None and self.model is not None and model != self.model and self.requests:
            self._note("model-change", f"{self.model} -> {model}")
        self.model = model or self.model
        before, self._settings = self._settings, payload
        if before is None:
            return
        changed = [
            f"{key}: {_short(before.get(key))} -> {_short(payload.get(key))}"
            for key in CONTEXT_KEYS
            if before.get(key) != payload.get(key)
            and _without_model(before.get(key)) != _without_model(payload.get(key))
        ]
        if changed:
            self._note("context-change", "; ".join(changed))

    def _world_state(self, payload: Mapping[str, object]) -> None:
        if payload.get("full") is False:
            changed = ", ".join(_leaves(mapping(payload.get("state"))))
            if changed:
                self._note("context-change", f"world state: {changed}")

    def _note(self, cause: DropCause, evidence: str) -> None:
        self._events.append(CacheEvent(cause, RawText(evidence)))

    # -------------------------------------------------------------------------------------------- compactions

    def _compacted(self, line: Line, record: Record, payload: Mapping[str, object], *, copied: bool) -> None:
        response = string(payload.get("compaction_response_id"))
        asked = response is not None and response == self._last_response
        before = self._fill_before if asked else self.fill
        self._note("compaction", f"compaction {whole(payload.get('window_number')) or len(self.compactions) + 1}")
        # What stood between the last request and the summary belongs to the compaction.
        self.reply = None
        if copied:
            return
        self.compactions.append(Compaction(line.at, None, before, path=self.path, line=record.line))
        self._weigh = len(self.compactions) - 1
        self._settle = self._weigh
        if self.turn_prompts:
            self._decide("automatic")

    def weigh(self, kept: int, dropped: int) -> None:
        """What the newest compaction kept and dropped."""
        if self.compactions:
            self.compactions[-1] = replace(self.compactions[-1], kept=kept, dropped=dropped)

    def _decide(self, trigger: str) -> None:
        """Manual when its turn holds nothing else; automatic when the turn has a prompt (facts/codex.md section 9)."""
        if self._settle is not None:
            self.compactions[self._settle] = replace(self.compactions[self._settle], trigger=trigger)
            self._settle = None

    # -------------------------------------------------------------------------------------------------- state

    def dump(self) -> dict[str, object]:
        """The state as JSON values."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return plain | {
            "models": list(self.models),
            "requests": self.requests.dump(),
            "compactions": [
                [c.at, c.trigger, c.before_tokens, c.after_tokens, c.kept, c.dropped, c.line] for c in self.compactions
            ],
            "events": [[event.cause, event.evidence] for event in self._events],
        }

    def copy(self) -> Ledger:
        """One that is told no more requests; what else it is told, this one does not see."""
        return replace(
            self, compactions=self.compactions.copy(), models=self.models.copy(), _events=self._events.copy()
        )

    @classmethod
    def restore(cls, path: str, state: Mapping[str, Any]) -> Ledger:
        """Take up the state again."""
        made = cls(path, **{name: state[name] for name in _PLAIN})
        made.models = dict.fromkeys(state["models"])
        made.requests = RequestRows.restore(state["requests"])
        made.compactions = [
            Compaction(at, trigger, before, after, kept, dropped, path, line)
            for at, trigger, before, after, kept, dropped, line in state["compactions"]
        ]
        made._events = [CacheEvent(cause, evidence) for cause, evidence in state["events"]]
        return made


_PLAIN: Final = (
    "thread", "provider", "model", "context_window", "fill", "turn_open", "turn_prompts", "reply", "has_records",
    "source", "cwd", "_settings", "_totals", "_last_count", "_inherits", "_continues", "_fill_before", "_last_response",
    "_settle", "_weigh",
)  # fmt: skip
"""What of a ledger is JSON as it is."""


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= EVIDENCE_LENGTH else text[:EVIDENCE_LENGTH] + "…"


def _without_model(value: object) -> object:
    """A setting without the model it repeats: a model change is told once."""
    if not isinstance(value, dict):
        return value
    return {key: _without_model(inner) for key, inner in value.items() if key != "model"}


def _leaves(state: Mapping[str, object], above: str = "") -> list[str]:
    """The changed keys of a merge patch, as dotted paths; the model apart."""
    found: list[str] = []
    for key, value in state.items():
        if key == "model":
            continue
        if isinstance(value, dict) and value:
            found.extend(_leaves(value, f"{above}{key}."))
        else:
            found.append(f"{above}{key}")
    return found
