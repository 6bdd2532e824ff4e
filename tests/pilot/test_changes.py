"""Changes from the screen, on a Hermes home of our own examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermes_tui.library.demo import write_demo
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.tui.screens.transcript import TranscriptScreen
from hermes_tui.tui.widgets.session_list import SessionList
from tests.pilot.memory_store import NOW
from tests.pilot.steps import User, browsing


@pytest.fixture
def library(tmp_path: Path) -> Library:
    write_demo(tmp_path / "examples", NOW, ["hermes", "claude"])
    environ = {"HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    return open_library(SourceOptions(paths=(str(tmp_path / "examples"),)), environ)


async def choose(user: User, title: str) -> None:
    """Put the cursor on a conversation by the filter."""
    await user.press("slash")
    await user.types(title)
    await user.press("enter")


async def test_delete_is_shown_first_then_done_and_restored(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "websocket")
        user.sees("1 match ")
        await user.press("D")
        user.sees("Delete this conversation in hermes/default", "4 sessions with", "It goes into the trash first")
        assert re.search(r"│ +One websocket in two hundred .*[1-9] messages, part of the conversation +│", user.screen)
        await user.press("escape")
        user.sees("One websocket in two hundred")
        await user.press("D", "enter")
        user.sees("0 matches")
        await user.press("U")
        user.sees("What was deleted in the last 30 days", "4 in the trash")
        assert "One websocket in two hundred · hermes/default:" in user.row("▌")
        await user.press("enter")
        user.sees("1 match ")


async def test_rename_and_archive(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "Streaming importer")
        await user.press("r", *["backspace"] * 20)
        await user.types("Streaming importer two")
        await user.press("enter")
        user.sees("Streaming importer two")
        await user.press("a")
        user.sees("Archive this conversation")
        await user.press("enter")
        user.sees("0 matches")


async def test_prune_explains_what_stays(library: Library) -> None:
    async with browsing(library) as user:
        await user.press("P")
        user.sees("Prune what was not active for 90 days", "stay as they are", "never ended")
        await user.press("minus")
        user.sees("for 60 days")


async def test_a_box_too_small_for_its_lines_says_how_to_read_on(library: Library) -> None:
    async with browsing(library, size=(60, 15)) as user:
        await user.press("P")
        user.sees("j k read on")
        await user.pilot.resize_terminal(120, 36)
        await user.settle()
        user.sees_no("read on")


async def test_other_agents_are_never_written_and_their_command_is_shown(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "rounding bug")
        await user.press("D")
        user.sees("are never written by this program")
        await user.press("escape")


async def test_several_agents_that_are_never_written_are_all_named(tmp_path: Path) -> None:
    write_demo(tmp_path / "examples", NOW, ["codex", "claude"])
    environ = {"HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    async with browsing(open_library(SourceOptions(paths=(str(tmp_path / "examples"),)), environ)) as user:
        await user.press("A", "D")
        user.sees("conversations in 2 stores", "stores of claude, codex are never written by this program")


async def test_a_copied_message_is_named_by_its_number_on_the_screen(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "Streaming importer")
        await user.press("enter", "d", "y")
        number = user.row("▌── prompt").split("#")[1].strip(" ▁▂▃▄▅▆▇█")
        assert {one.name for one in user.sent(TranscriptScreen.TextCopied)} == {f"prompt #{number}"}  # type: ignore[attr-defined]


async def test_pins_and_tags_are_kept_and_narrow_the_list(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "websocket")
        await user.press("b", "number_sign")
        await user.types("urgent, later")
        await user.press("enter", "escape")
        assert "#later #urgent" in user.row("websocket")
        rows = user.app.screen.query_one(SessionList)
        assert [one.pinned for one in rows.annotations.values()] == [True]
    assert library.locations.annotations.read_text(encoding="utf-8").count("\n") == 3


async def test_tags_of_several_begin_with_what_all_have_and_leave_each_its_own(library: Library) -> None:
    async with browsing(library) as user:
        await choose(user, "websocket")
        await user.press("number_sign")
        await user.types("urgent both")
        await user.press("enter", "escape", "escape")
        await choose(user, "Streaming importer")
        await user.press("number_sign")
        await user.types("both")
        await user.press("enter")
        # Select this one and the other, with the cursor on the one that has a tag of its own.
        await user.press("space", "escape")
        await choose(user, "websocket")
        await user.press("space", "number_sign")
        user.sees("Tags of 2 conversations", "What only some have stays theirs")
        assert user.app.screen.query_one("#line").value == "both"  # type: ignore[attr-defined]
        await user.press(*["backspace"] * 4)
        await user.types("done")
        await user.press("enter", "escape", "escape", "escape")
        rows = user.app.query_one(SessionList)
        assert sorted(tuple(one.tags) for one in rows.annotations.values()) == [("done",), ("urgent", "done")]
