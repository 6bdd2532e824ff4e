"""Where our own files are; nothing else joins the home folder to anything of ours.

``HERMES_TUI_HOME`` overrides everything (contract.md, Which stores). Folders are 0700, files 0600.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hermes_tui.records import dataclass

APP_NAME: Final = "hermes-tui"
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Locations:
    """Our folders: what may be thrown away (cache), what may not (data), and the settings."""

    cache: Path
    data: Path
    config: Path

    @property
    def mirror(self) -> Path:
        """The mirror's database: rebuildable."""
        return self.cache / "mirror.sqlite"

    @property
    def answers(self) -> Path:
        """Answers kept from earlier runs: rebuildable."""
        return self.cache / "answers"

    @property
    def prices(self) -> Path:
        """Rates once looked up in the price package: rebuildable."""
        return self.cache / "prices.json"

    @property
    def annotations(self) -> Path:
        """The append-only log of pins, tags and notes: the truth."""
        return self.data / "annotations.jsonl"

    @property
    def trash(self) -> Path:
        """The append-only log of what was deleted."""
        return self.data / "trash"

    @property
    def settings(self) -> Path:
        """The settings file, which need not exist."""
        return self.config / "settings.toml"

    @property
    def log(self) -> Path:
        """The program's own log, named when something unexpected happened."""
        return self.cache / "hermes-tui.log"


def own_locations(environ: Mapping[str, str] | None = None) -> Locations:
    """Our folders for this user; nothing is created."""
    variables = os.environ if environ is None else environ
    home = variables.get("HERMES_TUI_HOME", "").strip()
    if home:
        root = Path(home).expanduser().absolute()
        return Locations(root / "cache", root / "data", root / "config")
    # Imported late: platformdirs costs 5 ms and is not needed where HERMES_TUI_HOME is set.
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(APP_NAME, appauthor=False)
    return Locations(dirs.user_cache_path, dirs.user_data_path, dirs.user_config_path)


def private_folder(folder: Path) -> Path:
    """Make one of our folders, readable by its owner only.

    Raises:
        OSError: it can't be made.
    """
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    return folder
