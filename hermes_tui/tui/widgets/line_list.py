"""A list of ready lines: for screens whose rows are few and drawn by a view."""

from __future__ import annotations

from collections.abc import Callable

from hermes_tui.tui.heights import EvenHeights
from hermes_tui.tui.inks import Line
from hermes_tui.tui.widgets.virtual_list import VirtualList

DrawLine = Callable[[int, int, bool], Line]
"""Item, width, whether the cursor is on it."""


class LineList(VirtualList):
    """Rows of one line each, drawn by a function of the owner."""

    def __init__(self, *, id: str = "list") -> None:
        super().__init__(id=id)
        self._draw_line: DrawLine = _blank
        self._may_stand: Callable[[int], bool] | None = None

    def show(
        self,
        number: int,
        draw: DrawLine,
        *,
        cursor: int = 0,
        may_stand: Callable[[int], bool] | None = None,
        keep: bool = False,
    ) -> None:
        """Show other rows."""
        self._draw_line = draw
        self._may_stand = may_stand
        self.set_items(EvenHeights(number), cursor, keep_place=keep and bool(number))

    def draw(self, item: int, part: int, width: int) -> Line:  # noqa: ARG002 - rows have one line
        return self._draw_line(item, width, item == self.cursor)

    def pickable(self, item: int) -> bool:
        return self._may_stand is None or self._may_stand(item)


def _blank(_item: int, _width: int, _cursor: bool) -> Line:
    return ()
