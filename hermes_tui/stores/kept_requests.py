"""Requests that an index kept: what they sum up to is at hand, they themselves are decoded when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, overload

from hermes_tui.model import PROMPT_BANDS, CostStatus, Request, Spend, Usage, prompt_band
from hermes_tui.stores.conversation import SpendLedger
from hermes_tui.stores.request_rows import RequestRows
from hermes_tui.text import RawText

_FIRST_BAND: Final = PROMPT_BANDS[1]
SLOT_SECONDS: Final = 900
"""Every zone's days begin at a quarter of an hour, so that sums by slot can be added up to local days."""


class Slot(NamedTuple):
    """What the requests of a quarter of an hour sum up to, where all else that people group by is the same."""

    begin: int | None
    """Unix seconds; ``None`` for requests without a time."""
    source: RawText | None
    cwd: RawText | None
    session_key: RawText | None
    spend: Spend

    def inside(self, since: float | None, until: float | None) -> bool | None:
        """Whether all of it lies between two times, ``False``: none of it; ``None``: some may, or it has no time."""
        if since is None and until is None:
            return True
        if self.begin is None:
            return None
        first, last = self.begin, self.begin + SLOT_SECONDS
        if (since is not None and last <= since) or (until is not None and first > until):
            return False
        return True if (since is None or first >= since) and (until is None or last <= until) else None


_Values = tuple[Any, ...]
"""Time, source, folder, channel, model, provider, task, status, calls, the five counts, one-hour writes, money."""


def slots_of(requests: Sequence[Request]) -> tuple[Slot, ...]:
    """Requests summed by slot, in the order they first come."""
    sums: dict[_Values, _Sums] = {}
    values = _row_values(requests) if isinstance(requests, RequestRows) else map(_values, requests)
    for (
        at, source, cwd, channel, model, provider, task, status, calls, given, output, read, written, reasoning, hour,
        usd,
    ) in values:  # fmt: skip
        size = given + read + written
        begin = None if at is None or not math.isfinite(at) else int(at // SLOT_SECONDS) * SLOT_SECONDS
        # As prompt_band does it; a row of sums has no band of its own.
        band = 0 if size <= _FIRST_BAND or calls != 1 else prompt_band(size)
        key = (begin, source, cwd, channel, model, provider, task, band, status)
        total = sums.get(key)
        if total is None:
            total = sums[key] = _Sums()
        total.input += given
        total.output += output
        total.read += read
        total.write += written
        total.reasoning += reasoning
        total.calls += calls
        total.hour += hour
        if usd is not None:
            total.usd = (total.usd or 0.0) + usd
        if total.last is None or (at is not None and at > total.last):
            total.last = at
    return tuple(
        Slot(begin, source, cwd, channel, total.spend(model, provider, task, band, status))
        for (begin, source, cwd, channel, model, provider, task, band, status), total in sums.items()
    )


def _values(request: Request) -> _Values:
    usage = request.usage
    return (
        request.at, request.source, request.cwd, request.session_key, request.model, request.provider, request.task,
        request.cost_status, request.calls, usage.input, usage.output, usage.cache_read, usage.cache_write,
        usage.reasoning, request.write_1h, request.cost_usd,
    )  # fmt: skip


def _row_values(requests: RequestRows) -> Iterator[_Values]:
    for _, _, _, at, model, provider, counts, _, source, cwd in requests.rows:
        yield (at, source, cwd, None, model, provider, "", None, 1, *counts, 0, None)


class _Sums:
    """What requests of one key sum up to."""

    __slots__ = ("calls", "hour", "input", "last", "output", "read", "reasoning", "usd", "write")

    def __init__(self) -> None:
        self.input = self.output = self.read = self.write = self.reasoning = self.calls = self.hour = 0
        self.usd: float | None = None
        self.last: float | None = None

    def spend(
        self, model: RawText | None, provider: RawText | None, task: str, band: int, status: CostStatus | None
    ) -> Spend:
        usage = Usage(self.input, self.output, self.read, self.write, self.reasoning)
        return Spend(
            model=model,
            provider=provider,
            usage=usage,
            requests=self.calls,
            task=task,
            write_1h=self.hour,
            band=band,
            cost_usd=self.usd,
            cost_status=status,
            last_at=self.last,
        )


def totals_of(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """The same summed over all time: slots without a begin."""
    ledgers: dict[tuple[RawText | None, RawText | None, RawText | None], SpendLedger] = {}
    order: dict[tuple[object, ...], tuple[RawText | None, RawText | None, RawText | None]] = {}
    for slot in slots:
        place, spend = (slot.source, slot.cwd, slot.session_key), slot.spend
        ledgers.setdefault(place, SpendLedger()).add(spend)
        order.setdefault((*place, *alike(spend)), place)
    sums = {(*place, *alike(spend)): spend for place, ledger in ledgers.items() for spend in ledger.spends()}
    return tuple(Slot(None, *place, sums[key]) for key, place in order.items())


def alike(spend: Spend) -> tuple[object, ...]:
    """What must be the same for two sums to be priced alike."""
    return (spend.model, spend.provider, spend.task, spend.band, spend.cost_status)


class KeptRequests(Sequence[Request]):
    """A sequence that decodes itself anew each time it is looked into, for most are never looked into."""

    __slots__ = ("_count", "_load", "_slots", "totals")

    def __init__(
        self,
        count: int,
        totals: tuple[Slot, ...],
        slots: Callable[[], tuple[Slot, ...]],
        load: Callable[[], tuple[Request, ...]],
    ) -> None:
        self._count = count
        self._load = load
        self._slots = slots
        self.totals = totals
        """The same requests summed over all time."""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The same requests summed by a quarter of an hour."""
        return self._slots()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Request: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Request, ...]: ...
    def __getitem__(self, place: int | slice) -> Request | tuple[Request, ...]:
        return self._load()[place]

    def __iter__(self) -> Iterator[Request]:
        return iter(self._load())

    def none_since(self, since: float) -> bool:
        """Whether all of them are older, as far as they have a time."""
        return all(total.spend.last_at is None or total.spend.last_at < since for total in self.totals)
