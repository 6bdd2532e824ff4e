"""What a resume sends after rollbacks, compactions of 2025 and cuts, step by step (facts/codex.md section 9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import PowerCut, Recovery, SessionId
from tests.unit.codex.conftest import open_home
from tests.unit.codex.rollouts import THREAD, event, line, meta, said, turn, write

SUMMARY = "Another language model started to solve this problem and produced a summary.\n"


def resumed(home: Path, lines: list[str], cut: PowerCut | None = None) -> Recovery:
    write(home, lines)
    return open_home(home).recovery(SessionId(THREAD), cut)


def texts(found: Recovery) -> list[str | None]:
    return [message.text for message in found.messages]


def message(role: str, text: str, kinds: list[str] | None = None) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
    if kinds is not None:
        item["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    return item


def test_a_rollback_leaves_the_summary_that_stands_before_the_turn(tmp_path: Path) -> None:
    kept = [message("user", "first", ["user.text"]), message("user", "the summary", ["compaction.summary"])]
    lines = [
        meta(),
        *turn(1, "first", "answer", 1),
        line("compacted", {"message": "the summary", "replacement_history": kept}, 4),
        *turn(2, "second", "taken back", 10),
        event("thread_rolled_back", 20, num_turns=1),
    ]
    assert texts(resumed(tmp_path, lines)) == ["first", "the summary"]


def test_after_a_compaction_that_kept_no_history_the_context_is_sent_again(tmp_path: Path) -> None:
    lines = [
        meta(), *turn(1, "first", "answer", 1), line("compacted", {"message": "told"}, 4), *turn(2, "second", "yes", 10)
    ]  # fmt: skip
    found = resumed(tmp_path, lines)
    assert texts(found) == ["first", "told", "second", "yes"]
    assert (found.baseline, found.reinjects_context, found.window) == (None, True, 1)


def test_a_later_compaction_of_2025_does_not_keep_the_summary_of_the_one_before(tmp_path: Path) -> None:
    lines = [
        meta(),
        *turn(1, "first", "answer", 1),
        line("compacted", {"message": f"{SUMMARY}one"}, 4),
        *turn(2, "second", "yes", 10),
        line("compacted", {"message": ""}, 14),
    ]
    assert texts(resumed(tmp_path, lines)) == ["first", "second", "(no summary available)"]


def test_a_raw_prompt_makes_a_turn_the_users_before_its_event_is_written(tmp_path: Path) -> None:
    lines = [meta(), *turn(1, "first", "answer", 1), *turn(2, "second", "never", 10)]
    prompt = next(number for number, text in enumerate(lines, 1) if "second" in text and "response_item" in text)
    found = resumed(tmp_path, lines, PowerCut(prompt))
    assert texts(found) == ["first", "answer", "second"]
    assert found.baseline is not None
    assert found.baseline["turn_id"] == "turn-2"


@pytest.mark.parametrize(("full", "turn_id"), [(True, "manual"), (False, "turn-1")])
def test_a_manual_compaction_sets_the_baseline_by_the_world_state_behind_it(
    tmp_path: Path, full: bool, turn_id: str
) -> None:
    kept = {"message": "told", "replacement_history": [message("user", "told")], "window_number": 1}
    lines = [
        meta(),
        *turn(1, "first", "answer", 1),
        event("task_started", 10, turn_id="manual"),
        *([line("compacted", kept, 11)] if full else []),
        line("world_state", {"full": full, "state": {}}, 12),
        line("turn_context", {"turn_id": "manual", "model": "gpt-5.5"}, 13),
        event("task_complete", 14, turn_id="manual"),
    ]
    baseline = resumed(tmp_path, lines).baseline
    assert baseline is not None
    assert baseline["turn_id"] == turn_id


def test_a_window_is_counted_over_all_compactions_where_none_has_a_number(tmp_path: Path) -> None:
    kept = {"message": "told", "replacement_history": [message("user", "told")]}
    lines = [
        meta(),
        *turn(1, "first", "answer", 1),
        line("compacted", kept, 4),
        *turn(2, "second", "yes", 10),
        line("compacted", kept, 13),
        event("task_started", 20, turn_id="turn-3"),
        said("user", "third"),
        event("user_message", 20, message="third"),
        line("compacted", kept, 21),
        event("task_complete", 22, turn_id="turn-3"),
        event("thread_rolled_back", 23, num_turns=1),
    ]
    assert resumed(tmp_path, lines).window == 3
