"""Search over every store: one stream of hits, newest first, oldest first, or by rank.

Stores propose messages in their own order; here the streams are merged by time, and each hit gets its snippet, its
session and its neighbours (contract.md, search). A run gives hits as they come; any thread may cancel it.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from typing import Final, Literal, TypeVar

from hermes_tui.library.failures import WrongUse
from hermes_tui.library.search_cursor import Cursor, read_cursor, write_cursor
from hermes_tui.library.search_rank import RANKED, RankedHit, Stream, ranking
from hermes_tui.library.snippets import Snippet, cut_context, snippet_of
from hermes_tui.library.sources import Library, StoreFailure, store_failure
from hermes_tui.model import SHOWN_STATES, Agent, Message, MessageHead, Route, SessionId, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.storage.fulltext import BadPattern, Matcher, parse_query
from hermes_tui.stores.matching import match_message
from hermes_tui.stores.protocol import Neighbour, Neighbours, Proposal, Proposed, Ranked, SearchFilters, Store
from hermes_tui.text import RawText

Answer = TypeVar("Answer")
Sort = Literal["newest", "oldest", "rank"]
LIMIT: Final = 50
ENTRIES: Final = 1_000
"""More than one message has entries: a place in the ranking is the candidate's times this, and the entry's."""
READ_AHEAD: Final = 60
"""Ranked candidates that are read at once: a page."""
CHUNK_S: Final = 0.08
"""Hits that come within this time are completed together: one look into a store instead of fifty."""
HEADS_KEPT: Final = 4
"""Sessions of logs whose entries are remembered for the neighbours of hits."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is searched for, where, and in which order."""

    query: str
    regex: bool = False
    sort: Sort = "newest"
    filters: SearchFilters = field(default_factory=SearchFilters)
    limit: int | None = LIMIT
    """``None``: every hit."""
    after: str | None = None
    """``next`` of the page before."""
    agents: tuple[Agent, ...] = ()
    """Empty: all."""

    @property
    def question(self) -> str:
        """What a cursor must agree on."""
        return repr((self.query, self.regex, self.sort, self.filters, self.agents))


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One message that answers the query."""

    store: Store
    head: MessageHead
    snippet: Snippet
    copies: int
    session: SessionRow | None
    """The session's own row; ``None``: the message is an orphan, its session is gone."""
    title: RawText | None
    """The session's, else its conversation's."""
    model: RawText | None
    before: Neighbour | None
    after: Neighbour | None

    @property
    def root_id(self) -> SessionId | None:
        """The root of its conversation: hits are grouped by it."""
        return None if self.session is None else self.session.root_id


def search(library: Library, request: SearchRequest) -> SearchRun:
    """Start a search; nothing is read before the first hit is asked for.

    Raises:
        WrongUse: the regular expression or the cursor can't be read.
    """
    try:
        matcher = parse_query(request.query, request.regex)
    except BadPattern as error:
        raise WrongUse(str(error), "Leave out --regex to search for words.") from None
    return SearchRun(library, request, matcher, read_cursor(request.after, request.question))


class SearchRun:
    """One search: iterate it for hits. Read it in one thread; :meth:`cancel` may come from any."""

    def __init__(self, library: Library, request: SearchRequest, matcher: Matcher, cursor: Cursor) -> None:
        self.request = request
        self.matcher = matcher
        self.ranked_of: int | None = None
        """With ``rank``: how many of the newest hits were ranked, where there were more."""
        self.failures: list[StoreFailure] = []
        """Stores that could not answer, or not to the end."""
        self._library = library
        self._cursor = cursor
        self._more = False
        self._cancelled = False
        self._busy: Store | None = None
        self._proposals: dict[str, Proposal] = {}
        self._heads: OrderedDict[tuple[str, str], list[MessageHead]] = OrderedDict()

    @property
    def route(self) -> dict[str, Route]:
        """How each store is searched, as far as it was asked."""
        return {name: proposal.route for name, proposal in self._proposals.items()}

    @property
    def notes(self) -> dict[str, list[str]]:
        """What was done otherwise than usual, by store."""
        return {name: proposal.notes for name, proposal in self._proposals.items() if proposal.notes}

    @property
    def incomplete(self) -> str | None:
        """Why hits may be missing; ``None``: none are."""
        reasons = [f"{name}: {one.incomplete}" for name, one in self._proposals.items() if one.incomplete]
        reasons += [f"{failure.ref.name}: {failure.reason}" for failure in self.failures]
        if self.matcher.empty_reason is not None:
            reasons.append(self.matcher.empty_reason)
        return "; ".join(reasons) or None

    @property
    def next(self) -> str | None:
        """Where the next page begins; ``None``: there is none. Known once the run is exhausted."""
        return write_cursor(self._cursor, self.request.question) if self._more else None

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled it."""
        return self._cancelled

    def cancel(self) -> None:
        """End it soon, from any thread; the iteration then stops without an error."""
        self._cancelled = True
        busy = self._busy
        if busy is not None:
            busy.interrupt()

    def __iter__(self) -> Iterator[SearchHit]:
        if self.matcher.empty_reason is not None:
            return
        try:
            yield from self._completed(self._page())
        except Interrupted:
            if not self._cancelled:
                raise

    # -------------------------------------------------------------------------------------------------- merging

    def _page(self) -> Iterator[tuple[Stream, Proposed]]:
        """The hits of this page; notes whether there are more."""
        newest = self.request.sort != "oldest"
        if self.request.sort == "rank":
            hits = self._ranked()
        else:
            hits = self._merged(self._opened(self._cursor, newest), newest)
        limit = self.request.limit
        for number, (stream, hit) in enumerate(hits):
            if limit is not None and number >= limit:
                self._more = True
                return
            if self.request.sort != "rank":
                place = self._cursor.place(stream.store.ref.name)
                place.order, place.at = hit.order, stream.at if math.isfinite(stream.at) else None
            yield stream, hit

    def _opened(self, cursor: Cursor, newest: bool) -> list[Stream]:
        return [stream for store in self._stores() if (stream := self._open(store, cursor, newest)) is not None]

    def _merged(self, streams: Sequence[Stream], newest: bool) -> Iterator[tuple[Stream, Proposed]]:
        """The streams of all stores as one, by time; within a store its own order."""
        for stream in streams:
            self._pull(stream)
        while True:
            ready = [stream for stream in streams if stream.head is not None]
            if not ready:
                return
            stream = max(ready, key=lambda one: one.at) if newest else min(ready, key=lambda one: one.at)
            hit = stream.head
            assert hit is not None
            yield stream, hit
            self._pull(stream)

    def _stores(self) -> Sequence[Store]:
        wanted = self.request.agents
        return [store for store in self._library.stores if not wanted or store.ref.agent in wanted]

    def _open(self, store: Store, cursor: Cursor, newest: bool) -> Stream | None:
        place = cursor.stores.get(store.ref.name)
        order: Literal["newest", "oldest"] = "newest" if newest else "oldest"
        self._busy = store
        try:
            proposal = store.propose(self.matcher, self.request.filters, order, place.order if place else None)
        except Interrupted:
            raise
        except (StorageError, OSError) as error:
            self.failures.append(store_failure(store.ref, error))
            return None
        finally:
            self._busy = None
        self._proposals[store.ref.name] = proposal
        start = math.inf if newest else -math.inf
        return Stream(store, proposal, at=place.at if place is not None and place.at is not None else start)

    def _pull(self, stream: Stream) -> None:
        """The next proposal of a store; one that fails on the way ends its stream and is named."""
        stream.head = None
        if self._cancelled:
            raise Interrupted
        self._busy = stream.store
        try:
            for proposed in stream.proposal.messages:
                stream.head = self._decided(proposed)
                if stream.head is not None:
                    break
        except Interrupted:
            raise
        except (StorageError, OSError) as error:
            self.failures.append(store_failure(stream.store.ref, error))
        finally:
            self._busy = None
        if stream.head is not None and stream.head.message.head.at is not None:
            stream.at = stream.head.message.head.at

    def _decided(self, proposed: Proposed) -> Proposed | None:
        """The matcher's word, where the store did not ask it already."""
        if proposed.text is not None:
            return proposed
        match = match_message(self.matcher, proposed.message)
        if match is None:
            return None
        return Proposed(proposed.message, proposed.order, proposed.copies, match.text, match.marks)

    def _ranked(self) -> Iterator[tuple[Stream, Proposed]]:
        """The newest hits by bm25; of equal ones the newer first."""
        streams = self._opened(Cursor(), newest=True)
        scored = [(stream, ranked) for stream in streams if (ranked := self._scored(stream)) is not None]
        few = [stream for stream in streams if all(stream is not other for other, _ in scored)]
        read = list(islice(self._merged(few, newest=True), RANKED + 1))
        if len(read) > RANKED or any(ranked.more for _, ranked in scored):
            self.ranked_of = RANKED
        ordered = ranking(self.matcher, read[:RANKED], scored)
        first = self._cursor.given
        for start in range(first // ENTRIES, len(ordered), READ_AHEAD):
            for place, stream, hit in self._resolved(ordered, start):
                if place >= first:
                    # The hit that only tells that there is a next page stays the place where that begins.
                    self._cursor.given = place
                    yield stream, hit

    def _scored(self, stream: Stream) -> Ranked | None:
        scoring = stream.proposal.ranked
        return None if scoring is None else self._asked(stream, partial(scoring, RANKED))

    def _resolved(self, ordered: Sequence[RankedHit], start: int) -> Iterator[tuple[int, Stream, Proposed]]:
        """The hits among some ranked candidates, with their places; candidates that are none are passed over."""
        some = list(enumerate(ordered[start : start + READ_AHEAD], start))
        known: dict[tuple[str, int], list[Proposed]] = {}
        for stream in {id(one.stream): one.stream for _, one in some if one.hit is None}.values():
            keys = [one.key for _, one in some if one.stream is stream and one.hit is None]
            ranked = next(one.ranked for _, one in some if one.stream is stream and one.ranked is not None)
            for hit in self._asked(stream, partial(ranked.read, keys)) or ():
                known.setdefault((stream.store.ref.name, int(hit.order[0])), []).append(hit)
        for place, one in some:
            hits = [one.hit] if one.hit is not None else known.get((one.stream.store.ref.name, one.key), [])
            for entry, hit in enumerate(hits):
                yield place * ENTRIES + entry, one.stream, hit

    def _asked(self, stream: Stream, question: Callable[[], Answer]) -> Answer | None:
        """One question to a store; ``None`` where it fails, which is named."""
        if self._cancelled:
            raise Interrupted
        self._busy = stream.store
        try:
            return question()
        except Interrupted:
            raise
        except (StorageError, OSError) as error:
            self.failures.append(store_failure(stream.store.ref, error))
            return None
        finally:
            self._busy = None

    # ----------------------------------------------------------------------------------------------- completing

    def _completed(self, page: Iterator[tuple[Stream, Proposed]]) -> Iterator[SearchHit]:
        """Hits with session and neighbours, as many together as came within a moment."""
        chunk: list[tuple[Stream, Proposed]] = []
        begun = time.monotonic()
        for pair in page:
            chunk.append(pair)
            if time.monotonic() - begun > CHUNK_S:
                yield from self._complete(chunk)
                chunk, begun = [], time.monotonic()
        yield from self._complete(chunk)

    def _complete(self, chunk: Sequence[tuple[Stream, Proposed]]) -> list[SearchHit]:
        by_store: dict[str, list[tuple[Stream, Proposed]]] = {}
        for stream, hit in chunk:
            by_store.setdefault(stream.store.ref.name, []).append((stream, hit))
        done: dict[int, SearchHit] = {}
        for pairs in by_store.values():
            store, proposal = pairs[0][0].store, pairs[0][0].proposal
            sessions = _Sessions({}, {})
            around: list[Neighbours] = [(None, None)] * len(pairs)
            self._busy = store
            try:
                sessions = _read_sessions(store, [hit.message.head.session_id for _, hit in pairs])
                around = self._neighbours(store, proposal, [hit.message for _, hit in pairs])
            except Interrupted:
                raise
            except (StorageError, OSError) as error:
                # The hits themselves are known: they are given without what could not be read.
                self.failures.append(store_failure(store.ref, error))
            finally:
                self._busy = None
            for (_, hit), neighbours in zip(pairs, around, strict=True):
                done[id(hit)] = _hit(store, hit, sessions, neighbours)
        return [done[id(hit)] for _, hit in chunk]

    def _neighbours(self, store: Store, proposal: Proposal, messages: Sequence[Message]) -> list[Neighbours]:
        if proposal.neighbours is not None:
            return proposal.neighbours(messages)
        return [self._around(store, message.head) for message in messages]

    def _around(self, store: Store, head: MessageHead) -> Neighbours:
        """The entries around a hit, from its transcript."""
        transcript = store.transcript([head.session_id])
        key = (store.ref.name, head.session_id)
        if key not in self._heads:
            states = self.request.filters.all_states
            self._heads[key] = [
                one for batch in transcript.heads() for one in batch if states or one.state in SHOWN_STATES
            ]
            while len(self._heads) > HEADS_KEPT:
                self._heads.popitem(last=False)
        heads = self._heads[key]
        place = next((at for at, one in enumerate(heads) if (one.id, one.part) == (head.id, head.part)), None)
        if place is None:
            return None, None
        wanted = [heads[place - 1] if place else None, heads[place + 1] if place + 1 < len(heads) else None]
        texts = iter(transcript.load([one for one in wanted if one is not None]))
        before, after = (None if one is None else next(texts) for one in wanted)
        return _neighbour(before), _neighbour(after)


@dataclass(frozen=True, slots=True)
class _Sessions:
    """The rows of the sessions of some hits."""

    own: dict[SessionId, SessionRow]
    titles: dict[SessionId, RawText | None]
    """Of conversations, by tip."""

    def title(self, session_id: SessionId) -> RawText | None:
        """The session's title, else its conversation's."""
        row = self.own.get(session_id)
        return None if row is None else row.title or self.titles.get(row.tip_id)


def _read_sessions(store: Store, ids: Sequence[SessionId]) -> _Sessions:
    rows = store.rows(list(dict.fromkeys(ids)), conversation=False)
    untitled = [row.tip_id for row in rows if not row.title and row.root_id != row.tip_id]
    folded = store.rows(list(dict.fromkeys(untitled)), conversation=True) if untitled else []
    return _Sessions({row.id: row for row in rows if not row.gone}, {row.tip_id: row.title for row in folded})


def _hit(store: Store, hit: Proposed, sessions: _Sessions, neighbours: Neighbours) -> SearchHit:
    head = hit.message.head
    session = sessions.own.get(head.session_id)
    before, after = neighbours
    return SearchHit(
        store=store,
        head=head,
        snippet=snippet_of(hit.text or "", hit.marks),
        copies=hit.copies,
        session=session,
        title=sessions.title(head.session_id),
        model=hit.message.model or (session.model if session is not None else None),
        before=_cut(before),
        after=_cut(after),
    )


def _cut(neighbour: Neighbour | None) -> Neighbour | None:
    return None if neighbour is None else Neighbour(neighbour.role, cut_context(neighbour.text))


def _neighbour(message: Message | None) -> Neighbour | None:
    return None if message is None else Neighbour(message.head.role, message.text or RawText(""))
