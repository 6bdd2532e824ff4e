"""The stream a screen is drawn on: what it cannot show is replaced cell by cell, and its file number is lent."""

from __future__ import annotations

import codecs
import sys
from typing import Final

from rich.cells import get_character_cell_size

REPLACED: Final = "hermes-tui-cells"
"""Name of the way to handle signs that an encoding does not have."""
_LINES: Final = {
    **dict.fromkeys("─━═▔▁▂▃╌┄┈", "-"),
    **dict.fromkeys("│┃║▏▎▍▌▐▕", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝", "+"),
    **dict.fromkeys("█▇▆▅▄▓", "#"),
    "…": ".",
    "·": "-",
}
"""Frames and bars of dialogs that we do not draw ourselves."""


def replace_by_cells(error: UnicodeError) -> tuple[str, int]:
    """As many ASCII signs as the text takes cells (facts/textual.md, section 6).

    Raises:
        UnicodeError: it is not about writing.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_LINES.get(sign) or "?" * get_character_cell_size(sign) for sign in text), error.end


def keep_cells() -> None:
    """Make the stream Textual draws on replace by cells where it has no UTF-8."""
    stream = sys.__stderr__
    reconfigure = getattr(stream, "reconfigure", None)
    if stream is not None and reconfigure is not None and "utf" not in (stream.encoding or "").lower():
        codecs.register_error(REPLACED, replace_by_cells)
        reconfigure(errors=REPLACED)


def lend_stderr() -> None:
    """Give the stream that Textual puts in the place of stderr the file number of the real one.

    Its own is -1, and multiprocessing cannot start a process with that: the mirror would never be filled.
    """
    try:
        number = sys.stderr.fileno()
    except (OSError, ValueError):
        return
    if number < 0 and sys.__stderr__ is not None:
        sys.stderr.fileno = sys.__stderr__.fileno  # type: ignore[method-assign]
