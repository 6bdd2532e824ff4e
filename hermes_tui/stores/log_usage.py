"""The ledger of a store made of logs: requests summed by what a cost report asks for (contract.md, cost)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo

from hermes_tui.model import CostGrouping, Request, SessionId, SessionRow, UsageReport, UsageSum
from hermes_tui.stores.conversation import SpendLedger, within
from hermes_tui.text import RawText


class UsageLedger:
    """Sums requests by key and counts the sessions behind each key."""

    def __init__(self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo) -> None:
        self._grouping = grouping
        self._since = since
        self._until = until
        self._zone = zone
        self._ledgers: dict[RawText | None, SpendLedger] = {}
        self._sessions: dict[RawText | None, set[SessionId]] = {}
        self._everyone: set[SessionId] = set()

    def add(self, row: SessionRow, requests: Iterable[Request]) -> None:
        """Add the requests of one session; the row says what a request leaves open."""
        for request in requests:
            at = row.started_at if request.at is None else request.at
            if not within(at, self._since, self._until):
                continue
            key = self._key(row, request, at)
            self._ledgers.setdefault(key, SpendLedger()).add_request(request)
            self._sessions.setdefault(key, set()).add(row.id)
            self._everyone.add(row.id)

    def report(self) -> UsageReport:
        """What was added so far."""
        sums = tuple(UsageSum(key, spend) for key, ledger in self._ledgers.items() for spend in ledger.spends())
        sessions = {key: len(ids) for key, ids in self._sessions.items()}
        return UsageReport(sums, sessions, distinct=len(self._everyone))

    def _key(self, row: SessionRow, request: Request, at: float | None) -> RawText | None:
        match self._grouping:
            case "model":
                return request.model
            case "task":
                return RawText(request.task)
            case "day":
                return day_of(at, self._zone)
            case "source":
                return request.source or row.source
            case "cwd":
                return request.cwd or row.cwd
            case "channel":
                return request.session_key or row.session_key
            case "provider":
                return request.provider or row.provider
            case "session":
                return RawText(row.id)
            case _:  # store and profile are one key here: the library names them
                return None


def day_of(at: float | None, zone: tzinfo) -> RawText | None:
    """The day in this zone as ``YYYY-MM-DD``; ``None`` for a time that is unknown or that no calendar has."""
    if at is None:
        return None
    try:
        return RawText(datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d"))
    except (OverflowError, OSError, ValueError):
        return None
