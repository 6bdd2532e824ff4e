"""Usage, requests and rows as JSON values, by the fields they have: what is added to them is kept as well."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from hermes_tui.model import NO_COST, CacheEvent, Request, SessionRow, Spend, StoreRef, Usage

_SPEND: Final = tuple(field.name for field in fields(Spend))
_REQUEST: Final = tuple(field.name for field in fields(Request))
_ROW: Final = tuple(field.name for field in fields(SessionRow))[1:]
"""Without the store, which is that which is asked; it knows no prices, so that the cost says nothing."""
_GET_USAGE: Final = attrgetter(*(field.name for field in fields(Usage)))
_GET_SPEND: Final = attrgetter(*_SPEND)
_GET_REQUEST: Final = attrgetter(*_REQUEST)
_GET_ROW: Final = attrgetter(*_ROW)
_ROW_USED, _ROW_SPENT, _ROW_COST = (_ROW.index(name) for name in ("usage", "spend", "cost"))
_ROW_TUPLES: Final = (_ROW.index("models"), _ROW.index("hit_rates"))
_SPENT: Final = _SPEND.index("usage")
_USED: Final = _REQUEST.index("usage")
_EVENTS: Final = _REQUEST.index("events")


def dump_usage(usage: Usage) -> list[int]:
    """Its counts."""
    return list(_GET_USAGE(usage))


def dump_spend(spend: Spend) -> list[object]:
    """Its fields in their order."""
    values = list(_GET_SPEND(spend))
    values[_SPENT] = dump_usage(spend.usage)
    return values


def load_spend(values: list[Any]) -> Spend:
    """What :func:`dump_spend` gave; the list is used up."""
    values[_SPENT] = Usage(*values[_SPENT])
    return Spend(*values)


def dump_request(request: Request) -> list[object]:
    """Its fields in their order."""
    values = list(_GET_REQUEST(request))
    values[_USED] = dump_usage(request.usage)
    values[_EVENTS] = [[event.cause, event.evidence] for event in request.events]
    return values


def load_request(values: list[Any]) -> Request:
    """What :func:`dump_request` gave; the list is used up."""
    values[_USED] = Usage(*values[_USED])
    values[_EVENTS] = tuple(CacheEvent(*event) for event in values[_EVENTS])
    return Request(*values)


def dump_row(row: SessionRow) -> list[object]:
    """Its fields in their order, without the store and the cost."""
    values = list(_GET_ROW(row))
    values[_ROW_USED] = None if row.usage is None else dump_usage(row.usage)
    values[_ROW_SPENT] = [dump_spend(spend) for spend in row.spend]
    values[_ROW_COST] = None
    return values


def load_row(store: StoreRef, values: list[Any]) -> SessionRow:
    """What :func:`dump_row` gave, of this store; the list is used up."""
    values[_ROW_USED] = None if values[_ROW_USED] is None else Usage(*values[_ROW_USED])
    values[_ROW_SPENT] = tuple(map(load_spend, values[_ROW_SPENT]))
    values[_ROW_COST] = NO_COST
    for place in _ROW_TUPLES:
        values[place] = tuple(values[place])
    return SessionRow(store, *values)
