"""The complete lines of a plain log in large blocks: for readers that tell most lines by their first bytes.

What is not a usual line ends the blocks and is left to :func:`hermes_tui.storage.jsonl.read_records`: a compressed log,
a line longer than :data:`GIANT_LINE`, a line without its newline, an error of the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate, count
from typing import BinaryIO, Final, NamedTuple

from hermes_tui.storage.jsonl import GIANT_LINE
from hermes_tui.storage.log_bytes import is_zstd, open_log

LINES_BLOCK: Final = 1 << 20
"""Bytes of one read: few calls, and what is read stays in the processor's cache while it is looked at."""


class Lines(NamedTuple):
    """Lines that follow each other, in one piece."""

    block: bytes
    size: int
    """Bytes of the block that are whole lines, the last one's newline with them."""
    offset: int
    """Where the first begins, bytes from the start."""
    last: bool = False
    """The log ended there when it was opened."""

    @property
    def end(self) -> int:
        """Where the line after the last begins."""
        return self.offset + self.size

    def cut(self) -> list[bytes]:
        """Each of them with its newline; nothing else cuts as quickly."""
        raws = BytesIO(self.block).readlines()
        if self.size < len(self.block):
            del raws[-1]
        return raws


def placed(raws: Sequence[bytes], line: int, offset: int) -> Iterator[tuple[int, int, bytes]]:
    """Lines with their numbers and offsets, of which the first has these."""
    return zip(count(line), accumulate(map(len, raws), initial=offset), raws, strict=False)


def read_lines(path: str | os.PathLike[str], *, offset: int = 0, end: int | None = None) -> Iterator[Lines]:
    """Read a log forward, as far as it is usual; the rest begins where the last block ended.

    What is written to it meanwhile is not read. Lines are not counted: whoever cuts them knows how many they are, and
    counting takes as long as reading.

    Args:
        path: the log.
        offset: bytes to pass over; must be where a line begins.
        end: the log is read as if it ended after so many bytes.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        if is_zstd(file):
            return
        total = os.fstat(file.fileno()).st_size
        end = total if end is None else min(end, total)
        size = LINES_BLOCK
        while offset < end:
            # A line that a block cuts in two is read again with the next: cheaper than putting its pieces together.
            block = _read(file, offset, min(size, end - offset))
            whole = block.rfind(b"\n") + 1
            if not whole and len(block) == size <= GIANT_LINE:
                size *= 2
                continue
            lines = Lines(block, whole, offset, offset + whole == end)
            if not whole or (len(block) > GIANT_LINE and max(map(len, lines.cut())) > GIANT_LINE + 1):
                return
            yield lines
            offset, size = offset + whole, LINES_BLOCK


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    try:
        file.seek(offset)
        return file.read(size)
    except OSError:
        # Whoever reads the rest meets the error again and tells it.
        return b""
