"""Narrowing the list: what there is to choose from, and what is left out by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.worker import get_current_worker

from hermes_tui.library.cost import cost_report
from hermes_tui.library.sources import Library
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line
from hermes_tui.tui.cells import fit
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.dialogs.base import Dialog
from hermes_tui.tui.inks import Line
from hermes_tui.tui.views.facets import ORDERS, Facets
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

MOST_VALUES: Final = 40
"""Values offered of one facet, the most used first; the filter line finds the others."""
COUNTED: Final = ("source", "model", "channel")
"""Facets whose values are found by adding up usage, in a thread."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One line: a heading, or a value that may be on."""

    facet: str
    value: str | bool | None
    label: str
    """Clean."""
    heading: bool = False


class FacetsDialog(Dialog[Facets]):
    """Choose; Enter or Space switches a value on or off, Escape closes and applies."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "switch", "Switch", show=False)]

    @dataclass
    class ValuesRead(Message):
        """What a facet can be."""

        facet: str
        values: Sequence[tuple[str | None, int]]

    def __init__(self, desk: Desk, facets: Facets, tags: Sequence[str] = ()) -> None:
        super().__init__()
        self._desk = desk
        self._facets = self._given = facets
        self._tags = tags
        self._values: dict[str, Sequence[tuple[str | None, int]]] = {}
        self._choices: list[Choice] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            yield StillLines(id="title")
            yield LineList()
            yield StillLines(id="hint")

    def on_mount(self) -> None:
        self.query_one("#title", StillLines).show(lambda _: [(("What the list shows", "title"),), ()])
        self.query_one("#hint", StillLines).show(
            lambda _: [
                (),
                (
                    ("Enter", "key"),
                    (" switch  ", "muted"),
                    ("x", "key"),
                    (" show all  ", "muted"),
                    ("Esc", "key"),
                    (" done", "muted"),
                ),
            ]
        )
        self._show()
        self.query_one(LineList).focus()
        if self._desk.library is not None:
            self._count(self._desk.library)

    @work(thread=True, exclusive=True, group="facets", exit_on_error=False, description="Finding what there is")
    def _count(self, library: Library) -> None:
        worker = get_current_worker()
        for facet in COUNTED:
            report = cost_report(library, facet, None, None, self._desk.zone, "")
            if worker.is_cancelled:
                return
            rows = sorted(report.rows, key=lambda row: -(row.sessions or 0))[:MOST_VALUES]
            self.post_message(self.ValuesRead(facet, [(row.key, row.sessions or 0) for row in rows if row.key]))

    @on(ValuesRead)
    def _values_read(self, event: ValuesRead) -> None:
        self._values[event.facet] = event.values
        self._show()

    def _show(self) -> None:
        library = self._desk.library
        stores = library.stores if library is not None else ()
        agents = dict.fromkeys(store.ref.agent for store in stores)
        profiles = dict.fromkeys(store.ref.profile or "default" for store in stores if store.ref.agent == "hermes")
        choices: list[Choice] = [
            Choice("", None, "left out by default", heading=True),
            Choice("archived", True, "archived conversations"),
            Choice("delegated", True, "delegated runs"),
            Choice("", None, "listed by default", heading=True),
            Choice("automated", False, "hide runs started by cron, webhook or tool"),
            Choice("pinned", True, "only what is pinned"),
            Choice("", None, "order", heading=True),
            *(Choice("order", order, f"by {order}") for order in ORDERS),
        ]
        elsewhere = [
            (name, getattr(self._given, name)) for name in ("when", "store", "cwd") if getattr(self._given, name)
        ]
        if elsewhere:
            choices.append(Choice("", None, "narrowed to", heading=True))
            choices += [Choice(name, value, clean_line(value)) for name, value in elsewhere]
        if len(agents) > 1:
            choices += [Choice("", None, "agent", heading=True), *(Choice("agent", agent, agent) for agent in agents)]
        if len(profiles) > 1:
            choices.append(Choice("", None, "profile", heading=True))
            choices += [Choice("profile", name, clean_line(name)) for name in profiles]
        if self._tags:
            choices.append(Choice("", None, "tag", heading=True))
            choices += [Choice("tag", tag, f"#{clean_line(tag)}") for tag in self._tags]
        for facet in COUNTED:
            values = self._values.get(facet)
            if values:
                choices.append(Choice("", None, facet, heading=True))
                choices += [
                    Choice(facet, key, f"{fit(clean_line(key or ''), 44)} {number:>8,}") for key, number in values
                ]
        self._choices = choices
        rows = self.query_one(LineList)
        rows.styles.height = min(len(choices), max(8, int(self.size.height * 0.9) - 8))
        rows.show(
            len(choices),
            self._draw,
            cursor=max(1, rows.cursor),
            may_stand=lambda item: not choices[item].heading,
            keep=True,
        )

    def _on(self, choice: Choice) -> bool:
        return bool(getattr(self._facets, choice.facet) == choice.value)

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        choice = self._choices[item]
        glyphs = self._desk.glyphs
        if choice.heading:
            return ((f" {choice.label}", "head"),)
        on_ = self._on(choice)
        return (
            (glyphs.cursor if cursor else " ", "accent"),
            (f" [{glyphs.picked if on_ else ' '}] ", "picked" if on_ else "muted"),
            (fit(choice.label, max(0, width - 6)), "strong" if on_ else ""),
        )

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        self.action_switch()

    def action_switch(self) -> None:
        rows = self.query_one(LineList)
        choice = self._choices[rows.cursor]
        off: str | bool | None = None if not isinstance(choice.value, bool) else not choice.value
        if choice.facet == "order":
            off = choice.value
        if choice.facet == "when":
            on_ = self._on(choice)
            since, until = (None, None) if on_ else (self._given.since, self._given.until)
            self._facets = replace(self._facets, since=since, until=until, when="" if on_ else self._given.when)
            rows.refresh()
            return
        self._facets = replace(self._facets, **{choice.facet: off if self._on(choice) else choice.value})  # type: ignore[arg-type]
        rows.refresh()

    def key_x(self) -> None:
        """Take every narrowing away."""
        self._facets = Facets(order=self._facets.order, text=self._facets.text, archived=True, delegated=True)
        self.query_one(LineList).refresh()

    def action_close(self) -> None:
        self.dismiss(self._facets)
