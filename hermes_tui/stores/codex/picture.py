"""What one look at a Codex home gave: its mirror, its folders, and where the two part (facts/codex.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hermes_tui.model import SessionId
from hermes_tui.stores.codex.agent_mirror import AgentMirror, IndexedNames
from hermes_tui.stores.codex.discovery import Found


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
