"""Which sessions a live Claude Code process says it has open: ``sessions/<pid>.json`` (facts section 1).

No lock is taken and no signal sent; a process is looked up by its number and by when it began.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

MOST_BYTES: Final = 65_536
LATE_SECONDS: Final = 120.0
"""A process that began so long after its mark was written is another one with the same number."""


def running_sessions(root: str) -> frozenset[str]:
    """The ids of sessions whose process lives."""
    return frozenset(_running(Path(root) / "sessions"))


def _running(folder: Path) -> Iterator[str]:
    try:
        marks = [mark for mark in folder.iterdir() if mark.suffix == ".json"]
    except OSError:
        return
    for mark in marks:
        said = _read(mark)
        session, pid = said.get("sessionId"), said.get("pid")
        if not isinstance(pid, int) and mark.stem.isdecimal():
            pid = int(mark.stem)
        if isinstance(session, str) and isinstance(pid, int) and _lives(pid, said):
            yield session


def _read(mark: Path) -> Mapping[str, object]:
    try:
        with mark.open("rb") as file:
            value = orjson.loads(file.read(MOST_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _lives(pid: int, said: Mapping[str, object]) -> bool:
    if not 0 < pid < 1 << 31 or sys.platform == "win32":
        # On Windows the same call would send Ctrl+C; there only recent activity tells.
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    ticks = _start_ticks(pid)
    given = said.get("procStart")
    if ticks is not None and isinstance(given, (str, int)) and str(given).isdecimal():
        return int(given) == ticks
    started = said.get("startedAt")
    began = _began_at(ticks)
    if began is None or isinstance(started, bool) or not isinstance(started, (int, float)):
        return True
    return began <= started / 1000 + LATE_SECONDS


def _start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did; ``None`` where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _began_at(ticks: int | None) -> float | None:
    """The same in Unix seconds."""
    if ticks is None:
        return None
    try:
        for line in Path("/proc/stat").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("btime "):
                return int(line.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return None
