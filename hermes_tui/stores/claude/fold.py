"""Folding one transcript to what list, ledger, lineage and cache screen need; texts are not kept.

Kept are a tuple a line (who follows whom, where it stands), the first characters of the prompts, and the replies.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from operator import attrgetter, itemgetter
from typing import ClassVar, Final, NamedTuple

from hermes_tui.model import (
    CacheEvent,
    Compaction,
    DropCause,
    Problem,
    Request,
    SessionId,
    SessionRow,
    StoreRef,
    Usage,
)
from hermes_tui.records import dataclass
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.claude.course import Course
from hermes_tui.stores.claude.events import Change, cache_events
from hermes_tui.stores.claude.giants import salvaged
from hermes_tui.stores.claude.graph import SORT, Builder, Graph, LeafMark, Preserved, preserved_of, straight_graph
from hermes_tui.stores.claude.header import PROMPT_CUT, Header
from hermes_tui.stores.claude.inline import inline_agents
from hermes_tui.stores.claude.lines import (
    BRIDGED_TYPE,
    SYNTHETIC_MODEL,
    Entry,
    Fields,
    entry_of,
    fields_of,
    first_value,
    message_of,
    number_of,
    odd_time,
    plain_entry,
    text_of,
    time_of,
    values_of,
)
from hermes_tui.stores.claude.parts import Part, parts_of
from hermes_tui.stores.claude.replies import Reply, ReplyBook, ReplyColumns, columns_of, request_rows, requests_of
from hermes_tui.stores.claude.resume import resumed
from hermes_tui.stores.claude.traces import Spent, Trace, mark_of
from hermes_tui.stores.claude.weights import NOTHING, Weight, weight_of
from hermes_tui.stores.conversation import SPARKLINE_POINTS
from hermes_tui.stores.logs import LogSummary
from hermes_tui.stores.request_rows import RequestRows
from hermes_tui.text import RawText

TRIGGERS: Final = {"auto": "automatic"}
STATE_VERSION: Final = 2
_SPENT: Final = attrgetter("input", "output", "cache_read", "cache_write", "write_1h")


class Boundary(NamedTuple):
    """What a compaction boundary says of itself."""

    trigger: str | None
    before: int | None
    after: int | None


@dataclass(slots=True)
class _Built:
    """The chain of the lines fed so far, and what it was worked out from."""

    key: tuple[int, LeafMark | None, frozenset[str] | None]
    builder: Builder | None = None
    graph: Graph | None = None


class TranscriptFold:
    """Reads one transcript line by line; see :class:`hermes_tui.stores.logs.LogFold`."""

    keeps_parts: ClassVar[bool] = False
    """Whether it takes the parts of prompts and the names of calls."""

    def __init__(
        self, ref: StoreRef, path: str, session_id: SessionId, *, agent: bool = False, strict: bool = False
    ) -> None:
        """``strict``: take only what the real program would read, for a recovery; no rescued records."""
        self._strict = strict
        self.left_out = False
        """Reading strictly, a value was passed over that a list takes in."""
        self.only: frozenset[str] | None = None
        """Look at these lines alone: a sub-agent inside its session's file."""
        self._ref = ref
        self._path = path
        self._id = session_id
        self._agent = agent
        self.header = Header()
        self.entries: list[Entry] = []
        self.preserved: dict[str, Preserved] = {}
        self.problems: list[Problem] = []
        self._book = ReplyBook()
        self.weights: dict[str, tuple[int, int, int]] = {}
        """By uuid: what the last line that has it weighs, in the order of :class:`Weight`."""
        self.replaced: dict[str, Entry] = {}
        """By uuid: the last line, where it says something else than the first."""
        self.prompts: dict[str, str] = {}
        """By uuid: the beginning of each."""
        self._commands: dict[str, str] = {}
        self._boundaries: dict[str, Boundary] = {}
        self._changes: list[Change] = []
        self._models: dict[str, None] = {}
        self._model: str | None = None
        self.lines = 0
        """Message lines fed so far, but for those that are bridged over."""
        self._breaks: list[int] = []
        self.previous: str | None = None
        self._refused = False
        """A line was met that makes the real program refuse the resume."""
        self._graph: _Built | None = None
        self.course = Course()
        self._sided = (0, False, False)

    # -------------------------------------------------------------------------------------------------- reading

    def wants(self, line: bytes) -> bool:
        """Every line: even a header line may carry the title, and damage must be counted."""
        return bool(line)

    def feed(self, record: Record) -> None:
        """Take in one record."""
        giant = None
        if record.problem is not None:
            self.problems.append(Problem(self._path, record.line or None, record.offset, record.problem))
            giant = salvaged(self._path, record)
        elif not isinstance(record.value, dict):
            self._refused = self._refused or record.value is None
            what = "null" if record.value is None else type(record.value).__name__
            self.problems.append(Problem(self._path, record.line, record.offset, f"not a JSON object: {what}"))
        values = (giant,) if giant is not None else values_of(record)
        if self._strict and giant is None:
            first = first_value(record)
            self.left_out = self.left_out or len(values) != 1 or values[0] is not first
            values = (first,)
        for value in values:
            fields = fields_of(value)
            if fields is not None:
                self._take(fields, record)

    def keep(self, entry: Entry) -> None:
        """Take in where a line stands."""
        self.entries.append(entry)
        self.course.take(entry, self.previous, known=entry.uuid in self.weights)

    def _take(self, fields: Fields, record: Record) -> None:
        entry = entry_of(fields, record, self.previous)
        if entry is None:
            self.take_other(fields, record)
            return
        if entry.detached:
            self.problems.append(Problem(self._path, record.line, record.offset, "a message line without uuid"))
        self.keep(entry)
        if entry.type == BRIDGED_TYPE:
            return
        if entry.at is None:
            self.problems.append(Problem(self._path, record.line, record.offset, odd_time(fields)))
        self.previous = entry.uuid
        if entry.turn and message_of(fields).get("content") is None:
            self._refused = True
        for change in self.header.take_message(fields, entry.at):
            self._change("context-change", change, entry.at)
        weight = weight_of(fields)
        known = self.weights.get(entry.uuid)
        # Kept lines are stored again as they were; only where the text differs the last line counts (section 2).
        if known is None or known[2] != weight.size:
            if known is not None:
                self.replaced[entry.uuid] = entry
            self.weights[entry.uuid] = weight
            self.note_parts(entry, fields)
        if entry.type == "assistant":
            self._take_reply(fields, entry, self.lines)
        elif entry.type == "system":
            self._take_system(fields, entry)
        self.lines += 1

    def passed(self, lines: int, previous: str | None, first: float, last: float) -> None:
        """Take over what became of usual lines, whose entries and weights were added before (skim.py).

        Args:
            lines: how many message lines there are now.
            previous: the uuid of the last one.
            first: the earliest time of the new ones, Unix seconds.
            last: the latest.
        """
        self.lines, self.previous = lines, previous
        header = self.header
        if header.first_at is None or first < header.first_at:
            header.first_at = first
        if header.last_at is None or last > header.last_at:
            header.last_at = last

    def take_reply(
        self, message_id: str, uuid: str, at: float, place: int, model: object, usage: object, request: object
    ) -> None:
        """Take in model and usage of a usual reply; ``place`` says which message line it is."""
        self.course.speaks(message_id)
        if model != self._model and (said := text_of(model)) is not None:
            self._models[said] = None
            self._model = said
        if isinstance(usage, dict):
            self._book.bill_usual(message_id, uuid, at, place, request, model, usage)

    def note_calls(self, blocks: Iterable[Fields]) -> None:
        """Take in what a usual reply calls."""

    def take_other(self, fields: Fields, record: Record) -> None:
        """A line that is no message."""
        del record
        self.header.take(fields, self.lines)
        if self._breaks[-1:] != [self.lines]:
            self._breaks.append(self.lines)
        if fields.get("type") == "content-replacement":
            self._change("context-change", "old tool results replaced", time_of(fields.get("timestamp")))

    def note_parts(self, entry: Entry, fields: Fields) -> None:
        """Take in the parts of a line seen for the first time, or of one that says something else now."""
        if entry.type == "user" and not entry.has_result:
            self.note_prompt(entry.uuid, parts_of(fields))

    def note_prompt(self, uuid: str, parts: Sequence[Part]) -> None:
        """The same of a line that may be a prompt."""
        self.prompts.pop(uuid, None)
        for part in parts:
            if part.kind == "prompt":
                self.prompts.setdefault(uuid, part.text[:PROMPT_CUT])
            elif part.kind == "context" and part.text[:1] in "/!" and " " in part.text and part.sent is not None:
                self._commands.setdefault(uuid, part.text[:PROMPT_CUT])

    def _take_reply(self, fields: Fields, entry: Entry, place: int) -> None:
        model = text_of(message_of(fields).get("model"))
        if model is not None and model != SYNTHETIC_MODEL:
            self._models[model] = None
            self._model = model
        self._book.take(fields, entry, place)

    def _take_system(self, fields: Fields, entry: Entry) -> None:
        if entry.subtype == "microcompact_boundary":
            self._change("compaction", "old tool results were cleared (microcompaction)", entry.at)
        if not entry.boundary:
            return
        self.preserved[entry.uuid] = preserved_of(fields)
        metadata = fields.get("compactMetadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        trigger = text_of(metadata.get("trigger"))
        before = number_of(metadata.get("preTokens")) if "preTokens" in metadata else None
        after = number_of(metadata.get("postTokens")) if "postTokens" in metadata else None
        if entry.uuid not in self._boundaries:
            name = TRIGGERS.get(trigger, trigger) if trigger is not None else None
            self._boundaries[entry.uuid] = Boundary(name, before, after)
            tokens = f" from {before:,} to {after:,} tokens" if before and after else ""
            self._change("compaction", f"{name or 'a'} compaction{tokens}", entry.at)

    def _change(self, cause: DropCause, evidence: str, at: float | None) -> None:
        self._changes.append(Change(self.lines, cause, evidence, at))

    # -------------------------------------------------------------------------------------------------- answers

    @property
    def sidechain(self) -> bool:
        """Whether the lines that make up this log are a sub-agent's."""
        if self.only is not None:
            return True
        if self._straight:
            return True in self.course.sides
        every, some = self._sides()
        return every or (self._agent and some)

    def _sides(self) -> tuple[bool, bool]:
        """Whether all message lines stand beside the main chain, and whether any does; worked out once."""
        count, every, some = self._sided
        if count != len(self.entries):
            sides = {side for kind, side in set(map(SORT, self.entries)) if kind != BRIDGED_TYPE}
            every, some = sides == {True}, True in sides
            self._sided = (len(self.entries), every, some)
        return every, some

    def graph(self) -> Graph:
        """Chain, states and order of the lines fed so far; kept until one more is fed."""
        built = self._built()
        if built.graph is None:
            built.graph = straight_graph(self.entries) if self._straight else self._walked_graph()
        return built.graph

    @property
    def _straight(self) -> bool:
        """Whether every line is live and follows the one before it: nothing needs to be walked then."""
        mark = self.header.mark
        return self.only is None and self.course.straight and (mark is None or mark.place < self.lines)

    def _walked_graph(self) -> Graph:
        builder = self._builder()
        graph = builder.graph()
        return self._as_resumed(builder, graph) if self._boundaries and self.only is None else graph

    def _as_resumed(self, builder: Builder, graph: Graph) -> Graph:
        """The same, but for a rewind behind a compaction to what that one kept: a resume still begins with it."""
        last = next((entry for entry in reversed(self.entries) if entry.boundary), None)
        if not graph.chain or last is None or last.uuid in graph.chain:
            return graph
        lines, begun = resumed(self.entries, self.header.mark, self.preserved, sidechain=self.sidechain, built=builder)
        # In a damaged log a compaction may stand beside the chain it compacts.
        if begun is None or begun.uuid in graph.chain or not builder.holds(begun.uuid):
            return graph
        return builder.graph([entry.uuid for entry in lines if builder.holds(entry.uuid)], begun.uuid)

    def whole(self) -> Builder | None:
        """What the graph is made of, when it is made of every line."""
        return self._builder() if self.only is None else None

    def _built(self) -> _Built:
        key = (len(self.entries), self.header.mark, self.only)
        if self._graph is None or self._graph.key != key:
            self._graph = _Built(key)
        return self._graph

    def _builder(self) -> Builder:
        built = self._built()
        if built.builder is None:
            built.builder = Builder(self.looked_at(), self.header.mark, self.preserved, self.sidechain)
        return built.builder

    def looked_at(self) -> Sequence[Entry]:
        """The lines the graph is made of."""
        if self.only is None:
            return self.entries
        return [entry for entry in self.entries if entry.uuid in self.only or entry.type == BRIDGED_TYPE]

    def usages(self) -> dict[str, Usage]:
        """The tokens of each own request, by the line that shows them."""
        if self._mixed:
            return {str(request.message_id): request.usage for request in self._requests()}
        return {
            reply.uuid: Usage(reply.input, reply.output, reply.cache_read, reply.cache_write)
            for reply in self._book.in_order()
        }

    @property
    def _mixed(self) -> bool:
        """Whether lines stand in it that are not its own."""
        if self._straight:
            return False
        return self.only is not None or len({entry.sidechain for entry in self.entries}) > 1

    def compactions(self, graph: Graph) -> tuple[Compaction, ...]:
        """Every compaction in the order of the conversation."""
        return tuple(self.compaction(entry, graph) for entry in self._in_order(graph))

    def _in_order(self, graph: Graph) -> Sequence[Entry]:
        """The compactions on the chain in its order, and behind them the others."""
        entries = {entry.uuid: entry for entry in self.boundaries()}
        chained = dict.fromkeys(uuid for uuid in (graph.chain if entries else ()) if uuid in entries)
        return [entries[uuid] for uuid in (*chained, *(uuid for uuid in entries if uuid not in chained))]

    def boundaries(self) -> Sequence[Entry]:
        """The first line of each compaction, in file order."""
        entries: dict[str, Entry] = {}
        if self._boundaries:
            for entry in self.entries:
                if entry.uuid in self._boundaries:
                    entries.setdefault(entry.uuid, entry)
        return tuple(entries.values())

    def compaction(self, entry: Entry, graph: Graph) -> Compaction:
        """One compaction with what it kept and dropped."""
        said = self._boundaries.get(entry.uuid, Boundary(None, None, None))
        return Compaction(
            at=entry.at,
            trigger=said.trigger,
            before_tokens=said.before,
            after_tokens=said.after,
            kept=graph.kept.get(entry.uuid),
            dropped=graph.dropped.get(entry.uuid),
            path=self._path,
            line=entry.line,
        )

    def summary(self) -> LogSummary:
        """What is known after the records fed so far."""
        graph = self.graph()
        requests = self._requests()
        compactions = self.compactions(graph)
        row = self._row(graph, len(compactions), self._hit_rates(requests))
        return LogSummary(row, requests, compactions, tuple(self.problems))

    def _hit_rates(self, requests: Sequence[Request]) -> tuple[float | None, ...]:
        if isinstance(requests, RequestRows):
            # They are made when somebody looks at them, which is not needed for this.
            return requests.hit_rates(SPARKLINE_POINTS)
        return tuple(request.usage.hit_rate for request in requests[-SPARKLINE_POINTS:])

    def trace(self) -> Trace:
        """What tells this file from its copies."""
        graph = self.graph()
        marks: dict[int, None] = {}
        messages, calls = bytearray(), bytearray()
        for entry in self.entries:
            mark = mark_of(entry.uuid)
            if entry.type == BRIDGED_TYPE or entry.detached or mark in marks:
                continue
            marks[mark] = None
            weight = self.weights[entry.uuid] if graph.states.get(entry.uuid) == "live" else NOTHING
            messages.append(min(weight[0], 255))
            calls.append(min(weight[1], 255))
        first = self.entries[0] if self.entries else None
        return Trace(
            marks=array("Q", marks),
            messages=bytes(messages),
            calls=bytes(calls),
            broken=sum(0 < line < self.lines for line in self._breaks),
            birth=self.header.birth,
            marked=self.header.forked_from is not None,
            begins_with_boundary=first is not None and first.boundary,
            headless=first is not None
            and (
                (first.parent is not None and mark_of(first.parent) not in marks)
                or not any(entry.parent is None and not entry.boundary for entry in self.entries)
            ),
            requests={key: Spent(*_SPENT(reply)) for key, reply in self._book.replies.items()},
            compactions=tuple(mark_of(entry.uuid) for entry in self._in_order(graph)),
            delegated=self._agent,
            last_at=self.header.last_at,
        )

    def _row(self, graph: Graph, compactions: int, hit_rates: tuple[float | None, ...]) -> SessionRow:
        header = self.header
        first_prompt = self.first_prompt(graph)
        live: Collection[tuple[int, int, int]] = self.weights.values()
        if graph.boundary is not None or not len(graph.chain) == len(self.weights) == len(self.entries):
            live = [weight for uuid, weight in self.weights.items() if graph.states.get(uuid) == "live"]
        title = header.title(self._own_summary(graph), first_prompt)
        delegated = self._agent or self.sidechain
        parent = header.session_id if delegated else header.forked_from
        return SessionRow(
            store=self._ref,
            id=self._id,
            root_id=self._id,
            tip_id=self._id,
            parent_id=SessionId(parent) if parent is not None and parent != self._id else None,
            lineage_kind="delegation" if delegated else "branch" if header.forked_from else "root",
            title=_raw(title),
            preview=_raw(first_prompt),
            source=_raw(header.entrypoint),
            model=_raw(self._own_model()),
            models=tuple(RawText(model) for model in self._models),
            provider=RawText("anthropic") if self._models else None,
            cwd=_raw(header.folder),
            git_branch=_raw(header.git_branch),
            started_at=header.first_at,
            last_active_at=header.last_at,
            message_count=sum(map(itemgetter(0), live)),
            tool_call_count=sum(map(itemgetter(1), live)),
            resumable=bool(graph.states) and not delegated and not self._refused,
            problems=len(self.problems),
            compactions=compactions,
            branches=graph.branches,
            hit_rates=hit_rates,
        )

    def _own_model(self) -> str | None:
        """The last one that spoke; not that of a sub-agent inside the file."""
        mine = self._own_entries() if self._mixed else None
        own = [] if mine is None else [one for one in self._book.replies.values() if one.model and one.uuid in mine]
        return max(own, key=lambda reply: reply.place).model if own else self._model

    def first_prompt(self, graph: Graph) -> str | None:
        """The first true prompt, a live one before a dead one; else the first command with arguments (section 6)."""
        for said in (self.prompts, self._commands):
            if said:
                return next((said[uuid] for uuid in graph.chain if uuid in said), next(iter(said.values())))
        return None

    def _own_summary(self, graph: Graph) -> str | None:
        """The last old title that is about a line of this file (section 3, summary)."""
        own = [text for leaf, text in self.header.summaries.items() if not leaf or leaf in graph.states]
        return own[-1] if own else None

    def _requests(self) -> Sequence[Request]:
        """Own requests; those of sub-agents inside this file follow, each in a chain of its own."""
        mixed = self._mixed
        rows = None if mixed else self._request_rows()
        if rows is not None:
            return rows
        replies = self._book.in_order()
        mine = self._own_entries() if mixed else None
        own = replies if mine is None else [reply for reply in replies if reply.uuid in mine]
        found = self._chain_requests(own, self._id)
        if mixed and self.only is None and not self.sidechain:
            for agent in inline_agents(self.entries):
                inside = [reply for reply in replies if reply.uuid in agent.uuids]
                found += self._chain_requests(inside, f"{self._id}/{agent.id}")
        return tuple(found)

    def _request_rows(self) -> RequestRows | None:
        """Those of a log of one chain in columns; ``None`` where a reply tells its cost."""
        columns = self._book.columns()
        if columns is None:
            return None
        events = {} if self._uneventful(columns) else self._events(columns)
        return request_rows(columns, self._id, events, source=self.header.entrypoint, cwd=self.header.folder)

    def _uneventful(self, replies: ReplyColumns) -> bool:
        """Whether nothing can have cost these replies their cache: they follow each other, and all is as it was."""
        follow = self._straight and self.course.speakers == replies.keys
        return follow and not self._changes and len(set(replies.models)) <= 1

    def _own_entries(self) -> frozenset[str]:
        if self.only is not None:
            return self.only
        sidechain = self.sidechain
        return frozenset(entry.uuid for entry in self.entries if entry.sidechain == sidechain)

    def _chain_requests(self, replies: Sequence[Reply], chain: str) -> list[Request]:
        header = self.header
        events = self._events(columns_of(replies))
        return requests_of(replies, self._id, chain, events, source=header.entrypoint, cwd=header.folder)

    def _events(self, replies: ReplyColumns) -> dict[str, tuple[CacheEvent, ...]]:
        built = self.whole()
        return cache_events(replies, self.entries, None if built is None else built.lines, self._changes)

    # ------------------------------------------------------------------------------------------ putting it away

    def dump(self) -> bytes:
        """The state as JSON bytes."""
        header = asdict(self.header)
        state = {
            "v": STATE_VERSION,
            "header": header,
            "entries": [plain_entry(entry) for entry in self.entries],
            "preserved": {uuid: asdict(preserved) for uuid, preserved in self.preserved.items()},
            "problems": [asdict(problem) for problem in self.problems],
            "replies": [asdict(reply) for reply in self._book.replies.values()],
            "keys": self._book.keys,
            "weights": {uuid: tuple(weight) for uuid, weight in self.weights.items()},
            "replaced": {uuid: plain_entry(entry) for uuid, entry in self.replaced.items()},
            "prompts": self.prompts,
            "commands": self._commands,
            "boundaries": {uuid: tuple(said) for uuid, said in self._boundaries.items()},
            "changes": [tuple(change) for change in self._changes],
            "models": list(self._models),
            "model": self._model,
            "lines": self.lines,
            "breaks": self._breaks,
            "previous": self.previous,
            "refused": self._refused,
        }
        return dump_json(state)

    def restore(self, state: bytes) -> bool:
        """Take up a state that :meth:`dump` gave; ``False`` when another version wrote it (nothing is taken then)."""
        said = load_json(state)
        if said.get("v") != STATE_VERSION:
            return False
        header, mark = said["header"], said["header"].pop("mark")
        header["said"] = tuple(header["said"])
        self.header = Header(**header, mark=LeafMark(**mark) if mark else None)
        self.entries, self._graph = [Entry(*entry) for entry in said["entries"]], None
        self.course = Course(straight=not self.entries)
        self.preserved = {
            uuid: Preserved(**{**preserved, "uuids": tuple(preserved["uuids"])})
            for uuid, preserved in said["preserved"].items()
        }
        self.problems = [Problem(**problem) for problem in said["problems"]]
        self._book = ReplyBook({reply["key"]: Reply(**reply) for reply in said["replies"]}, said["keys"])
        self.weights = {uuid: Weight(*weight) for uuid, weight in said["weights"].items()}
        self.replaced = {uuid: Entry(*entry) for uuid, entry in said["replaced"].items()}
        self.prompts, self._commands = said["prompts"], said["commands"]
        self._boundaries = {uuid: Boundary(*boundary) for uuid, boundary in said["boundaries"].items()}
        self._changes = [Change(*change) for change in said["changes"]]
        self._models = dict.fromkeys(said["models"])
        self._model, self.lines, self.previous = said["model"], said["lines"], said["previous"]
        self._refused, self._breaks = said["refused"], said["breaks"]
        return True


def _raw(text: str | None) -> RawText | None:
    return RawText(text) if text else None
