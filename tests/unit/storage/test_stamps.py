"""Files told apart, on systems that list a folder without their numbers too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.storage import stamps
from hermes_tui.stores.claude.package import PACKAGE as CLAUDE
from hermes_tui.stores.codex.package import PACKAGE as CODEX
from hermes_tui.stores.dsh.package import PACKAGE as DSH


class WindowsEntry:
    """An entry of a folder as Windows gives it."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        found = self._entry.stat(follow_symlinks=follow_symlinks)
        return os.stat_result((found.st_mode, 0, 0, 0, *found[4:]))

    def __fspath__(self) -> str:
        return self._entry.path


class WindowsListing:
    """What scandir gives there."""

    def __init__(self, path: Any) -> None:
        self._listing = os_scandir(path)

    def __enter__(self) -> WindowsListing:
        return self

    def __exit__(self, *_: object) -> None:
        self._listing.close()

    def __iter__(self) -> Any:
        return map(WindowsEntry, self._listing)


os_scandir = os.scandir


@pytest.mark.parametrize("package", [CLAUDE, CODEX, DSH], ids=["claude", "codex", "dsh"])
def test_every_log_is_found_and_read_with_what_windows_has(
    package: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermes_tui.library.demo import write_demo
    from hermes_tui.model import ListQuery

    name = package.agent
    write_demo(tmp_path / "examples", 1_772_000_000.0, [name])
    (there,) = package.open(tmp_path / "examples" / name, {})
    listed = there.listing(ListQuery()).total
    monkeypatch.setattr(os, "scandir", WindowsListing)
    monkeypatch.setattr(stamps, "LISTED_WITH_INODES", False)
    for missing in ("pread", "O_CLOEXEC", "O_NONBLOCK", "geteuid"):
        monkeypatch.delattr(os, missing)
    (again,) = package.open(tmp_path / "examples" / name, {})
    found = again.listing(ListQuery())
    assert found.total == listed > 3
    for entry in found.entries:
        (*_, heads) = again.transcript(again.chain(entry.id)).heads()
        assert again.transcript(again.chain(entry.id)).load(list(heads))
