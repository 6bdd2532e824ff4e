"""Keys that arrive at once: over a slow line, or while a screen is still opening."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from typing import Any

from textual import events

from hermes_tui.tui.dialogs.base import Dialog
from hermes_tui.tui.screens.recovery import RecoveryScreen
from tests.pilot.steps import User, browsing


async def types_ahead(user: User, keys: Iterable[str]) -> None:
    """All keys before the app comes to look at the first."""
    for key in keys:
        user.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await user.pilot.pause(0.4)
    await user.settle()


class TestTypedAhead:
    async def test_letters_behind_a_3_land_in_the_query(self) -> None:
        async with browsing() as user:
            await types_ahead(user, ["3", *"gate"])
            user.sees("> gate")

    async def test_letters_behind_a_slash_land_in_the_filter_and_are_no_commands(self) -> None:
        async with browsing() as user:
            await types_ahead(user, ["slash", *"aeD"])
            assert not isinstance(user.app.screen, Dialog)
            user.sees("/ aeD")

    async def test_keys_go_on_where_the_keys_before_led(self) -> None:
        async with browsing() as user:
            await types_ahead(user, ["slash", *"cart", "enter", "enter", "v"])
            assert isinstance(user.app.screen, RecoveryScreen)

    async def test_a_key_behind_one_that_closes_a_dialog_is_not_lost(self) -> None:
        async with browsing() as user:
            await types_ahead(user, ["f", "escape", "slash", "x"])
            assert not isinstance(user.app.screen, Dialog)
            user.sees("/ x")


async def test_tasks_begin_in_turn_whatever_the_loop_was_told() -> None:
    """Textual sets eager tasks from Python 3.12 on, outside tests only: the first screen is not built with them."""

    def factory(
        loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **named: Any
    ) -> asyncio.Task[Any]:
        return asyncio.Task(work, loop=loop, **named)  # type: ignore[arg-type]

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    async with browsing() as user:
        assert loop.get_task_factory() is None
        user.sees("6 conversations")
