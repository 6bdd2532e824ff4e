"""Which agents there are, where their stores lie, and what lies at a given place. A new agent is one line here.

An agent's package is imported only when something on disk looks like its store: starting up costs what is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from hermes_tui.model import Agent
from hermes_tui.records import dataclass

if TYPE_CHECKING:
    from hermes_tui.stores.protocol import AgentPackage, Store

LEVELS: Final = 2
"""How many folders below a given place are looked into: ``demo DIR`` needs one, a folder of such folders two."""
MAX_FOLDERS: Final = 4_096
"""A place with more folders in those levels is not searched further: it is no folder of stores."""


SESSION_FOLDERS: Final = ("sessions", "projects")
"""Where homes keep what a store is recognised by."""


@dataclass(frozen=True, slots=True)
class Known:
    """One agent, as much as must be known before its package is imported."""

    agent: Agent
    variables: tuple[str, ...]
    """Environment variables that move its home."""
    homes: tuple[str, ...]
    """Default places under the user's home folder; whether they count is the package's business."""
    marks: tuple[str, ...]
    """What a store of this agent has at least one of, as glob patterns; only a reason to ask its package."""


KNOWN: Final[tuple[Known, ...]] = (
    Known("hermes", ("HERMES_HOME", "LOCALAPPDATA"), (".hermes", "AppData/Local/hermes"),
          ("state.db*", "profiles/*", "active_profile", "pending_messages", "sessions/*.json*")),
    Known("codex", ("CODEX_HOME", "CODEX_SQLITE_HOME"), (".codex",),
          ("state_*.sqlite", "session_index.jsonl", "archived_sessions", "sessions/[12][0-9][0-9][0-9]",
           "sessions/rollout-*", "rollout-*")),
    Known("claude", ("CLAUDE_CONFIG_DIR",), (".claude", ".config/claude"), ("projects",)),
    Known("dsh", ("DSH_HOME", "DSH_SESSION_ROOT"), (".dsh",),
          ("sessions/--*", "sessions/_no-cwd", "sessions.db", "storages/*", "--*--", "_no-cwd")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder that is a store of an agent."""

    agent: Agent
    path: Path


@dataclass(frozen=True, slots=True)
class Looked:
    """A place that was looked at, and whether a store was there."""

    agent: Agent | None
    """``None`` for a place given by hand: every agent was asked."""
    path: str
    found: bool
    shut: bool = False
    """It is there, but we may not look into it: then nobody knows."""


def package(agent: Agent) -> AgentPackage:
    """The package of an agent, imported now."""
    return cast("AgentPackage", import_module(f"hermes_tui.stores.{agent}.package").PACKAGE)


def default_places(environ: Mapping[str, str], home: Path) -> tuple[list[Place], list[Looked]]:
    """The stores in each agent's own places, and every place that was looked at."""
    places: list[Place] = []
    looked: list[Looked] = []
    for known in KNOWN:
        if not _may_exist(known, environ, home):
            looked += [Looked(known.agent, str(home / folder), False) for folder in known.homes[:1]]
            continue
        agent = package(known.agent)
        for path in agent.default_homes(environ, home):
            found = _found_by(agent, path)
            looked.append(Looked(known.agent, str(path), found, not found and why_shut(path) is not None))
            if found:
                places.append(Place(known.agent, path))
    return places, looked


def _may_exist(known: Known, environ: Mapping[str, str], home: Path) -> bool:
    if any(environ.get(name, "").strip() for name in known.variables if name != "LOCALAPPDATA"):
        return True
    try:
        return any((home / folder).exists() for folder in known.homes)
    except OSError:
        return True


def _found_by(agent: AgentPackage, path: Path) -> bool:
    try:
        return path.exists() and agent.recognise(path)
    except OSError:
        return False


def why_shut(path: Path) -> OSError | None:
    """Why a place, or where its sessions would be, cannot be looked into; ``None``: it can, or nothing is there."""
    try:
        for folder in (path, *(path / name for name in SESSION_FOLDERS)):
            if folder.is_dir():
                os.scandir(folder).close()
    except OSError as error:
        return error
    return None


def places_at(path: Path) -> list[Place]:
    """The stores at a given place, or up to two folders below it; empty when nothing there is a store."""
    for level in _levels(path):
        found = [place for candidate in level for place in _recognised(candidate)]
        if found:
            return found + _deeper(level, found)
    return []


def store_around(path: Path) -> Place | None:
    """The nearest store whose folder a place lies in; only part of it was given then."""
    for above in path.absolute().parents:
        for place in _recognised(above):
            return place
    return None


def _deeper(level: Sequence[Path], found: Sequence[Place]) -> list[Place]:
    """Stores one folder below the neighbours of those found: ``DIR/claude`` beside ``DIR/dsh/dot-dsh``."""
    taken = {place.path for place in found}
    if len(level) < 2:
        return []
    rest = [folder for folder in level if folder not in taken]
    return [place for below in _folders(rest) for place in _recognised(below)]


def _levels(path: Path) -> Iterator[list[Path]]:
    level = [path]
    yield level
    for _ in range(LEVELS):
        level = list(_folders(level))
        if not level or len(level) > MAX_FOLDERS:
            return
        yield level


def _folders(parents: Sequence[Path]) -> Iterator[Path]:
    """The folders in these folders, by name; links that lead back are followed once, unreadable folders not at all."""
    seen: set[tuple[int, int]] = set()
    for parent in parents:
        try:
            entries = sorted(entry.path for entry in os.scandir(parent) if entry.is_dir())
        except OSError:
            # Not a folder, or not ours to read: nothing below it can be a store we could open.
            continue
        for entry in entries:
            try:
                stat = os.stat(entry)  # noqa: PTH116  a Path for each of thousands of folders costs more than the stat
            except OSError:
                continue
            if (stat.st_dev, stat.st_ino) not in seen:
                seen.add((stat.st_dev, stat.st_ino))
                yield Path(entry)


def _recognised(path: Path) -> list[Place]:
    likely = [known for known in KNOWN if _marked(known, path)]
    if not likely and _is_file(path):
        # A file by another name (a copy, say): every agent is asked.
        likely = list(KNOWN)
    return [Place(known.agent, path) for known in likely if _found_by(package(known.agent), path)]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _marked(known: Known, path: Path) -> bool:
    """Whether there is a reason to import this agent's package."""
    try:
        if path.is_dir():
            return any(True for mark in known.marks for _ in path.glob(mark))
    except OSError:
        return False
    return any(fnmatch(path.name, mark.rpartition("/")[2]) for mark in known.marks if not mark.endswith("/*"))


def open_places(places: Sequence[Place], environ: Mapping[str, str]) -> list[Store]:
    """Open what was found, each store once, with names that are unique in this run (``claude``, ``claude#2``)."""
    stores: list[Store] = []
    seen: set[tuple[Agent, str]] = set()
    for place in places:
        for store in package(place.agent).open(place.path, environ):
            key = (store.ref.agent, os.path.realpath(store.ref.path))
            if key not in seen:
                seen.add(key)
                stores.append(store)
    _number(stores)
    return stores


def _number(stores: Sequence[Store]) -> None:
    taken: set[str] = set()
    for store in stores:
        name, number = store.ref.name, 1
        while name in taken:
            number += 1
            name = f"{store.ref.name}#{number}"
        taken.add(name)
        if name != store.ref.name:
            store.ref = replace(store.ref, name=name)
