"""Keys one after the other: what is typed ahead acts where the keys before it lead, and none of it is lost."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

from textual import events
from textual.app import App
from textual.message import Message

from hermes_tui.records import dataclass

ROUNDS: Final = 3
"""How deep what a key sets off is followed: a row is chosen, the list tells its screen, the screen tells the app."""
LOOK_AGAIN: Final = 0.01
"""Seconds until an opening screen is looked at again."""
LONGEST: Final = 1.0
"""Seconds a key waits for the one before at most: a screen that went away answers nothing."""


@dataclass
class Turn(Message):
    """Goes the way of a key, behind it: when it comes back to the app, what the key set off has been done."""

    rounds: int


class KeysInOrder(App[None]):
    """An app that gives a key away when the key before it has done its work.

    Textual hands a key to the widget that has the focus when it arrives. A key that opens a screen or moves the focus
    does so some messages later, so that keys typed at once (over a slow line, on a busy machine) would still go to
    where the first one was pressed, where a letter may be a command.
    """

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._waiting: deque[events.Key] = deque()
        self._since: float | None = None
        """Since when a key is under way; ``None``: none is."""
        self._last_input = 0.0
        """When a key or the mouse last did something, monotonic seconds."""

    @property
    def key_under_way(self) -> bool:
        """Whether what a key set off is still going on."""
        return self._since is not None

    def rests(self, seconds: float) -> bool:
        """Whether for so long neither key nor mouse did anything."""
        return not self.key_under_way and time.monotonic() - self._last_input >= seconds

    async def on_event(self, event: events.Event) -> None:
        """Hold back a key while the one before is under way."""
        if isinstance(event, events.InputEvent):
            self._last_input = time.monotonic()
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._since is not None and time.monotonic() - self._since < LONGEST:
            self._waiting.append(event)
        else:
            self._waiting.append(event)
            await self._give_next()

    async def _give_next(self) -> None:
        if not self._waiting:
            self._since = None
            return
        self._since = time.monotonic()
        behind = self.focused or self.screen
        await super().on_event(self._waiting.popleft())
        behind.post_message(Turn(ROUNDS))

    async def on_turn(self, turn: Turn) -> None:
        """Let the next key go, or follow what this one set off a step further."""
        screen: Any = self.screen
        if not screen.is_mounted:
            self.set_timer(LOOK_AGAIN, lambda: self.post_message(Turn(ROUNDS)))
        elif turn.rounds > 1:
            (self.focused or screen).post_message(Turn(turn.rounds - 1))
        else:
            await self._give_next()
