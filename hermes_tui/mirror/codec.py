"""Summaries of logs as bytes and back: positional lists, because a list start decodes thousands of them.

The order of fields is the format: a change of a dataclass in ``model`` changes :data:`SHAPE`, and an index with another
shape is thrown away and built again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter, itemgetter
from typing import Any, Final, cast

from hermes_tui.model import (
    CacheEvent,
    Compaction,
    Cost,
    Problem,
    Request,
    SessionRow,
    Spend,
    StoreRef,
    Usage,
)
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.packing import packed, unpacked
from hermes_tui.stores.kept_requests import KeptRequests, Slot, slots_of, totals_of
from hermes_tui.stores.log_source import LogSummary
from hermes_tui.stores.request_rows import RequestRows, SumKey

_NESTED: Final = (Usage, Spend, Cost, StoreRef, CacheEvent, Compaction, Problem, Request, SessionRow)
_NAMES: Final = {cls: tuple(f.name for f in fields(cls)) for cls in _NESTED}
_VALUES: Final[Mapping[type, Callable[[Any], tuple[object, ...]]]] = {
    cls: attrgetter(*names) for cls, names in _NAMES.items()
}
_BARE: Final = frozenset({str, int, float, bool})
_ROW: Final = {name: place for place, name in enumerate(_NAMES[SessionRow])}
_USAGE: Final = _NAMES[Request].index("usage")
_PLAIN_FIELDS: Final = tuple(name for name in _NAMES[Request] if name != "usage")
_EVENTS: Final = _PLAIN_FIELDS.index("events")
_REQUEST_GETTERS: Final = tuple(map(attrgetter, _PLAIN_FIELDS))
_USAGE_GETTERS: Final = tuple(map(attrgetter, _NAMES[Usage]))
_USAGE_VALUES: Final = attrgetter(*_NAMES[Usage])
_SPEND_VALUES: Final = attrgetter(*_NAMES[Spend])
_SPEND: Final = {name: place for place, name in enumerate(_NAMES[Spend])}

_SUMMED: Final = (
    "model", "provider", "usage", "requests", "task", "write_1h", "band", "cost_usd", "cost_status", "last_at",
)  # fmt: skip
_SPEND_ORDER: Final = itemgetter(*map(_SUMMED.index, _NAMES[Spend]))

_LAYOUT: Final = (
    "requests in columns, states of growing logs only, in columns, peeks with extras, sums by slot and over all time,"
    " replies first, short ones too, lifetimes of writes, packed, in chunks, a word for each store, links in columns,"
    " awaited by line"
)
"""Changed with whatever else changes what the bytes mean."""
SHAPE: Final = hashlib.sha256(repr([_LAYOUT, *((cls.__name__, _NAMES[cls]) for cls in _NESTED)]).encode()).hexdigest()[
    :16
]
"""Names the field order; stored with the index."""


def _plain(value: object) -> object:
    values = _VALUES.get(type(value))
    if values is not None:
        items = values(value)
    elif isinstance(value, tuple):
        items = value
    else:
        return value
    return [item if item is None or type(item) in _BARE else _plain(item) for item in items]


_ROWS: Final = "rows"
"""What requests begin with that are kept as :class:`RequestRows` puts them away."""


def dump_card(summary: LogSummary) -> bytes:
    """What a list needs of a log: its row, compactions and problems."""
    requests = summary.requests
    counts = [len(requests), len(summary.apart)]
    if isinstance(requests, RequestRows):
        sums = [list(map(_sum_values, some.items())) for some in (requests.totals(), requests.sums())]
    else:
        slots = slots_of(requests)
        sums = [[_slot_values(slot) for slot in some] for some in (totals_of(slots), slots)]
    card = [_plain(summary.row), _plain(summary.compactions), _plain(summary.problems), counts, *sums]
    return packed(dump_json(card))


def _slot_values(slot: Slot) -> list[object]:
    """As ``_plain`` gives it: a large log has thousands."""
    spend = list(_SPEND_VALUES(slot.spend))
    spend[_SPEND["usage"]] = _USAGE_VALUES(slot.spend.usage)
    return [*slot[:-1], spend]


def _sum_values(summed: tuple[SumKey, Sequence[Any]]) -> list[object]:
    """The same of what requests sum themselves up to, without making slots first."""
    (begin, source, cwd, model, provider, band), (*counts, hour, calls, last) = summed
    return [begin, source, cwd, None, _SPEND_ORDER((model, provider, counts, calls, "", hour, band, None, None, last))]


def dump_peek(row: SessionRow, extra: object) -> bytes:
    """A peeked row, and what else the store keeps of a peek."""
    return dump_json([_plain(row), extra])


def dump_requests(summary: LogSummary) -> bytes:
    """What ledger and cache screen need besides."""
    return packed(dump_json([_columns(summary.requests), _columns(summary.apart)]))


def _columns(requests: Sequence[Request]) -> list[Any]:
    """How many, and a list for each field, of one item where all are alike: most say the same of most things."""
    if not requests:
        return [0]
    if isinstance(requests, RequestRows):
        return [_ROWS, *requests.dump(sums=False)]
    usages = [request.usage for request in requests]
    fields_of = [list(map(get, requests)) for get in _REQUEST_GETTERS]
    fields_of[_EVENTS] = [[[event.cause, event.evidence] for event in events] for events in fields_of[_EVENTS]]
    found = [*fields_of, *(list(map(get, usages)) for get in _USAGE_GETTERS)]
    return [len(requests), *(column[:1] if column.count(column[0]) == len(column) else column for column in found)]


def _spend(values: list[Any]) -> Spend:
    place = _SPEND["usage"]
    values[place] = Usage(*values[place])
    return Spend(*values)


def load_row(values: list[Any], store: StoreRef) -> SessionRow:
    """A row again; ``store`` takes the place of the one it was made for, whose name may differ this time."""
    values[_ROW["store"]] = store
    values[_ROW["models"]] = tuple(values[_ROW["models"]])
    values[_ROW["hit_rates"]] = tuple(values[_ROW["hit_rates"]])
    values[_ROW["spend"]] = tuple(_spend(item) for item in values[_ROW["spend"]])
    values[_ROW["cost"]] = Cost(*values[_ROW["cost"]])
    usage = values[_ROW["usage"]]
    values[_ROW["usage"]] = None if usage is None else Usage(*usage)
    return SessionRow(*values)


def load_peek(data: bytes, store: StoreRef) -> tuple[SessionRow, object]:
    """What :func:`dump_peek` wrote."""
    row, extra = load_json(data)
    return load_row(row, store), extra


def _requests(columns: list[Any]) -> tuple[Request, ...]:
    count = columns[0]
    if count == _ROWS:
        return RequestRows.restore(columns[1:])[:]
    if not count:
        return ()
    found = [column if len(column) == count else column * count for column in columns[1:]]
    plain = found[: len(_PLAIN_FIELDS)]
    plain[_EVENTS] = [tuple(CacheEvent(*event) for event in events) if events else () for events in plain[_EVENTS]]
    plain.insert(_USAGE, list(map(Usage, *found[len(_PLAIN_FIELDS) :])))
    return tuple(map(Request, *plain))


def load_summary(card: bytes, requests: bytes, store: StoreRef) -> LogSummary:
    """What :func:`dump_card` and :func:`dump_requests` wrote; requests are decoded when they are looked into."""
    row, compactions, problems, (count, apart), totals, _ = cast("Sequence[Any]", load_json(unpacked(card)))
    row[_ROW["origin"]] = "mirror"
    return LogSummary(
        load_row(row, store),
        KeptRequests(
            count, _slots(totals), lambda: _slots(load_json(unpacked(card))[-1]), lambda: _load_requests(requests, 0)
        )
        if count
        else (),
        tuple(Compaction(*item) for item in compactions),
        tuple(Problem(*item) for item in problems),
        _load_requests(requests, 1) if apart else (),
    )


def _slots(values: list[list[Any]]) -> tuple[Slot, ...]:
    return tuple(Slot(begin, source, cwd, key, _spend(spend)) for begin, source, cwd, key, spend in values)


def _load_requests(data: bytes, which: int) -> tuple[Request, ...]:
    return _requests(load_json(unpacked(data))[which])
