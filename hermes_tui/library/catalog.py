"""One list over all stores: merged, counted, and with what each row cost."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import islice

from hermes_tui.library.prices import DEFAULT_PRICES, PriceTable
from hermes_tui.library.sources import Found, Library, StoreFailure
from hermes_tui.model import Listing, ListQuery, SessionId, SessionRow, Spend, StoreStatus
from hermes_tui.stores.protocol import Store


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One row of the merged list before its details are read."""

    store: Store
    id: SessionId
    prices: PriceTable = DEFAULT_PRICES
    """What its usage is priced with."""


@dataclass(frozen=True, slots=True)
class CatalogListing:
    """The merged list."""

    entries: tuple[CatalogEntry, ...]
    total: int
    """Rows that match, before a limit."""
    left_out: dict[str, int]
    """Rows a default filter left out, by reason."""
    stores: tuple[StoreStatus, ...]
    failures: tuple[StoreFailure, ...] = ()
    """Stores that could not answer."""


def listing(library: Library, query: ListQuery, limit: int | None = None) -> CatalogListing:
    """The ids of every store that match, in one order; details are read by :func:`rows`."""
    by_cost = query.order == "cost"
    answers, failures = library.ask(lambda store: store.listing(query, None if by_cost else limit))
    left_out: Counter[str] = Counter()
    for _, answer in answers:
        left_out.update(answer.left_out)
    merged = [
        _by_cost(library, store, answer)
        if by_cost
        else [(entry.order, CatalogEntry(store, entry.id, library.prices)) for entry in answer.entries]
        for store, answer in answers
    ]
    # Stable: rows of equal order keep the order of their store, stores the order they were found in.
    ordered = heapq.merge(*merged, key=lambda pair: -pair[0])
    return CatalogListing(
        entries=tuple(entry for _, entry in islice(ordered, limit)),
        total=sum(answer.total for _, answer in answers),
        left_out={reason: count for reason, count in left_out.items() if count},
        stores=statuses(library),
        failures=tuple(failures),
    )


def _by_cost(library: Library, store: Store, answer: Listing) -> list[tuple[float, CatalogEntry]]:
    """The rows of a store by what they cost, the dearest first, unknown ones last; stores know no prices."""
    spends: dict[str, list[Spend]] = {}
    for part in store.usage("session", None, None, UTC).sums:
        spends.setdefault(part.key or "", []).append(part.spend)
    priced_entries: list[tuple[float, CatalogEntry]] = []
    for entry in answer.entries:
        usd = library.prices.cost(one for id_ in entry.parts or (entry.id,) for one in spends.get(id_, ())).usd
        priced_entries.append((-math.inf if usd is None else usd, CatalogEntry(store, entry.id, library.prices)))
    return sorted(priced_entries, key=lambda pair: -pair[0])


def statuses(library: Library) -> tuple[StoreStatus, ...]:
    """How each store is."""
    return tuple(store.status() for store in library.stores)


def rows(entries: Sequence[CatalogEntry], *, conversation: bool = True) -> list[SessionRow]:
    """The full rows of these entries in the same order, with their cost; rows gone since are left out."""
    groups: dict[str, list[CatalogEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.store.ref.name, []).append(entry)
    known: dict[tuple[str, SessionId], SessionRow] = {}
    for name, group in groups.items():
        for row in group[0].store.rows([entry.id for entry in group], conversation=conversation):
            known[name, row.id] = priced(row, group[0].prices)
    places = [(entry.store.ref.name, entry.id) for entry in entries]
    return [known[place] for place in places if place in known]


def row_of(found: Found, *, conversation: bool = False) -> SessionRow | None:
    """One session's own row, or its conversation's, with its cost; ``None`` when it is gone."""
    answer = found.store.rows([found.session_id], conversation=conversation)
    return priced(answer[0], found.prices) if answer else None


def priced(row: SessionRow, prices: PriceTable) -> SessionRow:
    """The row with what it cost."""
    return replace(row, cost=prices.cost(row.spend))
