"""What is passed over because something else says the same says nothing else: all ways to read a log tell alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hermes_tui.mirror.backfill import Backfill
from hermes_tui.mirror.codec import load_summary
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.model import COUNTED_KINDS, SessionId
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.codex.skim import passed_over
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.log_source import LogFile, LogSummary, fold_log
from tests.unit.codex.conftest import open_home
from tests.unit.codex.rollouts import THREAD, call, count, counts, event, line, meta, record, said, turn, write

TURN = "turn-9"


def plain(summary: LogSummary) -> LogSummary:
    return replace(summary, row=replace(summary.row, origin="scan"), requests=tuple(summary.requests))


def looked_at(store: CodexStore, log: LogFile) -> LogSummary:
    """What the log says when each of its lines is looked at."""
    return plain(fold_log(log, lambda log, state: CodexFold(store.ref, log, state, precise=True)).summary)


def mirrored(store: CodexStore, home: Path) -> LogSummary:
    database = MirrorDatabase(home.parent / "own" / "mirror.sqlite")
    Backfill(database, [store], workers=0).run()
    [(card, requests)] = database.rows("SELECT card, requests FROM logs")
    database.close()
    return plain(load_summary(card, requests, store.ref))


def told(home: Path, lines: list[str]) -> LogSummary:
    """What each way to read these lines says of them; a lone surrogate stands for a byte that is no UTF-8."""
    write(home, [text.encode("utf-8", "surrogateescape") for text in lines])
    store = open_home(home)
    [log] = store.logs()
    exact = looked_at(store, log)
    assert plain(fold_log(log, store.fold).summary) == exact
    assert mirrored(store, home) == exact
    [row] = store.rows([exact.row.id])
    living = [head for batch in store.transcript([row.id]).heads() for head in batch if head.state == "live"]
    assert sum(head.kind in COUNTED_KINDS for head in living) == row.message_count
    return exact


def reply_item(item: str | None, text: str) -> str:
    said_by = {"type": "AgentMessage", **({} if item is None else {"id": item})}
    content = [{"type": "Text", "text": text}]
    return event("item_completed", 12, thread_id=THREAD, turn_id=TURN, item=said_by | {"content": content})


def began() -> str:
    return event("task_started", 10, turn_id=TURN)


ENDED = event("task_complete", 30, turn_id=TURN, last_agent_message="late")
THOUGHTS = [line("response_item", {"type": "reasoning", "id": f"rs_{n}", "summary": []}, 13) for n in range(70)]
PROMPT = [said("user", "next", "msg_next", 11), event("user_message", 11, message="next")]


@pytest.mark.parametrize("paginated", [False, True])
@pytest.mark.parametrize(
    ("between", "shown"),
    [
        ([], 4),
        (THOUGHTS[:60], 4),
        (THOUGHTS, 5),
        ([event("thread_rolled_back", 13, num_turns=0)], 5),
        ([event("thread_rolled_back", 13, num_turns=1)], 3),
        ([line("compacted", {"message": "so far", "replacement_history": []}, 13)], 1),
        ([ENDED, began()], 5),
        ([ENDED], 5),
    ],
)
@pytest.mark.parametrize("item", [None, "msg_late"])
def test_a_reply_far_from_its_event_is_told_by_both(
    tmp_path: Path, paginated: bool, between: list[str], shown: int, item: str | None
) -> None:
    first = reply_item(item, "late") if paginated else event("agent_message", 12, message="late")
    lines = [
        meta(history_mode="paginated") if paginated else meta(),
        *turn(1, "first", "answer", 0), began(), *PROMPT, first, *between, said("assistant", "late", item, 14), ENDED,
    ]  # fmt: skip
    assert told(tmp_path / "home", lines).row.message_count == shown


def test_a_turn_that_does_not_begin_after_all_parts_nothing(tmp_path: Path) -> None:
    """An event, its raw message behind the end of the turn, and another event: two prompts, and search finds them."""
    home = tmp_path / "home"
    damaged = began().replace('"turn_id"', '"turn_id"x')
    asked = event("user_message", 11, message="next")
    lines = [meta(), *turn(1, "first", "answer", 0)[:-1], asked, ENDED, damaged, *PROMPT, ENDED]
    assert told(home, lines).row.message_count == 4
    assert set(shown_lines(home)) <= indexed_lines(tmp_path)


def test_what_is_cut_out_of_a_damaged_line_of_no_words_is_indexed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    glued = record("resp_1", 10, 0, 1)[:-9] + "\0" + said("user", "next")
    told(home, [meta(), *turn(1, "first", "answer", 0), glued])
    assert shown_lines(home)[-1] == 10
    assert set(shown_lines(home)) <= indexed_lines(tmp_path)


def shown_lines(home: Path) -> list[int | None]:
    transcript = open_home(home).transcript([SessionId(THREAD)])
    return [head.line for batch in transcript.heads() for head in batch]


def indexed_lines(folder: Path) -> set[int]:
    database = MirrorDatabase(folder / "own" / "mirror.sqlite")
    found = {line for (line,) in database.rows("SELECT line FROM texts")}
    database.close()
    return found


def test_an_event_of_a_tool_that_names_nothing_has_no_twin(tmp_path: Path) -> None:
    patched = event("patch_apply_end", 12, stdout="done", success=True)
    lines = [meta(), began(), *PROMPT, patched, call("c1", "ls", 13), ENDED]
    assert told(tmp_path / "home", lines).row.message_count == 3


def test_of_two_events_that_say_the_same_one_reply_is_the_twin_of_one(tmp_path: Path) -> None:
    again = event("agent_message", 12, message="late")
    lines = [meta(), began(), *PROMPT, again, again, said("assistant", "late", "msg_late", 13), ENDED]
    assert told(tmp_path / "home", lines).row.message_count == 3


def kept(*names: str) -> str:
    history = [{"type": "message", "role": "user", "id": name, "content": []} for name in names]
    return line("compacted", {"message": "so far", "replacement_history": history}, 15)


@pytest.mark.parametrize(
    ("compactions", "shown"),
    [
        ([kept("msg_u011", "msg_next")], 3),
        ([kept("msg_next"), kept("msg_u011", "msg_next")], 3),
        ([kept(), kept("msg_u011"), kept("msg_u011")], 2),
        ([kept(), event("thread_rolled_back", 16, num_turns=1), kept("msg_u011")], 2),
        ([line("compacted", {"message": "so far"}, 15), kept("msg_u011")], 2),
        ([kept("msg_u011"), kept("msg_next").replace("so far", "\udcff")], 2),
    ],
)
@pytest.mark.parametrize("paginated", [False, True])
def test_the_newest_compaction_decides_which_prompts_are_live(
    tmp_path: Path, compactions: list[str], shown: int, paginated: bool
) -> None:
    begun = meta(history_mode="paginated") if paginated else meta()
    lines = [begun, *turn(1, "first", "answer", 0), began(), *PROMPT, *compactions, said("assistant", "late"), ENDED]
    assert told(tmp_path / "home", lines).row.message_count == shown


@pytest.mark.parametrize("size", [1010, 5000])
def test_the_size_before_a_compaction_is_the_newest_that_was_told(tmp_path: Path, size: int) -> None:
    usage = {**counts(1000, 0, 10), "total_tokens": size}
    full = record("resp_full", 1000, 0, 10, second=12)
    told_again = count(usage, usage, 13)
    compacted = line("compacted", {"message": "so far", "replacement_history": []}, 14)
    reply = said("assistant", "late", "msg_late", 12)
    lines = [meta(), began(), *PROMPT, reply, full, told_again, compacted, ENDED]
    summary = told(tmp_path / "home", lines)
    assert [each.before_tokens for each in summary.compactions] == [size]


@pytest.mark.parametrize(
    ("at", "twice"),
    [
        (-1, '"payload":{}'), (-1, '"type":"other"'), (-1, '"timestamp":"2027-01-01T00:00:00.000Z"'),
        (-1, '"timestamp":7'), (-2, '"type":"other"'),
    ],
)  # fmt: skip
def test_a_key_that_comes_twice_counts_as_a_parser_counts_it(tmp_path: Path, at: int, twice: str) -> None:
    lines = [meta(), *turn(1, "first", "answer", 0)]
    lines[-1] = f"{lines[-1][:at]},{twice}{lines[-1][at:]}"
    assert passed_over(lines[-1].encode())
    told(tmp_path / "home", lines)


@pytest.mark.parametrize("kind", ["new_thing", 7])
def test_an_event_is_indexed_whose_raw_item_is_of_an_unknown_type(tmp_path: Path, kind: object) -> None:
    home = tmp_path / "home"
    raw = line("response_item", {"type": kind, "id": "rs_1", "summary": []}, 13)
    item = {"type": "Reasoning", "id": "rs_1", "summary_text": ["think first"]}
    thought = event("item_completed", 12, thread_id=THREAD, turn_id=TURN, item=item)
    told(home, [meta(history_mode="paginated"), began(), *PROMPT, thought, raw, ENDED])
    assert set(shown_lines(home)) <= indexed_lines(tmp_path)


@pytest.mark.parametrize("role", [None, [[]], "narrator", "user", "developer"])
def test_an_event_counts_whose_raw_reply_was_given_another_role(tmp_path: Path, role: object) -> None:
    content = [{"type": "output_text", "text": "all done"}]
    raw = {"type": "message", "id": "msg_reply", "role": role, "content": content}
    reply = [reply_item("msg_reply", "all done"), line("response_item", raw, 13)]
    told(tmp_path / "home", [meta(history_mode="paginated"), began(), *PROMPT, *reply, ENDED])
