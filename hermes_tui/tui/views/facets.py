"""What the list is narrowed to, and how that reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hermes_tui.model import ListOrder, ListQuery
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.glyphs import Glyphs

ORDERS: Final[tuple[ListOrder, ...]] = ("activity", "started", "tokens", "cost", "messages")


@dataclass(frozen=True, slots=True)
class Facets:
    """Narrowing by hand; ``None`` is any."""

    agent: str | None = None
    profile: str | None = None
    source: str | None = None
    model: str | None = None
    channel: str | None = None
    cwd: str | None = None
    archived: bool = False
    delegated: bool = False
    automated: bool = True
    pinned: bool = False
    """Pinned ones only."""
    tag: str | None = None
    order: ListOrder = "activity"
    text: str = ""

    def query(self) -> ListQuery:
        """As the stores take it; agent and profile choose stores instead."""
        return ListQuery(
            order=self.order,
            source=self.source,
            model=self.model,
            cwd=self.cwd,
            channel=self.channel,
            archived=self.archived,
            children=self.delegated,
            automated=self.automated,
            text=self.text,
        )

    @property
    def narrowed(self) -> bool:
        """Whether anything but the default filters is on."""
        chosen = (self.text, self.agent, self.profile, self.source, self.model, self.channel, self.cwd, self.tag)
        return any(chosen) or self.pinned or not self.automated


def summary(facets: Facets, glyphs: Glyphs) -> CleanText:
    """``agent any · model any · by activity``, with what else is chosen."""
    parts = [f"agent {facets.agent or 'any'}", f"model {clean_line(facets.model) if facets.model else 'any'}"]
    for name, value in (("profile", facets.profile), ("source", facets.source), ("channel", facets.channel)):
        if value:
            parts.append(f"{name} {clean_line(value)}")
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
