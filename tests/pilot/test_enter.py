"""Enter goes on from every row: from a number to its sessions, from a row of the recovery to its message."""

from __future__ import annotations

import dataclasses
import threading
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from textual.driver import Driver

from hermes_tui.library import catalog
from hermes_tui.library.sources import Library
from hermes_tui.model import ListQuery
from hermes_tui.tui.messages import LibraryOpened, ShowTranscript
from hermes_tui.tui.screens.costs import CostsScreen
from hermes_tui.tui.screens.health import HealthScreen
from hermes_tui.tui.screens.recovery import RecoveryScreen
from hermes_tui.tui.screens.sessions import SessionsScreen
from hermes_tui.tui.screens.transcript import TranscriptScreen
from hermes_tui.tui.views.facets import behind_cost
from tests.pilot.memory_store import NOW, demo_library
from tests.pilot.steps import User, browsing


def last_said(user: User) -> str:
    """The newest small message."""
    return list(user.app._notifications)[-1].message


class TestCosts:
    async def test_a_model_leads_to_its_sessions_and_escape_back(self) -> None:
        async with browsing() as user:
            await user.press("4")
            user.sees("Enter its sessions")
            key = user.app.screen.query_one("#list").screen._report.rows[0].key  # type: ignore[union-attr]
            await user.press("enter")
            assert isinstance(user.app.screen, SessionsScreen)
            user.sees(f"model {key}", "last 30 days", "cost ↓", "match")
            await user.press("escape")
            assert isinstance(user.app.screen, CostsScreen)
            await user.press("1")
            user.sees("active ↓", "6 conversations")

    async def test_rows_of_the_list_before_are_gone_until_the_answer_is_here(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ready = threading.Event()
        real = catalog.listing

        def slow(library: Library, query: ListQuery, *more: int) -> catalog.CatalogListing:
            if query.model is not None:
                ready.wait(20)
            return real(library, query, *more)

        monkeypatch.setattr(catalog, "listing", slow)
        async with browsing() as user:
            user.sees("Gateway log rotation")
            await user.press("4")
            await user.pilot.press("enter")
            await user.pilot.pause(0.3)
            try:
                user.sees("Looking for conversations.", "looking")
                user.sees_no("Gateway log rotation")
            finally:
                ready.set()
            await user.settle()
            user.sees("match")
            user.sees_no("Looking for conversations.")

    async def test_the_list_is_shown_and_not_the_transcript_that_was_open_in_it(self) -> None:
        async with browsing() as user:
            await user.press("enter", "4", "enter")
            assert isinstance(user.app.screen, SessionsScreen)
            user.sees("last 30 days", "match")

    async def test_a_filter_typed_before_comes_back_with_escape(self) -> None:
        async with browsing() as user:
            await user.press("slash")
            await user.types("cart")
            await user.press("enter", "4", "s", "enter")
            user.sees_no("/ cart")
            await user.press("escape", "1")
            user.sees("/ cart", "1 match")

    async def test_a_task_says_why_it_leads_nowhere(self) -> None:
        async with browsing() as user:
            await user.press("4", "t", "enter")
            assert isinstance(user.app.screen, CostsScreen)
            assert "A session has many tasks" in last_said(user)

    async def test_what_has_no_folder_says_so(self) -> None:
        async with browsing() as user:
            await user.press("4", "f", "end", "enter")
            assert isinstance(user.app.screen, CostsScreen)
            assert "has no folder" in last_said(user)


class TestBehindCost:
    def test_a_day_is_the_local_day_however_long_it_is(self) -> None:
        zone = ZoneInfo("Europe/Berlin")
        facets = behind_cost("day", "2026-10-25", 30, NOW, zone)
        assert facets is not None
        assert facets.since == datetime(2026, 10, 25, tzinfo=zone).timestamp()
        assert facets.until == datetime(2026, 10, 26, tzinfo=zone).timestamp() - 1
        assert facets.until - facets.since == 25 * 3_600 - 1

    def test_a_profile_is_one_of_hermes(self) -> None:
        facets = behind_cost("profile", "sales", None, NOW, UTC)
        assert facets is not None
        assert (facets.agent, facets.profile, facets.since) == ("hermes", "sales", None)

    def test_archived_and_delegated_sessions_cost_too(self) -> None:
        facets = behind_cost("store", "codex", 7, NOW, UTC)
        assert facets is not None
        assert (facets.store, facets.archived, facets.delegated) == ("codex", True, True)
        assert facets.query().since == NOW - 7 * 86_400


class TestRecovery:
    async def test_enter_reads_the_message_in_its_transcript(self) -> None:
        async with browsing() as user:
            await user.press("enter", "v", "home", "enter")
            assert isinstance(user.app.screen, TranscriptScreen)
            asked = user.sent(ShowTranscript)[-1]
            assert isinstance(asked, ShowTranscript)
            view = user.app.screen.view
            assert view.heads[view.cursor].id == asked.message_id
            await user.press("escape")
            assert isinstance(user.app.screen, RecoveryScreen)


class TestHealth:
    async def test_a_store_leads_to_its_sessions(self) -> None:
        async with browsing() as user:
            await user.press("6", "enter")
            assert isinstance(user.app.screen, SessionsScreen)
            user.sees("store hermes/default", "5 match")
            await user.press("escape")
            assert isinstance(user.app.screen, HealthScreen)


class TestEmptyHome:
    async def test_nothing_is_offered_that_does_nothing(self) -> None:
        library = dataclasses.replace(demo_library()[0], stores=())
        async with browsing(library) as user:
            line = user.screen.splitlines()[-1]
            assert line.split() == ["F5", "reload", "d", "demo", "?", "keys", "^p", "palette"]
            await user.press("f")
            assert isinstance(user.app.screen, SessionsScreen)
            for key in ("4", "5", "3"):
                await user.press(key)
                user.sees("No conversations were found", "1 says where we looked")
                assert user.screen.splitlines()[-1].split() == ["?", "keys", "^p", "palette"]


class TestKeyLine:
    async def test_keys_of_the_settings_file_are_the_ones_shown(self) -> None:
        library = demo_library()[0]
        settings = dataclasses.replace(library.settings, keymap=(("sessions.order", "O,f7"), ("app.nothing", "x")))
        async with browsing() as user:
            user.app.post_message(LibraryOpened(dataclasses.replace(library, settings=settings)))
            await user.settle()
            assert " O order" in user.screen.splitlines()[-1]
            await user.press("O")
            user.sees("by started")
            await user.press("question_mark")
            assert user.row("Order by activity").split()[:3] == ["O", "f7", "Order"]


async def test_what_was_said_in_passing_goes_with_the_next() -> None:
    async with browsing() as user:
        await user.press("y", "j", "y")
        assert len(user.app._notifications) == 1


async def test_what_was_said_in_passing_goes_with_the_screen_it_was_said_on() -> None:
    async with browsing() as user:
        await user.press("y")
        assert "opied" in last_said(user)
        await user.press("question_mark")
        assert not user.app._notifications


async def test_ctrl_c_says_what_leaves_and_ctrl_z_goes_to_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []
    async with browsing() as user:
        monkeypatch.setattr(user.app, "action_suspend_process", lambda: stopped.append("stopped"))
        await user.press("ctrl+c")
        assert last_said(user) == "q ^q leaves."
        await user.press("ctrl+z")
        assert stopped == ["stopped"]
        drawn: list[dict[str, bool]] = []
        monkeypatch.setattr(user.app, "refresh", lambda **how: drawn.append(how))
        user.app.post_message(Driver.SignalResume())
        await user.settle()
    assert drawn[:1] == [{"layout": True}]
