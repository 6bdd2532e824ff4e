"""Requests that an index kept: what they sum up to is at hand, they themselves are decoded when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, overload

from hermes_tui.model import PROMPT_BANDS, CostStatus, Request, Spend, Usage, prompt_band
from hermes_tui.stores.conversation import SpendLedger
from hermes_tui.stores.request_rows import SLOT_SECONDS as SLOT_SECONDS
from hermes_tui.stores.request_rows import RequestRows, SumKey, slot_of
from hermes_tui.text import RawText

_FIRST_BAND: Final = PROMPT_BANDS[1]


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


def slots_of(requests: Sequence[Request]) -> tuple[Slot, ...]:
    """Requests summed by slot, in the order they first come."""
    if isinstance(requests, RequestRows):
        return _slots_of_rows(requests)
    sums: dict[tuple[Any, ...], _Sums] = {}
    for request in requests:
        at, usage, calls = request.at, request.usage, request.calls
        size = usage.input + usage.cache_read + usage.cache_write
        # As prompt_band does it; a row of sums has no band of its own.
        band = 0 if size <= _FIRST_BAND or calls != 1 else prompt_band(size)
        place = (slot_of(at), request.source, request.cwd, request.session_key)
        key = (*place, request.model, request.provider, request.task, band, request.cost_status)
        total = sums.get(key)
        if total is None:
            total = sums[key] = _Sums()
        total.input += usage.input
        total.output += usage.output
        total.read += usage.cache_read
        total.write += usage.cache_write
        total.reasoning += usage.reasoning
        total.calls += calls
        total.hour += request.write_1h
        if request.cost_usd is not None:
            total.usd = (total.usd or 0.0) + request.cost_usd
        if total.last is None or (at is not None and at > total.last):
            total.last = at
    return _slots(sums)


def _slots_of_rows(requests: RequestRows) -> tuple[Slot, ...]:
    """The same of requests that sum themselves up."""
    return _slots_of_sums(requests.sums())


def spends_of(requests: Sequence[Request]) -> Sequence[Spend] | None:
    """What requests sum up to, where sums are at hand; ``None``: somebody must add them up."""
    if isinstance(requests, KeptRequests):
        return [total.spend for total in requests.totals]
    return [total.spend for total in _slots_of_sums(requests.totals())] if isinstance(requests, RequestRows) else None


def _slots_of_sums(sums: Mapping[SumKey, Sequence[Any]]) -> tuple[Slot, ...]:
    return tuple(
        Slot(
            begin,
            source,
            cwd,
            None,
            Spend(
                model=model,
                provider=provider,
                usage=Usage(*counts),
                requests=calls,
                write_1h=hour,
                band=band,
                last_at=last,
            ),
        )
        for (begin, source, cwd, model, provider, band), (*counts, hour, calls, last) in sums.items()
    )


def _slots(sums: Mapping[tuple[Any, ...], _Sums]) -> tuple[Slot, ...]:
    return tuple(
        Slot(begin, source, cwd, channel, total.spend(model, provider, task, band, status))
        for (begin, source, cwd, channel, model, provider, task, band, status), total in sums.items()
    )


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
