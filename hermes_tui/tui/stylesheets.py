"""Where the stylesheets lie: beside the package in an installed copy, at the top of the repository otherwise."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def sheet(name: str) -> Path:
    """The stylesheet of this name."""
    beside = _PACKAGE / "styles" / name
    return beside if beside.is_file() else _PACKAGE.parent / "styles" / name
