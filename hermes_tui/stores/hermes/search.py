"""Search in one Hermes store: the indexes propose, the matcher decides, copies are one hit (contract.md, search).

Searched is what the product's own index holds: content, tool names and tool calls (facts/hermes.md section 6), decoded.
Reasoning is in no index and is searched only where it is asked for (kind ``reasoning``), by a scan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from hermes_tui.model import Message, MessageHead
from hermes_tui.storage.errors import QueryFailed, StoreDamaged, StoreUnreadable
from hermes_tui.storage.fulltext import Matcher
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asks import REASONING, SCAN, SEARCHED, plan_for, prepare_asking, raw_condition
from hermes_tui.stores.hermes.candidates import Candidates, Condition, is_small
from hermes_tui.stores.hermes.cells import text_or_none
from hermes_tui.stores.hermes.content import Stored, read_content, tool_calls
from hermes_tui.stores.hermes.copies import Copies
from hermes_tui.stores.hermes.filters import NOTHING, Conditions, conditions
from hermes_tui.stores.hermes.generations import Placed
from hermes_tui.stores.hermes.indexes import SURVEYS, id_bounds
from hermes_tui.stores.hermes.log_search import LogsOfHome, merged, start_places
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.transcript import Cells, heads_of, read_cells, stored_rows
from hermes_tui.stores.matching import Match, match_message, match_together
from hermes_tui.stores.protocol import Neighbour, Neighbours, Proposal, Proposed, Ranked, SearchFilters
from hermes_tui.stores.scan import scan_proposal
from hermes_tui.text import RawText

if TYPE_CHECKING:
    from hermes_tui.stores.hermes.store import HermesStore

READ_BYTES: Final = 16 << 20
"""Text read from the store at once."""
READ_ROWS: Final = 500
MOST_READ: Final = 32 << 20
"""Bytes of one content that are searched."""
TRIES: Final = 500
"""Windows tried in one look into a damaged store."""
NEAR_ROWS: Final = 1
WIDE_ROWS: Final = 6
"""Rows looked at on each side of a hit for one that says something, first and where there was none."""
NEAR_CHARACTERS: Final = 1_000
MOST_SHORT: Final = 8_192
"""Bytes of a neighbour's content that are read."""


def propose(
    store: HermesStore,
    matcher: Matcher,
    filters: SearchFilters,
    order: Literal["newest", "oldest"],
    after: tuple[float, ...] | None = None,
) -> Proposal:
    """The messages of a store that answer a query, in order, each once.

    Raises:
        StorageError: the store cannot be read.
    """
    newest = order == "newest"
    run = _Run(store, matcher, filters, newest=newest)
    proposal = Proposal("scan", iter(()), ranked=run.ranked, neighbours=run.neighbours)
    row, place = start_places(after)
    logs = store.only_in_logs()
    try:
        run.start(proposal, row)
    except StoreUnreadable as error:
        if not logs:
            raise
        proposal.messages = _failing(error)
    else:
        proposal.messages = run.hits()
    if logs:
        beside = LogsOfHome(store, logs)
        scanned = scan_proposal(beside, matcher, filters, order, place)
        proposal.messages = merged(proposal.messages, scanned.messages, after, newest=newest)
        proposal.ranked = None
        proposal.neighbours = partial(_neighbours, run, beside)
    return proposal


def _failing(error: StoreUnreadable) -> Iterator[Proposed]:
    """Nothing, and then what is wrong: the logs beside a broken database are searched all the same."""
    yield from ()
    raise error


def _neighbours(run: _Run, logs: LogsOfHome, messages: Sequence[Message]) -> list[Neighbours]:
    """Hits of the database and of the logs each ask where they are from; row ids are numbers."""
    stored = [message for message in messages if message.head.path is None]
    found = iter(run.neighbours(stored) if stored else [])
    return [next(found) if message.head.path is None else logs.neighbours(message) for message in messages]


class _Run:
    """One search over one store, window after window."""

    def __init__(self, store: HermesStore, matcher: Matcher, filters: SearchFilters, *, newest: bool) -> None:
        self._asking = store.asking
        self._matcher = matcher
        self._filters = filters
        self._newest = newest
        self._reasoning = filters.kind == "reasoning"
        self._copies = Copies()
        self._where = NOTHING
        self._raw = Condition()
        self._candidates = Candidates(store.asking, SCAN, 1, 0, newest=newest)
        self._proposal = Proposal("scan", iter(()))
        self._damaged = False
        """Whether a page of the tables could not be read."""
        self._lost = 0
        self._ahead: list[Proposed] = []
        """Hits read with the scores, not given yet."""
        self._after: tuple[int, int] | None = None
        """The row of the last hit given, and which of its hits that was."""

    def start(self, proposal: Proposal, after: tuple[int, int] | None) -> None:
        """Choose the plan."""
        self._proposal = proposal
        self._after = after

        def question(connection: ReadConnection, schema: Schema) -> None:
            if not schema.has("messages", "id", "session_id", "role", "content"):
                return
            connection.prepare(prepare_asking)
            low, high = id_bounds(connection)
            columns = REASONING if self._reasoning else SEARCHED
            self._raw = Condition(*_frozen(raw_condition(self._matcher, schema, columns)))
            self._where = self._conditions(connection, schema)
            plan = SCAN
            if not self._reasoning and self._matcher.root is not None:
                indexes = SURVEYS.of(self._asking.path, connection, schema)
                plan = plan_for(self._matcher, indexes)
                proposal.notes += indexes.problems
            # The row of the last hit once more: another of its entries may be a hit too.
            start, small = after and after[0], is_small(connection, low, high)
            self._candidates = Candidates(self._asking, plan, low, high, newest=self._newest, start=start, small=small)

        # A profile may have no store yet (facts/hermes.md section 1).
        if Path(self._asking.path).exists():
            self._asking.ask(question)
        proposal.route = self._candidates.plan.route

    def _conditions(self, connection: ReadConnection, schema: Schema) -> Conditions:
        try:
            return conditions(connection, schema, self._filters)
        except StoreDamaged:
            self._damaged = True
            return conditions(connection, schema, self._filters, damaged=True)

    def hits(self) -> Iterator[Proposed]:
        """Window after window; the store is closed between two."""
        ahead, self._ahead = self._ahead, []
        yield from ahead
        while not self._candidates.done:
            yield from self._asking.ask(self._window)

    def ranked(self, limit: int) -> Ranked | None:
        """Scores of the word index, where there are more candidates than are quickly read."""

        def question(connection: ReadConnection, schema: Schema) -> list[tuple[float, int]] | None:
            connection.prepare(prepare_asking)
            found: list[tuple[float, int]] | None = None
            # Where the index fails, the walk over the candidates notices it too, and says so.
            with suppress(StoreDamaged, QueryFailed):
                found = self._candidates.scored(connection, self._where.all, limit)
            if found is None:
                # They are read, then: the first of them while the store is open.
                self._ahead = self._first_hits(connection, schema)
            return found

        scores = None if self._candidates.done else self._asking.ask(question)
        if scores is None:
            return None
        return Ranked(scores[:limit], len(scores) >= limit, self._read)

    def _read(self, ids: Sequence[int]) -> list[Proposed]:
        def question(connection: ReadConnection, schema: Schema) -> list[Proposed]:
            found = self._matching(connection, schema, ids)
            return [hit for row, entries in found for hit in self._proposed(connection, schema, row, entries)]

        return self._asking.ask(question)

    def _window(self, connection: ReadConnection, schema: Schema) -> list[Proposed]:
        connection.prepare(prepare_asking)
        return self._first_hits(connection, schema)

    def _first_hits(self, connection: ReadConnection, schema: Schema) -> list[Proposed]:
        """The hits of the next window; of a damaged store those of the next that can be read."""
        for _ in range(TRIES):
            if self._candidates.done:
                break
            try:
                return self._step(connection, schema)
            except (StoreDamaged, QueryFailed) as error:
                if self._candidates.plan is not SCAN:
                    self._distrust(f"an index failed ({error.detail})")
                elif isinstance(error, StoreDamaged):
                    self._around_damage(connection, schema)
                else:
                    raise
        return []

    def _step(self, connection: ReadConnection, schema: Schema) -> list[Proposed]:
        """The hits of the next window; the walk is behind it then."""
        window = self._candidates.window(connection, self._raw, self._where.all)
        found = self._matching(connection, schema, window.ids)
        missed = [row.id for row, _ in found if row.id in window.unexpected]
        if missed:
            self._distrust(f"the {self._candidates.plan.route} index does not find message {missed[0]}")
            return []
        hits = [self._proposed(connection, schema, row, entries) for row, entries in found]
        self._candidates.advance()
        for note in self._candidates.notes:
            self._proposal.incomplete = note
        return [hit for one in hits for hit in one]

    def _around_damage(self, connection: ReadConnection, schema: Schema) -> None:
        """Ask for less after a damaged page; a row that fails alone is left out and counted."""
        if not self._damaged:
            self._damaged = True
            self._where = conditions(connection, schema, self._filters, damaged=True)
            return
        self._lost += self._candidates.give_way()
        if self._lost:
            self._proposal.incomplete = f"up to {self._lost:,} messages on damaged pages could not be searched"

    def _distrust(self, reason: str) -> None:
        """Ask for the same rows again, by a scan."""
        self._candidates.distrust()
        self._proposal.route = "scan"
        self._proposal.notes.append(f"{reason}; the messages were read instead")

    def _matching(
        self, connection: ReadConnection, schema: Schema, ids: Sequence[int]
    ) -> list[tuple[Stored, list[tuple[Message, Match]]]]:
        """The rows that answer the query, with the entries that do, in order."""
        found: list[tuple[Stored, list[tuple[Message, Match]]]] = []
        for some in self._portions(connection, ids):
            cells = read_cells(connection, schema, [str(number) for number in some], sent=False)
            rows = {row.id: row for row in stored_rows(connection, schema, some, prints=False)}
            for number in some:
                if number in rows and str(number) in cells:
                    entries = self._entries(connection, rows[number], cells[str(number)])
                    if entries:
                        found.append((rows[number], entries))
        return found

    def _portions(self, connection: ReadConnection, ids: Sequence[int]) -> Iterator[list[int]]:
        """The ids that pass the filters, in portions that fit into memory."""
        for start in range(0, len(ids), READ_ROWS):
            some = ids[start : start + READ_ROWS]
            sql = (
                f"SELECT m.id, octet_length(m.content) FROM messages m WHERE m.id IN ({','.join('?' * len(some))})"
                f" AND {self._where.all.sql}"
            )
            sizes: dict[int, int | None] = dict(connection.rows(sql, (*some, *self._where.all.values)))
            portion: list[int] = []
            total = 0
            for number in some:
                if number not in sizes:
                    continue
                portion.append(number)
                total += sizes[number] or 0
                if total > READ_BYTES:
                    yield portion
                    portion, total = [], 0
            if portion:
                yield portion

    def _entries(self, connection: ReadConnection, row: Stored, cells: Cells) -> list[tuple[Message, Match]]:
        """The entries of one row that answer the query."""
        messages = [
            message
            for message in _messages(connection, row, cells)
            if (message.head.kind == "reasoning") == self._reasoning
        ]
        if self._filters.kind is not None:
            messages = [message for message in messages if message.head.kind == self._filters.kind]
        found = [(message, match) for message in messages if (match := match_message(self._matcher, message))]
        if not found:
            together = match_together(self._matcher, messages)
            found = [together] if together else []
        return found

    def _proposed(
        self, connection: ReadConnection, schema: Schema, row: Stored, entries: Sequence[tuple[Message, Match]]
    ) -> list[Proposed]:
        """The hits of a row; none where the same message is stored earlier and found there."""
        try:
            group = self._copies.group(connection, schema, row)
            if len(group) > 1 and row.id != self._first_allowed(connection, group):
                # A tool's output may have been shortened where it was kept: then the other does not say the same.
                before = [number for number in group if number < row.id]
                if row.role != "tool" or self._matching(connection, schema, before):
                    return []
        except StoreDamaged:
            # Copies may be on a page that is gone: the hit stands for itself.
            group = (row.id,)
        inherited = self._copies.inherited(row) and row.state == "live"
        return [
            Proposed(
                message=_inherited(message) if inherited else message,
                order=(row.id, -number if self._newest else number),
                copies=len(group),
                text=match.text,
                marks=match.marks,
            )
            for number, (message, match) in enumerate(entries)
            if self._after is None or self._after[0] != row.id or number > abs(self._after[1])
        ]

    def _first_allowed(self, connection: ReadConnection, group: Sequence[int]) -> int | None:
        """The earliest row of a message that the filters let through."""
        marks = ",".join("?" * len(group))
        sql = f"SELECT min(m.id) FROM messages m WHERE m.id IN ({marks}) AND {self._where.all.sql}"
        row = connection.one(sql, (*group, *self._where.all.values))
        return row[0] if row else None

    def neighbours(self, messages: Sequence[Message]) -> list[Neighbours]:
        """The entries before and after some hits in their sessions."""
        try:
            return self._asking.ask(lambda connection, schema: self._all_around(connection, schema, messages))
        except StoreDamaged:
            if len(messages) == 1:
                return [(None, None)]
            # One broken page takes its own hits' neighbours, not those of all.
            return [around for message in messages for around in self.neighbours([message])]

    def _all_around(self, connection: ReadConnection, schema: Schema, messages: Sequence[Message]) -> list[Neighbours]:
        found = self._look_around(connection, schema, messages, NEAR_ROWS)
        # Rows that say nothing are rare: only where one stands beside a hit is looked further.
        again = [place for place, around in enumerate(found) if None in around]
        wider = self._look_around(connection, schema, [messages[place] for place in again], WIDE_ROWS) if again else []
        for place, around in zip(again, wider, strict=True):
            found[place] = around
        return found

    def _look_around(
        self, connection: ReadConnection, schema: Schema, messages: Sequence[Message], reach: int
    ) -> list[Neighbours]:
        near = [self._near(connection, message.head, reach) for message in messages]
        entries = self._near_entries(connection, schema, sorted({number for ids in near for number in ids}))
        found: list[Neighbours] = []
        for message, ids in zip(messages, near, strict=True):
            own = (int(message.head.id), message.head.part)
            around = [entry for number in ids for entry in entries.get(number, ())]
            before = [entry for place, entry in around if place < own]
            after = [entry for place, entry in around if place > own]
            found.append((before[-1] if before else None, after[0] if after else None))
        return found

    def _near(self, connection: ReadConnection, head: MessageHead, reach: int) -> list[int]:
        """The ids of the rows around a hit in its session, its own among them."""
        sql = f"SELECT m.id FROM messages m WHERE m.session_id = ? AND {self._where.shown.sql}"
        # Sorted here: with ORDER BY SQLite may walk the whole table by row id instead of the session's index.
        ids = sorted(row[0] for row in connection.rows(sql, (head.session_id, *self._where.shown.values)))
        place = bisect_left(ids, int(head.id))
        return ids[max(place - reach, 0) : place + reach + 1]

    def _near_entries(
        self, connection: ReadConnection, schema: Schema, ids: Sequence[int]
    ) -> dict[int, list[tuple[tuple[int, int], Neighbour]]]:
        """The entries of these rows that say something, with their places; what was only thought is left out."""
        found: dict[int, list[tuple[tuple[int, int], Neighbour]]] = {}
        for start in range(0, len(ids), READ_ROWS):
            some = ids[start : start + READ_ROWS]
            cells = _short_cells(connection, schema, some)
            for row in stored_rows(connection, schema, some, prints=False):
                found[row.id] = [
                    ((row.id, message.head.part), Neighbour(message.head.role, RawText(message.text[:NEAR_CHARACTERS])))
                    for message in _messages(connection, row, cells[row.id])
                    if message.text and message.head.kind != "reasoning"
                ]
        return found


def _short_cells(connection: ReadConnection, schema: Schema, ids: Sequence[int]) -> dict[int, Cells]:
    """The cells of some rows with only the beginning of long texts."""
    # Structured content is JSON: half of it says nothing.
    sql = (
        f"SELECT m.id, octet_length(m.content), CASE WHEN octet_length(m.content) <= {MOST_SHORT}"
        " OR (substr(CAST(m.content AS BLOB), 1, 1) = x'00')"
        f" THEN CAST(m.content AS BLOB) ELSE substr(CAST(m.content AS BLOB), 1, {MOST_SHORT}) END,"
        f" {schema.column('messages', 'tool_calls', 'm')}"
        f" FROM messages m WHERE m.id IN ({','.join('?' * len(ids))})"
    )
    return {
        number: Cells(number, size or 0, content, RawText(""), text_or_none(calls), None)
        for number, size, content, calls in connection.rows(sql, list(ids))
    }


def _frozen(condition: tuple[str, list[Any]]) -> tuple[str, tuple[Any, ...]]:
    return condition[0], tuple(condition[1])


def _inherited(message: Message) -> Message:
    return replace(message, head=replace(message.head, state="inherited"))


def _messages(connection: ReadConnection, row: Stored, cells: Cells) -> Iterator[Message]:
    """The entries of a row with their whole texts."""
    calls = tool_calls(cells.calls)
    used = 0
    for head in heads_of(Placed(row)):
        if head.kind == "reasoning":
            yield Message(head, cells.reasoning)
        elif head.kind == "tool-call":
            yield Message(head, RawText(calls[used].arguments))
            used += 1
        else:
            yield Message(head, _content(connection, row, cells))


def _content(connection: ReadConnection, row: Stored, cells: Cells) -> RawText | None:
    if cells.content is not None:
        return read_content(cells.content).text
    if not row.size:
        return None
    found = connection.one(
        f"SELECT substr(CAST(content AS BLOB), 1, {MOST_READ}) FROM messages WHERE id = ?", (row.id,)
    )
    return text_or_none(found[0]) if found else None
