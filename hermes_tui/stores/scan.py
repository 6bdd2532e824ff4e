"""Search by reading: for stores of logs, and for what no index holds.

Sessions are taken by their last activity, newest first. A look at the raw bytes of a log tells whether it can hold an
answer at all; only then its transcript is read. Hits of sessions that overlap in time are merged, so that the order is
the same as if everything had been sorted.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol

from hermes_tui.model import SHOWN_STATES, Message, MessageHead, SessionId, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.storage.fulltext import Matcher
from hermes_tui.storage.raw_filter import RawFilter
from hermes_tui.stores.conversation import below
from hermes_tui.stores.log_index import LogIndex
from hermes_tui.stores.log_source import LogFile, Pulse
from hermes_tui.stores.matching import Match, match_message, match_together
from hermes_tui.stores.protocol import Proposal, Proposed, SearchFilters, Transcript
from hermes_tui.text import RawText

LOADED: Final = 200
"""Entries whose texts are read at once."""
PIECE: Final = 1 << 20
"""Characters of one piece of a long text."""
MOST_SEARCHED: Final = 32 << 20
"""Characters of one text that are searched."""
Order = tuple[float, float, float]
"""Time, a number of the session, place in it."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an index knows of one log."""

    lines: frozenset[int]
    """The lines that may answer."""
    read_to: int | None
    """The first line it has not read; ``None``: it has read all of them."""

    def may_answer(self, line: int | None) -> bool:
        """Whether the entries of this line must be looked at."""
        return line is None or line in self.lines or (self.read_to is not None and line >= self.read_to)


class LineIndex(Protocol):
    """An index over lines of logs: it proposes, the transcript and the matcher decide."""

    def candidates(self, log: LogFile) -> Candidates | None:
        """What it knows of a log as it is now; ``None``: nothing, the log must be read."""
        ...


class Scannable(Protocol):
    """What a scan needs of a store of logs; :class:`hermes_tui.stores.logs.LogStore` has it."""

    files: bool

    def index(self) -> LogIndex:
        """Every session as peeked."""
        ...

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """The messages of sessions."""
        ...

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        """Full rows."""
        ...

    def pulse(self) -> Pulse:
        """Raises ``Interrupted`` once somebody asked to stop."""
        ...


def scan_proposal(
    store: Scannable,
    matcher: Matcher,
    filters: SearchFilters,
    order: Literal["newest", "oldest"],
    after: tuple[float, ...] | None = None,
    lines: LineIndex | None = None,
) -> Proposal:
    """The messages of a store of logs that answer a query, in order, each once; ``lines`` spares most reading."""
    proposal = Proposal("scan" if lines is None else "mirror", iter(()))
    scan = _Scan(store, matcher, filters, proposal, lines, newest=order == "newest")
    proposal.messages = scan.hits(after)
    return proposal


@dataclass(slots=True)
class _Found:
    """An entry that answers the query."""

    message: Message
    match: Match
    order: Order
    copies: int = 1


class _Scan:
    """One search over one store of logs."""

    def __init__(
        self,
        store: Scannable,
        matcher: Matcher,
        filters: SearchFilters,
        proposal: Proposal,
        lines: LineIndex | None,
        *,
        newest: bool,
    ) -> None:
        self._store = store
        self._matcher = matcher
        self._filters = filters
        self._proposal = proposal
        self._lines = lines
        self._known: dict[str, Candidates | None] = {}
        self._sign = -1.0 if newest else 1.0
        self._newest = newest
        self._raw = RawFilter(matcher)
        self._pulse = store.pulse()
        self._unread = 0
        self._first_unread = ""

    def hits(self, after: tuple[float, ...] | None) -> Iterator[Proposed]:
        """Hits in order; sessions are opened as late as the order allows."""
        index = self._store.index()
        waiting = self._sessions(index)
        opened: set[SessionId] = set()
        heap: list[tuple[Order, _Found]] = []
        for bound, session_id in waiting:
            yield from self._ready(heap, bound, after)
            for member in self._family(index, session_id):
                if member not in opened:
                    opened.update(self._family(index, session_id))
                    for hit in self._family_hits(index, session_id):
                        heapq.heappush(heap, (self._key(hit.order), hit))
        yield from self._ready(heap, math.inf, after)

    def _sessions(self, index: LogIndex) -> list[tuple[float, SessionId]]:
        """Sessions with the earliest place in the order their hits can take; sorted by it."""
        found: list[tuple[float, SessionId]] = []
        for row in index.rows.values():
            time = row.last_active_at if self._newest else row.started_at
            # Unknown: nothing can be said before it was read.
            found.append((-math.inf if time is None else self._sign * time, row.id))
        return sorted(found)

    def _key(self, order: Order) -> Order:
        return (self._sign * order[0], self._sign * order[1], self._sign * order[2])

    def _ready(
        self, heap: list[tuple[Order, _Found]], bound: float, after: tuple[float, ...] | None
    ) -> Iterator[Proposed]:
        """Hits no unopened session can come before."""
        last = None if after is None else self._key((after[0], after[1], after[2]))
        while heap and (heap[0][0][0] < bound or bound == math.inf):
            key, hit = heapq.heappop(heap)
            if last is None or key > last:
                yield Proposed(hit.message, hit.order, hit.copies, hit.match.text, hit.match.marks)

    # ------------------------------------------------------------------------------------------------ families

    def _family(self, index: LogIndex, session_id: SessionId) -> tuple[SessionId, ...]:
        """The sessions that may hold copies of each other's messages."""
        row = index.rows[session_id]
        if row.parent_id is None and session_id not in index.children:
            return (session_id,)
        return index.tree(session_id)

    def _family_hits(self, index: LogIndex, session_id: SessionId) -> Iterator[_Found]:
        """The hits of a family, each message once: where it was written first, of the places the filters allow."""
        groups: dict[tuple[str, str], list[list[_Found]]] = {}
        for member in sorted(self._family(index, session_id), key=lambda one: _age(index, one)):
            for hit in self._session_hits(index, member):
                same_text = groups.setdefault((hit.message.head.kind, hit.match.text), [])
                stored = _stored(index, hit, same_text)
                if stored is None:
                    same_text.append([hit])
                else:
                    stored.append(hit)
        for stored in (one for same_text in groups.values() for one in same_text):
            first = next((hit for hit in stored if self._shown(hit.message.head) and self._allows(index, hit)), None)
            if first is not None:
                first.copies = len({_place(hit.message.head) for hit in stored})
                yield first

    def _allows(self, index: LogIndex, hit: _Found) -> bool:
        row = index.rows.get(hit.message.head.session_id)
        return row is None or self._wanted(row)

    # ------------------------------------------------------------------------------------------------ sessions

    def _session_hits(self, index: LogIndex, session_id: SessionId) -> list[_Found]:
        self._pulse()
        row = index.rows[session_id]
        alone = row.parent_id is None and session_id not in index.children
        try:
            if (alone and not self._wanted(row)) or not self._may_hold(index.logs_of.get(session_id, ())):
                return []
            return list(self._read(index.rows[session_id]))
        except Interrupted:
            raise
        except (OSError, StorageError) as error:
            self._not_read(session_id, str(error))
            return []

    def _not_read(self, session_id: SessionId, reason: str) -> None:
        self._unread += 1
        more = f" (and {self._unread - 1} more)" if self._unread > 1 else ""
        self._first_unread = self._first_unread or f"session {session_id} could not be read: {reason}"
        self._proposal.incomplete = self._first_unread + more

    def _wanted(self, row: SessionRow) -> bool:
        asked = self._filters
        return (
            (asked.source is None or row.source == asked.source)
            and (asked.exclude_source is None or row.source != asked.exclude_source)
            and (asked.cwd is None or below(row.cwd, asked.cwd))
            and (asked.channel is None or row.session_key == asked.channel)
            and (asked.since is None or row.last_active_at is None or row.last_active_at >= asked.since)
            and (asked.until is None or row.started_at is None or row.started_at <= asked.until)
            and (asked.model is None or self._has_model(row, asked.model))
        )

    def _has_model(self, row: SessionRow, model: str) -> bool:
        """A peek does not always tell the model."""
        full = self._store.rows([row.id], conversation=False)
        return any(model == one.model or model in one.models for one in full)

    def _may_hold(self, logs: Sequence[LogFile]) -> bool:
        """Whether one of its logs can hold an answer: the index knows, else its bytes are looked at."""
        if not self._store.files or not logs:
            return True
        known = [(log.path, self._candidates(log)) for log in logs]
        if any(one is not None and one.lines for _, one in known):
            return True
        unread = [path for path, one in known if one is None or one.read_to is not None]
        return bool(unread) and (self._raw.everything or self._raw.files_may_hold(unread, self._pulse))

    def _candidates(self, log: LogFile) -> Candidates | None:
        if self._lines is None:
            return None
        if log.path not in self._known:
            self._known[log.path] = self._lines.candidates(log)
        return self._known[log.path]

    def _read(self, row: SessionRow) -> Iterator[_Found]:
        transcript = self._store.transcript([row.id])
        number = float(zlib.crc32(row.id.encode("utf-8", "surrogatepass")))
        latest = 0.0
        place = 0
        for batch in transcript.heads():
            self._pulse()
            times: dict[int, tuple[float, int]] = {}
            for head in batch:
                # Clocks go back; within a session the order is that of the log.
                latest = max(latest, head.at) if head.at is not None else latest
                times[id(head)] = (self._within(row, latest), place)
                place += 1
            # States and times are tested later: a copy counts even where it is not shown.
            wanted = [head for head in batch if self._of_kind(head) and self._may_answer(head)]
            for message, match in self._matches(transcript, wanted):
                at, position = times[id(message.head)]
                yield _Found(message, match, (at, number, float(position)))
        # A problem without a line is about a whole log.
        lost = next((problem for problem in transcript.problems if problem.line is None), None)
        if lost is not None:
            self._not_read(row.id, f"{lost.path} {lost.reason}")

    def _within(self, row: SessionRow, at: float) -> float:
        """A time no earlier in the order than the session was opened by: what was given before is not gone back to."""
        if self._newest:
            return at if row.last_active_at is None else min(at, row.last_active_at)
        return at if row.started_at is None else max(at, row.started_at)

    def _shown(self, head: MessageHead) -> bool:
        asked = self._filters
        if not asked.all_states and head.state not in SHOWN_STATES:
            return False
        if asked.since is not None and (head.at is None or head.at < asked.since):
            return False
        return asked.until is None or (head.at is not None and head.at <= asked.until)

    def _of_kind(self, head: MessageHead) -> bool:
        asked = self._filters
        return (asked.kind is None or head.kind == asked.kind) and (asked.role is None or head.role == asked.role)

    def _may_answer(self, head: MessageHead) -> bool:
        """Whether an entry must be looked at: the index says so or does not know, or its tool's name may answer."""
        known = None if head.path is None else self._known.get(head.path)
        if known is None or known.may_answer(head.line):
            return True
        return head.tool_name is not None and bool(self._matcher.touches(head.tool_name))

    def _matches(self, transcript: Transcript, heads: Sequence[MessageHead]) -> Iterator[tuple[Message, Match]]:
        for start in range(0, len(heads), LOADED):
            self._pulse()
            some = heads[start : start + LOADED]
            loaded = transcript.load(some)
            messages = [
                replace(self._whole(transcript, message), head=head) for head, message in zip(some, loaded, strict=True)
            ]
            for entries in _by_id(messages):
                found = [(message, match) for message in entries if (match := match_message(self._matcher, message))]
                together = None if found else match_together(self._matcher, entries)
                yield from [together] if together else found

    def _whole(self, transcript: Transcript, message: Message) -> Message:
        """A message with its whole text, as far as texts are searched; what is left out is told."""
        if not message.cut:
            return message
        pieces: list[str] = []
        start = 0
        while piece := transcript.piece(message.head, start, PIECE):
            if start >= MOST_SEARCHED:
                reason = f"of {message.head.id} in {message.head.session_id} only the first {start:,} characters"
                self._proposal.incomplete = self._proposal.incomplete or f"{reason} were searched"
                break
            pieces.append(piece)
            start += len(piece)
        return replace(message, text=RawText("".join(pieces)))


def _age(index: LogIndex, session_id: SessionId) -> tuple[int, float, str]:
    """Smaller is earlier; parents come first, for a branch can claim the time of what it copied."""
    started = index.rows[session_id].started_at
    return len(index.ancestors(session_id)), math.inf if started is None else started, session_id


def _place(head: MessageHead) -> tuple[object, ...]:
    """Where an entry is stored; forks may point to their source's log instead of copying it."""
    if head.path is None:
        return (head.session_id, head.id, head.part)
    return (head.path, head.line, head.offset, head.part)


def _stored(index: LogIndex, hit: _Found, same_text: Sequence[list[_Found]]) -> list[_Found] | None:
    """The places of the message a hit stores again; ``None``: it is a message of its own."""
    head = hit.message.head
    for places in same_text:
        if any((one.message.head.id, one.message.head.part) == (head.id, head.part) for one in places):
            return places
    if head.state != "inherited":
        return None
    # Only where no id tells: one text may have been said twice before it was copied.
    ancestors = set(index.ancestors(head.session_id)) - {head.session_id}
    for places in same_text:
        sessions = {one.message.head.session_id for one in places}
        if sessions & ancestors and head.session_id not in sessions:
            return places
    return None


def _by_id(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """The entries of one stored message together."""
    group: list[Message] = []
    for message in messages:
        if group and group[0].head.id != message.head.id:
            yield group
            group = []
        group.append(message)
    if group:
        yield group
