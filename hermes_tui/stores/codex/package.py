"""The Codex package: where its homes are, what one looks like, how it is opened."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_tui.model import Agent, StoreRef
from hermes_tui.stores.codex import discovery
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.protocol import AgentPackage, Store


class CodexPackage:
    """See :class:`hermes_tui.stores.protocol.AgentPackage`."""

    agent: Agent = "codex"

    def default_homes(self, environ: Mapping[str, str], home: Path) -> Sequence[Path]:
        """``CODEX_HOME``, else ``~/.codex``."""
        return (discovery.default_home(environ, home),)

    def recognise(self, path: Path) -> bool:
        """See :func:`hermes_tui.stores.codex.discovery.recognise`."""
        return discovery.recognise(path)

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """One store a home."""
        home = path.absolute()
        usual = home == discovery.default_home(environ, Path.home()).absolute()
        plain = home == (Path.home() / ".codex").absolute()
        databases = [str(home), *_elsewhere(home, environ if usual else {})]
        return (CodexStore(StoreRef("codex", "codex", str(home)), databases=databases, default_home=plain),)

    def write_demo(self, folder: Path, now: float) -> None:
        """See :func:`hermes_tui.stores.codex.demo.write_demo`."""
        # Imported late: only `demo` needs it.
        from hermes_tui.stores.codex.demo import write_demo

        write_demo(folder, now)


def _elsewhere(home: Path, environ: Mapping[str, str]) -> list[str]:
    """Other folders the databases may lie in: CODEX_SQLITE_HOME or the home's own settings."""
    found = [environ.get("CODEX_SQLITE_HOME", "").strip(), _configured(home)]
    return [str(Path(folder).expanduser().absolute()) for folder in found if folder]


def _configured(home: Path) -> str:
    try:
        with (home / "config.toml").open("rb") as file:
            folder = tomllib.load(file).get("sqlite_home")
    except (OSError, ValueError):
        return ""  # no configuration, or one Codex could not read either: the usual place counts
    return folder if isinstance(folder, str) else ""


PACKAGE: AgentPackage = CodexPackage()
