"""Where Hermes stores lie and which profiles a home has (facts/hermes.md section 1). Opens no database."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hermes_tui.records import dataclass

STORE: Final = "state.db"
PROFILES: Final = "profiles"
DEFAULT_PROFILE: Final = "default"
CONFIG_BYTES: Final = 1 << 20
"""More than this is no configuration."""
_SESSION_LOG: Final = re.compile(r"(\d{8}_\d{6}_.+|cron_.+|session_.+)\.jsonl?")


@dataclass(frozen=True, slots=True)
class Home:
    """One profile's folder, or a store file given by itself."""

    folder: Path
    store: Path
    profile: str
    active: bool
    """``active_profile`` names it."""
    root: Path | None = None
    """The home the profile belongs to; ``None`` for a file given by itself."""

    @property
    def legacy_sessions(self) -> Path:
        return self.folder / "sessions"

    @property
    def pending(self) -> Path:
        return self.folder / "pending_messages"

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"


def platform_home(environ: Mapping[str, str], home: Path) -> Path:
    """The platform's default home."""
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA", "").strip()
        return Path(local) / "hermes" if local else home / "AppData" / "Local" / "hermes"
    return home / ".hermes"


def default_root(environ: Mapping[str, str], home: Path) -> Path:
    """The folder whose profiles count: the platform default or what HERMES_HOME says."""
    default = platform_home(environ, home)
    named = environ.get("HERMES_HOME", "").strip()
    if not named:
        return default
    given = Path(named).expanduser()
    if given.is_relative_to(default):
        return default
    return given.parent.parent if given.parent.name == PROFILES else given


def recognise(path: Path) -> bool:
    """Whether this is a state.db, a Hermes home, or one of its profiles."""
    if path.is_file():
        return is_store_file(path)
    if not path.is_dir():
        return False
    if (path / STORE).exists() or (path / "pending_messages").is_dir():
        return True
    profiles = path / PROFILES
    if profiles.is_dir() and ((path / "active_profile").is_file() or any(_profile_folders(profiles))):
        return True
    if path.parent.name == PROFILES and (path / "config.yaml").is_file():
        return True
    return _has_session_logs(path / "sessions")


def is_store_file(path: Path) -> bool:
    """A store by its name; what is in it shows when it is opened."""
    name = path.name
    if name.endswith(("-wal", "-shm", "-journal")):
        return False
    return name.startswith(STORE) or (
        name.startswith("state") and name.endswith((".db", ".sqlite")) and "_" not in name
    )


def _profile_folders(profiles: Path) -> list[Path]:
    """Folders under ``profiles`` that look like homes; one without a store yet has its configuration."""
    try:
        found = sorted(entry for entry in profiles.iterdir() if entry.is_dir())
    except OSError:
        return []
    marks = (STORE, "config.yaml", "sessions", "pending_messages")
    return [folder for folder in found if any((folder / mark).exists() for mark in marks)]


def _has_session_logs(folder: Path) -> bool:
    """Logs as Hermes names them, directly in the folder; other agents keep folders of dates there."""
    try:
        return any(_SESSION_LOG.fullmatch(entry.name) for entry in folder.iterdir())
    except OSError:
        return False


def homes_at(path: Path) -> list[Home]:
    """Every profile of the home at this path, the default one first, or the one store given."""
    path = path.expanduser().absolute()
    if path.is_file():
        return [_of_file(path)]
    if path.parent.name == PROFILES:
        return [_profile(path, path.parent.parent)]
    active = active_profile(path)
    homes: list[Home] = []
    profiles = path / PROFILES
    folders = _all_profiles(profiles)
    if (path / STORE).exists() or not folders or _has_session_logs(path / "sessions"):
        homes.append(Home(path, path / STORE, DEFAULT_PROFILE, active == DEFAULT_PROFILE, path))
    return homes + [_profile(folder, path) for folder in folders]


def _all_profiles(profiles: Path) -> list[Path]:
    """Every folder under ``profiles``: an empty one is a profile that was never used."""
    try:
        return sorted(entry for entry in profiles.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return []


def _of_file(path: Path) -> Home:
    """A store file given by itself; beside it may lie what belongs to its home."""
    folder = path.parent
    if path.name != STORE:
        return Home(folder, path, DEFAULT_PROFILE, False)
    if folder.parent.name == PROFILES:
        return _profile(folder, folder.parent.parent)
    return Home(folder, path, DEFAULT_PROFILE, active_profile(folder) == DEFAULT_PROFILE, folder)


def _profile(folder: Path, root: Path) -> Home:
    return Home(folder, folder / STORE, folder.name, active_profile(root) == folder.name, root)


def active_profile(root: Path) -> str:
    """The name in ``active_profile``; ``default`` when it is absent or empty."""
    return (_small_text(root / "active_profile") or "").strip() or DEFAULT_PROFILE


def _small_text(path: Path) -> str | None:
    """A small text file; ``None`` when it is not there or not to be read."""
    try:
        with path.open("rb") as file:
            return file.read(CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def setting(config: Path, section: str, key: str) -> str | None:
    """One ``section: {key: value}`` of a config.yaml, without a YAML library: two levels of plain keys are enough."""
    text = _small_text(config)
    if text is None:
        return None
    inside = False
    for line in text.splitlines():
        bare = line.split(" #", 1)[0].rstrip()
        if not bare or bare.lstrip().startswith("#"):
            continue
        name, colon, value = bare.strip().partition(":")
        if bare[0] not in " \t":
            inside = name.strip("'\"") == section and bool(colon)
            if inside and value.strip().startswith("{"):
                return _in_braces(value, key)
        elif inside and name.strip("'\"") == key and colon:
            return value.strip().strip("'\"")
    return None


def _in_braces(value: str, key: str) -> str | None:
    found = re.search(rf"[{{,]\s*['\"]?{re.escape(key)}['\"]?\s*:\s*['\"]?([^,}}'\"]+)", value)
    return found[1].strip() if found else None
