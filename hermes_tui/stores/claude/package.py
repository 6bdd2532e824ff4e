"""What the registry needs of Claude Code: where its config folders lie, how they are told, how they are opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_tui.model import Agent, StoreRef
from hermes_tui.stores.claude import discovery
from hermes_tui.stores.claude.store import ClaudeStore
from hermes_tui.stores.protocol import AgentPackage, Store


class ClaudePackage:
    """See :class:`hermes_tui.stores.protocol.AgentPackage`."""

    agent: Agent = "claude"

    def default_homes(self, environ: Mapping[str, str], home: Path) -> Sequence[Path]:
        """The config folders that may be in use; see :func:`hermes_tui.stores.claude.discovery.default_homes`."""
        return discovery.default_homes(environ, home)

    def recognise(self, path: Path) -> bool:
        """Whether this is a Claude config folder."""
        return discovery.recognise(path)

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """The one store of a config folder."""
        home = Path(environ.get("HOME", "~")).expanduser()
        ref = StoreRef("claude", "claude", str(path.absolute()))
        default = not environ.get("CLAUDE_CONFIG_DIR", "").strip() and path.absolute() == home / ".claude"
        return (ClaudeStore(ref, default_home=default),)

    def write_demo(self, folder: Path, now: float) -> None:
        """A config folder of made-up conversations."""
        # Imported late: nobody but `demo` needs it.
        from hermes_tui.stores.claude.demo import write_demo

        write_demo(folder, now)


PACKAGE: AgentPackage = ClaudePackage()
