"""Reading a conversation."""

from __future__ import annotations

import dataclasses

from hermes_tui.model import Usage
from hermes_tui.tui.widgets.transcript_view import TranscriptView
from tests.pilot.memory_store import MemoryStore, Said, demo_library, small_talk
from tests.pilot.steps import User, browsing


def view(user: User) -> TranscriptView:
    return user.app.screen.query_one(TranscriptView)


def with_talk(said: list[Said]) -> tuple[object, MemoryStore]:
    library, store, _ = demo_library()
    store.said[store.sessions[0].id] = said
    return library, store


async def test_the_first_screen_shows_kinds_tokens_and_folded_tools() -> None:
    async with browsing() as user:
        await user.press("enter")
        user.sees(
            "── prompt", "reasoning (folded", "tool-call read_file", "in 1,204 read 9,870 write 0 out 412", "hit 0.89"
        )
        user.sees("[record] recovery", "message 1 of 120")


async def test_unfold_a_tool_call_with_its_result_and_fold_it_again() -> None:
    async with browsing() as user:
        await user.press("enter", "J", "J")
        assert view(user).heads[view(user).cursor].kind == "tool-call"
        user.sees_no("tool-result")
        await user.press("z")
        user.sees("tool-result read_file")
        await user.press("z")
        user.sees_no("tool-result")


async def test_find_goes_from_match_to_match_and_escape_ends_it() -> None:
    async with browsing() as user:
        await user.press("enter", "slash")
        await user.types("COPYTRUNCATE")
        await user.press("enter")
        user.sees("match 1 of 23")
        await user.press("n", "n")
        user.sees("match 3 of 23")
        await user.press("N")
        user.sees("match 2 of 23")
        await user.press("escape")
        user.sees_no("match 2 of 23")


async def test_a_new_find_begins_where_the_old_one_is_typed_over() -> None:
    async with browsing() as user:
        await user.press("enter", "slash")
        await user.types("copytruncate")
        await user.press("enter", "slash")
        await user.types("rotates")
        await user.press("enter")
        user.sees("  match ", "rotates")
        user.sees_no("no match for")


async def test_find_unfolds_what_it_found() -> None:
    said = [Said("prompt", "hello"), Said("reasoning", "the needle is in here"), Said("reply", "bye")]
    library, _ = with_talk(said)
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees_no("needle")
        await user.press("slash")
        await user.types("needle")
        await user.press("enter")
        user.sees("the needle is in here")


async def test_jump_between_prompts_and_compactions() -> None:
    async with browsing() as user:
        await user.press("enter", "d")
        assert view(user).heads[view(user).cursor].kind == "prompt"
        assert view(user).cursor == 5
        await user.press("u")
        assert view(user).cursor == 0
        await user.press("right_square_bracket")
        assert view(user).heads[view(user).cursor].kind == "summary"
        user.sees("compaction · automatic · 118k → 21k tokens · 96 messages dropped, 12 kept")


async def test_last_and_first() -> None:
    async with browsing() as user:
        await user.press("enter", "G")
        user.sees("#119")
        await user.press("g")
        user.sees("#1 ")


async def test_sent_bytes_that_differ_are_offered_and_shown() -> None:
    said = [
        Said("prompt", "what is new?", sent="what is new?\n<memory>the user likes short answers</memory>"),
        Said("reply", "nothing"),
    ]
    library, _ = with_talk(said)
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees("sent differs from shown (46 characters more)")
        user.sees_no("likes short answers")
        await user.press("x")
        user.sees("likes short answers", "as it was sent")


async def test_rewound_messages_are_hidden_counted_and_switchable() -> None:
    said = [Said("prompt", "first"), Said("reply", "taken back", state="rewound"), Said("reply", "second")]
    library, _ = with_talk(said)
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees_no("taken back")
        user.sees("1 rewound or dead branch hidden")
        await user.press("s")
        user.sees("taken back", "(rewound)")


async def test_a_text_over_one_mebibyte_comes_in_pieces() -> None:
    big = "\n".join(f"line {number:07}" for number in range(120_000))
    library, _ = with_talk([Said("prompt", big), Said("reply", "long")])
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees("line 0000000")
        assert all(len(block.text) <= 200_000 for block in view(user).blocks.values())
        await user.press("m")
        assert view(user).blocks[0].piece == 1
        assert view(user).blocks[0].text.split("\n")[1] == "line 0015385"


async def test_a_hundred_thousand_messages_open_and_reach_the_end() -> None:
    library, _ = with_talk([Said("prompt" if n % 2 else "reply", f"message {n}") for n in range(100_000)])
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees("of 100,000")
        await user.press("G")
        user.sees("message 99999")
        assert len(view(user).blocks) <= 400


async def test_a_new_message_appears_and_who_is_at_the_end_stays_there() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        await user.press("enter", "G")
        store.said[store.sessions[0].id].append(Said("reply", "the very newest words"))
        store.version += 1
        await user.pilot.pause(1.3)
        await user.settle()
        user.sees("the very newest words", "of 121")


async def test_who_reads_further_up_is_not_moved_by_a_new_message() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        await user.press("enter", "d", "d")
        # Without the scroll bar, which rightly moves.
        before = [line[:-1] for line in user.screen.splitlines()[2:20]]
        store.said[store.sessions[0].id].append(Said("reply", "the very newest words"))
        store.version += 1
        await user.pilot.pause(1.3)
        await user.settle()
        assert [line[:-1] for line in user.screen.splitlines()[2:20]] == before


async def test_resize_keeps_the_message_at_the_top() -> None:
    async with browsing() as user:
        await user.press("enter", "d", "d", "d")
        top = view(user).heights.at(view(user).scroll_offset.y)[0]
        await user.pilot.resize_terminal(90, 30)
        await user.settle()
        assert view(user).heights.at(view(user).scroll_offset.y)[0] == top


async def test_copy_takes_the_raw_text() -> None:
    library, _ = with_talk([Said("prompt", "tab\there"), Said("reply", "ok", usage=Usage(1, 1, 1))])
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter", "y")
        assert user.app.clipboard == "tab\there"


async def test_an_empty_conversation_says_so() -> None:
    library, _ = with_talk([])
    async with browsing(library) as user:  # type: ignore[arg-type]
        await user.press("enter")
        user.sees("This conversation has no messages.")


async def test_reading_that_fails_tells_why() -> None:
    library, store, _ = demo_library()
    async with browsing(library) as user:
        store.trouble = OSError(5, "the disk does not answer")
        await user.press("enter")
        user.sees("failed", "the disk does not answer")


async def test_recovery_stands_beside_the_record() -> None:
    async with browsing() as user:
        await user.press("enter", "v")
        user.sees("record 120 messages", "recovery 8 messages", "kept", "window 5")
        user.sees("baseline: none, the context is sent again", "cut: end of log")
        await user.press("g")
        user.sees("dropped")
        await user.press("escape")
        user.sees("[record] recovery")


async def test_small_talk_is_deterministic() -> None:
    assert [dataclasses.astuple(one) for one in small_talk(30)] == [dataclasses.astuple(one) for one in small_talk(30)]


async def test_text_selected_with_the_mouse_is_copied_and_escape_drops_it() -> None:
    async with browsing() as user:
        await user.press("enter")
        view = user.app.screen.query_one(TranscriptView)
        top = view.region.y
        await user.pilot.mouse_down(offset=(6, top + 1))
        await user.pilot.hover(offset=(40, top + 3))
        await user.pilot.mouse_up(offset=(40, top + 3))
        await user.settle()
        selected = user.app.screen.get_selected_text()
        lines = [line.strip() for line in user.screen.splitlines()]
        assert selected
        assert len(selected.splitlines()) == 3
        assert selected.splitlines()[1] in lines[top + 2]
        await user.press("y")
        assert user.app.clipboard == selected
        assert view.text_selection is None
        user.sees("[record]")


async def test_texts_asked_for_before_the_end_was_shown_alone_are_not_looked_for_there() -> None:
    """What is in view is asked for by a message; G may put the last messages in place of all before it arrives."""
    async with browsing() as user:
        await user.press("enter")
        shown = view(user)
        last = shown.heads[-3:]
        shown.forget_blocks()
        shown.go_to_end()
        shown._ask()
        shown.clear()
        shown.add(last)
        shown.go_to_end()
        await user.settle()
        user.sees(" of 3 ")
