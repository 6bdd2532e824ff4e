"""Texts on their way into the word index, in columns: thousands of them go from process to process in one piece.

Ids are made where the log is read, from the time of the line and the path of the log, so that the one writer need not
ask for each whether it is free; where two logs chose the same id, the writer gives new ones.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

TIME_SHIFT: Final = 9
"""Ids of texts are seconds * 512 + a running number, so that the index gives the newest first without sorting."""
SEATS: Final = 1 << TIME_SHIFT
_LATEST: Final = 1 << 40
_FIRST_SEATS: Final = 255
"""Where a log's running numbers begin, below this: logs written in the same second seldom want the same ids."""


IndexedText = tuple[int, int, int, str]
"""The smallest id of its second, the number of its line, the line's offset, the words. A bare tuple, because sorting
thousands of them is most of the work."""


class TextRows(NamedTuple):
    """The texts of a log, the smallest id first."""

    ids: Sequence[int]
    lines: Sequence[int]
    offsets: Sequence[int]
    words: Sequence[str]

    @property
    def since(self) -> int | None:
        """An id that none of them lies before, whichever seats of their seconds they get; ``None``: there are none."""
        return self.ids[0] >> TIME_SHIFT << TIME_SHIFT if self.ids else None


NO_ROWS: Final = TextRows((), (), (), ())


def base_of(at: float) -> int:
    """The smallest id of a second."""
    second = int(at)
    # Twice as quick as min and max, and asked for each text.
    return (second if 0 <= second <= _LATEST else 0 if second < 0 else _LATEST) << TIME_SHIFT


def rows_of(path: str, texts: list[IndexedText]) -> TextRows:
    """Put the texts of a log in order, in place, and give them their ids.

    Args:
        path: the log.
        texts: its texts in any order.
    """
    if not texts:
        return NO_ROWS
    texts.sort()
    bases, lines, offsets, words = zip(*texts, strict=True)
    seat = zlib.crc32(path.encode("utf-8", "surrogatepass")) % _FIRST_SEATS
    ids: list[int] = []
    last = -1
    for base in bases:
        last = base + seat if base + seat > last else last + 1
        ids.append(last)
    return TextRows(array("q", ids), array("q", lines), array("q", offsets), words)
