"""Texts on their way into the word index, in columns: thousands of them go from process to process in one piece.

Ids are made where the log is read, from the time of the line and the path of the log, so that the one writer need not
ask for each whether it is free; where two logs chose the same id, the writer gives new ones.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

TIME_SHIFT: Final = 9
"""Ids of texts are seconds * 512 + a running number, so that the index gives the newest first without sorting."""
SEATS: Final = 1 << TIME_SHIFT
_LATEST: Final = 1 << 40
_FIRST_SEATS: Final = 255
"""Where a log's running numbers begin, below this: logs written in the same second seldom want the same ids."""


class IndexedText(NamedTuple):
    """One text for the word index and where its line lies."""

    line: int
    offset: int
    length: int
    at: float | None
    """When it was written, Unix seconds."""
    words: str


class TextRows(NamedTuple):
    """The texts of a log, the smallest id first."""

    ids: Sequence[int]
    lines: Sequence[int]
    offsets: Sequence[int]
    lengths: Sequence[int]
    words: Sequence[str]


NO_ROWS: Final = TextRows((), (), (), (), ())


def base_of(at: float) -> int:
    """The smallest id of a second."""
    return max(0, min(int(at), _LATEST)) << TIME_SHIFT


def rows_of(path: str, mtime: float, texts: Iterable[IndexedText]) -> TextRows:
    """Give texts their ids and put them in their order.

    Args:
        path: the log.
        mtime: its last change, Unix seconds: the time of texts that have none.
        texts: its texts in any order.
    """
    bases = [(base_of(mtime if text.at is None else text.at), text.line, text) for text in texts]
    if not bases:
        return NO_ROWS
    bases.sort(key=lambda item: item[:2])
    seat = zlib.crc32(path.encode("utf-8", "surrogatepass")) % _FIRST_SEATS
    ids: list[int] = []
    last = -1
    for base, _, _ in bases:
        last = base + seat if base + seat > last else last + 1
        ids.append(last)
    found = [text for _, _, text in bases]
    return TextRows(
        array("q", ids),
        array("q", [text.line for text in found]),
        array("q", [text.offset for text in found]),
        array("q", [text.length for text in found]),
        [text.words for text in found],
    )
