"""One list over all stores: merged, counted, and with what each row cost."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, overload

from hermes_tui.library.prices import DEFAULT_PRICES, PriceTable
from hermes_tui.library.sources import Found, Library, StoreFailure, store_failure
from hermes_tui.model import ListEntry, Listing, ListOrder, ListQuery, SessionId, SessionRow, Spend, StoreStatus
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.stores.conversation import order_value

if TYPE_CHECKING:
    from hermes_tui.stores.protocol import Store


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One row of the merged list before its details are read."""

    store: Store
    id: SessionId
    prices: PriceTable = DEFAULT_PRICES
    """What its usage is priced with."""


class StoreEntries(Sequence[CatalogEntry]):
    """The entries of one store, each made when it is looked at: of 70,000 a screen shows some dozens."""

    __slots__ = ("_found", "_prices", "_store")

    def __init__(self, store: Store, found: tuple[ListEntry, ...], prices: PriceTable) -> None:
        self._store = store
        self._found = found
        self._prices = prices

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, at: int) -> CatalogEntry: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[CatalogEntry]: ...

    def __getitem__(self, at: int | slice) -> CatalogEntry | Sequence[CatalogEntry]:
        if isinstance(at, slice):
            return StoreEntries(self._store, self._found[at], self._prices)
        return CatalogEntry(self._store, self._found[at].id, self._prices)

    def keys(self) -> Iterator[tuple[str, SessionId]]:
        """See :func:`keys_of`."""
        name = self._store.ref.name
        return ((name, entry.id) for entry in self._found)

    def behind(self, newest: StoreEntries) -> StoreEntries | None:
        """See :func:`behind`; ``None``: the others are of another store."""
        if newest._store is not self._store:
            return None
        ids = {entry.id for entry in newest._found}
        rest = [entry for entry in self._found if entry.id not in ids]
        return StoreEntries(self._store, (*newest._found, *rest), self._prices)


def keys_of(entries: Sequence[CatalogEntry]) -> Iterator[tuple[str, SessionId]]:
    """Store name and id of each entry: what stays the same when a list is read again."""
    if isinstance(entries, StoreEntries):
        return entries.keys()
    return ((entry.store.ref.name, entry.id) for entry in entries)


def behind(newest: Sequence[CatalogEntry], known: Sequence[CatalogEntry]) -> Sequence[CatalogEntry]:
    """The newest entries, and behind them those that were known and are not among them."""
    if isinstance(newest, StoreEntries) and isinstance(known, StoreEntries):
        found = known.behind(newest)
        if found is not None:
            return found
    among = set(keys_of(newest))
    return (*newest, *(entry for entry, key in zip(known, keys_of(known), strict=True) if key not in among))


@dataclass(frozen=True, slots=True)
class CatalogListing:
    """The merged list."""

    entries: Sequence[CatalogEntry]
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
    entries: Sequence[CatalogEntry]
    if len(answers) == 1 and not by_cost:
        store, answer = answers[0]
        entries = StoreEntries(store, answer.entries[:limit], library.prices)
    else:
        entries = _merged(library, answers, failures, limit, by_cost=by_cost)
    return CatalogListing(
        entries=entries,
        total=sum(answer.total for _, answer in answers),
        left_out={reason: count for reason, count in left_out.items() if count},
        stores=statuses(library),
        failures=tuple(failures),
    )


def _merged(
    library: Library,
    answers: Sequence[tuple[Store, Listing]],
    failures: list[StoreFailure],
    limit: int | None,
    *,
    by_cost: bool,
) -> tuple[CatalogEntry, ...]:
    """The entries of several stores in one order; what could not be priced is added to the failures."""
    merged: list[list[tuple[float, CatalogEntry]]] = []
    for store, answer in answers:
        entries = [(entry.order, CatalogEntry(store, entry.id, library.prices)) for entry in answer.entries]
        if by_cost:
            try:
                entries = _by_cost(library, store, answer)
            except Interrupted:
                raise
            except (StorageError, OSError) as error:
                # Its rows stay, by what its list knows; that their cost is not known is told.
                failures.append(store_failure(store.ref, error))
        merged.append(entries)
    # Stable: rows of equal order keep the order of their store, stores the order they were found in.
    ordered = heapq.merge(*merged, key=lambda pair: -pair[0])
    return tuple(entry for _, entry in islice(ordered, limit))


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
    """The full rows of these entries in the same order, with their cost; rows gone since are left out.

    Raises:
        StorageError: a store cannot be read.
        OSError: a folder cannot be read.
    """
    known: dict[tuple[str, SessionId], SessionRow] = {}
    for group in _by_store(entries).values():
        known.update(_rows_of_store(group, conversation))
    return [row for row in _in_place(entries, known) if row is not None]


def readable_rows(
    entries: Sequence[CatalogEntry], *, conversation: bool = True, order: ListOrder | None = None
) -> tuple[list[SessionRow], list[StoreFailure]]:
    """:func:`rows` as far as they can be read, and the stores that could not answer.

    With an ``order`` rows are put in it by the times they turn out to have: of a log the list knows both ends alone.
    """
    placed, failures = placed_rows(entries, conversation=conversation)
    found = [row for row in placed if row is not None]
    if order == "activity" or order == "started":
        found.sort(key=lambda row: order_value(row, order), reverse=True)
    return found, failures


def placed_rows(
    entries: Sequence[CatalogEntry], *, conversation: bool = True
) -> tuple[list[SessionRow | None], list[StoreFailure]]:
    """A row for each of these entries, ``None`` where it could not be read, and the stores that could not answer."""
    known: dict[tuple[str, SessionId], SessionRow] = {}
    failures: list[StoreFailure] = []
    for group in _by_store(entries).values():
        try:
            known.update(_rows_of_store(group, conversation))
        except Interrupted:
            raise
        except (StorageError, OSError) as error:
            failures.append(store_failure(group[0].store.ref, error))
    return _in_place(entries, known), failures


def _by_store(entries: Sequence[CatalogEntry]) -> dict[str, list[CatalogEntry]]:
    groups: dict[str, list[CatalogEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.store.ref.name, []).append(entry)
    return groups


def _rows_of_store(
    group: Sequence[CatalogEntry], conversation: bool
) -> Iterator[tuple[tuple[str, SessionId], SessionRow]]:
    store = group[0].store
    for row in store.rows([entry.id for entry in group], conversation=conversation):
        yield (store.ref.name, row.id), priced(row, group[0].prices)


def _in_place(
    entries: Sequence[CatalogEntry], known: Mapping[tuple[str, SessionId], SessionRow]
) -> list[SessionRow | None]:
    return [known.get((entry.store.ref.name, entry.id)) for entry in entries]


def row_of(found: Found, *, conversation: bool = False) -> SessionRow | None:
    """One session's own row, or its conversation's, with its cost; ``None`` when it is gone."""
    answer = found.store.rows([found.session_id], conversation=conversation)
    return priced(answer[0], found.prices) if answer else None


def priced(row: SessionRow, prices: PriceTable) -> SessionRow:
    """The row with what it cost."""
    return replace(row, cost=prices.cost(row.spend))
