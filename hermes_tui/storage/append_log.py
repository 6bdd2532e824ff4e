"""An append-only log of ours: one fact a line, on disk before anything else happens (the gate of issue 6)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hermes_tui.locations import FILE_MODE, private_folder
from hermes_tui.storage.any_json import dump_json
from hermes_tui.storage.errors import WriteFailed
from hermes_tui.storage.jsonl import Record, read_records

if os.name == "posix":
    import fcntl

_FLAGS: Final = os.O_CREAT | os.O_APPEND | os.O_RDWR | getattr(os, "O_BINARY", 0)


class AppendLog:
    """A JSON Lines file that several processes may append to.

    What :meth:`append` returned from is on disk. A line broken off by a crash is closed by a newline at the next
    append, so that it stays a damaged line of its own: nothing is ever cut away.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, value: object) -> int:
        """Write one fact, flush and fsync it.

        Returns:
            Bytes from the start of the log to the line.

        Raises:
            WriteFailed: the disk is full, or the log may not be written; nothing of it counts.
        """
        return self.append_all([value])

    def append_all(self, values: list[object]) -> int:
        """The same for several facts: one write, one fsync. After a crash the first of them may be there alone."""
        lines = b"".join(dump_json(value) + b"\n" for value in values)
        try:
            return self._append(lines)
        except OSError as error:
            raise WriteFailed(str(self.path), error.strerror or str(error), "Make room or mend the folder.") from error

    def read(self) -> Iterator[Record]:
        """Every line in order, damaged ones with their problem; nothing when there is no log yet."""
        if self.path.exists():
            yield from read_records(self.path)

    def repair(self) -> bool:
        """Close a line that was broken off; True when there was one.

        Raises:
            WriteFailed: the log may not be written.
        """
        if not self.path.exists():
            return False
        try:
            handle = os.open(self.path, _FLAGS, FILE_MODE)
            try:
                _lock(handle)
                return _close_line(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise WriteFailed(str(self.path), error.strerror or str(error)) from error

    def _append(self, lines: bytes) -> int:
        new = not self.path.exists()
        private_folder(self.path.parent)
        handle = os.open(self.path, _FLAGS, FILE_MODE)
        try:
            # Two of us must not both find the same broken line, nor write between each other's pieces.
            _lock(handle)
            _close_line(handle)
            offset = os.fstat(handle).st_size
            _write_whole(handle, lines)
            os.fsync(handle)
        finally:
            os.close(handle)
        if new:
            _sync_folder(self.path.parent)
        return offset


def _lock(handle: int) -> None:
    """Wait for the other writer; the lock ends with the file handle, also when the process is killed."""
    if os.name == "posix":
        fcntl.flock(handle, fcntl.LOCK_EX)


def _close_line(handle: int) -> bool:
    size = os.fstat(handle).st_size
    if not size:
        return False
    os.lseek(handle, size - 1, os.SEEK_SET)
    if os.read(handle, 1) == b"\n":
        return False
    os.write(handle, b"\n")
    return True


def _write_whole(handle: int, data: bytes) -> None:
    """Write everything; a failure in the middle leaves a damaged line, which the next append closes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    """Put the new name on disk too: without it a power cut can lose the whole file."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
