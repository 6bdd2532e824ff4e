"""What the registry knows of Hermes Agent: where its homes lie, what one looks like, how its stores are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_tui.model import Agent
from hermes_tui.stores.hermes.discovery import default_root, homes_at, recognise

if TYPE_CHECKING:
    from hermes_tui.stores.protocol import AgentPackage, Store


class HermesPackage:
    """Implements :class:`hermes_tui.stores.protocol.AgentPackage`."""

    agent: Agent = "hermes"

    def default_homes(self, environ: Mapping[str, str], home: Path) -> Sequence[Path]:
        """The one home HERMES_HOME or the platform names."""
        return (default_root(environ, home),)

    def recognise(self, path: Path) -> bool:
        """Whether a state.db, a home or a profile lies there."""
        return recognise(path)

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """One store a profile."""
        # Imported late: other agents' commands need not pay for it.
        from hermes_tui.stores.hermes.store import HermesStore

        return [HermesStore(home, environ) for home in homes_at(path)]

    def write_demo(self, folder: Path, now: float) -> None:
        """Write the example conversations."""
        # Imported late: only the demo command writes.
        from hermes_tui.stores.hermes.demo import write_demo

        write_demo(folder, now)


PACKAGE: AgentPackage = HermesPackage()
