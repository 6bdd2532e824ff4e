"""Whether a database can have changed, told by stat alone."""

from __future__ import annotations

import os

Stat = tuple[int, int, int, int]
FileStamp = tuple[Stat | None, Stat | None, Stat | None, Stat | None]
"""Database, -wal, -shm, -journal: device, inode, size, modification time in ns; ``None``: not there."""


def file_stamp(path: str | os.PathLike[str]) -> FileStamp:
    """Inode, size and times of a database and what lies beside it; equal while nothing was written.

    Four stat calls, nothing is opened.
    """
    return stamp_of(os.path.realpath(path))


def stamp_of(real: str) -> FileStamp:
    """The same for a path that is no symbolic link."""
    shm = stat_of(real + "-shm")
    # Readers note their place in the -shm, ours too, and that moves its time: what counts is whether it is there.
    place = shm and (*shm[:3], 0)
    return (stat_of(real), stat_of(real + "-wal"), place, stat_of(real + "-journal"))


def stat_of(path: str) -> Stat | None:
    """One file; ``None`` where there is none or it may not be looked at."""
    try:
        found = os.stat(path)  # noqa: PTH116 - four of them a statement: a Path each is felt
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
