"""Usage of the sessions of one folder: from their rows, as stores add up whole stores only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Final

from hermes_tui.model import CostGrouping, ListQuery, SessionRow, Spend, UsageReport, UsageSum
from hermes_tui.stores.conversation import within
from hermes_tui.stores.log_usage import day_of
from hermes_tui.stores.protocol import Store
from hermes_tui.text import RawText

BATCH: Final = 200
"""Rows read at once."""


def usage_in(
    store: Store, folder: str, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
) -> UsageReport:
    """The usage of sessions of this folder and below, by key; a part is dated by its last time."""
    sums: list[UsageSum] = []
    sessions: dict[RawText | None, int] = {}
    distinct = 0
    for row in _rows(store, folder):
        keys: set[RawText | None] = set()
        for spend in row.spend:
            at = row.started_at if spend.last_at is None else spend.last_at
            if within(at, since, until):
                key = _key(row, spend, grouping, at, zone)
                keys.add(key)
                sums.append(UsageSum(key, spend))
        for key in keys:
            sessions[key] = sessions.get(key, 0) + 1
        distinct += bool(keys)
    return UsageReport(tuple(sums), sessions, distinct)


def _rows(store: Store, folder: str) -> Iterator[SessionRow]:
    ids = [entry.id for entry in store.listing(ListQuery(cwd=folder, sessions=True)).entries]
    for start in range(0, len(ids), BATCH):
        yield from store.rows(ids[start : start + BATCH], conversation=False)


def _key(row: SessionRow, spend: Spend, grouping: CostGrouping, at: float | None, zone: tzinfo) -> RawText | None:
    if grouping == "model":
        return spend.model
    if grouping == "provider":
        return spend.provider
    if grouping == "task":
        return RawText(spend.task)
    if grouping == "cwd":
        return row.cwd
    if grouping == "channel":
        return row.session_key
    if grouping == "session":
        return RawText(row.id)
    if grouping == "day":
        return day_of(at, zone)
    return row.source
