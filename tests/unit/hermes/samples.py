"""Copies of the sample homes, so that reading can be seen to leave nothing behind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from hermes_tui.stores.hermes.package import PACKAGE
from hermes_tui.stores.hermes.store import HermesStore

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "hermes"


def copied(folder: Path, which: str = "home") -> Path:
    """A sample in a folder of its own."""
    target = folder / which.replace("/", "-")
    shutil.copytree(SAMPLES / which, target)
    return target


def stores(path: Path) -> dict[str, HermesStore]:
    """The stores of a home by name."""
    return {store.ref.name: store for store in PACKAGE.open(path, {}) if isinstance(store, HermesStore)}


def names() -> dict[str, str]:
    """The ids the sample's README gives names to."""
    text = (SAMPLES / "README.md").read_text("utf-8")
    found: dict[str, str] = {}
    for line in re.findall(r"Names used below: (.*)", text):
        found.update(pair.split("=") for pair in line.split(", "))
    return found


def answers(label: str, which: int = 0) -> list[str]:
    """The ids a list line of the README gives, root notes left out; ``which``: the profile."""
    text = (SAMPLES / "README.md").read_text("utf-8")
    line = re.findall(rf"{re.escape(label)}[^\n]*\n  ([^\n]*)", text)[which]
    return [names()[word.partition("(")[0].strip()] for word in line.split(", ") if word.strip()]
