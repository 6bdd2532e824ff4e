"""What a fold of a DSH session remembers, and how it is put away and taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hermes_tui.model import CacheEvent, Compaction, Request, Usage
from hermes_tui.records import dataclass
from hermes_tui.stores.dsh.content import json_bytes, json_value
from hermes_tui.stores.dsh.events import BadRow, Event, Replace
from hermes_tui.stores.dsh.format import Header
from hermes_tui.stores.dsh.sequence import Numbers


@dataclass(slots=True)
class DshState:
    """Everything a fold remembers; plain values, so that it can be put away as JSON."""

    header: Header | None = None
    refusal: str | None = None
    """Why nothing of the log is read."""
    refused_line: int | None = None
    refused_offset: int | None = None
    corrupt: str | None = None
    """Why its own program does not open it, though it can be read here."""
    met: Numbers = field(default_factory=Numbers)
    """The sequence numbers of the events taken in."""
    bad: list[BadRow] = field(default_factory=list)
    suspended: list[Event] = field(default_factory=list)
    """Events behind a bad row, until a turn ends (corrupt) or the log does (they are dropped)."""
    broken: bool = False
    broke_at: str | None = None
    """Why, and where."""
    surface: list[int] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)
    """Own entries that count as messages, by the sequence number of their event, while it stands on the surface."""
    replaced: dict[int, int] = field(default_factory=dict)
    """What left the surface: its sequence number and that of the event which took its place."""
    inherited: int = 0
    """Sequence numbers below this are the parent's."""
    odd_inherited: list[list[int]] = field(default_factory=list)
    """Runs of numbers above it that were copied as well: damage had changed them."""
    cut: bool = False
    """Whether the end of what was inherited has been met."""
    title: str | None = None
    preview: str | None = None
    prompts: int = 0
    last_at: float | None = None
    model: str | None = None
    provider: str | None = None
    window: int | None = None
    models: list[str] = field(default_factory=list)
    called: int = 0
    """Own tool calls."""
    calls: dict[str, None] = field(default_factory=dict)
    """The ids of all tool calls, the parent's too."""
    queued: dict[str, str] = field(default_factory=dict)
    """Prompts from the inbox that no message carries yet, by id."""
    inbox: dict[str, list[str]] = field(default_factory=dict)
    """Ids of what still waits, by target: a resume sends it first."""
    context_shown: bool = False
    """A runtime context stands in the log."""
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Compactions under way: what their summary said, by compaction id."""
    chunk_usage: dict[str, Any] | None = None
    """The usage a streamed chunk reported for the step under way (versions 0 and 1)."""
    config: dict[str, Any] | None = None
    digests: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    apart: list[Request] = field(default_factory=list)
    compactions: list[Compaction] = field(default_factory=list)
    happened: list[CacheEvent] = field(default_factory=list)
    """Since the last request."""
    events: int = 0


def dump_state(state: DshState) -> bytes:
    """The state as JSON bytes."""
    return json_bytes(state)


def load_state(dumped: bytes) -> DshState:
    """The state :func:`dump_state` wrote.

    Raises:
        ValueError, KeyError, TypeError: the bytes are not such a state.
    """
    values = json_value(dumped)
    if values["header"] is not None:
        values["header"] = Header(**values["header"])
    values["met"] = Numbers(**values["met"])
    values["bad"] = [BadRow(**row) for row in values["bad"]]
    values["suspended"] = [_event(event) for event in values["suspended"]]
    for name in ("weights", "replaced"):
        values[name] = {int(seq): value for seq, value in values[name].items()}
    for name in ("requests", "apart"):
        values[name] = [_request(request) for request in values[name]]
    values["compactions"] = [Compaction(**compaction) for compaction in values["compactions"]]
    values["happened"] = [CacheEvent(**event) for event in values["happened"]]
    return DshState(**values)


def _event(values: Mapping[str, Any]) -> Event:
    surface = values["surface"]
    return Event(**{**values, "surface": Replace(**surface) if isinstance(surface, Mapping) else surface})


def _request(values: Mapping[str, Any]) -> Request:
    events = tuple(CacheEvent(**event) for event in values["events"])
    return Request(**{**values, "usage": Usage(**values["usage"]), "events": events})
