"""What frames every place: the six places on top, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual import events

from hermes_tui.library.commands import ENTER_DOES, Command, commands_of, shown_key
from hermes_tui.text import CleanText
from hermes_tui.tui.cells import width_of
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.inks import Line, Run, clip, spread
from hermes_tui.tui.messages import ShowPlace
from hermes_tui.tui.widgets.lines import StillLines

PLACES: Final = ("sessions", "lineage", "search", "costs", "cache", "health")
_ALWAYS: Final = (("?", "keys", "app.help"), ("^p", "palette", "app.palette"))


class TabLine(StillLines):
    """The six places, the one we are in marked; on the right what is open."""

    def __init__(self, place: str) -> None:
        super().__init__(id="tabs")
        self._place = place
        self._stores: CleanText | str = ""
        self._spots: list[tuple[int, int, str]] = []
        self.show(self._view)

    def show_stores(self, names: CleanText) -> None:
        """Name the stores on the right."""
        self._stores = names
        self.show(self._view)

    def _view(self, width: int) -> Sequence[Line]:
        runs: list[Run] = [(" ", "")]
        spots: list[tuple[int, int, str]] = []
        at = 1
        for number, place in enumerate(PLACES, 1):
            here = place == self._place
            text = f" {number} {place.capitalize()} "
            runs.append((text, "here" if here else "tab"))
            spots.append((at, at + len(text), place))
            at += len(text)
        self._spots = spots
        stores = self._stores
        if width_of(stores) + at + 3 > width:
            stores = ""
        return [spread(tuple(runs), ((f"{stores} ", "muted"),) if stores else (), width)]

    def on_click(self, event: events.Click) -> None:
        """Go to the place under the mouse."""
        for start, end, place in self._spots:
            if start <= event.x < end:
                self.post_message(ShowPlace(place))


class KeyLine(StillLines):
    """The keys that matter here; the rest is in the help screen."""

    def __init__(self, place: str, desk: Desk) -> None:
        super().__init__(id="keys")
        self._desk = desk
        self._place = place
        self._spots: list[tuple[int, int, str]] = []
        self._enter: str | None = None
        self._commands: tuple[Command, ...] = ()
        self.offer_usual()

    def offer_usual(self) -> None:
        """Name what matters here."""
        self._enter = ENTER_DOES.get(self._place)
        self._commands = tuple(command for command in commands_of(self._place) if command.footer)
        self.show(self._view)

    def offer_only(self, *ids: str) -> None:
        """Name these commands and no other: where there is nothing to do the usual things with."""
        self._enter = None
        self._commands = tuple(command for command in commands_of(self._place) if command.id in ids)
        self.show(self._view)

    def _view(self, width: int) -> Sequence[Line]:
        runs: list[Run] = [(" ", "")]
        spots: list[tuple[int, int, str]] = []
        at = 1
        tail = [(key, name, action) for key, name, action in _ALWAYS]
        reserve = sum(len(key) + len(name) + 3 for key, name, _ in tail)
        offered = [("Enter", self._enter, "screen.choose")] if self._enter else []
        offered += [
            (self._first_key(command), command.name.lower(), f"screen.{command.action}") for command in self._commands
        ]
        for key, name, action in [*offered, *tail]:
            length = len(key) + len(name) + 3
            if action not in {a for _, _, a in tail} and at + length + reserve > width:
                continue
            runs += [(key, "key"), (f" {name}  ", "muted")]
            spots.append((at, at + length, action))
            at += length
        self._spots = spots
        return [clip(tuple(runs), width)]

    def _first_key(self, command: Command) -> str:
        return shown_key(self._desk.keys_of(command).split(",")[0].strip())

    async def on_click(self, event: events.Click) -> None:
        """Do what the key under the mouse does."""
        for start, end, action in self._spots:
            if start <= event.x < end:
                await self.run_action(action)
