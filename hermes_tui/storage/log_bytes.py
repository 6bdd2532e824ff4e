"""The bytes of a log file, plain or zstd, with the reason where they end too soon."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, cast

import zstandard

FIRST_BLOCK: Final = 64 << 10
"""Bytes of the first read: enough for a peek, cheap when only the first line is wanted."""
BLOCK: Final = 1 << 20
"""Bytes of every later read."""
LINE_BUFFER: Final = 128 << 10
"""Bytes read at a time when lines are cut: fits the processor's cache, and a peek costs one read."""
ZSTD_INPUT: Final = 4 << 10
"""Bytes of compressed input at a time: even the densest frame makes no more than 128 MiB of it."""
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""Bytes 1 to 3 of a skippable frame; the first is 50 to 5F."""


class Blocks(Protocol):
    """Bytes in blocks of any size."""

    def read(self) -> bytes: ...


class Source(Blocks, Protocol):
    """The bytes of a log; ``problem`` is set when they ended before they should."""

    problem: str | None

    def reader(self) -> io.BufferedReader: ...
    def damaged(self) -> tuple[int, int] | None:
        """Where the damage lies that was passed: the line and the bytes before it; ``None``: reading ended there."""
        ...


class Seekable(Protocol):
    """A file, or a decompressed copy of one."""

    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = ..., /) -> int: ...
    def tell(self) -> int: ...


class PlainSource:
    """A file from an offset on, in large blocks."""

    def __init__(self, file: Seekable, offset: int) -> None:
        self.problem: str | None = None
        self._file = file
        self._size = FIRST_BLOCK
        file.seek(offset)

    def read(self) -> bytes:
        try:
            block = self._file.read(self._size)
        except OSError as error:
            self.problem = f"reading stopped: {error.strerror or error}"
            return b""
        self._size = BLOCK
        return block

    def reader(self) -> io.BufferedReader:
        return io.BufferedReader(cast(io.RawIOBase, self._file), LINE_BUFFER)

    def damaged(self) -> tuple[int, int] | None:
        return None


class ZstdSource(io.RawIOBase):
    """The decompressed bytes of many frames, from an offset on.

    Behind a damaged frame it goes on with the next one, in a new line: the frames of a log are written one by one.
    """

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self.problem: str | None = None
        self._file = file
        self._skip = offset
        self._context = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._pending = b""
        self._unread = memoryview(b"")
        self._given = 0
        """Bytes that were unpacked, those passed over too."""
        self._damage: str | None = None
        self._damaged_at = 0
        self._lost: bytes | None = None
        """Behind damage: the last bytes that were looked at, for the next frame may begin in them."""
        self._in_line = False
        file.seek(0)

    def readable(self) -> bool:
        return True

    def reader(self) -> io.BufferedReader:
        return io.BufferedReader(self, LINE_BUFFER)

    def damaged(self) -> tuple[int, int] | None:
        if self._damage is None:
            return None
        # Unpacked once more, for sound logs need not count their lines here.
        before = Bounded(ZstdSource(self._file, 0), self._damaged_at)
        return newlines(before) + 1, self._damaged_at

    def readinto(self, buffer: Any, /) -> int:
        """As much as fits; the rest is kept for the next time."""
        block = self._unread or memoryview(self.read())
        length = min(len(buffer), len(block))
        buffer[:length] = block[:length]
        self._unread = block[length:]
        return length

    def read(self, size: int = -1, /) -> bytes:  # noqa: ARG002 - RawIOBase's form
        """The next block, whatever its size; b'' at the end."""
        while True:
            block = self._some()
            if block is None:
                return b""
            self._given += len(block)
            if self._skip:
                dropped = min(self._skip, len(block))
                self._skip -= dropped
                block = block[dropped:]
            if block:
                return block

    def _some(self) -> bytes | None:
        """The output of one piece of input, which may be empty; ``None`` at the end."""
        if self.problem is not None:
            return None
        try:
            compressed = self._pending or self._file.read(ZSTD_INPUT)
        except OSError as error:
            self.problem = f"reading stopped: {error.strerror or error}"
            return None
        self._pending = b""
        if not compressed:
            cut = "the last compressed frame is cut short" if self._frame is not None else None
            self.problem = self._damage or cut
            return None
        return self._unpacked(compressed) if self._lost is None else self._found_again(compressed)

    def _unpacked(self, compressed: bytes) -> bytes:
        begins = self._frame is None
        frame = self._frame or self._context.decompressobj()
        try:
            block = frame.decompress(compressed)
        except zstandard.ZstdError as error:
            if self._damage is None:
                self._damage, self._damaged_at = f"the compressed data is damaged: {error}", self._given
            self._frame, self._lost = None, b""
            return self._found_again(compressed[1:] if begins else compressed)
        self._frame = frame
        if frame.eof:
            self._pending = frame.unused_data
            self._frame = None
        if block:
            self._in_line = block[-1:] != b"\n"
        return block

    def _found_again(self, compressed: bytes) -> bytes:
        """Look for the next frame; what the damaged one gave of a line ends there."""
        data = (self._lost or b"") + compressed
        at = data.find(ZSTD_MAGIC)
        if at < 0:
            self._lost = data[1 - len(ZSTD_MAGIC) :]
            return b""
        self._pending, self._lost = data[at:], None
        between, self._in_line = b"\n" if self._in_line else b"", False
        return between


class Bounded:
    """A source that ends after so many bytes, as if the power had gone there."""

    def __init__(self, source: Source, left: int) -> None:
        self.problem: str | None = None
        self._source = source
        self._left = left

    def read(self) -> bytes:
        if self._left <= 0:
            return b""
        block = self._source.read()[: self._left]
        if not block:
            self.problem = self._source.problem
        self._left -= len(block)
        return block


def open_log(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file; without waiting for the other end of a pipe that calls itself a log."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, "not a regular file", str(Path(path)))
        return os.fdopen(handle, "rb", buffering=0)
    except OSError:
        os.close(handle)
        raise


def blocks_of(path: str | os.PathLike[str], longest: int) -> Iterator[bytes]:
    """The bytes of a log as they are on disk, for a look for something that is at most so long.

    Each block begins with the end of the one before. Nothing is mapped into memory: a log that is cut meanwhile would
    end the program.

    Raises:
        OSError: the file cannot be opened or read, or is none.
    """
    with open_log(path) as file:
        before = b""
        while block := file.read(BLOCK):
            block = before + block
            yield block
            before = block[-longest:]


def read_at(handle: int, length: int, offset: int) -> bytes:
    """At most so many bytes at an offset; moves the handle where the system has no other way (Windows).

    Raises:
        OSError: they cannot be read.
    """
    if hasattr(os, "pread"):
        return os.pread(handle, length, offset)
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, length)


def is_zstd(file: BinaryIO) -> bool:
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    return magic == ZSTD_MAGIC or (len(magic) == 4 and magic[1:] == ZSTD_SKIPPABLE and 0x50 <= magic[0] <= 0x5F)


def source_of(file: BinaryIO, offset: int) -> Source:
    return ZstdSource(file, offset) if is_zstd(file) else PlainSource(file, offset)


def exactly(source: Blocks, length: int) -> bytes:
    pieces: list[bytes] = []
    while length > 0 and (block := source.read()):
        pieces.append(block[:length])
        length -= len(pieces[-1])
    return b"".join(pieces)


def newlines(source: Blocks) -> int:
    count = 0
    while block := source.read():
        count += block.count(b"\n")
    return count
