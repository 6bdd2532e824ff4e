"""DeepSeek Harness, for the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_tui.model import Agent, StoreRef
from hermes_tui.stores.dsh import discovery
from hermes_tui.stores.dsh.store import DshStore
from hermes_tui.stores.protocol import Store


class DshPackage:
    """What the registry asks of this agent."""

    agent: Agent = "dsh"

    def default_homes(self, environ: Mapping[str, str], home: Path) -> Sequence[Path]:
        """See :meth:`AgentPackage.default_homes`."""
        return discovery.default_homes(environ, home)

    def recognise(self, path: Path) -> bool:
        """See :meth:`AgentPackage.recognise`."""
        return discovery.is_home(path)

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """See :meth:`AgentPackage.open`."""
        del environ
        return [DshStore(StoreRef("dsh", "dsh", str(path.absolute())))]

    def write_demo(self, folder: Path, now: float) -> None:
        """See :meth:`AgentPackage.write_demo`."""
        raise NotImplementedError


PACKAGE = DshPackage()
