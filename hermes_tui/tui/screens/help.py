"""Every key, here and everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from textual.binding import Binding, BindingType
from textual.widget import Widget

from hermes_tui.library.commands import commands_of, shown_keys
from hermes_tui.tui.cells import fit, wrap
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.inks import Line
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.widgets.line_list import LineList

SCREENS: Final = (
    "sessions", "transcript", "recovery", "lineage", "search", "costs", "cache", "health",
)  # fmt: skip
KEYS_WIDTH: Final = 12
NAME_WIDTH: Final = 23
SIGNS: Final = (
    ("*", "running now"),
    ("~", "estimated from a price table"),
    ("?", "not known"),
    ("!", "a bad cache drop, or something that needs a look"),
    ("c4 b1 d2", "four compactions, one branch or fork, two delegated runs"),
)


class HelpScreen(Place):
    """The keys of the screen we came from first, then those of every other."""

    PLACE = "help"
    CSS_PATH = sheet("help.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1,q", "app.back", "Back", show=False)]

    def __init__(self, desk: Desk, place: str) -> None:
        super().__init__(desk, place)
        self._from = place

    def body(self) -> Iterable[Widget]:
        yield LineList()

    def on_mount(self) -> None:
        self.query_one(LineList).focus()
        self.say_status(
            (("Every command is in the palette as well: ", "muted"), ("^p", "key")),
            (("Esc", "key"), (" back", "muted")),
        )
        self._name_stores()

    def on_resize(self) -> None:
        """Break the purposes anew."""
        lines = self._written(self.size.width - 1)
        self.query_one(LineList).show(len(lines), lambda item, _width, _cursor: lines[item])

    def _written(self, width: int) -> list[Line]:
        first = [self._from] if self._from in SCREENS else []
        lines: list[Line] = []
        for screen in [*first, "list", "app", *(other for other in SCREENS if other not in first)]:
            name = {"list": "In every list", "app": "Everywhere"}.get(screen, screen.capitalize())
            here = f"{name}, where you are" if screen == self._from else name
            lines += [(), ((f"  {here}", "title"),)]
            for command in commands_of(screen):
                lines += _entry(shown_keys(command, self.desk.keys_of(command)), command.name, command.purpose, width)
        lines += [(), (("  Signs", "title"),)]
        for sign, meaning in SIGNS:
            lines += _entry(sign, "", meaning, width)
        return lines[1:]

    def step_back(self) -> bool:
        return False


def _entry(keys: str, name: str, purpose: str, width: int) -> list[Line]:
    """Keys, name and purpose in columns; a long purpose goes on below."""
    name_width = NAME_WIDTH if name else 0
    room = max(20, width - KEYS_WIDTH - name_width - 4)
    lines: list[Line] = []
    for at, (start, end) in enumerate(wrap(purpose, room)):
        first = at == 0
        lines.append(
            (
                ("  ", ""),
                (fit((keys or "palette") if first else "", KEYS_WIDTH), "key" if keys else "muted"),
                (fit(name if first else "", name_width), ""),
                (purpose[start:end], "muted"),
            )
        )
    return lines
