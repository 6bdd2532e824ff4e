"""The ledger of a store made of logs: requests summed by what a cost report asks for (contract.md, cost)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, tzinfo
from functools import cache

from hermes_tui.model import CostGrouping, Request, SessionId, SessionRow, Spend, UsageReport, UsageSum
from hermes_tui.stores.conversation import SpendLedger, within
from hermes_tui.stores.kept_requests import SLOT_SECONDS, KeptRequests, Slot
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
        self._days: dict[float | None, RawText | None] = {}
        self.oldest: float | None = None
        """The time of the oldest usage that counts, or one before it; ``None`` where none has a time."""

    def add(self, peeked: SessionRow, requests: Iterable[Request], whole: Callable[[], SessionRow]) -> None:
        """Add the requests of one session.

        Args:
            peeked: its row as it was peeked.
            requests: its requests.
            whole: its row with all that its log says, asked only for what a request leaves open.
        """
        row = cache(whole)
        if isinstance(requests, KeptRequests):
            over_all_time = self._grouping != "day" and self._since is None and self._until is None
            if over_all_time and requests:
                self._date(peeked.started_at)
            if self._add_slots(peeked.id, row, requests.totals if over_all_time else requests.slots, over_all_time):
                return
        for request in requests:
            at = row().started_at if request.at is None else request.at
            if within(at, self._since, self._until):
                self._date(at)
                self._ledger(peeked.id, self._key(peeked.id, row, request, request, at)).add_request(request)

    def add_sums(self, row: SessionRow) -> None:
        """Add what a row sums up to, where the single usages behind it cannot be read."""
        for spend in row.spend:
            at = row.started_at if spend.last_at is None else spend.last_at
            if within(at, self._since, self._until):
                slot = Slot(None, row.source, row.cwd, row.session_key, spend)
                self._ledger(row.id, self._key(row.id, lambda: row, slot, spend, at)).add(spend)

    def _add_slots(
        self, session: SessionId, row: Callable[[], SessionRow], slots: Sequence[Slot], over_all_time: bool
    ) -> bool:
        """Add sums in place of requests, which is a tenth of the work; not where a limit cuts one of them."""
        inside = [slot.inside(self._since, self._until) for slot in slots]
        if None in inside or (self._grouping == "day" and not self._whole_quarters(slots)):
            return False
        for slot, wanted in zip(slots, inside, strict=True):
            if wanted:
                at: float | None = slot.begin
                if not over_all_time:
                    at = row().started_at if at is None else at
                    self._date(at)
                self._ledger(session, self._key(session, row, slot, slot.spend, at)).add(slot.spend)
        return True

    def _date(self, at: float | None) -> None:
        if at is not None and (self.oldest is None or at < self.oldest):
            self.oldest = at

    def _ledger(self, session: SessionId, key: RawText | None) -> SpendLedger:
        found = self._ledgers.get(key)
        if found is None:
            found = self._ledgers[key] = SpendLedger()
            self._sessions[key] = set()
        self._sessions[key].add(session)
        self._everyone.add(session)
        return found

    def _whole_quarters(self, slots: Sequence[Slot]) -> bool:
        """Whether days of this zone begin where slots do."""
        begins = [slot.begin for slot in slots if slot.begin is not None]
        try:
            offsets = [datetime.fromtimestamp(begin, self._zone).utcoffset() for begin in (min(begins), max(begins))]
        except (OverflowError, OSError, ValueError):
            return False
        return all(offset is not None and offset.total_seconds() % SLOT_SECONDS == 0 for offset in offsets)

    def report(self) -> UsageReport:
        """What was added so far."""
        sums = tuple(UsageSum(key, spend) for key, ledger in self._ledgers.items() for spend in ledger.spends())
        sessions = {key: len(ids) for key, ids in self._sessions.items()}
        return UsageReport(sums, sessions, distinct=len(self._everyone))

    def _day(self, at: float | None) -> RawText | None:
        if at not in self._days:
            self._days[at] = day_of(at, self._zone)
        return self._days[at]

    def _key(
        self,
        session: SessionId,
        row: Callable[[], SessionRow],
        request: Request | Slot,
        spend: Request | Spend,
        at: float | None,
    ) -> RawText | None:
        match self._grouping:
            case "model":
                return spend.model
            case "task":
                return RawText(spend.task)
            case "day":
                return self._day(at)
            case "source":
                return request.source or row().source
            case "cwd":
                return request.cwd or row().cwd
            case "channel":
                return request.session_key or row().session_key
            case "provider":
                return spend.provider or row().provider
            case "session":
                return RawText(session)
            case _:  # store and profile are one key here: the library names them
                return None


def day_of(at: float | None, zone: tzinfo) -> RawText | None:
    """The day in this zone as ``YYYY-MM-DD``; ``None`` for a time that is unknown or that no calendar has."""
    if at is None:
        return None
    try:
        return RawText(datetime.fromtimestamp(at, zone).date().isoformat())
    except (OverflowError, OSError, ValueError):
        return None
