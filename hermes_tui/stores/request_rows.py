"""Requests of one log in columns: taking one in costs a fifth of making it, and most are only summed up or kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import add
from typing import Any, Final, overload

from hermes_tui.model import PROMPT_BANDS, CacheEvent, Request, SessionId, Usage, prompt_band
from hermes_tui.text import RawText

Counts = tuple[int, int, int, int, int]
"""Tokens in the order of :class:`Usage`."""
_NAMES: Final = (
    "session_id", "request_id", "message_id", "at", "model", "provider", "events", "source", "cwd",
    "input", "output", "cache_read", "cache_write", "reasoning", "write_1h",
)  # fmt: skip
"""The columns; events are pairs of cause and evidence."""
_CONSTANTS: Final[Mapping[str, Sequence[object]]] = {
    "task": ("",), "session_key": (None,), "cost_usd": (None,), "cost_status": (None,), "calls": (1,),
}  # fmt: skip
"""What is the same for every request of an agent that tells tokens and no money."""
Events = Sequence[Sequence[str]]
SumKey = tuple[Any, ...]
"""Begin of the slot, source, folder, model, provider, price band."""
SLOT_SECONDS: Final = 900
"""Every zone's days begin at a quarter of an hour, so that sums by slot can be added up to local days."""
_FIRST_BAND: Final = PROMPT_BANDS[1]


class RequestRows(Sequence[Request]):
    """A sequence of requests that makes them when somebody looks at them."""

    __slots__ = ("_columns", "_made", "_summed", "_sums", "_tells_writes")
    __hash__ = None  # type: ignore[assignment]  # as a list

    def __init__(self, columns: tuple[list[Any], ...] | None = None, *, tells_writes: bool = False) -> None:
        """Empty, or of columns in the order of :data:`_NAMES`.

        Args:
            columns: all of the same length.
            tells_writes: each request tells what was written to the cache, be it nothing.
        """
        self._columns: tuple[list[Any], ...] = tuple([] for _ in _NAMES) if columns is None else columns
        self._tells_writes = tells_writes
        self._made: tuple[Request, ...] = ()
        self._sums: dict[SumKey, list[Any]] = {}
        self._summed = 0
        """Requests that are in the sums."""

    def add(
        self,
        session: str,
        request_id: str | None,
        message: str | None,
        at: float | None,
        model: str | None,
        provider: str | None,
        counts: Counts,
        events: Events,
        source: str | None,
        cwd: str | None,
    ) -> None:
        """Take in one more."""
        values = (session, request_id, message, at, model, provider, events, source, cwd, *counts, 0)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def copy(self) -> RequestRows:
        """The same requests, to which no more are added."""
        made = RequestRows(tuple(column.copy() for column in self._columns), tells_writes=self._tells_writes)
        made._sums, made._summed = {key: total.copy() for key, total in self._sums.items()}, self._summed
        return made

    @property
    def request_ids(self) -> Sequence[str | None]:
        """The id of each."""
        ids: list[str | None] = self._columns[1]
        return ids

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> Request: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Request, ...]: ...
    def __getitem__(self, place: int | slice) -> Request | tuple[Request, ...]:
        make = partial(_request, self._tells_writes)
        if isinstance(place, slice):
            return tuple(map(make, *(column[place] for column in self._columns)))
        return make(*(column[place] for column in self._columns))

    def __iter__(self) -> Iterator[Request]:
        if len(self._made) != len(self):
            self._made = self[:]
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestRows | tuple):
            return NotImplemented
        return tuple(self) == tuple(other)

    def columns(self) -> dict[str, Sequence[Any]]:
        """The values of each field of :class:`Request` and :class:`Usage` by its name; of one item where all are alike.

        Events are pairs of cause and evidence.
        """
        named = dict(zip(_NAMES, map(_short, self._columns), strict=True))
        told = (True,) if self._tells_writes else [count > 0 for count in named["cache_write"]]
        return {**_CONSTANTS, **named, "chain": named["session_id"], "reports_writes": told}

    def sums(self) -> Mapping[SumKey, Sequence[Any]]:
        """What requests that are alike sum up to, in the order they first come; what was summed is kept.

        Values are the six counts, how many they are, and the newest time.
        """
        new = [column[self._summed :] for column in self._columns]
        self._summed = len(self)
        _, _, _, at, model, provider, _, source, cwd, given, output, read, written, reasoning, hour = new
        sizes = map(add, map(add, given, read), written)
        bands = [0 if size <= _FIRST_BAND else prompt_band(size) for size in sizes]
        first = 0
        # Neighbours mostly belong together, and are added up without a loop.
        for key, some in groupby(zip(map(slot_of, at), source, cwd, model, provider, bands, strict=True)):
            last = first + len(list(some))
            newest = None if key[0] is None else max(at[first:last])
            totals = [sum(column[first:last]) for column in (given, output, read, written, reasoning, hour)]
            known = self._sums.get(key)
            if known is None:
                self._sums[key] = [*totals, last - first, newest]
            else:
                known[:7] = map(add, known, (*totals, last - first))
                if newest is not None and (known[7] is None or newest > known[7]):
                    known[7] = newest
            first = last
        return self._sums

    def totals(self) -> Mapping[SumKey, Sequence[Any]]:
        """The same sums over all time: their keys begin nowhere."""
        found: dict[SumKey, list[Any]] = {}
        for key, total in self.sums().items():
            place = (None, *key[1:])
            known = found.get(place)
            if known is None:
                found[place] = list(total)
            else:
                known[:7] = map(add, known, total[:7])
                if total[7] is not None and (known[7] is None or total[7] > known[7]):
                    known[7] = total[7]
        return found

    def dump(self) -> list[object]:
        """All of it as JSON values."""
        sums = [[*key, *total] for key, total in self.sums().items()]
        return [len(self), self._tells_writes, sums, *map(_short, self._columns)]

    @classmethod
    def restore(cls, values: list[Any]) -> RequestRows:
        """What :meth:`dump` gave."""
        count, tells_writes, sums, *columns = values
        whole = tuple(column if len(column) == count else column * count for column in columns)
        made = cls(whole, tells_writes=tells_writes)
        made._sums, made._summed = {tuple(total[:6]): total[6:] for total in sums}, count
        return made


def slot_of(at: float | None) -> int | None:
    """Where the slot of a time begins, Unix seconds; ``None`` for what is no time."""
    return None if at is None or not math.isfinite(at) else int(at // SLOT_SECONDS) * SLOT_SECONDS


def _short(column: list[Any]) -> list[Any]:
    # The last tells most of those apart that are not alike.
    alike = bool(column) and column[0] == column[-1] and column.count(column[0]) == len(column)
    return column[:1] if alike else column


def _request(
    tells_writes: bool,
    session: str,
    request_id: str | None,
    message: str | None,
    at: float | None,
    model: RawText | None,
    provider: RawText | None,
    events: Events,
    source: RawText | None,
    cwd: RawText | None,
    *counts: int,
) -> Request:
    *counted, hour = counts
    usage = Usage(*counted)
    return Request(
        SessionId(session),
        session,
        request_id,
        message,
        at,
        model,
        provider,
        usage,
        write_1h=hour,
        reports_writes=tells_writes or usage.cache_write > 0,
        events=tuple(CacheEvent(cause, RawText(evidence)) for cause, evidence in events) if events else (),  # type: ignore[arg-type]
        source=source,
        cwd=cwd,
    )
