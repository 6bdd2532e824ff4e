"""Example homes of every agent: enough variety to show every screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hermes_tui.library.failures import Refused
from hermes_tui.model import AGENTS, Agent
from hermes_tui.stores.registry import package


def write_demo(folder: Path, now: float, agents: Sequence[Agent] = ()) -> list[Path]:
    """Write ``folder/hermes``, ``folder/codex``, … and give their paths.

    Raises:
        Refused: the folder holds something already, or can't be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Refused(
                f"{folder} is not empty, and nothing is overwritten", "Name a folder that does not exist yet."
            )
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for agent in AGENTS:
            if not agents or agent in agents:
                package(agent).write_demo(folder / agent, now)
                written.append(folder / agent)
    except OSError as error:
        raise Refused(f"{folder} cannot be written: {error.strerror or error}", "Name another folder.") from error
    return written
