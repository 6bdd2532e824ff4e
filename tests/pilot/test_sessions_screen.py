"""The list of conversations, as a user meets it."""

from __future__ import annotations

import dataclasses

from hermes_tui.library.sources import Library
from hermes_tui.stores.protocol import Store
from hermes_tui.text import RawText
from hermes_tui.tui.messages import ShowTranscript
from hermes_tui.tui.widgets.session_list import SessionList
from tests.pilot.memory_store import MINUTE, NOW, demo_library, row_of
from tests.pilot.steps import browsing


async def test_the_newest_conversation_stands_first_with_its_numbers() -> None:
    async with browsing() as user:
        first = user.row("Gateway log rotation")
        for text in ("c4 b1", "nimbus-4-large", "148", "2.1M", "0.85 !", "1.42", "2 min *"):
            assert text in first
        user.sees("6 conversations", "from: store", "left out: 6 archived, 24 delegated", "hermes · codex")


async def test_filter_as_you_type_and_escape_takes_it_away() -> None:
    async with browsing() as user:
        await user.press("slash")
        await user.types("rounding")
        user.sees("1 match", "Fix the rounding bug")
        user.sees_no("게이트웨이")
        await user.press("enter", "escape")
        user.sees("6 conversations", "게이트웨이")


async def test_a_filter_that_matches_nothing_says_what_to_do() -> None:
    async with browsing() as user:
        await user.press("slash")
        await user.types("zzzz")
        user.sees("Nothing matches.", "Esc takes the filter away")


async def test_enter_opens_the_conversation_and_escape_comes_back_to_it() -> None:
    async with browsing() as user:
        await user.press("j", "enter")
        user.sees("Fix the rounding bug in cart.py", "prompt", "#1")
        shown = user.sent(ShowTranscript)[-1]
        assert isinstance(shown, ShowTranscript)
        assert shown.found.session_id == "019c-1111"
        await user.press("escape")
        assert user.app.screen.query_one(SessionList).cursor == 1


async def test_order_by_key() -> None:
    async with browsing() as user:
        await user.press("o", "o")
        user.sees("tokens↓")
        lines = user.screen.splitlines()
        titles = [line for line in lines if "2.1M" in line or "1.1M" in line or "310k" in line]
        assert ["2.1M" in titles[0], "1.1M" in titles[1], "310k" in titles[2]] == [True, True, True]


async def test_selected_rows_show_what_can_be_done_with_them() -> None:
    async with browsing() as user:
        await user.press("space", "space")
        user.sees("2 selected", "archive", "delete")
        await user.press("escape")
        user.sees_no("2 selected")


async def test_a_new_conversation_appears_within_two_seconds_and_the_cursor_stays() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        await user.press("j", "j")
        kept = user.app.screen.query_one(SessionList).entry
        store.sessions.append(row_of(store.ref, "new", "Just begun", at=NOW - 1))
        store.version += 1
        await user.pilot.pause(1.7)
        await user.settle()
        user.sees("Just begun", "7 conversations")
        assert user.app.screen.query_one(SessionList).entry == kept


async def test_growth_of_a_row_appears() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        store.sessions[0] = dataclasses.replace(store.sessions[0], message_count=151)
        store.version += 1
        await user.pilot.pause(1.7)
        await user.settle()
        assert "151" in user.row("Gateway log rotation")


async def test_nothing_is_asked_while_nothing_changes() -> None:
    library, store, _ = demo_library()
    calls: list[str] = []
    listing = store.listing
    store.listing = lambda *args, **kwargs: calls.append("listing") or listing(*args, **kwargs)  # type: ignore[assignment, method-assign, func-returns-value]
    async with browsing(library) as user:
        before = len(calls)
        await user.pilot.pause(2.5)
        assert len(calls) == before


async def test_facets_narrow_to_one_agent() -> None:
    async with browsing() as user:
        await user.press("f")
        user.sees("What the list shows", "archived conversations", "codex")
        for _ in range(20):
            line = next(line for line in user.screen.splitlines() if "▌" in line and "[" in line)
            if "codex" in line:
                break
            await user.press("j")
        await user.press("enter", "escape")
        user.sees("agent codex", "1 match")
        user.sees_no("Gateway log rotation")


async def test_a_hundred_thousand_rows_scroll_to_the_end() -> None:
    async with browsing(demo_library(100_000)[0]) as user:
        user.sees("100,006 conversations")
        await user.press("G")
        user.sees("Older conversation 99999")
        await user.press("g")
        user.sees("Gateway log rotation")


async def test_eighty_columns_drop_columns_from_the_right() -> None:
    async with browsing(size=(80, 24)) as user:
        head = user.row("title")
        assert "parts" in head
        assert "folder" not in head
        assert "model" not in head
        user.sees("1.42", "2 min *")
        await user.press("p")
        user.sees("hermes/default · telegram")


async def test_a_store_that_fails_is_told_and_the_rest_is_listed() -> None:
    library, _, codex = demo_library()
    codex.trouble = OSError(5, "the disk does not answer")
    async with browsing(library) as user:
        user.sees("Gateway log rotation")


async def test_an_unexpected_failure_opens_a_panel_that_can_be_closed() -> None:
    library, hermes, _ = demo_library()
    hermes.trouble = ValueError("made up for the test")
    async with browsing(library) as user:
        user.sees("Reading the list failed", "made up for the test")
        await user.press("escape")
        user.sees_no("Reading the list failed")


async def test_an_empty_home_says_where_it_looked_and_offers_the_demo() -> None:
    library, _, _ = demo_library()
    looked = type("Looked", (), {"path": "/home/ana/.hermes", "agent": "hermes"})()
    empty = dataclasses.replace(library, stores=(), looked_at=(looked,))
    async with browsing(empty) as user:
        user.sees("No conversations were found", "/home/ana/.hermes", "Press d")


async def test_copy_of_the_id_says_what_was_copied() -> None:
    async with browsing() as user:
        await user.press("y")
        assert user.app.clipboard == "20260227_110126_3031d0"


async def test_markup_of_a_title_is_text() -> None:
    library, store, _ = demo_library()
    store.sessions[0] = dataclasses.replace(
        store.sessions[0], title=RawText("[red]not red[/red] [@click=app.quit]x[/]")
    )
    async with browsing(library) as user:
        user.sees("[red]not red[/red]")


async def test_ages_follow_the_clock() -> None:
    library: Library = demo_library()[0]
    stores: tuple[Store, ...] = library.stores
    assert stores
    async with browsing(library, now=NOW + 10 * MINUTE) as user:
        assert "12 min" in user.row("Gateway log rotation")


async def test_a_filter_puts_the_cursor_on_its_first_row() -> None:
    async with browsing() as user:
        table = user.app.screen.query_one(SessionList)
        await user.press("j", "j", "slash")
        assert "게이트웨이" in user.row("▌")
        await user.types("nimbus")
        assert table.count > 1
        assert table.cursor == 0


async def test_renaming_what_only_its_agent_can_rename_says_so_before_and_after() -> None:
    async with browsing() as user:
        await user.press("j", "r")
        user.sees("Only codex itself can rename it: Enter shows its command.")
        await user.press("enter")
        user.sees("Nothing was changed")
        assert all("this progra │" not in line for line in user.screen.splitlines())
        await user.press("escape")
        user.sees("6 conversations")


async def test_the_box_of_facets_begins_with_its_heading_where_it_is_low() -> None:
    async with browsing(size=(80, 24)) as user:
        await user.press("f")
        user.sees("left out by default", "▌ [ ] archived conversations")
        await user.press("G", "g")
        user.sees("left out by default")
