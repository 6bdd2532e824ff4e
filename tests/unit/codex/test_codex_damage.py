"""Damaged and odd homes: everything is shown, what is lost is counted (facts/codex.md section 7)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from hermes_tui.model import ListQuery, Message, MessageHead, PowerCut, SessionId, SessionRow
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.log_source import fold_log
from tests.unit.codex.conftest import open_home
from tests.unit.codex.rollouts import (
    OTHER,
    THREAD,
    call,
    count,
    counts,
    event,
    line,
    meta,
    output,
    record,
    said,
    stamp,
    turn,
    write,
)


def row_of(store: CodexStore, thread: str = THREAD) -> SessionRow:
    return store.rows([SessionId(thread)])[0]


def heads_of(store: CodexStore, thread: str = THREAD) -> list[MessageHead]:
    return [head for batch in store.transcript([SessionId(thread)]).heads() for head in batch]


def shown(store: CodexStore, thread: str = THREAD) -> list[Message]:
    transcript = store.transcript([SessionId(thread)])
    return transcript.load([head for batch in transcript.heads() for head in batch])


def texts(store: CodexStore, thread: str = THREAD) -> list[tuple[str, str | None]]:
    return [(message.head.kind, message.text) for message in shown(store, thread)]


def reasons(store: CodexStore, thread: str = THREAD) -> list[tuple[int | None, str]]:
    transcript = store.transcript([SessionId(thread)])
    for _ in transcript.heads():
        pass
    return [(problem.line, problem.reason) for problem in transcript.problems]


def ids(store: CodexStore) -> list[str]:
    return [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]


TWO_TURNS = [meta(), *turn(1, "first question", "first answer", 10), *turn(2, "second question", "second answer", 20)]


def test_a_torn_last_line_is_told_and_nothing_else_is_lost(tmp_path: Path) -> None:
    path = write(tmp_path, [*TWO_TURNS, '{"timestamp":"2026-11-18T10:'], end=b"")
    store = open_home(tmp_path)
    assert texts(store)[-1] == ("reply", "second answer")
    assert reasons(store) == [(18, "torn tail")]
    row = row_of(store)
    assert (row.title, row.problems, row.message_count, row.request_count) == ("first question", 1, 4, 2)
    assert store.recovery(SessionId(THREAD)).ignored[0].line == 18
    assert path.read_bytes().endswith(b"10:")


def test_half_a_line_in_the_middle_and_two_glued_lines(tmp_path: Path) -> None:
    half = said("assistant", "half an answer")[:60]
    glued = call("call_1") + output("call_1", "glued output")
    write(tmp_path, [*TWO_TURNS[:9], half, glued, *TWO_TURNS[9:]])
    store = open_home(tmp_path)
    assert ("tool-call", '{"cmd": "ls"}') in texts(store)
    assert ("tool-result", "glued output") in texts(store)
    assert [place for place, _ in reasons(store)] == [10, 11]
    assert row_of(store).problems == 2
    assert row_of(store).tool_call_count == 1
    # The program loses both halves of a glued line, so a resume does as well.
    recovery = store.recovery(SessionId(THREAD))
    assert [message.text for message in recovery.messages if message.head.role != "developer"] == [
        "first question", "first answer", "second question", "second answer",
    ]  # fmt: skip
    assert [ignored.line for ignored in recovery.ignored] == [10, 11]


def test_a_torn_first_line_leaves_the_thread_by_its_files_name(tmp_path: Path) -> None:
    write(tmp_path, [meta()[:70], *turn(1, "a question", "an answer", 10)])
    store = open_home(tmp_path)
    row = row_of(store)
    assert (row.id, row.title, row.cwd, row.resumable) == (THREAD, "a question", "/home/ana/src", False)
    assert row.problems == 2
    assert row.request_count == 1
    assert ids(store) == [THREAD]


def test_a_legacy_fork_without_its_first_line_does_not_become_its_source(tmp_path: Path) -> None:
    source = [meta(), *turn(1, "a question", "an answer", 10)]
    write(tmp_path, source)
    copied = list(source)
    own = turn(2, "in the fork", "a fork's answer", 30, thread=OTHER)
    write(tmp_path, [meta(OTHER, forked_from_id=THREAD)[:50], *copied, *own], thread=OTHER)
    store = open_home(tmp_path)
    assert sorted(ids(store)) == sorted([THREAD, OTHER])
    assert row_of(store, OTHER).request_count == 1
    assert [request.request_id for request in store.requests(None)] == ["resp_011", "resp_022"]


@pytest.mark.parametrize("mode", ["legacy", "paginated"])
def test_bad_utf8_is_replaced_and_told(tmp_path: Path, mode: str) -> None:
    bad = said("assistant", "caf@").encode().replace(b"@", b"\xe9")
    write(tmp_path, [meta(history_mode=mode), *TWO_TURNS[1:], bad])
    store = open_home(tmp_path)
    assert ("reply", "caf\ufffd") in texts(store)
    assert [place for place, _ in reasons(store)] == [18]
    # The program loses the line on a resume, and refuses the whole of a legacy file for it.
    recovery = store.recovery(SessionId(THREAD))
    assert recovery.messages[-1].text == "second answer"
    assert [ignored.line for ignored in recovery.ignored] == [18]
    assert row_of(store).resumable is (mode == "paginated")


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b"\0" * 300])
def test_a_file_without_a_line_is_listed_with_a_problem(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, TWO_TURNS)
    path = write(tmp_path, [], thread=OTHER, end=content)
    store = open_home(tmp_path)
    assert sorted(ids(store)) == sorted([THREAD, OTHER])
    row = row_of(store, OTHER)
    assert row.problems >= 1
    assert not row.resumable
    assert path.read_bytes() == content


def test_only_a_meta_is_a_thread_without_a_title(tmp_path: Path) -> None:
    write(tmp_path, [meta()])
    row = row_of(open_home(tmp_path))
    assert (row.title, row.preview, row.problems, row.message_count, row.cwd) == (None, None, 0, 0, "/home/ana/src")


def test_the_meta_names_the_thread_when_the_file_says_otherwise(tmp_path: Path) -> None:
    write(tmp_path, TWO_TURNS, thread=OTHER)
    assert ids(open_home(tmp_path)) == [THREAD]


def test_one_thread_in_two_files_is_one_row(tmp_path: Path) -> None:
    write(tmp_path, TWO_TURNS)
    write(tmp_path, TWO_TURNS, folder="archived_sessions")
    store = open_home(tmp_path)
    assert ids(store) == [THREAD]
    row = row_of(store)
    assert (row.parts, row.request_count, row.message_count, row.archived) == (1, 2, 4, False)
    assert "thread-in-two-files" in {finding.code for finding in store.status().findings}


@pytest.mark.parametrize("folder", ["sessions", "sessions/2026/11/18/more/deep", "sessions/old backup"])
def test_files_outside_the_day_folders_are_found(tmp_path: Path, folder: str) -> None:
    write(tmp_path, TWO_TURNS, folder=folder)
    assert ids(open_home(tmp_path)) == [THREAD]


def test_links_loops_and_locked_folders(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_TURNS)
    (tmp_path / "sessions" / "loop").symlink_to(tmp_path / "sessions", target_is_directory=True)
    (tmp_path / "sessions" / path.name).symlink_to(path)
    (tmp_path / "sessions" / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "sessions" / f"rollout-2026-11-18T10-00-00-{OTHER}.jsonl").symlink_to(tmp_path / "gone")
    closed = tmp_path / "sessions" / "closed"
    closed.mkdir()
    closed.chmod(0)
    try:
        store = open_home(tmp_path)
        assert ids(store) == [THREAD]
        codes = {finding.code for finding in store.status().findings}
        assert {"unreadable-folder", "linked-rollouts"} <= codes
    finally:
        closed.chmod(0o700)


def test_a_pipe_named_like_a_rollout_is_told_and_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, TWO_TURNS)
    pipe = tmp_path / "sessions" / f"rollout-2026-11-18T10-00-00-{OTHER}.jsonl"
    os.mkfifo(pipe)
    store = open_home(tmp_path)
    assert ids(store) == [THREAD]
    (told,) = [finding for finding in store.status().findings if finding.code == "unreadable-folder"]
    assert (told.paths, told.detail) == ((str(pipe),), f"cannot be looked into: {pipe} (it is no file)")


def test_unknown_types_are_shown(tmp_path: Path) -> None:
    odd = [line("telepathy", {"thought": "?"}), event("mind_read", note="x"), line("response_item", {"type": "spell"})]
    write(tmp_path, [*TWO_TURNS, *odd])
    store = open_home(tmp_path)
    assert [message.head.line for message in shown(store) if message.head.kind == "unknown"] == [18, 19, 20]
    assert [ignored.line for ignored in store.recovery(SessionId(THREAD)).ignored] == [18, 20]
    assert row_of(store).message_count == 4


def test_a_killed_turn_gets_an_aborted_output(tmp_path: Path) -> None:
    killed = [
        event("task_started", 30, turn_id="t3"),
        said("user", "third"),
        event("user_message", 30, message="third"),
    ]
    write(tmp_path, [*TWO_TURNS, *killed, call("call_9", second=31)])
    store = open_home(tmp_path)
    recovered = [(message.head.kind, message.text) for message in store.recovery(SessionId(THREAD)).messages]
    assert recovered[-3:] == [("prompt", "third"), ("tool-call", '{"cmd": "ls"}'), ("tool-result", "aborted")]
    assert row_of(store).tool_call_count == 1


def test_an_output_whose_call_is_lost_is_not_sent(tmp_path: Path) -> None:
    write(tmp_path, [*TWO_TURNS, output("call_lost", "nobody asked")])
    recovery = open_home(tmp_path).recovery(SessionId(THREAD))
    assert "nobody asked" not in [message.text for message in recovery.messages]
    assert [(ignored.line, "call_lost" in ignored.reason) for ignored in recovery.ignored] == [(18, True)]


def test_a_result_survives_in_the_event_when_its_raw_twin_is_torn(tmp_path: Path) -> None:
    item = {"type": "CommandExecution", "id": "call_1", "exit_code": 3, "aggregated_output": "three\n"}
    lines = [
        meta(history_mode="paginated"),
        event("task_started", 1, turn_id="t"),
        said("user", "go", second=1),
        event(
            "item_completed", 1, item={"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "go"}]}
        ),
        call("call_1", second=2),
        event("item_completed", 2, item=item),
        output("call_1")[:40],
        event(
            "item_completed", 3, item={"type": "AgentMessage", "id": "m", "content": [{"type": "Text", "text": "done"}]}
        ),
        said("assistant", "done", "m", 3)[:50],
        event("task_complete", 4, turn_id="t"),
    ]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    assert texts(store) == [
        ("prompt", "go"), ("tool-call", '{"cmd": "ls"}'), ("tool-result", "Exit code 3\nthree\n"), ("reply", "done"),
    ]  # fmt: skip
    assert row_of(store).message_count == 4


def test_byte_order_mark_crlf_and_nul_padding(tmp_path: Path) -> None:
    lines = [b"\xef\xbb\xbf" + TWO_TURNS[0].encode(), *(text.encode() + b"\r" for text in TWO_TURNS[1:]), b"\0" * 64]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    row = row_of(store)
    assert (row.title, row.message_count, row.problems, row.request_count) == ("first question", 4, 1, 2)


def test_compressed_rollouts_read_like_plain_ones(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_TURNS)
    plain = open_home(tmp_path)
    told, row = [head.id for head in heads_of(plain)], row_of(plain)
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    both = open_home(tmp_path)
    assert ids(both) == [THREAD]
    assert "shadowed-rollouts" in {finding.code for finding in both.status().findings}
    path.unlink()
    store = open_home(tmp_path)
    assert [head.id for head in heads_of(store)] == told
    assert texts(store) == texts(store)
    assert row_of(store).message_count == row.message_count
    assert [m.text for m in store.recovery(SessionId(THREAD)).messages][-1] == "second answer"
    assert [head.id for head in store.transcript([SessionId(THREAD)]).tail(2)] == told[-2:]
    cut = store.recovery(SessionId(THREAD), PowerCut(9))
    assert [m.text for m in cut.messages][-1] == "first answer"


def test_autumn_2025_format(tmp_path: Path) -> None:
    """Envelope, no source, no turn events, a compaction with its message alone (section 7, a)."""
    old_meta = {"id": THREAD, "timestamp": stamp(0), "cwd": "/home/ana/old", "instructions": "be brief"}
    lines = [
        line("session_meta", old_meta),
        said("user", "<environment_context>\n  <cwd>/home/ana/old</cwd>\n</environment_context>"),
        line("turn_context", {"cwd": "/home/ana/old", "model": "gpt-5-codex", "approval_policy": "never"}, 1),
        said("user", "old question", second=1),
        event("user_message", 1, message="old question"),
        event("agent_message", 2, message="old answer"),
        said("assistant", "old answer", second=2),
        count(counts(100, 20, 5), counts(100, 20, 5), 2),
        line("compacted", {"message": "what was said"}, 3),
        said("user", "newer question", second=4),
        event("user_message", 4, message="newer question"),
        said("assistant", "newer answer", second=5),
        event("agent_message", 5, message="newer answer"),
        count(counts(250, 120, 12), counts(150, 100, 7), 5),
        count(counts(250, 120, 12), counts(150, 100, 7), 5),
    ]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    row = row_of(store)
    assert (row.title, row.source, row.model, row.cwd) == ("old question", "vscode", "gpt-5-codex", "/home/ana/old")
    assert row.usage is not None
    assert (row.request_count, row.usage.prompt_size, row.usage.cache_read, row.usage.output) == (2, 250, 120, 12)
    assert [(head.kind, head.state) for head in heads_of(store)] == [
        ("context", "compacted"), ("prompt", "live"), ("reply", "compacted"), ("summary", "live"), ("prompt", "live"),
        ("reply", "live"),
    ]  # fmt: skip
    assert row.message_count == 3
    [node] = store.lineage(SessionId(THREAD)).nodes
    assert [(each.kept, each.dropped) for each in node.compactions] == [(1, 1)]
    recovery = store.recovery(SessionId(THREAD))
    assert [message.text for message in recovery.messages] == [
        "old question", "what was said", "newer question", "newer answer",
    ]  # fmt: skip
    assert (recovery.base_kind, recovery.window, recovery.baseline) == ("start", 1, None)


def test_spring_2025_format(tmp_path: Path) -> None:
    """Bare lines without envelopes (section 7, b): the program calls such a file empty."""
    import json

    lines = [
        json.dumps({"id": THREAD, "timestamp": stamp(0), "instructions": None, "git": {"branch": "main"}}),
        json.dumps({"record_type": "state"}),
        json.dumps({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "bare question"}]}),
        json.dumps(
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "bare answer"}]}
        ),
    ]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    row = row_of(store)
    assert (row.title, row.git_branch, row.message_count, row.problems) == ("bare question", "main", 2, 0)
    assert texts(store) == [("prompt", "bare question"), ("reply", "bare answer")]
    assert store.listing(ListQuery(text="bare q")).total == 1


def test_april_2025_format(tmp_path: Path) -> None:
    """One object a file (section 7, c): the program ignores it."""
    import json

    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first of all"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1", "id": "f1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    whole = {"session": {"timestamp": stamp(0), "id": THREAD, "instructions": ""}, "items": items}
    for indent in (None, 2):
        write(tmp_path, [json.dumps(whole, indent=indent)], name=f"rollout-2025-04-20-{THREAD}.json", folder="sessions")
        store = open_home(tmp_path)
        row = row_of(store)
        assert (row.title, row.message_count, row.tool_call_count, row.problems) == ("first of all", 4, 1, 0)
        assert texts(store) == [
            ("prompt", "first of all"),
            ("tool-call", "{}"),
            ("tool-result", "ok"),
            ("reply", "done"),
        ]
        assert [m.text for m in store.recovery(SessionId(THREAD)).messages] == ["first of all", "{}", "ok", "done"]


def test_a_prompt_after_many_lines_still_titles_the_thread(tmp_path: Path) -> None:
    many = [said("developer", f"context {number}") for number in range(400)]
    write(tmp_path, [meta(), *many, *turn(1, "late question", "late answer", 10)])
    store = open_home(tmp_path)
    assert row_of(store).title == "late question"
    assert store.listing(ListQuery(text="late question")).total == 1


@pytest.mark.parametrize("mode", [{}, {"history_mode": "paginated"}])
def test_rolled_back_turns_are_rewound(tmp_path: Path, mode: dict[str, str]) -> None:
    back = event("thread_rolled_back", 25, num_turns=1)
    write(tmp_path, [meta(**mode), *TWO_TURNS[1:], back, *turn(3, "third question", "third answer", 30)])
    store = open_home(tmp_path)
    states = {message.text: message.head.state for message in shown(store) if message.head.kind in ("prompt", "reply")}
    assert states == {
        "first question": "live", "first answer": "live", "second question": "rewound", "second answer": "rewound",
        "third question": "live", "third answer": "live",
    }  # fmt: skip
    row = row_of(store)
    assert (row.message_count, row.request_count) == (4, 3)
    assert [message.text for message in store.recovery(SessionId(THREAD)).messages] == [
        "first question", "first answer", "third question", "third answer",
    ]  # fmt: skip
    events = [request.events for request in store.requests([SessionId(THREAD)])]
    assert [cause.cause for cause in events[2]] == ["rewind"]


def test_a_rollback_written_after_the_log_was_put_away_takes_back_what_was_read_before(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_TURNS)
    store = open_home(tmp_path)
    place = fold_log(store.logs()[0], store.fold, keep=True).place
    assert place is not None
    with path.open("a", encoding="utf-8") as file:
        file.write(event("thread_rolled_back", 25, num_turns=1) + "\n")
    grown = fold_log(store.logs()[0], store.fold, place, keep=True)
    assert grown.summary.row.message_count == 2
    assert grown.place is not None
    assert store.fold(store.logs()[0], grown.place.state).summary().row.message_count == 2


@pytest.mark.parametrize(
    "odd", ["9999-99-99T99:99:99.999Z", "2098-02-30T10:00:00.000Z", "1970-01-01T00:00:00.000Z", "soon", "", None, 7]
)
def test_a_time_that_is_none_is_told_and_does_not_hide_the_others(tmp_path: Path, odd: object) -> None:
    value = json.loads(TWO_TURNS[3])
    value["timestamp"] = odd
    write(tmp_path, [*TWO_TURNS[:3], json.dumps(value), *TWO_TURNS[4:]])
    store = open_home(tmp_path)
    row = row_of(store)
    assert row.last_active_at == row_of(untouched(tmp_path / "other")).last_active_at
    transcript = store.transcript([SessionId(THREAD)])
    (head,) = [head for batch in transcript.heads() for head in batch if head.line == 4]
    assert head.at is None
    assert [(problem.line, problem.reason[:11]) for problem in transcript.problems] == [(4, "absurd time")]
    assert row.problems == 1
    assert [(f.code, f.count) for f in store.findings() if f.severity == "warn"] == [("absurd-time", 1)]


def untouched(home: Path) -> CodexStore:
    write(home, TWO_TURNS)
    return open_home(home)


def test_a_subagent_with_copied_context_pays_only_for_itself(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": OTHER, "depth": 1}}}
    parent_total = counts(5000, 4000, 100)
    own_total = counts(5300, 4100, 130)
    lines = [
        meta(source=source, parent_thread_id=OTHER, session_id=OTHER, timestamp=stamp(100)),
        event("task_started", 100, turn_id="parent-turn", started_at=1_795_000_000 + 10),
        said("user", "the parent's question", second=100),
        event("user_message", 100, message="the parent's question"),
        count(parent_total, parent_total, 100),
        event("task_started", 101, turn_id="own-turn", started_at=1_795_000_000 + 1_000_000),
        said("user", "the task", second=101),
        event("user_message", 101, message="the task"),
        said("assistant", "the result", second=102),
        count(own_total, counts(300, 100, 30), 102),
        event("task_complete", 103, turn_id="own-turn"),
    ]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    row = row_of(store)
    assert row.usage is not None
    assert (row.request_count, row.usage.prompt_size, row.usage.cache_read, row.usage.output) == (1, 300, 100, 30)
    assert (row.lineage_kind, row.parent_id, row.source, row.message_count) == ("delegation", OTHER, "subagent", 2)


def test_a_lost_history_is_told(tmp_path: Path) -> None:
    base = {"thread_id": OTHER, "end_ordinal_exclusive": 36, "end_byte_offset": 900}
    write(tmp_path, [meta(history_mode="paginated", forked_from_id=OTHER, history_base=base), *TWO_TURNS[1:]])
    store = open_home(tmp_path)
    row = row_of(store)
    assert (row.resumable, row.problems, row.parent_id) == (False, 1, OTHER)
    assert "history is missing" in reasons(store)[0][1]
    assert store.lineage(SessionId(THREAD)).nodes[0].findings == ("orphan",)
    assert texts(store)[-1] == ("reply", "second answer")


def test_one_broken_file_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, TWO_TURNS)
    write(tmp_path, [b"\xff\xfe\x00garbage"] * 3, thread=OTHER)
    unreadable = write(tmp_path, TWO_TURNS, thread=OTHER[:-1] + "3")
    unreadable.chmod(0)
    store = open_home(tmp_path)
    assert len(ids(store)) == (3 if os.geteuid() else 2)
    assert row_of(store).message_count == 4
    assert row_of(store, OTHER).problems >= 3


def test_killed_program_leaves_nothing_running_for_ever(tmp_path: Path) -> None:
    path = write(tmp_path, [*TWO_TURNS, event("task_started", 30, turn_id="t3")])
    assert not row_of(open_home(tmp_path)).running
    now = CodexStore(open_home(tmp_path).ref, clock=lambda: 1_795_000_040.0)
    assert row_of(now).running
    shutil.copy(path, path.with_suffix(".bak"))


def test_usage_repeated_by_a_later_line_is_counted_once(tmp_path: Path) -> None:
    write(tmp_path, [*TWO_TURNS, record("resp_011", 1000, 100, 10), record("resp_x", 7, 0, 1, thread=OTHER)])
    row = row_of(open_home(tmp_path))
    assert row.request_count == 2


def test_an_old_fork_without_its_sources_counts_pays_only_for_itself(tmp_path: Path) -> None:
    lines = [
        meta(forked_from_id=OTHER, timestamp=stamp(0)),
        event("task_started", 5, turn_id="own", started_at=1_795_000_005),
        said("user", "go on", second=5),
        event("user_message", 5, message="go on"),
        said("assistant", "done", second=6),
        count(counts(9300, 8100, 130), counts(300, 100, 30), 6),
        count(counts(9300, 8100, 130), counts(300, 100, 30), 6),
        count(counts(9700, 8400, 150), counts(400, 300, 20), 7),
    ]
    write(tmp_path, lines)
    row = row_of(open_home(tmp_path))
    assert row.usage is not None
    assert (row.request_count, row.usage.prompt_size, row.usage.cache_read, row.usage.output) == (2, 700, 400, 50)


def test_counts_without_totals_are_summed_once_each(tmp_path: Path) -> None:
    def bare(size: int) -> str:
        return event("token_count", 5, info={"last_token_usage": counts(size, 0, 1)})

    write(tmp_path, [meta(), said("user", "x"), event("user_message", message="x"), bare(100), bare(100), bare(250)])
    row = row_of(open_home(tmp_path))
    assert row.usage is not None
    assert (row.request_count, row.usage.prompt_size) == (2, 350)


def test_lines_of_the_list_of_names_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    write(tmp_path, TWO_TURNS)
    (tmp_path / "session_index.jsonl").write_text('{"id": "half\n[broken\n', encoding="utf-8")
    told = {finding.code: finding.count for finding in open_home(tmp_path).findings()}
    assert told["unreadable-names"] == 2


def test_lone_surrogates_in_a_log_that_grows_are_put_away_and_taken_up(tmp_path: Path) -> None:
    lines = [meta(), *turn(1, "half \ud83d of a sign", "said", 0)]
    path = write(tmp_path, [json.dumps(json.loads(one)) for one in lines])
    store = open_home(tmp_path)
    before = store.rows([SessionId(THREAD)])[0]
    assert before.title == "half \ud83d of a sign"
    with path.open("a") as file:
        file.write("\n".join(turn(2, "more", "said more", 10)) + "\n")
    assert store.rows([SessionId(THREAD)])[0].message_count == 4


@pytest.mark.parametrize("odd", [{}, ["message"], 7, None])
@pytest.mark.parametrize("place", ["type", "role", "item"])
def test_types_and_roles_that_are_no_words_lose_no_record(tmp_path: Path, place: str, odd: object) -> None:
    lines = [
        meta(history_mode="paginated"),
        *turn(1, "first", "said", 10),
        event("item_completed", 12, item={"type": odd if place == "item" else "Plan", "id": "p"}),
        line("response_item", {"type": "message", "role": "user", "content": [], place: odd}, 13),
        event("token_count" if place == "item" else odd, 14, info=None),  # type: ignore[arg-type]
    ]
    store = open_home(tmp_path)
    write(tmp_path, lines)
    assert [text for _, text in texts(store) if text in ("first", "said")] == ["first", "said"]
    assert not [reason for _, reason in reasons(store) if "shape" in reason]
    assert row_of(store).problems == 0
    assert [m.text for m in store.recovery(SessionId(THREAD)).messages if m.text in ("first", "said")] == [
        "first",
        "said",
    ]


def test_a_rollout_whose_name_says_nothing_can_be_asked_for(tmp_path: Path) -> None:
    write(tmp_path, ["{}"], name="rollout-.jsonl")
    store = open_home(tmp_path)
    assert list(store.index().rows) == ["rollout-.jsonl"]
    assert store.rows([SessionId("rollout-.jsonl")])[0].problems == 1
