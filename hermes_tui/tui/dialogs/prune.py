"""Prune: which old sessions go, which stay and why; then asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import Binding, BindingType

from hermes_tui.library import cleanup
from hermes_tui.library.cleanup import ChangePlan
from hermes_tui.model import ListQuery
from hermes_tui.stores.changing import PruneRule
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.dialogs.change import ChangeDialog
from hermes_tui.tui.formats import DAY

if TYPE_CHECKING:
    from hermes_tui.library.sources import Library

AGES: Final = (7, 30, 60, 90, 180, 365)
"""Days since the last activity."""
IDLE_DAYS: Final = 30


class PruneDialog(ChangeDialog):
    """The table of prune, with the rule changed by keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,greater_than_sign,right", "older", "Older", show=False),
        Binding("minus,less_than_sign,left", "younger", "Younger", show=False),
        Binding("e", "idle", "End idle ones", show=False),
    ]

    def __init__(self, desk: Desk, query: ListQuery) -> None:
        super().__init__(desk, "prune", [])
        self._query = query
        self._days = 90
        self._end_idle = False

    def heading(self) -> str:
        ending = f", ending those idle over {IDLE_DAYS} days first" if self._end_idle else ""
        return f"Prune what was not active for {self._days} days{ending}"

    def planner(self, library: Library) -> Callable[[], ChangePlan]:
        rule = PruneRule(self._days * DAY, self._query, IDLE_DAYS * DAY if self._end_idle else None)
        now = self.desk.clock()
        return lambda: cleanup.plan_prune(library, rule, now=now)

    def keys(self) -> list[tuple[str, str]]:
        keys = super().keys()
        if self._result is None:
            keys += [
                ("- +", "days"),
                ("e", "leave idle ones" if self._end_idle else f"end those idle over {IDLE_DAYS} days"),
            ]
        return keys

    def _again(self) -> None:
        if self._result is None:
            self.refresh_heading()
            self.make_plan()

    def _step(self, step: int) -> None:
        at = min(range(len(AGES)), key=lambda n: abs(AGES[n] - self._days)) + step
        self._days = AGES[max(0, min(at, len(AGES) - 1))]
        self._again()

    def action_older(self) -> None:
        self._step(1)

    def action_younger(self) -> None:
        self._step(-1)

    def action_idle(self) -> None:
        self._end_idle = not self._end_idle
        self._again()
