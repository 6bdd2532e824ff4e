"""Requests of one log in columns: taking one in costs a fifth of making it, and most are only summed up or kept."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, repeat
from math import isfinite
from operator import add
from typing import Any, Final, overload

from hermes_tui.model import PROMPT_BANDS, CacheEvent, Request, SessionId, Usage, prompt_band
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.storage.packing import packed, unpacked
from hermes_tui.text import RawText

Counts = tuple[int, int, int, int, int]
"""Tokens in the order of :class:`Usage`."""
_NAMES: Final = (
    "session_id", "request_id", "message_id", "at", "model", "provider", "events", "source", "cwd",
    "input", "output", "cache_read", "cache_write", "reasoning", "write_1h",
)  # fmt: skip
"""The columns; events are pairs of cause and evidence."""
_AT: Final = _NAMES.index("at")
_FIRST_COUNT: Final = _NAMES.index("input")
Events = Sequence[Sequence[str]]
SumKey = tuple[Any, ...]
"""Begin of the slot, source, folder, model, provider, price band."""
SLOT_SECONDS: Final = 900
"""Every zone's days begin at a quarter of an hour, so that sums by slot can be added up to local days."""
_FIRST_BAND: Final = PROMPT_BANDS[1]
CHUNK_ROWS: Final = 1_024
"""So many requests are packed together when they are put away, and stay packed until somebody looks at them."""


class RequestRows(Sequence[Request]):
    """A sequence of requests that makes them when somebody looks at them."""

    __slots__ = ("_added", "_chunks", "_columns", "_made", "_packed", "_summed", "_sums", "_tells_writes")
    __hash__ = None  # type: ignore[assignment]  # as a list

    def __init__(self, columns: tuple[list[Any], ...] | None = None, *, tells_writes: bool = False) -> None:
        """Empty, or of columns in the order of :data:`_NAMES`.

        Args:
            columns: all of the same length.
            tells_writes: each request tells what was written to the cache, be it nothing.
        """
        self._columns: tuple[list[Any], ...] = tuple([] for _ in _NAMES) if columns is None else columns
        self._tells_writes = tells_writes
        """Those of the newest requests, before which stand the packed ones."""
        self._added: list[tuple[Any, ...]] = []
        """Requests that are not in the columns yet: they go there together."""
        self._chunks: list[str] = []
        self._packed = 0
        """Requests in the chunks; they are in the sums, unless none is."""
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
        self._added.append((session, request_id, message, at, model, provider, events, source, cwd, *counts, 0))
        if len(self._added) >= CHUNK_ROWS:
            self._settled()

    def extend(
        self,
        session: str,
        request_ids: Sequence[str | None],
        messages: Sequence[str | None],
        times: Sequence[float | None],
        model: str | None,
        provider: str | None,
        counts: Sequence[Sequence[int]],
        source: str | None,
        cwd: str | None,
    ) -> None:
        """Take in several without events, which are alike but for ids, times and counts (a list for each count)."""
        many = len(times)
        alike = ([value] * many for value in (session, model, provider, (), source, cwd, 0))
        session_ids, models, providers, events, sources, folders, hours = alike
        new = (session_ids, request_ids, messages, times, models, providers, events, sources, folders, *counts, hours)
        for column, values in zip(self._settled(), new, strict=True):
            column.extend(values)

    def _settled(self) -> tuple[list[Any], ...]:
        """The columns of the newest requests, with those that were added."""
        if self._added:
            for column, values in zip(self._columns, zip(*self._added, strict=True), strict=True):
                column.extend(values)
            self._added.clear()
        return self._columns

    def copy(self) -> RequestRows:
        """The same requests, to which no more are added."""
        made = RequestRows(tuple(column.copy() for column in self._settled()), tells_writes=self._tells_writes)
        made._sums, made._summed = {key: total.copy() for key, total in self._sums.items()}, self._summed
        made._chunks, made._packed = self._chunks.copy(), self._packed
        return made

    @property
    def request_ids(self) -> Sequence[str | None]:
        """The id of each."""
        ids: list[str | None] = self._whole()[1]
        return ids

    def _whole(self) -> tuple[list[Any], ...]:
        """The columns of all requests."""
        if not self._chunks:
            return self._settled()
        parts = [*map(_unpacked, self._chunks), self._settled()]
        return tuple(list(chain.from_iterable(columns)) for columns in zip(*parts, strict=True))

    def __len__(self) -> int:
        return self._packed + len(self._settled()[0])

    @overload
    def __getitem__(self, place: int) -> Request: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Request, ...]: ...
    def __getitem__(self, place: int | slice) -> Request | tuple[Request, ...]:
        make = partial(_request, self._tells_writes)
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if start >= self._packed and step > 0:
                place = slice(start - self._packed, max(stop - self._packed, 0), step)
                return tuple(map(make, *(column[place] for column in self._settled())))
            return tuple(map(make, *(column[place] for column in self._whole())))
        return make(*(column[place] for column in self._whole()))

    def __iter__(self) -> Iterator[Request]:
        if len(self._made) != len(self):
            self._made = self[:]
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestRows | tuple):
            return NotImplemented
        return tuple(self) == tuple(other)

    def hit_rates(self, most: int) -> tuple[float | None, ...]:
        """The share of each of the newest requests that was read from the cache, 0..1; ``None`` for an empty prompt."""
        columns = self._whole() if most > len(self) - self._packed else self._settled()
        given, _, read, written = (column[-most:] for column in columns[_FIRST_COUNT : _FIRST_COUNT + 4])
        sizes = map(add, map(add, given, read), written)
        return tuple(some / size if size else None for some, size in zip(read, sizes, strict=True))

    def sums(self) -> Mapping[SumKey, Sequence[Any]]:
        """What requests that are alike sum up to, in the order they first come; what was summed is kept.

        Values are the six counts, how many they are, and the newest time.
        """
        if self._summed == len(self):
            return self._sums
        known = self._summed >= self._packed
        begin = self._summed - self._packed if known else self._summed
        new = [column[begin:] for column in (self._settled() if known else self._whole())]
        self._summed = len(self)
        at, counts = new[_AT], new[_FIRST_COUNT:]
        first = 0
        # Neighbours mostly belong together, and are added up without a loop.
        for key, some in groupby(_sum_keys(new)):
            last = first + len(list(some))
            newest = None if key[0] is None else max(at[first:last])
            totals = [sum(column[first:last]) for column in counts]
            total = self._sums.get(key)
            if total is None:
                self._sums[key] = [*totals, last - first, newest]
            else:
                total[:7] = map(add, total, (*totals, last - first))
                if newest is not None and (total[7] is None or newest > total[7]):
                    total[7] = newest
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

    def dump(self, *, sums: bool = True) -> list[object]:
        """All of it as JSON values, with its sums or without; what makes up whole chunks is packed from now on."""
        summed = [[*key, *total] for key, total in self.sums().items()]
        self._pack()
        place = [len(self._settled()[0]), self._packed, self._tells_writes]
        return [*place, summed if sums else None, self._chunks.copy(), *map(_short, self._settled())]

    def _pack(self) -> None:
        """After all are summed up."""
        end = len(self._settled()[0]) // CHUNK_ROWS * CHUNK_ROWS
        for begin in range(0, end, CHUNK_ROWS):
            piece = [_short(column[begin : begin + CHUNK_ROWS]) for column in self._settled()]
            self._chunks.append(b64encode(packed(dump_json([CHUNK_ROWS, *piece]))).decode("ascii"))
        if end:
            self._columns = tuple(column[end:] for column in self._settled())
            self._packed += end

    @classmethod
    def restore(cls, values: list[Any]) -> RequestRows:
        """What :meth:`dump` gave."""
        count, in_chunks, tells_writes, sums, chunks, *columns = values
        made = cls(_long(count, columns), tells_writes=tells_writes)
        made._chunks, made._packed = chunks, in_chunks
        if sums is not None:
            made._sums, made._summed = {tuple(total[:6]): total[6:] for total in sums}, len(made)
        return made


def _sum_keys(columns: Sequence[Sequence[Any]]) -> Iterator[SumKey]:
    """What each request of these columns is summed up under."""
    _, _, _, at, model, provider, _, source, cwd, given, _, read, written, _, _ = columns
    sizes = list(map(add, map(add, given, read), written))
    if max(sizes, default=0) <= _FIRST_BAND:
        bands: Iterable[int] = repeat(0)
    else:
        bands = [prompt_band(size) for size in sizes]
    return zip(map(slot_of, at), source, cwd, model, provider, bands, strict=False)


def slot_of(at: float | None) -> int | None:
    """Where the slot of a time begins, Unix seconds; ``None`` for what is no time."""
    return None if at is None or not isfinite(at) else int(at // SLOT_SECONDS) * SLOT_SECONDS


def _short(column: list[Any]) -> list[Any]:
    # The last tells most of those apart that are not alike.
    alike = bool(column) and column[0] == column[-1] and column.count(column[0]) == len(column)
    return column[:1] if alike else column


def _long(count: int, columns: Sequence[list[Any]]) -> tuple[list[Any], ...]:
    """What :func:`_short` made short."""
    return tuple(column if len(column) == count else column * count for column in columns)


def _unpacked(chunk: str) -> tuple[list[Any], ...]:
    count, *columns = load_json(unpacked(b64decode(chunk)))
    return _long(count, columns)


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
