"""Inks: the names by which drawn lines ask for a colour, so that a theme reaches what we draw by hand.

A view makes :data:`Line` values, which are clean text and ink names; a widget paints them. Only clean text may be in
a run (design.md, rule 5).
"""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from hermes_tui.tui.cells import fit, width_of

Run = tuple[str, str]
"""Clean text, and ink names parted by spaces ('' for none)."""
Line = tuple[Run, ...]

INKS: Final = (
    "muted", "faint", "strong", "title", "accent", "good", "warn", "bad", "picked", "mark", "here", "head", "rule",
    "prompt", "reply", "reasoning", "tool", "summary", "context", "notice", "code", "key", "tab", "estimated",
    "keyword", "string", "comment", "number", "cursor", "blurred", "band", "quote", "curve",
)  # fmt: skip
COMPONENTS: Final = frozenset(f"ink--{name}" for name in INKS)
"""The inks as classes of the stylesheet."""


def line_width(line: Line) -> int:
    """Cells of a line."""
    return sum(width_of(text) for text, _ in line)


def spread(left: Line, right: Line, width: int) -> Line:
    """One line with a left and a right part, exactly ``width`` cells; the left part gives way."""
    space = width - line_width(right)
    if space < 4:
        return clip(left, width)
    if right and line_width(left) >= space:
        # A part that was cut must not run into the other one.
        return (*clip(left, space - 1), (" ", ""), *right)
    return (*clip(left, space), *right)


def clip(line: Line, width: int, ellipsis: str = "…") -> Line:
    """The line in exactly ``width`` cells: padded, or cut with an ellipsis."""
    runs: list[Run] = []
    room = width
    total = line_width(line)
    for text, ink in line:
        size = width_of(text)
        if size >= room and (size > room or total > width):
            runs.append(
                (fit(text, room, ellipsis=ellipsis) if size > room else fit(text + " ", room, ellipsis=ellipsis), ink)
            )
            return tuple(runs)
        runs.append((text, ink))
        room -= size
    if room:
        runs.append((" " * room, ""))
    return tuple(runs)


class Inked(Widget):
    """A widget that paints lines by ink names."""

    # Not COMPONENT_CLASSES: Textual would work out every ink of every such widget at each change of styles, 570 times
    # before the first list is there, a fifth of its time. An ink is worked out when something is drawn with it.
    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self._inks: dict[str, Style] = {}
        self._own_style: Style | None = None
        super().__init__(id=id, classes=classes)

    def render_lines(self, crop: Region) -> list[Strip]:
        """As Textual's; while it paints, the widget's own style is not worked out again for each line."""
        self._own_style = self.rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._own_style = None

    @property
    def own_style(self) -> Style:
        """Colours of the widget itself, on which inks are put: working them out takes longer than most lines."""
        return self.rich_style if self._own_style is None else self._own_style

    def notify_style_update(self) -> None:
        """Forget styles when the theme changes."""
        self._inks.clear()
        self._component_styles.clear()
        super().notify_style_update()

    def get_component_styles(self, *names: str) -> RenderStyles:
        """As Textual's; an ink nobody asked for yet is worked out now."""
        for name in names:
            if name in COMPONENTS and name not in self._component_styles:
                drop = DOMNode(classes=name)
                drop._attach(self)
                self.app.stylesheet.apply(drop)
                self._component_styles[name] = drop.styles
        return super().get_component_styles(*names)

    def ink(self, names: str) -> Style:
        """The style of these inks, without the widget's own background."""
        style = self._inks.get(names)
        if style is None:
            style = Style()
            for name in names.split():
                style += self._one(f"ink--{name}")
            self._inks[names] = style
        return style

    def _one(self, component: str) -> Style:
        whole = self.get_component_rich_style(component)
        partial = self.get_component_rich_style(component, partial=True)
        # The whole style has alpha blended away, the partial one tells which rules were set at all.
        colour = whole.color if partial.color is not None else None
        return Style(
            color=colour,
            bgcolor=whole.bgcolor if partial.bgcolor is not None else None,
            bold=partial.bold,
            dim=partial.dim,
            italic=partial.italic,
            underline=partial.underline,
            reverse=partial.reverse,
            strike=partial.strike,
        )

    def paint(self, line: Line, width: int, base: Style) -> Strip:
        """A strip of exactly ``width`` cells."""
        segments = [Segment(text, base + self.ink(ink) if ink else base) for text, ink in line if text]
        return Strip(segments).adjust_cell_length(width, base)

    def paint_flat(self, line: Line, width: int, style: Style) -> Strip:
        """The same in one style, where inks would not be readable."""
        return Strip([Segment("".join(text for text, _ in line), style)]).adjust_cell_length(width, style)

    @property
    def flat(self) -> bool:
        """Whether the theme has only the terminal's own colours, so that a cursor row is drawn in one style."""
        return self.app.theme.startswith("ansi")
