"""What one look at a Codex home gave: its mirror, its folders, and where the two part (facts/codex.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.stores.codex.agent_mirror import AgentMirror, IndexedNames
from hermes_tui.stores.codex.discovery import Found

PASSING: Final = frozenset({"locked", "broken"})
"""Why a mirror was not read that perhaps can be the next time."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What one look at mirror and folders gave."""

    mirror: AgentMirror = field(default_factory=AgentMirror)
    names: Mapping[SessionId, str] = field(default_factory=dict)
    indexed: IndexedNames = field(default_factory=IndexedNames)
    found: Found = field(default_factory=Found)
    copies: tuple[str, ...] = ()
    """Files of a thread that another file holds as well."""
    missing: tuple[SessionId, ...] = ()
    """Rows of the mirror whose file is gone."""
    unlisted: tuple[SessionId, ...] = ()
    """Threads with a file and without a row."""
    behind: tuple[SessionId, ...] = ()
    """Threads whose file is newer than their row."""
    moved: int = 0
    """Rows whose path does not fit, found by their file's name."""


def _dump_mirror(mirror: AgentMirror) -> list[object]:
    return [mirror.path, mirror.generation, mirror.fallback, mirror.detail, mirror.odd]


def _load_mirror(values: Any) -> AgentMirror:
    path, generation, fallback, detail, odd = values
    return AgentMirror(path, generation, fallback=fallback, detail=detail, odd=odd)


def dump_picture(picture: Picture) -> list[object]:
    """A picture as JSON values, without the folders and the rows of the mirror."""
    mirror, indexed = picture.mirror, picture.indexed
    return [
        [_dump_mirror(one) for one in (mirror, mirror.passed) if one is not None],
        dict(picture.names),
        [indexed.unreadable, indexed.path],
        [picture.copies, picture.missing, picture.unlisted, picture.behind, picture.moved],
    ]


def load_picture(values: Any, found: Found) -> Picture:
    """What :func:`dump_picture` gave, with the folders as they are now."""
    mirrors, names, (unreadable, names_path), told = values
    mirror, *passed = map(_load_mirror, mirrors)
    copies, missing, unlisted, behind, moved = told
    return Picture(
        mirror=replace(mirror, passed=passed[0]) if passed else mirror,
        names=names,
        indexed=IndexedNames(unreadable=unreadable, path=names_path),
        found=found,
        copies=tuple(copies),
        missing=tuple(missing),
        unlisted=tuple(unlisted),
        behind=tuple(behind),
        moved=moved,
    )
