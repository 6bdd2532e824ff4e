"""Lines that stand still: headings, status, totals, previews."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.geometry import Size
from textual.strip import Strip

from hermes_tui.tui.inks import Inked, Line

LinesAt = Callable[[int], Sequence[Line]]
"""The lines for a width in cells."""


class StillLines(Inked):
    """Draws the lines a view gives for its width; as high as they are when its height is ``auto``."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._at: LinesAt = _nothing
        self._drawn: tuple[int, Sequence[Line]] = (-1, ())

    def show(self, view: LinesAt) -> None:
        """Draw something else."""
        before = len(self._lines(self.size.width))
        self._at = view
        self._drawn = (-1, ())
        if len(self._lines(self.size.width)) != before:
            self.refresh(layout=True)
        else:
            self.refresh()

    def _lines(self, width: int) -> Sequence[Line]:
        if self._drawn[0] != width:
            self._drawn = (width, self._at(width) if width > 0 else ())
        return self._drawn[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """As many lines as the view gives."""
        return max(1, len(self._lines(width)))

    def get_content_width(self, container: Size, viewport: Size) -> int:  # noqa: ARG002
        """All there is."""
        return container.width

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.own_style
        lines = self._lines(width)
        if y >= len(lines):
            return Strip.blank(width, base)
        return self.paint(lines[y], width, base)

    @property
    def texts(self) -> list[str]:
        """What is drawn, without inks."""
        return ["".join(text for text, _ in line) for line in self._lines(self.size.width)]


def _nothing(_width: int) -> Sequence[Line]:
    return ()
