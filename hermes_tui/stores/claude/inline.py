"""Sub-agents whose lines stand inside their session's file, as old builds wrote them (facts/claude-code.md section 4).

They are rows of their own under the session. Their tokens stay with the session, whose file they are in, so that rows
add up to the store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.log_bytes import blocks_of
from hermes_tui.stores.claude.lines import BRIDGED_TYPE, Entry

OLD_VERSIONS: Final = ("1.", "2.0.")
"""Builds that wrote such lines; newer ones have a file for each sub-agent."""
ANY_VERSION_BELOW: Final = 262_144
"""Bytes up to which a file of any build is looked through: imported and mended logs carry lines of several builds."""
_MARK: Final = re.compile(rb'Sidechain": ?true')
"""Begins with the rarest of its letters, which is what the search looks for first."""
LONGEST_MARK: Final = 20
"""Bytes; no mark is longer."""


@dataclass(frozen=True, slots=True)
class Inline:
    """One sub-agent inside a session's file."""

    id: SessionId
    uuids: frozenset[str]
    first: str
    """Its first line."""


def may_hold(version: str | None, size: int) -> bool:
    """Whether a file of this version and size is worth a look for sub-agents inside it."""
    return size < ANY_VERSION_BELOW or version is None or version.startswith(OLD_VERSIONS)


def holds(path: str) -> bool:
    """Whether some line of a file says that it is a sub-agent's; a pass over bytes.

    Raises:
        OSError: it cannot be read.
    """
    return any(map(marked, blocks_of(path, LONGEST_MARK)))


def marked(text: bytes) -> bool:
    """Whether some line of a text says that it is a sub-agent's; one pass, for many texts are looked through."""
    return _MARK.search(text) is not None


def inline_agents(entries: Sequence[Entry]) -> list[Inline]:
    """The sub-agents among the lines of one file: by agent id, else by the line their chain begins with."""
    side = {entry.uuid: entry for entry in entries if entry.sidechain and entry.type != BRIDGED_TYPE}
    bridged = {entry.uuid: entry.parent for entry in entries if entry.type == BRIDGED_TYPE}
    groups: dict[str, list[str]] = {}
    for uuid in side:
        first, agent = _beginning(uuid, side, bridged)
        groups.setdefault(f"agent-{agent}" if agent else f"sidechain-{first}", []).append(uuid)
    return [Inline(SessionId(name), frozenset(uuids), uuids[0]) for name, uuids in groups.items()]


def _beginning(uuid: str, side: dict[str, Entry], bridged: dict[str, str | None]) -> tuple[str, str | None]:
    """The first line of a chain and the agent id one of its lines names."""
    seen: dict[str, None] = {}
    at: str | None = uuid
    while at is not None and at not in seen and (at in side or at in bridged):
        seen[at] = None
        at = side[at].parent if at in side else bridged[at]
    lines = [here for here in seen if here in side]
    agent = next((side[here].agent_id for here in reversed(lines) if side[here].agent_id), None)
    return lines[-1], agent
