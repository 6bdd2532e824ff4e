"""Where Claude Code keeps its transcripts, and which files of a config folder are sessions, sub-agents or neither.

Layout: facts/claude-code.md section 1. Nothing is opened here; folder names are only buckets and never decoded.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.stamps import entry_stat
from hermes_tui.stores.logs import LogFile

PROJECTS: Final = "projects"
SUBAGENTS: Final = "subagents"
SUFFIX: Final = ".jsonl"
AGENT_PREFIX: Final = "agent-"
DEEPEST: Final = 12
"""Folders below a session that are walked; ``subagents/workflows/<run>`` needs three."""
OWN_SIGNS: Final = (
    "history.jsonl",
    ".claude.json",
    "settings.json",
    "file-history",
    "session-env",
    "sessions-index.json",
)
"""What lies beside ``projects`` in a config folder (facts/claude-code.md section 1)."""
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Agent:
    """Where a sub-agent's log lies in respect to its session."""

    session: SessionId | None
    """By the folder it lies in; ``None`` in the old layout, where only its lines tell."""


@dataclass(slots=True)
class Walk:
    """What a walk through ``projects`` found."""

    logs: list[LogFile] = field(default_factory=list)
    agents: dict[str, Agent] = field(default_factory=dict)
    """By path: the logs that are sub-agents'."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Folders and files that cannot be looked into, with the reason."""
    strangers: list[str] = field(default_factory=list)
    """Logs whose name is neither a session's nor a sub-agent's."""
    twice: list[str] = field(default_factory=list)
    """Paths that lead to a file already found."""
    stale_indexes: list[str] = field(default_factory=list)
    """``sessions-index.json`` files, which are never used as the list (pitfall 6)."""


def is_uuid(name: str) -> bool:
    """Whether a file or folder is named like a session."""
    return _UUID.match(name) is not None


def default_homes(environ: Mapping[str, str], home: Path) -> list[Path]:
    """``CLAUDE_CONFIG_DIR`` (a comma list), else ``~/.claude`` and ``~/.config/claude``, NFC-normalised."""
    listed = [part.strip() for part in environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part.strip()]
    if listed:
        return [Path(unicodedata.normalize("NFC", part)).expanduser() for part in listed]
    return [home / ".claude", home / ".config" / "claude"]


def recognise(path: Path) -> bool:
    """Whether this folder is a Claude config folder: ``projects`` with transcripts, or the signs of one beside it."""
    projects = path / PROJECTS
    try:
        if not projects.is_dir():
            return False
        if path.name in (".claude", "claude", "dot-claude") or any((path / sign).exists() for sign in OWN_SIGNS):
            return True
        with os.scandir(projects) as folders:
            return any(folder.is_dir() and _holds_sessions(folder.path) for folder in folders)
    except OSError:
        return path.name in (".claude", "dot-claude")


def _holds_sessions(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any((entry.name.endswith(SUFFIX) and _stem_counts(entry.name[: -len(SUFFIX)]))
                       or is_uuid(entry.name) for entry in entries)  # fmt: skip
    except OSError:
        return False


def _stem_counts(stem: str) -> bool:
    return is_uuid(stem) or stem.startswith(AGENT_PREFIX)


def walk(root: str) -> Walk:
    """Find every log below ``projects``, sorted by path; the same file reached twice is taken once.

    Raises:
        OSError: ``projects`` itself cannot be listed.
    """
    projects = os.path.join(root, PROJECTS)  # noqa: PTH118 - strings, because there are thousands
    found = _Walker()
    for name in sorted(os.listdir(projects)):  # noqa: PTH208
        found.project(os.path.join(projects, name))  # noqa: PTH118
    result = found.walk
    result.logs.sort(key=lambda log: log.path)
    return result


class _Walker:
    """One walk: guards against loops and against files reached twice."""

    def __init__(self) -> None:
        self.walk = Walk()
        self._folders: set[tuple[int, int]] = set()
        self._files: set[tuple[int, int]] = set()

    def project(self, path: str) -> None:
        """One folder of ``projects``: sessions, old sub-agents beside them, folders of sessions."""
        for entry in self._listed(path):
            name = entry.name
            if name == "sessions-index.json":
                self.walk.stale_indexes.append(entry.path)
            elif name.endswith(SUFFIX):
                self._log(entry, name[: -len(SUFFIX)])
            elif is_uuid(name):
                self._below(os.path.join(entry.path, SUBAGENTS), SessionId(name), 0)  # noqa: PTH118

    def _log(self, entry: os.DirEntry[str], stem: str) -> None:
        if is_uuid(stem):
            self._add(entry, SessionId(stem), None)
        elif stem.startswith(AGENT_PREFIX):
            self._add(entry, SessionId(stem), Agent(None))
        else:
            self.walk.strangers.append(entry.path)

    def _below(self, path: str, session: SessionId, depth: int) -> None:
        """Sub-agents may nest: ``subagents/workflows/<run>/agent-…`` (facts/claude-code.md section 1)."""
        if depth > DEEPEST:
            self.walk.unreadable[path] = f"more than {DEEPEST} folders deep"
            return
        for entry in self._listed(path):
            stem = entry.name[: -len(SUFFIX)]
            if entry.name.endswith(SUFFIX) and stem.startswith(AGENT_PREFIX):
                self._add(entry, SessionId(stem), Agent(session))
            elif self._is_folder(entry):
                self._below(entry.path, session, depth + 1)
            elif entry.name.endswith(SUFFIX):
                self.walk.strangers.append(entry.path)

    def _add(self, entry: os.DirEntry[str], session_id: SessionId, agent: Agent | None) -> None:
        try:
            info = entry_stat(entry)
        except OSError as error:
            self.walk.unreadable[entry.path] = error.strerror or str(error)
            return
        if not stat.S_ISREG(info.st_mode):
            self.walk.unreadable[entry.path] = "no regular file"
            return
        key = (info.st_dev, info.st_ino)
        if key in self._files:
            self.walk.twice.append(entry.path)
            return
        self._files.add(key)
        log = LogFile(entry.path, session_id, info.st_size, info.st_mtime_ns, *key)
        self.walk.logs.append(log)
        if agent is not None:
            self.walk.agents[entry.path] = agent

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError as error:
            self.walk.unreadable[entry.path] = error.strerror or str(error)
            return False

    def _listed(self, path: str) -> Sequence[os.DirEntry[str]]:
        """The entries of a folder by name; nothing when it is no folder, was walked before or cannot be read."""
        try:
            info = os.stat(path)  # noqa: PTH116
            if not os.path.isdir(path) or (info.st_dev, info.st_ino) in self._folders:  # noqa: PTH112
                return ()
            self._folders.add((info.st_dev, info.st_ino))
            with os.scandir(path) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return ()
        except OSError as error:
            self.walk.unreadable[path] = error.strerror or str(error)
            return ()
