"""The first look, held by pytest-textual-snapshot: its report shows both pictures side by side when one changed.

Run ``pytest tests/snapshot --snapshot-update`` to take the pictures anew. The screens in their states are in
test_pictures.py, which names the words that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC

import pytest
from textual.pilot import Pilot

from hermes_tui.library.sources import SourceOptions
from hermes_tui.tui.app import HermesTui
from hermes_tui.tui.desk import Desk
from tests.pilot.memory_store import demo_library
from tests.pilot.steps import NOW, User


def browser() -> HermesTui:
    """The browser over a library in memory, on a frozen clock."""
    desk = Desk(library=demo_library()[0], clock=lambda: NOW, zone=UTC)
    return HermesTui(SourceOptions(), desk=desk, environ={})


async def settled(pilot: Pilot[None]) -> None:
    """Wait until everything that was asked for is on the screen."""
    user = User(pilot, [])
    await user.settle()
    await pilot.pause(0.15)
    await user.settle()


class TestFirstLook:
    """What is seen before any key is pressed."""

    @pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["120x36", "80x24"])
    def test_the_list_with_its_preview(self, snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
        """Rows of every agent, newest first; the preview of the first; the last line says where they come from."""
        assert snap_compare(browser(), terminal_size=size, run_before=settled)

    def test_a_conversation_read(self, snap_compare: Callable[..., bool]) -> None:
        """Kinds told apart by words, tools folded, tokens of each reply."""

        async def opened(pilot: Pilot[None]) -> None:
            await settled(pilot)
            await pilot.press("enter")
            await settled(pilot)

        assert snap_compare(browser(), terminal_size=(120, 36), run_before=opened)
