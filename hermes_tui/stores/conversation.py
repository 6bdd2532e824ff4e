"""Folding rows and adding up money: sessions to conversations, requests to what is priced alike.

Every store uses these, so that a conversation row means the same for each agent (contract.md, list).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from hermes_tui.model import (
    NO_USAGE,
    CostStatus,
    ListOrder,
    ListQuery,
    Request,
    SessionRow,
    Spend,
    Usage,
    prompt_band,
)
from hermes_tui.records import dataclass
from hermes_tui.text import RawText

SPARKLINE_POINTS: Final = 12
"""Hit rates a row keeps (model.SessionRow.hit_rates)."""
RUNNING_SECONDS: Final = 300.0
"""Active so recently and never ended counts as running (contract.md, list)."""
AUTOMATED_SOURCES: Final = frozenset({"cron", "webhook", "tool"})
"""Sources of runs nobody typed (model.ListQuery.automated)."""


# ----------------------------------------------------------------------------------------------------- spend


_PricedAlike = tuple[RawText | None, RawText | None, str, int, CostStatus | None]


@dataclass(slots=True)
class _Sum:
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    requests: int | None = None
    write_1h: int = 0
    cost_usd: float | None = None
    last_at: float | None = None

    def add(self, spend: Spend) -> None:
        # Number by number: of many sums few are looked at.
        usage = spend.usage
        self.input += usage.input
        self.output += usage.output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning
        self.requests = added(self.requests, spend.requests)
        self.write_1h += spend.write_1h
        if spend.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + spend.cost_usd
        self.last_at = latest(self.last_at, spend.last_at)

    @property
    def usage(self) -> Usage:
        return Usage(self.input, self.output, self.cache_read, self.cache_write, self.reasoning)


class SpendLedger:
    """Adds up usage that is priced alike: model, provider, task, price band and what the store says of money."""

    def __init__(self) -> None:
        self._sums: dict[_PricedAlike, _Sum] = {}

    def add(self, spend: Spend) -> None:
        """Add what is already summed."""
        key = (spend.model, spend.provider, spend.task, spend.band, spend.cost_status)
        total = self._sums.get(key)
        if total is None:
            total = self._sums[key] = _Sum()
        total.add(spend)

    def add_request(self, request: Request) -> None:
        """Add one request, in the price band its prompt falls into."""
        self.add(spend_of_request(request))

    def spends(self) -> tuple[Spend, ...]:
        """What was added, in the order it first came."""
        return tuple(
            Spend(
                model=model,
                provider=provider,
                usage=total.usage,
                requests=total.requests,
                task=task,
                write_1h=total.write_1h,
                band=band,
                cost_usd=total.cost_usd,
                cost_status=status,
                last_at=total.last_at,
            )
            for (model, provider, task, band, status), total in self._sums.items()
        )


def spend_of_request(request: Request) -> Spend:
    """One request, or a row of sums that stands for several, as a :class:`Spend` of its own."""
    return Spend(
        model=request.model,
        provider=request.provider,
        usage=request.usage,
        requests=request.calls,
        task=request.task,
        write_1h=request.write_1h,
        band=prompt_band(request.usage.prompt_size) if request.calls == 1 else 0,
        cost_usd=request.cost_usd,
        cost_status=request.cost_status,
        last_at=request.at,
    )


def spend_of_requests(requests: Iterable[Request]) -> tuple[Spend, ...]:
    """Requests summed by what is priced alike."""
    ledger = SpendLedger()
    for request in requests:
        ledger.add_request(request)
    return ledger.spends()


def merged_spend(spends: Iterable[Spend]) -> tuple[Spend, ...]:
    """Spends of several sessions summed by what is priced alike."""
    ledger = SpendLedger()
    for spend in spends:
        ledger.add(spend)
    return ledger.spends()


def usage_of(spends: Iterable[Spend]) -> Usage:
    """The tokens of all of them."""
    total = NO_USAGE
    for spend in spends:
        total += spend.usage
    return total


# ------------------------------------------------------------------------------------------------ conversation


def fold_conversation(chain: Sequence[SessionRow]) -> SessionRow:
    """One row for a conversation from the rows of its sessions, root to tip (contract.md, list).

    The tip gives id, title (else the nearest older one), model, end and last activity; the root gives start, parent
    and lineage kind; counts, tokens and money are sums.

    Raises:
        ValueError: the chain is empty.
    """
    if not chain:
        raise ValueError("a conversation has at least one session")
    if len(chain) == 1:
        return chain[0]
    root, tip = chain[0], chain[-1]
    newest_first = tuple(reversed(chain))
    spend = merged_spend(part for row in chain for part in row.spend)
    return replace(
        tip,
        root_id=root.root_id,
        parent_id=root.parent_id,
        lineage_kind=root.lineage_kind,
        started_at=root.started_at,
        parts=sum(row.parts for row in chain),
        title=_nearest(row.title for row in newest_first),
        preview=_nearest(row.preview for row in newest_first),
        source=_nearest(row.source for row in newest_first),
        session_key=_nearest(row.session_key for row in newest_first),
        display_name=_nearest(row.display_name for row in newest_first),
        cwd=_nearest(row.cwd for row in newest_first),
        git_branch=_nearest(row.git_branch for row in newest_first),
        models=tuple(dict.fromkeys(model for row in chain for model in row.models)),
        message_count=_sum(row.message_count for row in chain),
        tool_call_count=_sum(row.tool_call_count for row in chain),
        request_count=_sum(row.request_count for row in chain),
        usage=_usage_sum(row.usage for row in chain),
        spend=spend,
        running=any(row.running for row in chain),
        problems=sum(row.problems for row in chain),
        compactions=sum(row.compactions for row in chain),
        branches=sum(row.branches for row in chain),
        delegated=sum(row.delegated for row in chain),
        pinned=any(row.pinned for row in chain),
        worst_drop_lost=max(row.worst_drop_lost for row in chain),
        hit_rates=tuple(rate for row in chain for rate in row.hit_rates)[-SPARKLINE_POINTS:],
    )


def _nearest(values: Iterator[RawText | None]) -> RawText | None:
    """The first that says something, newest first."""
    return next((value for value in values if value), None)


def added(total: int | None, value: int | None) -> int | None:
    """Their sum, where ``None`` is not known and adds nothing."""
    if value is None:
        return total
    return value if total is None else total + value


def latest(one: float | None, other: float | None) -> float | None:
    """The later of two times, of which any may be unknown."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _sum(values: Iterator[int | None]) -> int | None:
    total: int | None = None
    for value in values:
        total = added(total, value)
    return total


def _usage_sum(values: Iterator[Usage | None]) -> Usage | None:
    total: Usage | None = None
    for value in values:
        if value is not None:
            total = value if total is None else total + value
    return total


# ---------------------------------------------------------------------------------------------------- filters


def is_running(row: SessionRow, now: float) -> bool:
    """Marked as running by its agent, or never ended and active within five minutes (contract.md, list)."""
    if row.running:
        return True
    return row.ended_at is None and row.last_active_at is not None and abs(now - row.last_active_at) < RUNNING_SECONDS


def below(path: str | None, folder: str) -> bool:
    """Whether a path is this folder or lies below it; compared as text, for stores may come from other machines."""
    if not path:
        return False
    base = folder.rstrip("/\\")
    if not base:
        return path.startswith(("/", "\\"))
    here = path.rstrip("/\\")
    return here == base or here.startswith((base + "/", base + "\\"))


def matches(row: SessionRow, query: ListQuery) -> bool:
    """Whether a row passes the filters somebody asked for; default filters are :func:`left_out_reason`."""
    return (
        (query.source is None or row.source == query.source)
        and (query.model is None or row.model == query.model or query.model in row.models)
        and (query.cwd is None or below(row.cwd, query.cwd))
        and (query.channel is None or row.session_key == query.channel)
        and within(row.last_active_at, query.since, query.until)
        and (not query.text or says(row, query.text))
    )


def within(at: float | None, since: float | None, until: float | None) -> bool:
    """Whether a time lies between two others, both included; an unknown time only where neither is given."""
    if since is None and until is None:
        return True
    if at is None:
        return False
    return (since is None or at >= since) and (until is None or at <= until)


def says(row: SessionRow, text: str) -> bool:
    """Whether title, preview, id, source, model or folder hold this text, case folded (model.ListQuery.text)."""
    wanted = text.casefold()
    places = (row.title, row.preview, row.id, row.source, row.model, row.cwd)
    return any(wanted in place.casefold() for place in places if place)


def left_out_reason(row: SessionRow, query: ListQuery, *, hidden: bool = False) -> str | None:
    """Why a default filter leaves a conversation row out; ``None``: it is shown. One row has one reason."""
    if query.sessions:
        return None
    if row.archived and not query.archived:
        return "archived"
    if row.lineage_kind == "delegation" and not query.children:
        return "delegated"
    if row.source == "tool" and query.source != "tool":
        return "tool"
    if hidden:
        return "hidden"
    return "automated" if not query.automated and row.source in AUTOMATED_SOURCES else None


def order_value(row: SessionRow, order: ListOrder) -> float:
    """What a row is ordered by, larger first; ``-inf`` where it is not known.

    Money is known here only where the store itself says it; the library prices the rest and orders again.
    """
    if order == "cost":
        known = [spend.cost_usd for spend in row.spend if spend.cost_usd is not None]
        return sum(known) if known else -math.inf
    value: float | None
    if order == "activity":
        value = row.last_active_at
    elif order == "started":
        value = row.started_at
    elif order == "messages":
        value = row.message_count
    else:
        value = None if row.usage is None else row.usage.total
    return -math.inf if value is None else float(value)
