"""Which theme the screen begins with."""

from __future__ import annotations

import pytest

from hermes_tui.library.sources import SourceOptions
from hermes_tui.tui.app import HermesTui


@pytest.mark.parametrize(
    ("environ", "theme"),
    [
        ({}, "textual-dark"),
        ({"COLORFGBG": "15;0"}, "textual-dark"),
        ({"COLORFGBG": "0;15"}, "textual-light"),
        ({"COLORFGBG": "0;default;15"}, "textual-light"),
        ({"COLORFGBG": "0;7"}, "textual-light"),
        ({"COLORFGBG": "nonsense"}, "textual-dark"),
        ({"COLORFGBG": "0;15", "NO_COLOR": "1"}, "ansi-dark"),
    ],
)
def test_the_terminal_tells_its_background(environ: dict[str, str], theme: str) -> None:
    assert HermesTui(SourceOptions(), environ=environ).theme == theme
