"""Fitting clean text into terminal cells: exact widths, aligned columns, wrapping.

Widths are those of ``rich.cells``, the table Textual draws by. Measured: hand-written wrapping is a hundred times
cheaper than textwrap or ``Content.wrap`` (facts/textual.md, section 3).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from rich.cells import cell_len, get_character_cell_size, set_cell_size

Align = Literal["left", "right"]
Range = tuple[int, int]
_VARIATION = "\ufe0f"


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    # A variation selector may turn the sign before it two cells wide: counted as one, a line is never too long.
    return 1 if character == _VARIATION else get_character_cell_size(character)


def width_of(text: str) -> int:
    """Cells this text takes."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, align: Align = "left", ellipsis: str = "…") -> str:
    """Exactly ``width`` cells: padded, or cut with an ellipsis. The text has no line break."""
    if width <= 0:
        return ""
    size = width_of(text)
    if size > width:
        return set_cell_size(text, width - 1) + ellipsis
    padding = " " * (width - size)
    return padding + text if align == "right" else text + padding


def fit_end(text: str, width: int, ellipsis: str = "…") -> str:
    """As :func:`fit`; of a text that is too long the end, which tells a path from others beside it."""
    if width <= 0 or width_of(text) <= width:
        return fit(text, width)
    shown = text
    while width_of(shown) > width - 1:
        shown = shown[max(1, (width_of(shown) - width) // 2) :]
    return fit(ellipsis + shown, width)


def wrap(text: str, width: int) -> list[Range]:
    """Where the lines of this text begin and end when no line may be wider than ``width`` cells.

    Breaks after a space where there is one, else anywhere; line breaks of the text are kept. Never empty.
    """
    width = max(2, width)
    ranges: list[Range] = []
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if len(line) <= width and (line.isascii() or cell_len(line) <= width):
            ranges.append((start, end))
        elif line.isascii():
            _wrap_ascii(text, start, end, width, ranges)
        else:
            _wrap_wide(text, start, end, width, ranges)
        start = end + 1
    return ranges


def _wrap_ascii(text: str, start: int, end: int, width: int, ranges: list[Range]) -> None:
    while end - start > width:
        space = text.rfind(" ", start + 1, start + width + 1)
        cut = space if space > start else start + width
        ranges.append((start, cut))
        start = cut + 1 if cut == space else cut
    ranges.append((start, end))


def _wrap_wide(text: str, start: int, end: int, width: int, ranges: list[Range]) -> None:
    used = 0
    space = -1
    position = start
    while position < end:
        character = text[position]
        size = _width(character)
        if used + size > width:
            if character == " ":
                ranges.append((start, position))
                start = position + 1
            elif space > start:
                ranges.append((start, space))
                start = space + 1
            else:
                ranges.append((start, position))
                start = position
            used = sum(map(_width, text[start:position]))
            space = -1
            if start > position:
                position += 1
                continue
        if character == " ":
            space = position
        used += size
        position += 1
    ranges.append((start, end))
