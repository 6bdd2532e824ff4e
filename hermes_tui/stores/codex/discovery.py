"""Where Codex keeps its threads: homes, and the rollouts below one (facts/codex.md section 1). Opens nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.storage.stamps import entry_stat
from hermes_tui.stores.codex.rollout import looks_like_rollout, read_name
from hermes_tui.stores.log_source import LogFile

SESSIONS: Final = "sessions"
ARCHIVED: Final = "archived_sessions"
NAMES: Final = "session_index.jsonl"
LOCKS: Final = "thread-writer-locks"
STATE_NAME: Final = re.compile(r"^state_(\d+)\.sqlite$")
_NAME_OF: Final = attrgetter("name")
MOST_LOOKED_AT: Final = 2_000
"""Files and folders looked at before a folder counts as no Codex home."""
DEEPEST: Final = 32
"""Folders within folders that are walked."""


def default_home(environ: Mapping[str, str], home: Path) -> Path:
    """``CODEX_HOME``, else ``~/.codex``."""
    named = environ.get("CODEX_HOME", "").strip()
    return Path(named).expanduser() if named else home / ".codex"


def recognise(path: Path) -> bool:
    """Whether this is a Codex home, a folder of rollouts, or a single rollout; nothing is opened."""
    if path.is_file():
        return looks_like_rollout(path.name)
    try:
        names = [entry.name for entry in path.iterdir()]
    except OSError:
        return path.name == ".codex" and path.is_dir()
    if any(STATE_NAME.match(name) for name in names):
        return True
    if any(looks_like_rollout(name) for name in names):
        return True
    folders = [name for name in (SESSIONS, ARCHIVED) if name in names]
    if not folders:
        return False
    if path.name in (".codex", "codex", "dot-codex") or ARCHIVED in names or NAMES in names:
        return not any(name in names for name in ("state.db", "projects"))
    return any(_holds_rollouts(path / name) for name in folders)


def _holds_rollouts(folder: Path) -> bool:
    for count, entry in enumerate(_Walk().files(str(folder))):
        if looks_like_rollout(entry.name):
            return True
        if count > MOST_LOOKED_AT:
            break
    return False


@dataclass(slots=True)
class Found:
    """What a walk below a home met."""

    logs: list[LogFile] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Folders and files that could not be looked at, with the reason."""
    shadowed: list[str] = field(default_factory=list)
    """Compressed rollouts beside their plain form, which wins."""
    again: list[str] = field(default_factory=list)
    """Paths that lead to a file met before."""


def walk(home: str) -> Found:
    """Every rollout of a home, sorted by path.

    Raises:
        OSError: the home itself cannot be listed.
    """
    found = Found()
    if Path(home).is_file():
        _add(found, home, home.rpartition("/")[2], None, archived=False, seen=set())
        return found
    names = {entry.name for entry in Path(home).iterdir()}
    walker = _Walk(found)
    seen: set[tuple[int, int]] = set()
    for folder in (SESSIONS, ARCHIVED):
        if folder in names:
            for entry in walker.files(f"{home}/{folder}"):
                _add(found, entry.path, entry.name, entry, archived=folder == ARCHIVED, seen=seen)
    for name in sorted(names):
        _add(found, f"{home}/{name}", name, None, archived=False, seen=seen)
    _drop_shadowed(found)
    found.logs.sort(key=lambda log: log.path)
    return found


def _add(
    found: Found,
    path: str,
    name: str,
    entry: os.DirEntry[str] | None,
    *,
    archived: bool,
    seen: set[tuple[int, int]],
) -> None:
    if not looks_like_rollout(name):
        return
    try:
        # A Path for each of thousands of files costs more than the stat.
        stat = os.stat(path) if entry is None else entry_stat(entry)  # noqa: PTH116
    except OSError as error:
        found.unreadable[path] = error.strerror or str(error)
        return
    if not S_ISREG(stat.st_mode):
        found.unreadable[path] = "it is no file"  # a pipe would be waited for
        return
    key = (stat.st_dev, stat.st_ino)
    if key in seen:
        found.again.append(path)
        return
    seen.add(key)
    found.logs.append(LogFile(path, read_name(name).thread_id, stat.st_size, stat.st_mtime_ns, *key, archived))


def _drop_shadowed(found: Found) -> None:
    plain = {log.path for log in found.logs}
    packed = [log for log in found.logs if log.path.endswith(".zst") and log.path.removesuffix(".zst") in plain]
    found.shadowed.extend(log.path for log in packed)
    dropped = {log.path for log in packed}
    found.logs = [log for log in found.logs if log.path not in dropped]


class _Walk:
    """A walk that follows links, each folder once."""

    def __init__(self, found: Found | None = None) -> None:
        self._found = found
        self._folders: set[tuple[int, int]] = set()

    def files(self, folder: str, depth: int = 0) -> Iterator[os.DirEntry[str]]:
        """Every file below a folder, by name."""
        try:
            stat = os.stat(folder)  # noqa: PTH116
            key = (stat.st_dev, stat.st_ino)
            if key in self._folders or depth > DEEPEST:
                return
            self._folders.add(key)
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=_NAME_OF)
        except OSError as error:
            if self._found is not None:
                self._found.unreadable[folder] = error.strerror or str(error)
            return
        for entry in listed:
            if self._is_folder(entry):
                yield from self.files(entry.path, depth + 1)
            else:
                yield entry

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False


def held_locks(home: str) -> frozenset[str]:
    """Threads whose writer lock is held by a live process, as the kernel tells without a lock being taken.

    An existing lock file means nothing by itself (facts/codex.md section 1). Empty where the kernel does not tell.
    """
    folder = f"{home}/{LOCKS}"
    try:
        names = [entry.name for entry in Path(folder).iterdir()]
        held = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return frozenset()
    inodes = {line.split()[5].rpartition(":")[2] for line in held.splitlines() if len(line.split()) > 5}
    found = set()
    for name in names:
        try:
            if str(os.stat(f"{folder}/{name}").st_ino) in inodes:  # noqa: PTH116
                found.add(name.removesuffix(".lock"))
        except OSError:
            continue  # the lock file was removed since the folder was listed: nobody holds it
    return frozenset(found)
