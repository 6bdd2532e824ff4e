"""What each screen looks like in its states, as SVG to look at. ``HERMES_TUI_PICTURES=write`` writes them anew.

Each picture has a purpose; its test's name says what to see. Clock, zone and data are given, so a difference is
a change.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

import pytest

from hermes_tui.library.sources import Library
from hermes_tui.locations import Locations
from tests.pilot.memory_store import Said, demo_library
from tests.pilot.steps import browsing

PICTURES = Path(__file__).parent / "pictures"
WIDE, SMALL = (120, 36), (80, 24)


def empty_home() -> Library:
    looked = type("Looked", (), {"path": "/home/ana/.hermes", "agent": "hermes"})()
    return dataclasses.replace(demo_library()[0], stores=(), looked_at=(looked,))


def failing() -> Library:
    library, hermes, _ = demo_library()
    hermes.trouble = ValueError("made up for the picture")
    # The picture names a file there, which must not be called otherwise each time.
    return dataclasses.replace(
        library, locations=Locations(*(Path("own") / name for name in ("cache", "data", "config")))
    )


def odd_messages() -> Library:
    library, hermes, _ = demo_library()
    hermes.said[hermes.sessions[0].id] = [
        Said("prompt", "what is new?", sent="what is new?\n<memory>short answers</memory>"),
        Said("reply", "게이트웨이 **내부** 구조: `gw.py`\n\n- 하나\n- 둘"),
        Said("reply", "taken back", state="rewound"),
        Said("tool-result", "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new", tool="patch", call="none"),
    ]
    return library


CASES = [
    ("sessions-columns-stay-aligned-with-wide-characters", (), WIDE, "", None),
    ("sessions-at-80x24-drop-columns-from-the-right", (), SMALL, "", None),
    ("sessions-in-a-light-theme", (), SMALL, "textual-light", None),
    ("sessions-in-the-colours-of-the-terminal", (), SMALL, "ansi-dark", None),
    ("sessions-selected-rows-and-what-can-be-done", ("space", "space"), SMALL, "", None),
    ("sessions-empty-home-offers-the-demo", (), SMALL, "", empty_home),
    ("sessions-a-failure-in-a-panel", (), SMALL, "", failing),
    ("transcript-kinds-folds-tokens-and-code", ("enter",), WIDE, "", None),
    ("transcript-marks-of-a-find", ("enter", "slash", "c", "o", "p", "y", "enter"), SMALL, "", None),
    ("transcript-sent-bytes-rewound-and-differences", ("enter", "x", "s", "Z"), WIDE, "", odd_messages),
    ("recovery-beside-the-record", ("enter", "v"), WIDE, "", None),
    ("lineage-tree-with-a-compaction-inside", ("l",), WIDE, "", None),
    ("costs-by-model-with-unknown", ("4",), WIDE, "", None),
    ("cache-drops-with-cause-and-evidence", ("c",), WIDE, "", None),
    ("health-findings-with-advice", ("6",), SMALL, "", None),
    ("help-every-key", ("question_mark",), SMALL, "", None),
    ("facets-what-the-list-shows", ("f",), WIDE, "", None),
]


def differences(old: str, new: str) -> list[str]:
    """Lines of text that are not the same, for the message."""

    def lines(svg: str) -> list[str]:
        return re.findall(r">([^<>]+)</text>", svg)

    return [f"{a!r} -> {b!r}" for a, b in zip(lines(old), lines(new), strict=False) if a != b][:8]


@pytest.mark.parametrize(("name", "keys", "size", "theme", "library"), CASES, ids=[case[0] for case in CASES])
async def test_picture(
    name: str,
    keys: tuple[str, ...],
    size: tuple[int, int],
    theme: str,
    library: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    async with browsing(library() if callable(library) else None, size=size, theme=theme) as user:
        await user.press(*keys)
        await user.pilot.pause(0.15)
        await user.settle()
        svg = user.app.export_screenshot(title=name)
    # The id is a checksum of the content; trailing white space of the template does not survive editors.
    svg = "\n".join(line.rstrip() for line in re.sub(r"terminal-\d+", "terminal", svg).splitlines()) + "\n"
    path = PICTURES / f"{name}.svg"
    if os.environ.get("HERMES_TUI_PICTURES") == "write":
        PICTURES.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    stored = path.read_text(encoding="utf-8")
    assert svg == stored, "\n".join(differences(stored, svg)) or "colours or places differ"
