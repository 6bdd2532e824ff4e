"""Where the prompt cache stopped hitting, why, and what it cost (issue 7).

Stores say what happened between two requests; what was to be expected, what was lost and which cause is named is
decided here alone. Three kinds of miss are by design and marked ``expected``: a first request, a compaction, a fork.

A first request has no request before it, so its whole prompt counts as expected: a cold start of a long prompt is
listed (cause first-request, without money), one that found the prefix of another session warm is not.

Where a store keeps sums only (Hermes: a usage row or a part of a chain stands for several calls, ``Request.calls``),
sizes of two rows say nothing about each other, but their hit rates do: expected is what this row would have read at the
rate of the row before; a first row has none. What happens once (a compaction, a fork) explains one missed call of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hermes_tui.library.prices import PriceTable
from hermes_tui.library.sources import Found, Library, StoreFailure
from hermes_tui.model import (
    EXPECTED_CAUSES,
    CacheEvent,
    DropCause,
    ListQuery,
    Request,
    SessionId,
    StoreRef,
    Usage,
)
from hermes_tui.records import dataclass
from hermes_tui.stores.conversation import spend_of_request
from hermes_tui.text import RawText

if TYPE_CHECKING:
    from hermes_tui.stores.protocol import Store

FIVE_MINUTES: Final = 300.0
"""Lifetime of a plain cache write (facts/claude-code.md section 5)."""
ONE_HOUR: Final = 3_600.0
"""Lifetime of a long cache write."""
PROVIDER_LIFETIMES: Final[Mapping[str, float]] = {"openai": 600.0, "deepseek": 7_200.0}
"""Idle seconds after which a provider that names no writes has mostly dropped a prefix, by their own documents: OpenAI
5 to 10 minutes, DeepSeek some hours."""
ONE_CALL_CAUSES: Final[frozenset[DropCause]] = frozenset({"first-request", "compaction", "fork", "rewind"})
"""What explains one missed call of a row that stands for several."""
PRECEDENCE: Final[tuple[DropCause, ...]] = (
    "compaction",
    "fork",
    "first-request",
    "logged-reason",
    "model-change",
    "rewind",
    "expired",
    "context-change",
)
"""Which cause is named when several are there: what is by design first, then what the log or the clock proves."""


@dataclass(frozen=True, slots=True)
class CachePoint:
    """One request (or row of sums) in its place on the line."""

    store: StoreRef
    request: Request
    drop: Drop | None = None

    @property
    def hit_rate(self) -> float | None:
        return self.request.usage.hit_rate


@dataclass(frozen=True, slots=True)
class Drop:
    """A request that read far less from the cache than it could have."""

    store: StoreRef
    request: Request
    expected_tokens: int
    """What could have been read: left there by the request before, at most this prompt's size."""
    read_tokens: int
    lost_tokens: int
    from_rate: float | None
    """Hit rate of the request before; ``None`` for a first one."""
    to_rate: float | None
    cost_usd: float | None
    """What the lost tokens cost more than reads would have; ``None``: no price known, or nothing was there to lose."""
    cause: DropCause
    evidence: RawText
    """What was seen, with its numbers."""

    @property
    def expected(self) -> bool:
        """A miss by design."""
        return self.cause in EXPECTED_CAUSES


@dataclass(frozen=True, slots=True)
class CacheReport:
    """Every point in order, and the drops among them."""

    points: tuple[CachePoint, ...]
    drops: tuple[Drop, ...]
    unknown_share: float
    """Unexpected drops without a known cause among the unexpected ones; 0 where there are none."""
    failures: tuple[StoreFailure, ...] = ()


def cache_report(
    library: Library, found: Found | None = None, since: float | None = None, *, here: str | None = None
) -> CacheReport:
    """The points of one conversation (root to tip), or of every session of every store; ``here``: of one folder."""
    if found is not None:
        ids = found.store.chain(found.session_id)
        points = list(points_of(library, found.store, ids, since))
        return report(points)
    answers, failures = library.ask(lambda store: list(points_of(library, store, ids_in(store, here), since)))
    return report([point for _, points in answers for point in points], tuple(failures))


def ids_in(store: Store, folder: str | None) -> tuple[SessionId, ...] | None:
    """The sessions of a folder and below; ``None``: no folder was named, every session."""
    if folder is None:
        return None
    return tuple(entry.id for entry in store.listing(ListQuery(cwd=folder, sessions=True)).entries)


def report(points: list[CachePoint], failures: tuple[StoreFailure, ...] = ()) -> CacheReport:
    """The report over points that are judged already."""
    drops = tuple(point.drop for point in points if point.drop is not None)
    bad = [drop for drop in drops if not drop.expected]
    unknown = sum(drop.cause == "unknown" for drop in bad)
    return CacheReport(tuple(points), drops, unknown / len(bad) if bad else 0.0, failures)


def points_of(
    library: Library, store: Store, ids: tuple[SessionId, ...] | None, since: float | None
) -> Iterator[CachePoint]:
    """The requests of a store, each judged against the one before in its chain; ``since`` only leaves points out.

    Requests before ``since`` are judged too: without them the first one after it would look like a first request.
    """
    judge = Judge(library.settings.drop_tokens, library.settings.drop_share, library.prices)
    for request in store.requests(ids, since):
        drop = judge.judged(store.ref, request)
        if since is None or (request.at is not None and request.at >= since):
            yield CachePoint(store.ref, request, drop)


class Judge:
    """Follows the requests of many chains and says which are drops."""

    def __init__(self, tokens: int, share: float, prices: PriceTable) -> None:
        self._tokens = tokens
        self._share = share
        self._prices = prices
        self._before: dict[str, Request] = {}
        self._long_lived: dict[str, bool] = {}

    def judged(self, store: StoreRef, request: Request) -> Drop | None:
        """The drop this request is, if it is one; requests of a chain come in order."""
        if not request.usage.prompt_size:
            # Nothing was sent (a failed try): it neither hits nor leaves anything behind.
            return None
        before = self._before.get(request.chain)
        long_lived = self._long_lived.get(request.chain, False)
        self._before[request.chain] = request
        if request.usage.cache_write:
            self._long_lived[request.chain] = request.write_1h > 0
        expected = expected_tokens(before, request)
        lost = max(0, expected - request.usage.cache_read)
        if lost < self._tokens or lost < expected * self._share:
            return None
        cause, evidence = _cause(before, request, lost, long_lived)
        return Drop(
            store=store,
            request=request,
            expected_tokens=expected,
            read_tokens=request.usage.cache_read,
            lost_tokens=lost,
            from_rate=None if before is None else before.usage.hit_rate,
            to_rate=request.usage.hit_rate,
            cost_usd=None if before is None else self._prices.lost(spend_of_request(request), lost),
            cause=cause,
            evidence=evidence,
        )


def expected_tokens(before: Request | None, request: Request) -> int:
    """What this request could have read from the cache; never more than its prompt."""
    size = request.usage.prompt_size
    if before is None:
        return size if request.calls == 1 else 0
    if before.calls > 1 or request.calls > 1:
        return before.usage.cache_read * size // before.usage.prompt_size
    left = before.usage.cache_read + before.usage.cache_write if before.reports_writes else before.usage.prompt_size
    return min(left, size)


def _cause(before: Request | None, request: Request, lost: int, long_lived: bool) -> tuple[DropCause, RawText]:
    """The cause by precedence, with its evidence."""
    seen = list(_events(before, request, long_lived))
    one_call = request.usage.prompt_size / request.calls
    weak = [event for event in seen if request.calls > 1 and event.cause in ONE_CALL_CAUSES and lost > one_call]
    events = [event for event in seen if event not in weak]
    for cause in PRECEDENCE:
        for event in events:
            if event.cause == cause:
                return cause, event.evidence
    return "unknown", RawText(_nothing_seen(before, request, weak))


def _events(before: Request | None, request: Request, long_lived: bool) -> Iterator[CacheEvent]:
    """What the store saw, and what two requests tell by themselves."""
    yield from request.events
    if before is None:
        yield CacheEvent("first-request", RawText(f"first request of {request.chain}"))
        return
    seen = {event.cause for event in request.events}
    if "model-change" not in seen and (change := _model_change(before, request)) is not None:
        yield CacheEvent("model-change", RawText(change))
    if "expired" not in seen and (idle := _expiry(before, request, long_lived)) is not None:
        yield CacheEvent("expired", RawText(idle))


def _model_change(before: Request, request: Request) -> str | None:
    if before.model and request.model and before.model != request.model:
        return f"model {before.model} -> {request.model}"
    if before.provider and request.provider and before.provider != request.provider:
        return f"provider {before.provider} -> {request.provider}"
    return None


def _expiry(before: Request, request: Request, long_lived: bool) -> str | None:
    """Whether the prefix was idle longer than it lives; no verdict for rows that stand for several calls."""
    if before.at is None or request.at is None or request.calls > 1:
        return None
    idle = request.at - before.at
    lifetime = _lifetime(before, long_lived)
    if idle <= lifetime:
        return None
    return f"idle {shown_seconds(idle)}, lifetime {shown_seconds(lifetime)}"


def _lifetime(before: Request, long_lived: bool) -> float:
    if before.write_1h or (long_lived and not before.usage.cache_write):
        return ONE_HOUR
    if before.reports_writes:
        return FIVE_MINUTES
    provider = (before.provider or "").casefold()
    return next((seconds for name, seconds in PROVIDER_LIFETIMES.items() if name in provider), FIVE_MINUTES)


def _nothing_seen(before: Request | None, request: Request, weak: Sequence[CacheEvent]) -> str:
    words = "nothing in the log explains it"
    if weak:
        words = f"{weak[0].evidence}, which explains one call of {request.calls}, not this loss"
    if before is None or before.at is None or request.at is None:
        return words
    return f"{words}; idle {shown_seconds(max(0.0, request.at - before.at))}"


def shown_seconds(seconds: float) -> str:
    """``7 min 12 s``; two units at most."""
    whole = int(seconds)
    parts = [(whole // 86_400, "d"), (whole % 86_400 // 3_600, "h"), (whole % 3_600 // 60, "min"), (whole % 60, "s")]
    named = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(named[:2]) or "0 s"


def worst(drops: Iterable[Drop], count: int) -> list[Drop]:
    """The most expensive unexpected drops: by money where it is known, then by tokens."""
    bad = [drop for drop in drops if not drop.expected]
    return sorted(bad, key=lambda drop: (-(drop.cost_usd or 0.0), -drop.lost_tokens))[:count]


def summed(points: Iterable[CachePoint]) -> Usage:
    """Usage over all points."""
    total = Usage()
    for point in points:
        total += point.request.usage
    return total
