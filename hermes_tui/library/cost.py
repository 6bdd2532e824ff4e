"""What it cost: the stores' usage by key, merged and priced, with totals that are the same at every grouping."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from datetime import tzinfo
from typing import Final

from hermes_tui.library.cost_in_folder import usage_in
from hermes_tui.library.prices import Priced, PriceTable, merged
from hermes_tui.library.sources import Library, StoreFailure
from hermes_tui.library.times import local_zone
from hermes_tui.model import NO_USAGE, Cost, CostGrouping, Spend, StoreRef, Usage, UsageReport
from hermes_tui.records import dataclass
from hermes_tui.text import RawText

MAIN_TASK: Final = "main"
"""How task '' is printed (contract.md, cost)."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """One line of the report, or its totals."""

    key: RawText | None
    sessions: int | None
    """Distinct sessions; for the totals: of all stores."""
    requests: int | None
    """``None`` where no store counts them."""
    usage: Usage
    cost: Cost
    priced_by: str | None
    """``store``, ``settings``, the price table's name, or several joined by `` + ``; ``None``: no price is known."""
    store: str | None = None
    """The store's name, by session only."""
    parts: tuple[tuple[str, float | None], ...] = ()
    """USD by cost status, for the line under the table; ``None`` where nothing is known."""


@dataclass(frozen=True, slots=True)
class CostReport:
    """The whole report."""

    rows: tuple[CostRow, ...]
    """The dearest first, then the most tokens; by day: the newest first."""
    totals: CostRow
    zone_name: str
    apart: tuple[CostRow, ...] = ()
    """Billed calls that an agent's own totals leave out, by the same key; in no row and no total above."""
    failures: tuple[StoreFailure, ...] = ()


@dataclass(slots=True)
class _Sum:
    """Adds up one line."""

    usage: Usage = NO_USAGE
    requests: int | None = None
    sessions: int = 0
    priced: list[Priced] = field(default_factory=list)

    def add(self, spend: Spend, price: Priced) -> None:
        self.usage += spend.usage
        if spend.requests is not None:
            self.requests = (self.requests or 0) + spend.requests
        self.priced.append(price)

    def row(self, key: RawText | None) -> CostRow:
        named = {price.by for price in self.priced if price.by is not None}
        by = sorted(named, key=lambda name: (name != "store", name))
        return CostRow(
            key=key,
            sessions=self.sessions,
            requests=self.requests,
            usage=self.usage,
            cost=merged(self.priced),
            priced_by=" + ".join(by) or None,
            parts=_by_status(self.priced),
        )


def cost_report(
    library: Library,
    grouping: CostGrouping,
    since: float | None = None,
    until: float | None = None,
    zone: tzinfo | None = None,
    zone_name: str = "",
    *,
    here: str | None = None,
) -> CostReport:
    """Usage and money of every store by one key; archived and delegated sessions count too (contract.md, cost).

    ``here`` narrows it to the sessions of a folder and below; times are then those of a session's usage rows.
    """
    if zone is None:
        zone, zone_name = local_zone()
    # A session has one source, so the sums by source add up to distinct sessions; store and profile need no more.
    asked: CostGrouping = "source" if grouping in ("store", "profile") else grouping
    chosen = zone
    if here is None:
        answers, failures = library.ask(lambda store: store.usage(asked, since, until, chosen))
    else:
        folder = here
        answers, failures = library.ask(lambda store: usage_in(store, folder, asked, since, until, chosen))
    sums: dict[tuple[str, RawText | None], _Sum] = {}
    totals = _Sum()
    apart: dict[tuple[str, RawText | None], _Sum] = {}
    for store, report in answers:
        _add_store(sums, totals, report, grouping, store.ref, library.prices)
        for part in report.apart:
            place = _place(part.key, grouping, store.ref)
            apart.setdefault(place, _Sum()).add(part.spend, library.prices.priced(part.spend))
    distinct = [distinct_sessions(report, asked) for _, report in answers]
    rows = [replace(one.row(key), store=name or None) for (name, key), one in sums.items()]
    return CostReport(
        rows=tuple(sorted(rows, key=_by_day if grouping == "day" else _by_cost)),
        totals=replace(totals.row(None), sessions=None if None in distinct else sum(one or 0 for one in distinct)),
        zone_name=zone_name or str(zone),
        apart=tuple(replace(one.row(key), sessions=None) for (_, key), one in apart.items()),
        failures=tuple(failures),
    )


def _add_store(
    sums: dict[tuple[str, RawText | None], _Sum],
    totals: _Sum,
    report: UsageReport,
    grouping: CostGrouping,
    ref: StoreRef,
    prices: PriceTable,
) -> None:
    for part in report.sums:
        price = prices.priced(part.spend)
        sums.setdefault(_place(part.key, grouping, ref), _Sum()).add(part.spend, price)
        totals.add(part.spend, price)
    for key, count in report.sessions.items():
        sums.setdefault(_place(key, grouping, ref), _Sum()).sessions += count


def _place(key: RawText | None, grouping: CostGrouping, ref: StoreRef) -> tuple[str, RawText | None]:
    """The line a key belongs to: sessions of two stores never share one, other keys do."""
    if grouping == "store":
        return "", RawText(ref.name)
    if grouping == "profile":
        return "", None if ref.profile is None else RawText(ref.profile)
    if grouping == "session":
        return ref.name, key
    if grouping == "task":
        return "", key or RawText(MAIN_TASK)
    return "", key


def distinct_sessions(report: UsageReport, grouping: CostGrouping) -> int | None:
    """How many sessions a report is about; ``None`` where keys may share sessions and the store did not count."""
    if report.distinct is not None:
        return report.distinct
    return sum(report.sessions.values()) if grouping in ("source", "session") else None


def _by_status(priced: Iterable[Priced]) -> tuple[tuple[str, float | None], ...]:
    known: dict[str, float | None] = {}
    for price in priced:
        if price.status is not None:
            before = known.get(price.status)
            known[price.status] = before if price.usd is None else (before or 0.0) + price.usd
    return tuple(sorted(known.items()))


def _by_cost(row: CostRow) -> tuple[float, int, str]:
    return -(row.cost.usd or 0.0), -row.usage.total, row.key or ""


def _by_day(row: CostRow) -> tuple[bool, tuple[int, ...]]:
    """The newest day first, unknown days last."""
    return row.key is None, tuple(-ord(sign) for sign in row.key or "")
