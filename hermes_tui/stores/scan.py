"""Search by reading: for stores of logs, and for what no index holds.

Sessions are taken by their last activity, newest first. A look at the raw bytes of a log tells whether it can hold an
answer at all; only then its transcript is read. Hits of sessions that overlap in time are merged, so that the order is
the same as if everything had been sorted.
"""

from __future__ import annotations

import heapq
import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Literal, NamedTuple, Protocol

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
FIRST_PORTION: Final = 64
"""Messages of a session that are compared at first; each portion after it is four times as large."""
MOST_OPEN: Final = 32
"""Sessions that are read in portions at a time: each keeps its transcript. Further ones are read in one go."""
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


class _Asked(NamedTuple):
    """An entry that must be looked at."""

    head: MessageHead
    order: Order


_Keyed = tuple[Order, _Found]
"""A hit behind its key: smaller keys come first, whichever order is asked for."""


class _Merged:
    """Streams of hits, each in order, as one."""

    def __init__(self) -> None:
        self._heap: list[tuple[Order, int, _Found, Iterator[_Keyed]]] = []
        self._streams = 0

    def add(self, stream: Iterator[_Keyed]) -> None:
        """Take its hits in; one is read."""
        self._streams += 1
        self._push(self._streams, stream)

    def _push(self, number: int, stream: Iterator[_Keyed]) -> None:
        for key, hit in stream:
            heapq.heappush(self._heap, (key, number, hit, stream))
            return

    def before(self, bound: float | None) -> Iterator[Proposed]:
        """The hits no stream that is added later can come before; ``None``: all."""
        while self._heap and (bound is None or self._heap[0][0][0] < bound):
            _, number, hit, stream = heapq.heappop(self._heap)
            yield Proposed(hit.message, hit.order, hit.copies, hit.match.text, hit.match.marks)
            self._push(number, stream)


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
        self._last: Order | None = None
        """The key of the hit behind which to go on."""
        self._kept_open = 0

    def hits(self, after: tuple[float, ...] | None) -> Iterator[Proposed]:
        """Hits in order; sessions are opened, and their lines read, as late as the order allows."""
        index = self._store.index()
        waiting = self._sessions(index)
        self._last = None if after is None else self._key((after[0], after[1], after[2]))
        opened: set[SessionId] = set()
        merged = _Merged()
        for bound, session_id in waiting:
            yield from merged.before(bound)
            family = self._family(index, session_id)
            if not opened.issuperset(family):
                opened.update(family)
                merged.add(self._in_order(index, session_id))
        yield from merged.before(None)

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

    def _in_order(self, index: LogIndex, session_id: SessionId) -> Iterator[_Keyed]:
        """The hits of a family behind the place where to go on, in the order asked for."""
        if self._alone(index, session_id):
            found = self._lone_hits(index, session_id)
        else:
            found = iter(sorted(self._family_hits(index, session_id), key=lambda hit: self._key(hit.order)))
        for hit in found:
            key = self._key(hit.order)
            if self._last is None or key > self._last:
                yield key, hit

    # ------------------------------------------------------------------------------------------------ families

    def _family(self, index: LogIndex, session_id: SessionId) -> tuple[SessionId, ...]:
        """The sessions that may hold copies of each other's messages."""
        return (session_id,) if self._alone(index, session_id) else index.tree(session_id)

    def _alone(self, index: LogIndex, session_id: SessionId) -> bool:
        return index.rows[session_id].parent_id is None and session_id not in index.children

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

    def _session_hits(self, index: LogIndex, session_id: SessionId) -> Iterator[_Found]:
        """Its hits in the order of its logs."""
        with self._told(session_id):
            if self._opens(index, session_id):
                transcript = self._store.transcript([session_id])
                asked = self._asked(transcript, index.rows[session_id])
                for some in _together(asked, LOADED):
                    yield from self._matches(transcript, some)
                self._tell_lost(transcript, session_id)

    def _lone_hits(self, index: LogIndex, session_id: SessionId) -> Iterator[_Found]:
        """Hits of a session that shares its messages with no other, in the order asked for, read as they are wanted."""
        asked: list[_Asked] = []
        with self._told(session_id):
            if self._opens(index, session_id):
                transcript = self._store.transcript([session_id])
                # What came before a failure is searched all the same.
                for one in self._asked(transcript, index.rows[session_id]):
                    asked.append(one)
                self._tell_lost(transcript, session_id)
        if len({(one.head.id, one.head.part) for one in asked}) < len(asked):
            # Two entries may be one message: which counts is known when all are read.
            return iter(sorted(self._family_hits(index, session_id), key=lambda hit: self._key(hit.order)))
        groups = [some for some in _together(asked, 1) if self._still_wanted(some)]
        if not groups:
            return iter(())
        if len(groups) <= FIRST_PORTION or self._kept_open >= MOST_OPEN:
            # Nothing of the transcript is kept while its hits wait for their turn.
            return iter(self._portion(session_id, transcript, groups))
        return self._in_portions(session_id, transcript, groups[::-1] if self._newest else groups)

    def _in_portions(
        self, session_id: SessionId, transcript: Transcript, groups: list[list[_Asked]]
    ) -> Iterator[_Found]:
        """Read few entries at first: most who search look at the newest hits only."""
        portion = FIRST_PORTION
        self._kept_open += 1
        try:
            while groups:
                some, groups = groups[:portion], groups[portion:]
                yield from self._portion(session_id, transcript, some)
                portion *= 4
        finally:
            self._kept_open -= 1

    def _portion(self, session_id: SessionId, transcript: Transcript, groups: Sequence[list[_Asked]]) -> list[_Found]:
        """The hits among these entries, which are read as they lie in the log, in the order asked for."""
        some = sorted(itertools.chain.from_iterable(groups), key=lambda one: one.order)
        found: list[_Found] = []
        with self._told(session_id):
            for batch in _together(some, LOADED):
                found += (hit for hit in self._matches(transcript, batch) if self._shown(hit.message.head))
        return sorted(found, key=lambda hit: self._key(hit.order))

    def _still_wanted(self, entries: Sequence[_Asked]) -> bool:
        return self._last is None or any(self._key(one.order) > self._last for one in entries)

    def _opens(self, index: LogIndex, session_id: SessionId) -> bool:
        """Whether a session must be read."""
        self._pulse()
        unwanted = self._alone(index, session_id) and not self._wanted(index.rows[session_id])
        return not unwanted and self._may_hold(index.logs_of.get(session_id, ()))

    @contextmanager
    def _told(self, session_id: SessionId) -> Iterator[None]:
        """What cannot be read of a session is told, and the search goes on without it."""
        try:
            yield
        except Interrupted:
            raise
        except (OSError, StorageError) as error:
            self._not_read(session_id, str(error))

    def _tell_lost(self, transcript: Transcript, session_id: SessionId) -> None:
        """A problem without a line is about a whole log."""
        lost = next((problem for problem in transcript.problems if problem.line is None), None)
        if lost is not None:
            self._not_read(session_id, f"{lost.path} {lost.reason}")

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

    def _asked(self, transcript: Transcript, row: SessionRow) -> Iterator[_Asked]:
        """The entries that must be looked at, with their places in the order."""
        number = float(zlib.crc32(row.id.encode("utf-8", "surrogatepass")))
        latest = 0.0
        place = -1
        for batch in transcript.heads():
            self._pulse()
            for head in batch:
                # Clocks go back; within a session the order is that of the log.
                latest = max(latest, head.at) if head.at is not None else latest
                place += 1
                # States and times are tested later: a copy counts even where it is not shown.
                if self._of_kind(head) and self._may_answer(head):
                    yield _Asked(head, (self._within(row, latest), number, float(place)))

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

    def _matches(self, transcript: Transcript, asked: Sequence[_Asked]) -> Iterator[_Found]:
        """Read these entries and compare them; the parts of a message may answer together."""
        self._pulse()
        orders = {id(one.head): one.order for one in asked}
        loaded = transcript.load([one.head for one in asked])
        messages = [
            replace(self._whole(transcript, message), head=one.head) for one, message in zip(asked, loaded, strict=True)
        ]
        for _, some in itertools.groupby(messages, key=lambda message: message.head.id):
            entries = list(some)
            found = [(message, match) for message in entries if (match := match_message(self._matcher, message))]
            together = None if found else match_together(self._matcher, entries)
            for message, match in [together] if together else found:
                yield _Found(message, match, orders[id(message.head)])

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


def _together(asked: Iterable[_Asked], most: int) -> Iterator[list[_Asked]]:
    """Entries in lists of about so many; those of one stored message are never parted."""
    some: list[_Asked] = []
    for one in asked:
        if len(some) >= most and some[-1].head.id != one.head.id:
            yield some
            some = []
        some.append(one)
    if some:
        yield some
