"""Lines that are asked for one after the other: giant ones in pieces, those of compressed logs from what lies ahead."""

from __future__ import annotations

import codecs
from typing import Final

from hermes_tui.storage.jsonl import Record, line_bytes, line_in, read_piece
from hermes_tui.stores.protocol import TEXT_PIECE

AHEAD: Final = 16 << 20
"""Bytes of a compressed log read at once: there is no way to a place in it but through all before."""
PACKED: Final = (".zst", ".zstd")


class PackedLines:
    """Lines of one compressed log by their places; what was unpacked for one is kept for those behind it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._begin = 0
        self._held = b""

    def record(self, offset: int, length: int, line: int) -> Record:
        """The line at this place.

        Raises:
            OSError: the file cannot be read.
        """
        needed = line_bytes(length)
        # The byte behind the last line of a log is not there: less than was asked for is the end.
        if not self._begin <= offset or offset + needed > self._begin + len(self._held):
            self._begin, self._held = offset, read_piece(self.path, offset, max(needed, AHEAD))
        start = offset - self._begin
        return line_in(self._held[start : start + needed], offset, length, line)


class GiantText:
    """One giant line as it stands in the log; what was read for a piece is not read again for the next one."""

    def __init__(self, path: str, offset: int, size: int) -> None:
        self.place = (path, offset)
        self._path = path
        self._offset = offset
        self._size = size
        self._block = AHEAD if path.endswith(PACKED) else TEXT_PIECE
        self._restart()

    def _restart(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = 0
        """Bytes of the line read so far."""
        self._begin = 0
        """The number of the first character that is held."""
        self._held = ""

    def piece(self, start: int, length: int) -> str:
        """So many characters from one on; fewer at the end of the line.

        Raises:
            OSError: the file cannot be read.
        """
        if start < self._begin:
            self._restart()
        while self._begin + len(self._held) < start + length and self._more():
            if self._begin + len(self._held) <= start:
                self._drop(len(self._held))
        self._drop(min(start - self._begin, len(self._held)))
        return self._held[:length]

    def _drop(self, count: int) -> None:
        self._held = self._held[count:]
        self._begin += count

    def _more(self) -> bool:
        block = read_piece(self._path, self._offset + self._read, min(self._block, self._size - self._read))
        self._read += len(block)
        self._held += self._decoder.decode(block, final=not block or self._read >= self._size)
        return bool(block)
