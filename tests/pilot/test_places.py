"""The other places: lineage, search, costs, cache, health, help; going there and back."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Final

import pytest

from hermes_tui.library.commands import COMMANDS, shown_keys
from hermes_tui.library.search import SearchRequest, SearchRun
from hermes_tui.library.sources import Library
from hermes_tui.tui.messages import ShowTranscript
from tests.pilot.memory_store import Said, demo_library
from tests.pilot.steps import browsing

ROOT: Final = Path(__file__).parents[2]


async def test_lineage_marks_the_conversation_and_opens_a_session() -> None:
    async with browsing() as user:
        await user.press("l")
        user.sees("● root", "○ delegation", "Read the unit file", "compacted", "tip *", "findings: none")
        await user.press("g", "enter")
        shown = user.sent(ShowTranscript)[-1]
        assert isinstance(shown, ShowTranscript)
        assert (shown.found.session_id, shown.conversation) == ("a1", False)
        await user.press("escape")
        user.sees("● root")
        await user.press("escape")
        user.sees("6 conversations")


async def test_search_as_you_type_enter_lands_on_the_match_and_escape_returns() -> None:
    library, store, _ = demo_library()
    store.said[store.sessions[1].id] = [
        Said("prompt", "게이트웨이내부 log를 봐줘"),
        Said("reply", "both hosts use the same unit"),
    ]
    async with browsing(library) as user:
        await user.press("3")
        user.sees("Type a word that was said.")
        await user.types("내부")
        user.sees(">>>내부<<<", "1 hit in 1 conversation", "게이트웨이 내부 구조 정리", "after")
        await user.press("enter", "enter")
        user.sees("── prompt", "match 1 of 1")
        await user.press("escape")
        user.sees(">>>내부<<<")


async def test_a_search_without_hits_says_what_to_try() -> None:
    async with browsing() as user:
        await user.press("3")
        await user.types("qqqqqq")
        user.sees("Nobody said qqqqqq.", "try the beginning of it with *")


async def test_a_bad_regular_expression_is_told_and_not_thrown() -> None:
    async with browsing() as user:
        await user.press("3")
        await user.types("(ab")
        await user.press("enter", "x")
        user.sees("can't be read", "x searches for words.", "0 hits")


async def test_costs_by_model_and_by_other_things() -> None:
    async with browsing() as user:
        await user.press("4")
        user.sees("nimbus-4-large", "total", "priced by")
        line = user.row("local-7b")
        assert line.rstrip().endswith("?")
        await user.press("s")
        user.sees("telegram", "cron")
        await user.press("tab")
        user.sees("srv/gateway")


async def test_cache_shows_drops_with_cause_and_goes_to_the_message() -> None:
    async with browsing() as user:
        await user.press("c")
        user.sees("74 requests", "2 drops", "context-change", "idle 9 min", "1.0", "0.0")
        user.sees("x bad drop", "  at              request")
        await user.press("e")
        user.sees("first-request")
        await user.press("enter")
        shown = user.sent(ShowTranscript)[-1]
        assert isinstance(shown, ShowTranscript)
        assert shown.message_id == "67"


async def test_drops_of_all_conversations_say_whose_they_are() -> None:
    async with browsing() as user:
        await user.press("c", "a")
        user.sees("all conversations", "  at            session  ", " hermes/default:")
        user.sees_no("request  from")
        await user.pilot.resize_terminal(80, 24)
        await user.settle()
        user.sees(" hermes/default:")
        await user.press("a")
        user.sees_no(" hermes/default:")


async def test_health_lists_findings_with_advice() -> None:
    async with browsing() as user:
        await user.press("6")
        user.sees("hermes/default", "degraded", "torn-line", "→ Nothing: it is written now.", "mirror")


async def test_help_shows_every_key() -> None:
    async with browsing(size=(120, 400)) as user:
        await user.press("question_mark")
        for command in COMMANDS:
            assert re.search(re.escape(shown_keys(command) or "palette"), user.screen), command.id
            assert command.name in user.screen, command.id
        await user.press("escape")
        user.sees("6 conversations")


async def test_every_command_has_an_action() -> None:
    from hermes_tui.tui.screens.cache import CacheScreen
    from hermes_tui.tui.screens.costs import CostsScreen
    from hermes_tui.tui.screens.health import HealthScreen
    from hermes_tui.tui.screens.lineage import LineageScreen
    from hermes_tui.tui.screens.recovery import RecoveryScreen
    from hermes_tui.tui.screens.search import SearchScreen
    from hermes_tui.tui.screens.sessions import SessionsScreen
    from hermes_tui.tui.screens.transcript import TranscriptScreen
    from hermes_tui.tui.widgets.virtual_list import VirtualList

    owners = {
        "sessions": SessionsScreen, "transcript": TranscriptScreen, "recovery": RecoveryScreen,
        "lineage": LineageScreen,
        "search": SearchScreen, "costs": CostsScreen, "cache": CacheScreen, "health": HealthScreen, "list": VirtualList,
    }  # fmt: skip
    async with browsing() as user:
        for command in COMMANDS:
            owner = owners.get(command.screen, type(user.app))
            assert hasattr(owner, f"action_{command.action}"), command.id


async def test_the_palette_offers_what_can_be_done_here() -> None:
    async with browsing() as user:
        await user.press("ctrl+p")
        await user.types("order")
        user.sees("sessions: Order")


async def test_the_same_key_twice_goes_back_to_the_place_itself() -> None:
    async with browsing() as user:
        await user.press("enter")
        user.sees("[record]")
        await user.press("1")
        user.sees("6 conversations")


async def test_the_cache_of_a_conversation_is_shown_and_not_what_was_opened_there_before() -> None:
    async with browsing() as user:
        await user.press("c", "enter")
        user.sees("[record]")
        await user.press("1", "c")
        user.sees("74 requests")


async def test_quit_interrupts_the_stores() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        await user.pilot.press("q")
        await user.pilot.pause()
    assert store.interrupted > 0


async def test_ascii_signs_only() -> None:
    async with browsing(ascii_only=True) as user:
        for keys in (("p",), ("enter",), ("escape", "l"), ("4",), ("5",), ("6",)):
            await user.press(*keys)
            ours = re.sub(r"[가-힣぀-ヿ一-鿿、]", "", user.screen)
            assert ours.isascii(), [character for character in ours if not character.isascii()]
        for keys in (("escape", "1", "f"), ("escape", "r"), ("escape", "D"), ("escape", "E"), ("escape", "ctrl+p")):
            await user.press(*keys)
            ours = re.sub(r"[가-힣぀-ヿ一-鿿、]", "", user.screen)
            # The palette's own line names itself with an ellipsis.
            assert ours.replace("…", "").isascii(), [character for character in ours if not character.isascii()]


async def test_cache_of_a_conversation_is_shown_even_after_all_were_looked_at() -> None:
    async with browsing() as user:
        await user.press("5", "a")
        user.sees("all conversations")
        await user.press("1", "c")
        user.sees_no("all conversations")
        user.sees("74 requests")


async def test_hits_of_the_question_before_go_when_the_new_one_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes_tui.tui.screens import search as screen

    ready = threading.Event()
    real = screen.search

    def slow(library: Library, request: SearchRequest) -> SearchRun:
        if request.regex:
            ready.wait(20)
        return real(library, request)

    monkeypatch.setattr(screen, "search", slow)
    monkeypatch.setattr(screen, "STALE", 0.01)
    library, store, _ = demo_library()
    store.said[store.sessions[1].id] = [Said("prompt", "the gate is open")]
    async with browsing(library) as user:
        await user.press("3")
        await user.types("gate")
        await user.press("enter")
        user.sees(">>>gate<<<")
        await user.pilot.press("x")
        await user.pilot.pause(0.3)
        try:
            user.sees_no(">>>gate<<<")
            user.sees("Searching.")
            user.sees_no("hits in")
        finally:
            ready.set()
        await user.settle()
        user.sees(">>>gate<<<")


async def test_no_class_of_ours_takes_a_name_that_textual_uses() -> None:
    from textual.message_pump import MessagePump

    async with browsing() as user:
        pump = MessagePump()
        await user.press("3")
        await user.types("qqqqqq")
        assert user.app.screen._running == user.app._running is True
        names = {name for name in vars(pump) if name != "_parent"}
        for path in (ROOT / "hermes_tui" / "tui").rglob("*.py"):
            taken = names & set(re.findall(r"\bself\.(\w+)(?:: [^=\n]+)? = ", path.read_text(encoding="utf-8")))
            assert not taken, f"{path.name}: {taken}"
