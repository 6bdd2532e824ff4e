"""The list asks one question at a time, and the newest of those that came meanwhile."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from hermes_tui.model import Listing, ListQuery
from hermes_tui.tui.screens.session_loading import ANY_TEXT
from tests.pilot.memory_store import demo_library
from tests.pilot.steps import browsing


async def test_letters_typed_while_the_list_is_read_are_not_asked_at_once() -> None:
    library, store, _ = demo_library()
    asked: list[str] = []
    under_way: list[int] = []
    held, going = threading.Event(), threading.Semaphore(0)
    plain = store.listing

    def slow(query: ListQuery, limit: int | None = None) -> Listing:
        under_way.append(1)
        asked.append(query.text)
        assert len(under_way) == 1, "two questions at once"
        if query.text == "c" and not held.is_set():
            held.set()
            going.acquire(timeout=30)
        under_way.pop()
        return plain(query, limit)

    async with browsing(library) as user:
        store.listing = slow  # type: ignore[method-assign]
        pilot: Any = user.pilot
        await pilot.press("slash")
        await user.settle()
        await pilot.press("c")
        assert await asyncio.to_thread(held.wait, 30)
        for letter in "art":
            await pilot.press(letter)
            await pilot.pause(0.2)
        going.release()
        await user.settle()
        await user.settle()
        user.sees("/ cart", "1 match")
        user.sees_no("looking")
        # The first question only lets the store read what a filter looks into.
        assert asked == [ANY_TEXT, "c", "cart"]


async def test_the_filter_line_leaves_the_list_as_it_is_until_a_letter_is_typed() -> None:
    library, _, _ = demo_library()
    async with browsing(library) as user:
        before = user.screen
        pilot: Any = user.pilot
        await pilot.press("slash")
        await user.settle()
        await pilot.press("escape")
        await user.settle()
        assert user.screen == before
