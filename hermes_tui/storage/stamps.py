"""Whether a database can have changed, and which file an entry of a folder is, told by stat alone."""

from __future__ import annotations

import os
from typing import Final

LISTED_WITH_INODES: Final = os.name != "nt"
"""Windows lists a folder without the numbers of its files: all of them would be one and the same."""
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


def database_evidence(path: str | os.PathLike[str]) -> tuple[str, int] | None:
    """What tells that the content of a database is what it was, and the last change of any of it in Unix nanoseconds.

    The time of the last change of status is part of it: unlike that of the content it cannot be set back. ``None``
    where there is no database, or where a write that was cut off lies beside it.
    """
    real = os.path.realpath(path)
    seen: list[tuple[int, ...] | None] = []
    newest = 0
    for end in ("", "-wal", "-journal"):
        try:
            found = os.stat(real + end)  # noqa: PTH116 - as above
        except OSError:
            found = None
        if found is None or (end and not found.st_size):
            # An empty -wal or -journal says the same as none: it comes and goes with whoever connects.
            seen.append(None)
            continue
        newest = max(newest, found.st_mtime_ns, found.st_ctime_ns)
        seen.append((found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return None if seen[0] is None or seen[2] is not None else (repr(seen), newest)


def entry_stat(entry: os.DirEntry[str]) -> os.stat_result:
    """One file of a folder, with device and inode on every system.

    Raises:
        OSError: it is gone or may not be looked at.
    """
    return entry.stat() if LISTED_WITH_INODES else os.stat(entry.path)  # noqa: PTH116


def stat_of(path: str) -> Stat | None:
    """One file; ``None`` where there is none or it may not be looked at."""
    try:
        found = os.stat(path)  # noqa: PTH116 - four of them a statement: a Path each is felt
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
