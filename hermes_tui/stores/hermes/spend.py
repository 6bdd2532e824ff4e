"""What one session used and what it cost, from its usage rows and its own row (facts/hermes.md section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from hermes_tui.model import NO_USAGE, CostStatus, Spend, Usage
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.cells import count, filled_text, money, text_or_none, time_or_none
from hermes_tui.stores.hermes.links import batches
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.text import RawText

MAIN_TASK: Final = ""
TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
COSTS: Final = ("estimated_cost_usd", "actual_cost_usd", "cost_status")
USAGE_COLUMNS: Final = (
    "session_id",
    "model",
    "billing_provider",
    "task",
    "api_call_count",
    *TOKENS,
    *COSTS,
    "first_seen",
    "last_seen",
)
SESSION_COLUMNS: Final = ("id", "model", "billing_provider", "api_call_count", *TOKENS, *COSTS, "started_at")
_KNOWN: Final[dict[str, CostStatus]] = {
    "actual": "actual",
    "estimated": "estimated",
    "included": "included",
    "unknown": "unknown",
}


class UsageRow(NamedTuple):
    """One row of ``session_model_usage``, or the sessions row in its place."""

    session_id: str
    model: RawText | None
    provider: RawText | None
    task: str
    requests: int
    usage: Usage
    cost_usd: float | None
    cost_status: CostStatus | None
    first_at: float | None
    last_at: float | None

    @property
    def empty(self) -> bool:
        """Nothing was used and nothing is said about money."""
        return not (self.usage.total or self.usage.reasoning or self.requests or self.cost_usd)

    def spend(self) -> Spend:
        """The row in the vocabulary of the library."""
        return Spend(
            self.model,
            self.provider,
            self.usage,
            self.requests,
            self.task,
            cost_usd=self.cost_usd,
            cost_status=self.cost_status,
            last_at=self.last_at,
        )


def usage_row(row: Sequence[Any]) -> UsageRow:
    """One row with :data:`USAGE_COLUMNS`."""
    session, model, provider, task, calls, *rest = row
    usd, status = cost_of(*rest[5:8])
    return UsageRow(
        text_or_none(session) or "",
        filled_text(model),
        filled_text(provider),
        text_or_none(task) or MAIN_TASK,
        count(calls),
        usage_of(rest[:5]),
        usd,
        status,
        time_or_none(rest[8]),
        time_or_none(rest[9]),
    )


def session_usage(row: Sequence[Any]) -> UsageRow:
    """The sessions row, with :data:`SESSION_COLUMNS`, as if it were a usage row."""
    session, model, provider, calls, *rest = row
    usd, status = cost_of(*rest[5:8])
    started = time_or_none(rest[8])
    return UsageRow(
        text_or_none(session) or "",
        filled_text(model),
        filled_text(provider),
        MAIN_TASK,
        count(calls),
        usage_of(rest[:5]),
        usd,
        status,
        started,
        None,
    )


def usage_of(tokens: Sequence[Any]) -> Usage:
    """The five counters in the order of :data:`TOKENS`."""
    new, out, read, write, reasoning = map(count, tokens)
    return Usage(new, out, read, write, reasoning)


def cost_of(estimated: Any, actual: Any, status: Any) -> tuple[float | None, CostStatus | None]:
    """Money and how it is known; 0.0 beside ``unknown`` or nothing is not an amount (facts/hermes.md section 8)."""
    known = _KNOWN.get(status) if isinstance(status, str) else None
    guess, bill = money(estimated), money(actual)
    if bill or (known == "actual" and bill is not None and not guess):
        return bill, "actual"
    if known == "included":
        return 0.0, "included"
    if known == "unknown":
        # Part of it was estimated before the last calls could not be.
        return (guess, "mixed") if guess else (None, "unknown")
    if guess or (known == "estimated" and guess is not None):
        return guess, "estimated"
    return None, None


def rows_of_session(own: UsageRow | None, usage_rows: Iterable[UsageRow]) -> list[UsageRow]:
    """What a session used: its usage rows; the sessions row instead where those of the main loop fall below it."""
    found = list(usage_rows)
    if own is not None:
        main = sum((row.usage for row in found if row.task == MAIN_TASK), NO_USAGE)
        if own.usage.total > main.total or not (found or own.empty):
            found = [own, *(row for row in found if row.task != MAIN_TASK)]
    return [row for row in found if not row.empty]


def read_usage_rows(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, list[UsageRow]]:
    """The usage rows of these sessions, oldest first."""
    found: dict[str, list[UsageRow]] = {}
    if not schema.has("session_model_usage", "session_id"):
        return found
    columns = schema.select("session_model_usage", USAGE_COLUMNS, "u")
    for some in batches(ids):
        marks = ",".join("?" * len(some))
        sql = f"SELECT {columns} FROM session_model_usage u WHERE u.session_id IN ({marks})"
        for row in map(usage_row, connection.rows(sql, some)):
            found.setdefault(row.session_id, []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row.first_at or 0.0, row.last_at or 0.0))
    return found
