"""Usage of a whole store by key, counted once (contract.md, cost; facts/hermes.md section 8).

SQLite adds up: a row comes back for each group of usage that is priced alike, not for each session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from hermes_tui.model import CostGrouping, Spend, Usage, UsageReport, UsageSum
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST, counter, text_or_none, time_or_none
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import MAIN_TASK, TOKENS, cost_of
from hermes_tui.stores.kept_answers import DatedReport
from hermes_tui.text import RawText

DAY_S: Final = 86_400
_TOTAL: Final = TOKENS[:4]
"""Reasoning is part of output."""


def read_usage(
    connection: ReadConnection,
    schema: Schema,
    grouping: CostGrouping,
    since: float | None,
    until: float | None,
    zone: tzinfo,
) -> DatedReport:
    """Sums by key and by what is priced alike, and the time of the oldest usage among them."""
    day = _day_expression(connection, schema, zone) if grouping == "day" else "NULL"
    spent = _spent(schema, grouping, grouping == "day" and schema.has("session_daily_usage", "session_id", "day"))
    key = {
        "model": "nullif(model, '')",
        "task": "task",
        "provider": "nullif(provider, '')",
        "session": "session_id",
        "source": "nullif(source, '')",
        "cwd": "nullif(cwd, '')",
        "channel": "nullif(channel, '')",
        "day": f"coalesce(day, {day})",
    }.get(grouping, "NULL")
    where = "(?1 IS NULL OR at >= ?1) AND (?2 IS NULL OR at <= ?2)"
    tokens = ", ".join(f"sum({name})" for name in TOKENS)
    groups = "1, 2, 3, 4, 5, estimated > 0, estimated IS NULL, actual > 0, actual IS NULL"
    # One statement over usage that is put together once; the last two parts count distinct sessions.
    sql = f"""WITH used AS MATERIALIZED (
            SELECT {key} AS key, session_id, model, provider, task, calls, {", ".join(TOKENS)}, estimated, actual,
                status, at FROM ({spent}) WHERE {where})
        SELECT key, nullif(model, ''), nullif(provider, ''), task, status, sum(calls), {tokens}, sum(estimated),
            sum(actual), max(at), 0 FROM used GROUP BY {groups}
        UNION ALL SELECT key, {_NOTHING}, sum(first), 1 FROM (SELECT key, 1 AS first FROM used GROUP BY key, session_id)
            GROUP BY key
        UNION ALL SELECT min(at), {_NOTHING}, count(DISTINCT session_id), 2 FROM used"""
    sums: list[UsageSum] = []
    sessions: dict[RawText | None, int] = {}
    everyone = 0
    oldest: float | None = None
    for row in connection.rows(sql, (since, until)):
        if row[-1] == 0:
            sums.append(_sum(row[:-1], grouping))
        elif row[-1] == 1:
            sessions[_key(row[0], grouping)] = row[-2]
        else:
            oldest, everyone = row[0], row[-2]
    return DatedReport(UsageReport(tuple(sums), sessions, distinct=everyone), oldest)


_NOTHING: Final = ", ".join(["NULL"] * 12)
"""Columns of the first part that the others leave empty."""


def _sum(row: Sequence[Any], grouping: CostGrouping) -> UsageSum:
    key, model, provider, task, status, calls, *rest = row
    usd, known = cost_of(rest[5], rest[6], status)
    spend = Spend(
        text_or_none(model),
        text_or_none(provider),
        Usage(*map(int, rest[:5])),
        int(calls),
        text_or_none(task) or MAIN_TASK,
        cost_usd=usd,
        cost_status=known,
        last_at=time_or_none(rest[7]),
    )
    return UsageSum(_key(key, grouping), spend)


def _key(cell: Any, grouping: CostGrouping) -> RawText | None:
    """The key as text; a day comes as a number of days, or as the date the store wrote."""
    if grouping == "day" and isinstance(cell, int):
        return RawText(datetime.fromordinal(_EPOCH + cell).date().isoformat())
    return text_or_none(cell)


_EPOCH: Final = datetime(1970, 1, 1).toordinal()


def _sane(expression: str) -> str:
    """A time, or NULL for what is none."""
    return f"CASE WHEN {expression} >= {EARLIEST:.0f} AND {expression} < {LATEST:.0f} THEN {expression} END"


def _money(expression: str) -> str:
    return f"CASE WHEN typeof({expression}) IN ('integer', 'real') AND {expression} >= 0 THEN {expression} END"


def _spent(schema: Schema, grouping: CostGrouping, daily: bool) -> str:
    """Every piece of usage once: usage rows; the sessions row where those of the main loop fall below it."""
    own = _own_columns(schema, grouping)
    total = " + ".join(counter(schema.column("sessions", name, "s")) for name in _TOTAL)
    thought = counter(schema.column("sessions", "reasoning_tokens", "s"))
    calls = counter(schema.column("sessions", "api_call_count", "s"))
    guess, bill = (_money(schema.column("sessions", f"{name}_cost_usd", "s")) for name in ("estimated", "actual"))
    filled = f"({total} + {thought} > 0 OR {calls} > 0 OR {guess} > 0 OR {bill} > 0)"
    if not schema.has("session_model_usage", "session_id"):
        return f"SELECT {own} FROM sessions s WHERE typeof(s.id) = 'text' AND {filled}"
    used = " + ".join(counter(schema.column("session_model_usage", name, "u")) for name in _TOTAL)
    task = f"ifnull({schema.column('session_model_usage', 'task', 'u')}, '')"
    per_session = (
        f"SELECT u.session_id AS id, sum(iif({task} = '', {used}, 0)) AS main FROM session_model_usage u GROUP BY 1"
    )
    place = schema.row("sessions", "s")
    totals = (
        f"SELECT {place} AS place, t.id AS known, {total} AS own, ifnull(t.main, 0) AS main"
        f" FROM sessions s LEFT JOIN ({per_session}) t ON t.id = s.id WHERE typeof(s.id) = 'text'"
    )
    stands_in = f"SELECT place FROM ({totals}) WHERE own > main OR known IS NULL"
    days = _daily(schema, grouping) if daily else ""
    skip = " AND s.id NOT IN (SELECT session_id FROM by_day)" if daily else ""
    by_day = f", by_day AS MATERIALIZED ({_by_day(schema, grouping)})" if daily else ""
    return (
        f"WITH stand_in(place) AS MATERIALIZED ({stands_in}){by_day}"
        f" SELECT {_used_columns(schema, grouping)} FROM session_model_usage u JOIN sessions s ON s.id = u.session_id"
        f" WHERE NOT ({task} = '' AND {place} IN (SELECT place FROM stand_in)){skip}"
        f" UNION ALL SELECT {own} FROM stand_in JOIN sessions s ON {place} = stand_in.place WHERE {filled}{skip}{days}"
    )


def _facts(schema: Schema, grouping: CostGrouping) -> str:
    """What the key is made of; the others are left out, for they lie behind long prompts in the sessions rows."""
    columns = {"source": "source", "cwd": "cwd", "channel": "session_key"}
    cells = (
        (schema.column("sessions", column, "s") if name == grouping else "NULL", name)
        for name, column in columns.items()
    )
    return ", ".join(f"{cell} AS {name}" for cell, name in cells)


def _own_columns(schema: Schema, grouping: CostGrouping) -> str:
    """The sessions row as a piece of usage."""
    at = _sane(schema.column("sessions", "started_at", "s"))
    tokens = ", ".join(f"{counter(schema.column('sessions', name, 's'))} AS {name}" for name in TOKENS)
    model, provider = schema.column("sessions", "model", "s"), schema.column("sessions", "billing_provider", "s")
    calls = counter(schema.column("sessions", "api_call_count", "s"))
    return (
        f"s.id AS session_id, {model} AS model, {provider} AS provider, '' AS task, {calls} AS calls, {tokens},"
        f" {_costs(schema, 'sessions', 's')}, {at} AS at, NULL AS day, {_facts(schema, grouping)}"
    )


def _used_columns(schema: Schema, grouping: CostGrouping) -> str:
    """A usage row as a piece of usage."""
    table = "session_model_usage"
    seen, started = _sane(schema.column(table, "last_seen", "u")), _sane(schema.column("sessions", "started_at", "s"))
    tokens = ", ".join(f"{counter(schema.column(table, name, 'u'))} AS {name}" for name in TOKENS)
    model, provider = schema.column(table, "model", "u"), schema.column(table, "billing_provider", "u")
    task = f"ifnull({schema.column(table, 'task', 'u')}, '')"
    calls = counter(schema.column(table, "api_call_count", "u"))
    return (
        f"s.id AS session_id, {model} AS model, {provider} AS provider, {task} AS task, {calls} AS calls, {tokens},"
        f" {_costs(schema, table, 'u')}, coalesce({seen}, {started}) AS at, NULL AS day, {_facts(schema, grouping)}"
    )


def _daily(schema: Schema, grouping: CostGrouping) -> str:
    """Rows of ``session_daily_usage``, which have the local day but no model: that of the session."""
    table = "session_daily_usage"
    tokens = ", ".join(f"{counter(schema.column(table, name, 'd'))} AS {name}" for name in TOKENS)
    model, provider = schema.column("sessions", "model", "s"), schema.column("sessions", "billing_provider", "s")
    calls = counter(schema.column(table, "api_call_count", "d"))
    started = _sane(schema.column("sessions", "started_at", "s"))
    at = f"coalesce(CAST(strftime('%s', d.day || ' 12:00') AS REAL), {started})"
    return (
        f" UNION ALL SELECT s.id, {model}, {provider}, '', {calls}, {tokens}, {_costs(schema, table, 'd')}, {at},"
        f" iif(date(d.day) IS substr(d.day, 1, 10), substr(d.day, 1, 10), NULL), {_facts(schema, grouping)}"
        " FROM by_day d JOIN sessions s ON s.id = d.session_id"
        f" UNION ALL {_beyond_daily(schema, grouping)}"
    )


_COUNTED: Final = {"calls": "api_call_count", **{name: name for name in TOKENS}}
"""What daily rows and pieces of usage both count, with the column of the former."""


def _by_day(schema: Schema, grouping: CostGrouping) -> str:
    """The daily rows of sessions whose days hold no more than the sessions themselves: more is in no other total."""
    names = ", ".join(f"sum({name}) AS {name}" for name in _COUNTED)
    whole = f"SELECT session_id AS id, {names} FROM ({_spent(schema, grouping, False)}) GROUP BY 1"
    within = " AND ".join(f"daily.{name} <= whole.{name}" for name in _COUNTED)
    return (
        "SELECT * FROM session_daily_usage WHERE session_id IN"
        f" (SELECT daily.id FROM ({_days_of(schema, 'session_daily_usage')}) daily JOIN ({whole}) whole"
        f" ON whole.id = daily.id WHERE {within})"
    )


def _days_of(schema: Schema, table: str) -> str:
    """What the days of each session sum up to."""
    source = "session_daily_usage"
    sums = ", ".join(f"sum({counter(schema.column(source, cell, 'd'))}) AS {name}" for name, cell in _COUNTED.items())
    cost = f"sum({_money(schema.column(source, 'estimated_cost_usd', 'd'))})"
    return f"SELECT d.session_id AS id, {sums}, {cost} AS estimated FROM {table} d GROUP BY 1"


def _beyond_daily(schema: Schema, grouping: CostGrouping) -> str:
    """What a session used beyond its daily rows, so that every grouping has the same total; on its last day."""
    calls, *tokens = (f"max(sum(w.{name}) - daily.{name}, 0)" for name in _COUNTED)
    guess = "nullif(max(sum(w.estimated) - ifnull(daily.estimated, 0), 0), 0)"
    return (
        f"SELECT w.session_id, w.model, w.provider, '', {calls}, {', '.join(tokens)}, {guess}, NULL, w.status,"
        f" max(w.at), NULL, w.source, w.cwd, w.channel FROM ({_spent(schema, grouping, False)}) w"
        f" JOIN ({_days_of(schema, 'by_day')}) daily ON daily.id = w.session_id"
        " GROUP BY w.session_id HAVING sum(w.calls) > daily.calls"
        f" OR {' OR '.join(f'sum(w.{name}) > daily.{name}' for name in _TOTAL)}"
    )


def _costs(schema: Schema, table: str, alias: str) -> str:
    estimated, actual = (
        _money(schema.column(table, name, alias)) for name in ("estimated_cost_usd", "actual_cost_usd")
    )
    return f"{estimated} AS estimated, {actual} AS actual, {schema.column(table, 'cost_status', alias)} AS status"


def _day_expression(connection: ReadConnection, schema: Schema, zone: tzinfo) -> str:
    """Days since 1970 in a time zone, as an expression over ``at``; its changes of offset are spelled out."""
    # From the earliest to the latest of all times, whether or not a piece of usage has it: an index knows most of them.
    times: list[float] = []
    for table, column in (("sessions", "started_at"), ("session_model_usage", "last_seen")):
        if schema.has(table, column):
            sane = f"FROM {table} WHERE {column} >= {EARLIEST:.0f} AND {column} < {LATEST:.0f}"
            row = connection.one(f"SELECT (SELECT min({column}) {sane}), (SELECT max({column}) {sane})")
            times += [at for at in row or () if at is not None]
    if not times:
        return "NULL"
    offsets = list(_offsets(min(times), max(times), zone))
    cases = "".join(f" WHEN at < {until:.0f} THEN {seconds}" for until, seconds in offsets[:-1])
    shift = f"CASE{cases} ELSE {offsets[-1][1]} END" if cases else str(offsets[-1][1])
    return f"CAST(floor((at + ({shift})) / {DAY_S}.0) AS INTEGER)"


def _offsets(first: float, last: float, zone: tzinfo) -> Iterator[tuple[float, int]]:
    """The offsets of a zone in seconds, each with the time it ends; the last one never does."""

    def offset(at: float) -> int:
        return int((datetime.fromtimestamp(at, zone).utcoffset() or timedelta()).total_seconds())

    at = first
    now = offset(at)
    while at < last:
        later = min(at + DAY_S, last + DAY_S)
        if offset(later) != now:
            before, after = at, later
            while after - before > 1:
                middle = (before + after) // 2
                before, after = (middle, after) if offset(middle) == now else (before, middle)
            yield float(int(after)), now
            now = offset(later)
        at = later
    yield float("inf"), now
