"""The complete lines of a plain log in large blocks: for readers that tell most lines by their first bytes.

What is not a usual line ends the blocks and is left to :func:`hermes_tui.storage.jsonl.read_records`: a compressed log,
a line longer than :data:`GIANT_LINE`, a line without its newline, an error of the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from hermes_tui.storage.jsonl import GIANT_LINE
from hermes_tui.storage.log_bytes import is_zstd, open_log

LINES_BLOCK: Final = 1 << 20
"""Bytes of one read: few calls, and the lines cut from it stay in the processor's cache."""


class Lines(NamedTuple):
    """Lines that follow each other, without their newlines."""

    raws: list[bytes]
    line: int
    """The number of the first."""
    offset: int
    """Where the first begins, bytes from the start."""
    end: int
    """Where the line after the last begins."""
    last: bool = False
    """The log ends there."""


def read_lines(
    path: str | os.PathLike[str], *, offset: int = 0, line: int = 1, end: int | None = None
) -> Iterator[Lines]:
    """Read a log forward, as far as it is usual; the rest begins where the last block ended.

    Args:
        path: the log.
        offset: bytes to pass over; must be where a line begins.
        line: the number of the line at ``offset``.
        end: the log is read as if it ended after so many bytes.

    Raises:
        OSError: the file cannot be opened or is none.
    """
    with open_log(path) as file:
        if is_zstd(file):
            return
        file.seek(offset)
        carry, at = b"", offset

        def following() -> bytes | None:
            return _read(file, LINES_BLOCK if end is None else min(LINES_BLOCK, end - at))

        block = following()
        while block:
            at += len(block)
            raws, carry = _cut(carry + block if carry else block)
            block = following()
            if raws:
                if max(map(len, raws)) > GIANT_LINE:
                    return
                after = offset + sum(map(len, raws)) + len(raws)
                yield Lines(raws, line, offset, after, block == b"" and not carry)
                line, offset = line + len(raws), after
            if len(carry) > GIANT_LINE:
                return


def _cut(block: bytes) -> tuple[list[bytes], bytes]:
    """The lines of a block, and what follows the last newline. ``bytes.split`` looks at each byte by itself."""
    raws: list[bytes] = []
    find, take, start = block.find, raws.append, 0
    while (end := find(b"\n", start)) >= 0:
        take(block[start:end])
        start = end + 1
    return raws, block[start:]


def _read(file: BinaryIO, size: int) -> bytes | None:
    try:
        return file.read(size) if size > 0 else b""
    except OSError:
        # Whoever reads the rest meets the error again and tells it.
        return None
