"""A user at the keyboard: verbs of our own, so that a test reads as steps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC
from typing import Any

from textual.message import Message
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from hermes_tui.library.sources import Library, SourceOptions
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.desk import Desk
from tests.pilot.memory_store import NOW, demo_library


class User:
    """Presses keys and looks at the screen; waits for workers, never for seconds."""

    def __init__(self, pilot: Pilot[Any], messages: list[Message]) -> None:
        self.pilot = pilot
        self.app: HermesTui = pilot.app  # type: ignore[assignment]
        self.messages = messages

    async def settle(self) -> None:
        """Until nothing is under way; two rounds, for an answer may ask for more."""
        while self.app.key_under_way:
            await self.pilot.pause(0.01)
        for _ in range(3):
            # A newer question cancels the older one; that is no reason to stop waiting.
            with suppress(WorkerCancelled):
                await self.app.workers.wait_for_complete()
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def types(self, text: str) -> None:
        """Type and wait until the screen took it, which is 120 ms after the last key."""
        for character in text:
            await self.pilot.press("space" if character == " " else character)
        await self.pilot.pause(0.2)
        await self.settle()

    @property
    def screen(self) -> str:
        """What is on the terminal."""
        compositor = self.app.screen._compositor
        return "\n".join(strip.text for strip in compositor.render_strips())

    def sees(self, *texts: str) -> None:
        for text in texts:
            assert text in self.screen, f"{text!r} is not on the screen:\n{self.screen}"

    def sees_no(self, *texts: str) -> None:
        for text in texts:
            assert text not in self.screen, f"{text!r} is on the screen:\n{self.screen}"

    def row(self, text: str) -> str:
        """The first line with this text."""
        return next(line for line in self.screen.splitlines() if text in line)

    def sent(self, kind: type[Message]) -> list[Message]:
        """Messages of a kind, in order."""
        return [message for message in self.messages if isinstance(message, kind)]


@asynccontextmanager
async def browsing(
    library: Library | None = None,
    *,
    size: tuple[int, int] = (120, 36),
    now: float = NOW,
    theme: str = "",
    **options: Any,
) -> AsyncIterator[User]:
    """The browser over a library in memory, on a frozen clock."""
    shown = demo_library()[0] if library is None else library
    desk = Desk(library=shown, clock=lambda: now, zone=UTC)
    app = HermesTui(SourceOptions(), desk=desk, environ={}, **options)
    if theme:
        app.theme = theme
    messages: list[Message] = []
    async with app.run_test(size=size, message_hook=messages.append) as pilot:
        user = User(pilot, messages)
        await user.settle()
        await pilot.pause(0.15)
        await user.settle()
        yield user
