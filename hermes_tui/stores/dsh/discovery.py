"""Where DSH sessions lie: homes, session roots, project and session folders, generations of one log.

Folder names are lossy for projects and only checked for sessions (facts/dsh.md section 2); what a session is says its
header. A root that mixes encodings stops the real program altogether; here the odd file is named and the rest is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.stamps import entry_stat
from hermes_tui.stores.logs import LogFile

SESSIONS: Final = "sessions"
NO_CWD: Final = "_no-cwd"
CACHE: Final = Path("storages") / "session_projcache"
_PROJECT: Final = re.compile(r"--.*--", re.DOTALL)
_LOG: Final = re.compile(r"session(?:\.v([1-9][0-9]{0,8}))?\.jsonl(\.zstd)?")
_ESCAPED: Final = re.compile(r"~([0-9A-F]{4})")


def log_generation(name: str) -> int | None:
    """The version a log's file name stands for; ``None`` for names no writer gives."""
    match = _LOG.fullmatch(name)
    return None if match is None else int(match[1] or 0)


def session_of_folder(name: str) -> SessionId:
    """The session a folder is for: ``~XXXX`` are UTF-16 units."""
    units = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)
    return SessionId(units.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def is_project(name: str) -> bool:
    """Whether a folder of a session root is named as the real program names those of projects; ``----`` is ``/``."""
    return name == NO_CWD or _PROJECT.fullmatch(name) is not None


@dataclass(slots=True)
class Walk:
    """What a walk of the session roots found."""

    logs: list[LogFile] = field(default_factory=list)
    older: list[str] = field(default_factory=list)
    """Earlier generations, which a migration left behind."""
    twins: list[str] = field(default_factory=list)
    """The plain form of a log that is there compressed as well."""
    flat: list[str] = field(default_factory=list)
    """Logs that lie in a project folder without a folder of their own."""
    copies: list[str] = field(default_factory=list)
    """Logs of a session that has another, newer log in another project folder."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Folders and logs that could not be looked into, with the reason."""
    encodings: dict[bool, int] = field(default_factory=dict)
    """How many logs are compressed (true) and plain (false)."""


def session_root(path: Path) -> Path:
    """The folder of project folders: ``sessions`` of a home, or the place itself."""
    inside = path / SESSIONS
    return inside if inside.is_dir() else path


def walk(root: Path) -> Walk:
    """Find every session's log; symlinks are followed, the same file reached twice is one.

    Any folder may be a project's, but one of another name only where it holds logs (facts/dsh.md section 6).

    Raises:
        OSError: the root cannot be read.
    """
    found = Walk()
    seen: set[tuple[int, int]] = set()
    best: dict[SessionId, tuple[int, LogFile]] = {}
    with os.scandir(root) as entries:
        folders = [entry for entry in entries if _is_folder(entry)]
    projects = sorted(entry.path for entry in folders if is_project(entry.name) or _holds_log(entry.path))
    for project in projects:
        for folder in _session_folders(project, found):
            choice = _newest(folder, found, seen)
            if choice is not None:
                _keep(choice, best, found)
    found.logs = sorted((log for _, log in best.values()), key=lambda log: log.path)
    for log in found.logs:
        zipped = log.path.endswith(".zstd")
        found.encodings[zipped] = found.encodings.get(zipped, 0) + 1
    return found


def _session_folders(project: str, found: Walk) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(project) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        found.unreadable[project] = error.strerror or str(error)
        return []
    found.flat.extend(
        entry.path for entry in listed if entry.name.endswith((".jsonl", ".jsonl.zstd")) and not _is_folder(entry)
    )
    for entry in listed:
        if entry.is_symlink() and not _leads_somewhere(entry):
            found.unreadable[entry.path] = "the link leads nowhere"
    return [entry for entry in listed if _is_folder(entry)]


def _leads_somewhere(link: os.DirEntry[str]) -> bool:
    try:
        link.stat()
    except OSError:
        return False
    return True


def _newest(folder: os.DirEntry[str], found: Walk, seen: set[tuple[int, int]]) -> tuple[int, LogFile] | None:
    """The log of a session: the highest generation, compressed before plain."""
    try:
        with os.scandir(folder.path) as entries:
            logs = [(log_generation(entry.name), entry) for entry in entries]
            numbered = [(generation, entry) for generation, entry in logs if generation is not None]
            stats = [(generation, entry, entry_stat(entry)) for generation, entry in numbered if entry.is_file()]
            found.unreadable.update((entry.path, "it is no file") for _, entry in numbered if not entry.is_file())
    except OSError as error:
        found.unreadable[folder.path] = error.strerror or str(error)
        return None
    fresh = [item for item in stats if (item[2].st_dev, item[2].st_ino) not in seen]
    if not fresh:
        return None
    fresh.sort(key=lambda item: (item[0], item[1].name.endswith(".zstd")))
    seen.update((stat.st_dev, stat.st_ino) for _, _, stat in fresh)
    generation, entry, stat = fresh[-1]
    for other_generation, other, _ in fresh[:-1]:
        (found.twins if other_generation == generation else found.older).append(other.path)
    session_id = session_of_folder(folder.name)
    return generation, LogFile(entry.path, session_id, stat.st_size, stat.st_mtime_ns, stat.st_dev, stat.st_ino)


def _keep(choice: tuple[int, LogFile], best: dict[SessionId, tuple[int, LogFile]], found: Walk) -> None:
    """One log a session: of two project folders that both have it, the higher generation, then the later change."""
    log = choice[1]
    other = best.get(log.session_id)
    if other is None:
        best[log.session_id] = choice
        return
    newer, older = sorted((choice, other), key=lambda item: (item[0], item[1].mtime_ns, item[1].path), reverse=True)
    best[log.session_id] = newer
    found.copies.append(older[1].path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def default_homes(environ: Mapping[str, str], home: Path) -> Sequence[Path]:
    """``DSH_HOME`` (empty is unset) or ``~/.dsh``; and the session root older SDKs were given."""
    named = environ.get("DSH_HOME", "").strip()
    homes = [Path(named).expanduser() if named else home / ".dsh"]
    named_root = environ.get("DSH_SESSION_ROOT", "").strip()
    root = Path(named_root).expanduser()
    # Where it is the home's own, each session would be listed and billed twice.
    if named_root and os.path.realpath(root) != os.path.realpath(session_root(homes[0])):
        homes.append(root)
    return homes


def is_home(path: Path) -> bool:
    """Whether a folder is a DSH home or a session root, by what lies there."""
    if not path.is_dir():
        return False
    if (path / CACHE).is_dir():
        return True
    return any(_is_session_root(root) for root in (path / SESSIONS, path))


def _is_session_root(root: Path) -> bool:
    """A folder with at least one project folder that holds, or could hold, sessions of DSH."""
    return any(_holds_log(folder) for folder in _folders(root) if is_project(Path(folder).name))


def _holds_log(project: str) -> bool:
    return any(log_generation(name) is not None for folder in _folders(project) for name in _names(folder))


def _folders(path: str | Path) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            yield from sorted(entry.path for entry in entries if _is_folder(entry))
    except OSError:
        # Not there or not ours to read: then it is no store we could open.
        return


def _names(folder: str) -> list[str]:
    try:
        return [path.name for path in Path(folder).iterdir()]
    except OSError:
        return []
