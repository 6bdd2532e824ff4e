"""Makes screenshots/*.svg from the demo data, so that a stale picture shows in ``git diff``.

    python benchmarks/make_screenshots.py [NAME …]

The clock is frozen and the examples are written for that time, so the same program gives the same pictures.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from textual.worker import WorkerCancelled

from hermes_tui.library.demo import write_demo
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.desk import Desk

NOW = 1_772_366_400.0
"""2026-03-01 12:00 UTC."""
SHOWN_AS = "/home/ana/examples"
"""The folder the pictures name instead of the temporary one."""
OUT = Path(__file__).resolve().parent.parent / "screenshots"
WIDE = (120, 36)


@dataclass(frozen=True)
class Picture:
    """One picture: keys to press, text to type, how large, which theme."""

    name: str
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = WIDE
    theme: str = ""


PICTURES = (
    Picture("sessions"),
    Picture("sessions-80x24-light", size=(80, 24), theme="textual-light"),
    Picture("transcript", ("slash", *"websocket", "enter", "enter", "d")),
    Picture("recovery", ("slash", *"Forecast", "enter", "enter", "v")),
    Picture("lineage", ("slash", *"websocket", "enter", "l")),
    Picture("search", ("3", *"log", "enter")),
    Picture("costs", ("4",)),
    Picture("cache", ("5", "a")),
    Picture("cache-of-one", ("slash", *"websocket", "enter", "c", "e")),
    Picture("health", ("6",)),
    Picture("delete", ("j", "D")),
    Picture("keys", ("question_mark",)),
)


def main(names: list[str]) -> None:
    """Write the pictures named, or all."""
    folder = _folder()
    try:
        write_demo(folder, NOW)
        library = open_library(
            SourceOptions(paths=(str(folder),)),
            {"HERMES_TUI_HOME": str(folder.with_name(folder.name + "-own")), "HOME": str(folder)},
        )
        OUT.mkdir(exist_ok=True)
        for picture in PICTURES:
            if not names or picture.name in names:
                svg = asyncio.run(_take(picture, library))
                (OUT / f"{picture.name}.svg").write_text(_settled(svg, folder), encoding="utf-8")
                print(f"wrote screenshots/{picture.name}.svg")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder.with_name(folder.name + "-own"), ignore_errors=True)


def _folder() -> Path:
    """As long as the name it is shown as where that can be, so that no line of a picture changes its width."""
    base = tempfile.gettempdir().rstrip("/") + "/"
    folder = Path(base + "hermes-tui-examples"[: max(3, len(SHOWN_AS) - len(base))])
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _settled(svg: str, folder: Path) -> str:
    """The picture without what differs from run to run."""
    named = svg.replace(str(folder), SHOWN_AS)
    return "\n".join(line.rstrip() for line in re.sub(r"terminal-\d+", "terminal", named).splitlines()) + "\n"


async def _take(picture: Picture, library: Library) -> str:
    desk = Desk(library=library, clock=lambda: NOW, zone=UTC)
    app = HermesTui(SourceOptions(), desk=desk, environ={})
    if picture.theme:
        app.theme = picture.theme
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            if key:
                await pilot.press({".": "full_stop", " ": "space"}.get(key, key))
            for _ in range(3):
                await _quiet(app)
                await pilot.pause(0.08)
        await pilot.pause(0.3)
        await _quiet(app)
        await pilot.pause()
        return app.export_screenshot(title="hermes-tui")


async def _quiet(app: HermesTui) -> None:
    """Until no worker runs; a newer question cancels the older one."""
    with suppress(WorkerCancelled):
        await app.workers.wait_for_complete()


if __name__ == "__main__":
    main(sys.argv[1:])
