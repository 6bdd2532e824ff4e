"""Finding the file that holds a line another file begins with: a fork made after a compaction (facts section 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hermes_tui.storage.log_bytes import blocks_of
from hermes_tui.stores.logs import LogFile


def holder_of(uuid: str, log: LogFile, others: Sequence[LogFile]) -> str | None:
    """The log that has a line with this uuid, sessions of the same folder first; ``None`` when none has.

    A pass over bytes, no parsing; a quoted uuid of another field is no match.
    """
    folder = os.path.dirname(log.path)  # noqa: PTH120
    needles = (f'"uuid":"{uuid}"'.encode(), f'"uuid": "{uuid}"'.encode())
    near = sorted((other for other in others if other.path != log.path),
                  key=lambda other: (os.path.dirname(other.path) != folder, other.path))  # fmt: skip # noqa: PTH120
    for other in near:
        if other.size and _holds(other.path, needles):
            return other.path
    return None


def _holds(path: str, needles: Sequence[bytes]) -> bool:
    try:
        return any(block.find(needle) >= 0 for block in blocks_of(path, max(map(len, needles))) for needle in needles)
    except OSError:
        return False
