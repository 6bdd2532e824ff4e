"""What every screen shares: the library once it is open, the clock and the zone, the signs to draw with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import tzinfo
from typing import TYPE_CHECKING

from hermes_tui.records import dataclass
from hermes_tui.tui.formats import Moment
from hermes_tui.tui.glyphs import UNICODE, Glyphs

if TYPE_CHECKING:
    from hermes_tui.library.beginning import Beginning
    from hermes_tui.library.commands import Command
    from hermes_tui.library.sources import Found, Library


def _zone_here() -> tzinfo:
    from hermes_tui.library.times import local_zone

    return local_zone()[0]


@dataclass(slots=True)
class Desk:
    """The one place where screens find what they have in common."""

    library: Library | None = None
    """``None`` while the stores are looked for."""
    beginning: Beginning | None = None
    """Has read the first page of that library's list."""
    subject: Found | None = None
    """The conversation the user looked at last: Lineage and Cache show it."""
    clock: Callable[[], float] = time.time
    zone: tzinfo = field(default_factory=_zone_here)
    glyphs: Glyphs = UNICODE
    keymap: Mapping[str, str] = field(default_factory=dict)
    """Keys the settings file gives to commands, by id."""

    def keys_of(self, command: Command) -> str:
        """The keys of a command as they are now, comma separated."""
        return self.keymap.get(command.id, command.key)

    @property
    def moment(self) -> Moment:
        """Now, here."""
        return Moment(self.clock(), self.zone)
