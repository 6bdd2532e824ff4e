"""A file that is there whole or not at all, and temporary places that never stay behind.

Their names are chosen before they are made: a signal can come right after the making, and must find what to remove.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from hermes_tui.locations import FILE_MODE

RANDOM_BYTES: Final = 8
"""Random bytes in the name of a temporary place: nobody can guess it, two never meet."""


def unused_name(folder: str | os.PathLike[str], ending: str = "") -> Path:
    """A path in this folder that nobody has, short enough for every file system; nothing is made there."""
    return Path(folder, f".hermes-tui-{os.urandom(RANDOM_BYTES).hex()}{ending}")


@contextmanager
def whole_file(path: Path) -> Iterator[TextIO]:
    """A file beside ``path`` that takes its name when all is written, and vanishes when something fails.

    Lone surrogates of a store cannot be UTF-8: they are written as their escape.

    Raises:
        OSError: it cannot be made, written or renamed.
    """
    # A name of its own: one made from a long name would be too long.
    part = unused_name(path.parent, ".part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), FILE_MODE)
        with open(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:  # noqa: PTH123
            yield file
            file.flush()
            os.fsync(file.fileno())
        # However wide the umask is.
        part.chmod(FILE_MODE)
        part.replace(path)
    except BaseException:
        # An interrupt and a caller that stops half way too: half a file must not stay behind.
        part.unlink(missing_ok=True)
        raise
