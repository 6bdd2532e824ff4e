"""Usage of a whole store by key, counted once (contract.md, cost; facts/hermes.md section 8)."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any, Final

from hermes_tui.model import CostGrouping, Spend, UsageReport, UsageSum
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.cells import filled_text
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import (
    SESSION_COLUMNS,
    USAGE_COLUMNS,
    UsageRow,
    rows_of_session,
    session_usage,
    usage_row,
)
from hermes_tui.text import RawText

_SESSION_FACTS: Final = ("source", "cwd", "session_key")


def read_usage(
    connection: ReadConnection,
    schema: Schema,
    grouping: CostGrouping,
    since: float | None,
    until: float | None,
    zone: tzinfo,
) -> UsageReport:
    """Sums by key and by what is priced alike."""
    usage: dict[str, list[UsageRow]] = {}
    if schema.has("session_model_usage", "session_id"):
        columns = schema.select("session_model_usage", USAGE_COLUMNS, "u")
        for used in map(usage_row, connection.rows(f"SELECT {columns} FROM session_model_usage u")):
            usage.setdefault(used.session_id, []).append(used)
    sums: dict[tuple[RawText | None, Any], UsageSum] = {}
    sessions: dict[RawText | None, set[str]] = {}
    everyone: set[str] = set()
    columns = f"{schema.select('sessions', SESSION_COLUMNS, 's')}, {schema.select('sessions', _SESSION_FACTS, 's')}"
    for row in connection.rows(f"SELECT {columns} FROM sessions s"):
        own = session_usage(row[: len(SESSION_COLUMNS)])
        facts = dict(zip(_SESSION_FACTS, row[len(SESSION_COLUMNS) :], strict=True))
        for used in rows_of_session(own, usage.get(own.session_id, ())):
            at = used.last_at if used.last_at is not None else own.first_at
            if not _within(at, since, until):
                continue
            key = _key(grouping, used, facts, at, zone)
            _add(sums, key, used)
            sessions.setdefault(key, set()).add(own.session_id)
            everyone.add(own.session_id)
    return UsageReport(tuple(sums.values()), {key: len(ids) for key, ids in sessions.items()}, distinct=len(everyone))


def _within(at: float | None, since: float | None, until: float | None) -> bool:
    """Usage without a time is left out of a period."""
    if since is None and until is None:
        return True
    return at is not None and (since is None or at >= since) and (until is None or at < until)


def _key(
    grouping: CostGrouping, used: UsageRow, facts: dict[str, Any], at: float | None, zone: tzinfo
) -> RawText | None:
    if grouping == "model":
        return used.model
    if grouping == "task":
        return RawText(used.task)
    if grouping == "provider":
        return used.provider
    if grouping == "session":
        return RawText(used.session_id)
    if grouping == "day":
        return None if at is None else RawText(datetime.fromtimestamp(at, zone).date().isoformat())
    if grouping == "channel":
        return filled_text(facts["session_key"])
    if grouping in ("source", "cwd"):
        return filled_text(facts[grouping])
    return None


def _add(sums: dict[tuple[RawText | None, Any], UsageSum], key: RawText | None, used: UsageRow) -> None:
    """Add a row to the sum of rows that are priced alike."""
    known = used.cost_usd is not None
    alike = (key, (used.model, used.provider, used.task, used.cost_status, known))
    spend = used.spend()
    before = sums.get(alike)
    sums[alike] = UsageSum(key, spend if before is None else _together(before.spend, spend))


def _together(one: Spend, other: Spend) -> Spend:
    return Spend(
        one.model,
        one.provider,
        one.usage + other.usage,
        (one.requests or 0) + (other.requests or 0),
        one.task,
        cost_usd=None if one.cost_usd is None else one.cost_usd + (other.cost_usd or 0.0),
        cost_status=one.cost_status,
        last_at=max((at for at in (one.last_at, other.last_at) if at is not None), default=None),
    )
