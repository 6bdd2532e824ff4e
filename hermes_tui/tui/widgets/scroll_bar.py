"""The scroll bar without UTF-8: Textual ends its bars with pieces of blocks."""

from __future__ import annotations

from textual.scrollbar import ScrollBarRender


class PlainScrollBar(ScrollBarRender):
    """Whole cells only, told apart by reverse video."""

    VERTICAL_BARS = [" "]  # noqa: RUF012 - Textual's own form
    HORIZONTAL_BARS = [" "]  # noqa: RUF012
