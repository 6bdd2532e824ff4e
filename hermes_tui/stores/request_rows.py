"""Requests of one log as rows: taking one in costs a tenth of making it, and most are only ever summed up or kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, overload

from hermes_tui.model import CacheEvent, Request, SessionId, Usage
from hermes_tui.text import RawText

RequestRow = Sequence[Any]
"""Session, request id, message id, time in Unix seconds, model, provider, the five counts of :class:`Usage`, events as
pairs, source, folder: JSON values, so that rows are put away as they are."""
_CONSTANTS: Final[Mapping[str, Sequence[object]]] = {
    "write_1h": (0,), "task": ("",), "session_key": (None,), "cost_usd": (None,), "cost_status": (None,),
    "calls": (1,),
}  # fmt: skip
"""What is the same for every request of an agent that tells tokens and no money."""


class RequestRows(Sequence[Request]):
    """A sequence of requests that makes them when somebody looks at them."""

    __slots__ = ("_made", "rows")
    __hash__ = None  # type: ignore[assignment]  # as a list

    def __init__(self, rows: Iterable[RequestRow] = ()) -> None:
        self.rows: list[RequestRow] = list(rows)
        self._made: tuple[Request, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Request: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Request, ...]: ...
    def __getitem__(self, place: int | slice) -> Request | tuple[Request, ...]:
        if isinstance(place, slice):
            return tuple(map(_request, self.rows[place]))
        return _request(self.rows[place])

    def __iter__(self) -> Iterator[Request]:
        if len(self._made) != len(self.rows):
            self._made = tuple(map(_request, self.rows))
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestRows | tuple):
            return NotImplemented
        return tuple(self) == tuple(other)

    def columns(self) -> dict[str, Sequence[Any]]:
        """The values of each field of :class:`Request` and :class:`Usage` by its name; of one item where all are alike.

        Events are pairs of cause and evidence. Empty where there are no requests.
        """
        if not self.rows:
            return {}
        session, ids, messages, at, models, providers, usages, events, sources, folders = zip(*self.rows, strict=True)
        given, output, read, write, reasoning = zip(*usages, strict=True)
        return {
            **_CONSTANTS, "session_id": session, "chain": session, "request_id": ids, "message_id": messages, "at": at,
            "model": models, "provider": providers, "reports_writes": [count > 0 for count in write],
            "events": events, "source": sources, "cwd": folders, "input": given, "output": output, "cache_read": read,
            "cache_write": write, "reasoning": reasoning,
        }  # fmt: skip


def _request(row: RequestRow) -> Request:
    session, request_id, message, at, model, provider, counts, events, source, cwd = row
    usage = Usage(*counts)
    return Request(
        SessionId(session),
        session,
        request_id,
        message,
        at,
        model,
        provider,
        usage,
        reports_writes=usage.cache_write > 0,
        events=tuple(CacheEvent(cause, RawText(evidence)) for cause, evidence in events) if events else (),
        source=source,
        cwd=cwd,
    )
