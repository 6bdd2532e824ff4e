"""DeepSeek Harness, for the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_tui.model import Agent, StoreRef
from hermes_tui.stores.dsh import discovery
from hermes_tui.stores.dsh.database import FILE_NAME, is_database
from hermes_tui.stores.dsh.database_store import DshDatabaseStore
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
        return bool(_databases(path)) or discovery.is_home(path)

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """See :meth:`AgentPackage.open`."""
        del environ
        stores: list[Store] = []
        if discovery.is_home(path):
            stores.append(DshStore(StoreRef("dsh", "dsh", str(path.absolute()))))
        stores += [DshDatabaseStore(StoreRef("dsh", "dsh", str(found.absolute()))) for found in _databases(path)]
        return stores

    def write_demo(self, folder: Path, now: float) -> None:
        """See :meth:`AgentPackage.write_demo`."""
        # Imported late: only the demo command needs it.
        from hermes_tui.stores.dsh.demo import write_demo

        write_demo(folder, now)


def _databases(path: Path) -> list[Path]:
    """The database at a place or in a folder; a deployment names it, so that only the usual name is looked for."""
    return [candidate for candidate in (path, path / FILE_NAME) if is_database(candidate)]


PACKAGE = DshPackage()
