"""What the list is narrowed to, and how that reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Final

from hermes_tui.library.times import UNITS, parse_time
from hermes_tui.model import CostGrouping, ListOrder, ListQuery
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.glyphs import Glyphs

ORDERS: Final[tuple[ListOrder, ...]] = ("activity", "started", "tokens", "cost", "messages")


@dataclass(frozen=True, slots=True)
class Facets:
    """Narrowing by hand; ``None`` is any."""

    agent: str | None = None
    profile: str | None = None
    store: str | None = None
    """A store's name."""
    source: str | None = None
    model: str | None = None
    channel: str | None = None
    cwd: str | None = None
    since: float | None = None
    """Last active then or later."""
    until: float | None = None
    when: str = ""
    """What ``since`` and ``until`` mean; clean."""
    archived: bool = False
    delegated: bool = False
    automated: bool = True
    pinned: bool = False
    """Pinned ones only."""
    tag: str | None = None
    order: ListOrder = "activity"
    text: str = ""

    def query(self) -> ListQuery:
        """As the stores take it; agent, profile and store choose stores instead."""
        return ListQuery(
            order=self.order,
            source=self.source,
            model=self.model,
            cwd=self.cwd,
            channel=self.channel,
            since=self.since,
            until=self.until,
            archived=self.archived,
            children=self.delegated,
            automated=self.automated,
            text=self.text,
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the default filters is on."""
        chosen = (self.text, self.agent, self.profile, self.store, self.source, self.model, self.channel, self.cwd)
        return any(chosen) or bool(self.tag or self.when) or self.pinned or not self.automated


def summary(facets: Facets, glyphs: Glyphs, *, short: bool = False) -> CleanText:
    """``agent any · model any · by activity``, with what else is chosen; short: what is chosen alone."""
    parts = [f"agent {facets.agent}"] if facets.agent else [] if short else ["agent any"]
    if facets.model or not short:
        parts.append(f"model {clean_line(facets.model) if facets.model else 'any'}")
    words = (
        ("store", facets.store), ("profile", facets.profile), ("source", facets.source), ("channel", facets.channel),
        ("folder", facets.cwd),
    )  # fmt: skip
    for name, value in words:
        if value:
            parts.append(f"{name} {clean_line(value)}")
    if facets.when:
        parts.append(facets.when)
    if facets.archived:
        parts.append("+ archived")
    if facets.delegated:
        parts.append("+ delegated")
    if facets.pinned:
        parts.append("pinned")
    if facets.tag:
        parts.append(f"#{clean_line(facets.tag)}")
    if not facets.automated:
        parts.append("no automated")
    parts.append(f"by {facets.order}")
    return CleanText(f" {glyphs.middot} ".join(parts))


def left_out_text(left_out: dict[str, int]) -> CleanText:
    """``38 archived, 212 delegated``; ``nothing`` where all is shown."""
    parts = [f"{number:,} {clean_line(reason)}" for reason, number in sorted(left_out.items()) if number]
    return literal(", ".join(parts) or "nothing")


def origins_text(origins: Sequence[tuple[str, int | None]]) -> CleanText:
    """``store``, ``scan``, ``mirror, 40 logs not in the mirror yet``: where the list came from, how far behind."""
    lag = sum(behind or 0 for _, behind in origins)
    names = ", ".join(dict.fromkeys(name for name, _ in origins)) or "nowhere"
    return literal(f"{names}, {lag:,} logs not in the mirror yet" if lag else names)


def behind_cost(grouping: CostGrouping, key: str | None, days: int | None, now: float, zone: tzinfo) -> Facets | None:
    """What narrows the list to the conversations behind a line of the costs; ``None`` where the list cannot.

    Costs count archived and delegated sessions too, so the list shows them, the dearest first. A conversation is of the
    day, or of the days, in which it was last active.
    """
    if key is None:
        return None
    if grouping == "day":
        since = parse_time(key, now, zone)
        # A day of 23 or 25 hours ends at the next midnight too.
        until = parse_time(day_of(since + 36 * UNITS["h"], zone), now, zone) - 1
        return Facets(since=since, until=until, when=f"last active {key}", archived=True, delegated=True, order="cost")
    start, when = (None, "") if days is None else (now - days * UNITS["d"], f"last {days} days")
    chosen = {"model": "model", "source": "source", "cwd": "cwd", "channel": "channel", "store": "store"}
    facets = Facets(since=start, when=when, archived=True, delegated=True, order="cost")
    if grouping == "profile":
        return replace(facets, agent="hermes", profile=key)
    if grouping not in chosen:
        return None
    return replace(facets, **{chosen[grouping]: key})  # type: ignore[arg-type]


def day_of(at: float, zone: tzinfo) -> str:
    """The local day of a time, as the costs name it."""
    return datetime.fromtimestamp(at, zone).date().isoformat()
