"""Reading entries piece by piece, and what a resume would send."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_tui.model import PowerCut, SessionId
from hermes_tui.storage.jsonl import GIANT_LINE
from hermes_tui.stores.dsh.database import NoLinesToCut
from hermes_tui.stores.dsh.format import SessionCorruptError
from hermes_tui.stores.dsh.package import PACKAGE
from hermes_tui.stores.dsh.store import SessionNotDrivable
from hermes_tui.stores.protocol import TEXT_PIECE
from tests.unit.dsh.conftest import SAMPLES, Log, log_name, messages_of, opened, put, rows_of, texts, used, zipped

A = SessionId("session-a")


def write(home: Path, log: Log, compressed: bool) -> None:
    put(home, zipped(log.bytes()) if compressed else log.bytes(), log_name(log.version, compressed), folder=log.id)


@pytest.mark.parametrize("compressed", [False, True])
def test_entries_point_to_their_lines(tmp_path: Path, compressed: bool) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei")
    write(tmp_path, log, compressed)
    data = log.bytes()
    transcript = opened(tmp_path).transcript([A])
    heads = [head for batch in transcript.heads() for head in batch]
    lines = data.split(b"\n")
    for head in heads:
        assert head.line is not None
        assert head.offset is not None
        assert head.length is not None
        assert data[head.offset : head.offset + head.length] == lines[head.line - 1]
    backwards = transcript.load(heads[::-1])
    assert [message.text for message in backwards] == ["zwei", "two", "eins", "one"]
    assert [head.id for head in transcript.tail(2)] == [head.id for head in heads[-2:]]


@pytest.mark.parametrize("compressed", [False, True])
def test_long_text_is_read_in_pieces(tmp_path: Path, compressed: bool) -> None:
    long = "".join(f"{number:07d} " for number in range(TEXT_PIECE // 4))
    assert TEXT_PIECE < len(long) < GIANT_LINE
    write(tmp_path, Log().talk("one", long), compressed)
    transcript = opened(tmp_path).transcript([A])
    (reply,) = [m for batch in transcript.heads() for m in transcript.load(batch) if m.head.kind == "reply"]
    assert reply.cut
    assert reply.text == long[:TEXT_PIECE]
    assert transcript.piece(reply.head, TEXT_PIECE, 20) == long[TEXT_PIECE : TEXT_PIECE + 20]
    assert transcript.piece(reply.head, len(long), 20) == ""


def test_giant_line_is_named_and_the_rest_is_whole(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("read the file")
    log.reply("", used(1, 1, 1, 1), call=("c1", "read"))
    data = {"turn": 1, "step": 1, "message": {"role": "tool", "toolCallId": "c1", "content": [
        {"type": "text", "text": "x" * (GIANT_LINE + 10)}], "id": "r"}}  # fmt: skip
    log.event("tool/result", data, surfaceOp="append")
    log.lines[-1] = log.lines[-1].replace(b'": ', b'":').replace(b', "', b',"')
    log.reply("a long one", used(2, 2, 2, 2), step=2)
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.problems, row.resumable) == (0, True)
    assert row.usage is not None
    assert row.usage.input == 3
    messages = messages_of(store, "session-a")
    assert [m.head.kind for m in messages] == ["prompt", "tool-call", "tool-result", "reply"]
    giant = messages[2]
    assert giant.cut
    assert giant.head.size > GIANT_LINE
    assert giant.text == "x" * TEXT_PIECE
    piece = store.transcript([A]).piece(giant.head, GIANT_LINE, 10)
    assert piece == "x" * 10


def test_recovery_of_a_cut_log(tmp_path: Path) -> None:
    log = Log().talk("one", "eins")
    log.talk("two", "zwei").write(tmp_path)
    store = opened(tmp_path)
    reply = next(at for at, line in enumerate(log.lines) if b"zwei" in line) + 2
    assert [m.text for m in store.recovery(A).messages] == ["one", "eins", "two", "zwei"]
    assert [m.text for m in store.recovery(A, PowerCut(reply)).messages] == ["one", "eins", "two", "zwei"]
    before = store.recovery(A, PowerCut(reply - 1))
    assert [m.text for m in before.messages] == ["one", "eins", "two"]
    assert before.row.request_count == 1
    torn = store.recovery(A, PowerCut(reply, 40))
    assert [m.text for m in torn.messages] == ["one", "eins", "two"]
    assert [(i.line, i.reason) for i in torn.ignored] == [(reply, "torn tail")]
    assert [m.text for m in store.recovery(A, PowerCut(reply, 10**6)).messages][-1] == "zwei"
    assert len(store.recovery(A, PowerCut(10**6)).messages) == 4
    assert store.recovery(A, PowerCut(1)).messages == ()


@pytest.mark.parametrize("compressed", [False, True])
def test_every_cut_of_a_log_can_be_recovered(tmp_path: Path, compressed: bool) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei")
    write(tmp_path, log, compressed)
    store = opened(tmp_path)
    for line in range(1, len(log.lines) + 2):
        whole = store.recovery(A, PowerCut(line))
        half = store.recovery(A, PowerCut(line + 1, 12))
        assert [m.text for m in half.messages] == [m.text for m in whole.messages]


def test_recovery_says_what_it_passes_over(sample: Callable[[str], Path]) -> None:
    store = opened(sample("dot-dsh"))
    recovery = store.recovery(SessionId("session-fd87d091-ac15-496a-891e-be0f9bddc7ae"))
    assert recovery.base_kind == "compaction"
    assert (recovery.baseline or {})["model"] == "deepseek-flash"
    assert len(recovery.ignored) == 15
    assert all("replaced" in item.reason for item in recovery.ignored)
    assert [m.head.kind for m in recovery.messages][:2] == ["context", "summary"]
    basic = store.recovery(SessionId("session-e8a532fc-5bb2-4d4f-be02-b04169fb2666"))
    assert [item.reason for item in basic.ignored] == ["a failed attempt (seq 58) is never sent again"]


def test_database_cannot_be_cut_at_a_line() -> None:
    (store,) = PACKAGE.open(SAMPLES / "sqlite-synthetic", {})
    with pytest.raises(NoLinesToCut):
        store.recovery(SessionId("session-db-1"), PowerCut(3))


def test_resume_command_names_home_and_folder(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    store = opened(tmp_path)
    command = store.resume_command(rows_of(store)["session-a"])
    assert command.argv == ("dsh", "--profile", "headless", "--session-id", "session-a")
    assert (command.cwd, command.environment) == ("/w/a", (("DSH_HOME", str(tmp_path)),))


def test_sub_agents_are_resumed_through_their_parent() -> None:
    store = opened(SAMPLES / "dot-dsh")
    row = rows_of(store)["ee1ed286-441e-433a-b419-b318ed262991"]
    with pytest.raises(SessionNotDrivable) as refused:
        store.resume_command(row)
    assert "session-3db74b1b" in str(refused.value)


def test_running_is_told_by_activity_alone(tmp_path: Path) -> None:
    path = Log().talk().write(tmp_path)
    (path.parent / "session.lock").touch()
    last = rows_of(opened(tmp_path))["session-a"].last_active_at
    assert last is not None
    assert rows_of(opened(tmp_path, now=last + 200))["session-a"].running
    assert not rows_of(opened(tmp_path, now=last + 400))["session-a"].running


def test_reasoning_and_calls_are_parts_of_one_entry() -> None:
    messages = messages_of(opened(SAMPLES / "dot-dsh-raw"), "session-61b824cf-9f21-4055-a021-2ec2a9d9848e")
    reply = [m for m in messages if m.head.id == "b44920c5-aeaa-4b61-be88-aa83ccf8fcd0"]
    assert [(m.head.part, m.head.kind) for m in reply] == [(0, "reasoning"), (1, "tool-call")]
    assert [m.usage is None for m in reply] == [False, True]
    assert reply[0].usage is not None
    assert reply[0].usage.cache_read == 731
    assert texts(messages, "tool-result") == ["raw\n"]


def test_open_calls_get_a_result_and_waiting_prompts_are_sent(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("two things")
    log.reply("", used(1, 1, 1, 1), call=("c1", "bash"))
    log.event("tool/call", {"turn": 1, "step": 1, "callId": "c1", "name": "bash", "arguments": "{}"})
    log.reply("", used(1, 1, 1, 1), call=("c2", "read"))
    waiting = {"content": [{"type": "text", "text": "and then"}], "source": {"kind": "user"}, "role": "user", "id": "w"}
    taken = {**waiting, "id": "t", "content": [{"type": "text", "text": "taken, but lost"}]}
    place = {"target": "next-turn", "start": 0}
    log.event("agent/inbox/spliced", {**place, "inserted": [taken, waiting]})
    log.event("agent/inbox/spliced", {**place, "removedCount": 1, "inserted": []})
    log.write(tmp_path)
    store = opened(tmp_path)
    messages = store.recovery(A).messages
    assert [m.head.kind for m in messages] == [
        "prompt",
        "tool-call",
        "tool-call",
        "tool-result",
        "tool-result",
        "prompt",
    ]
    first, second = messages[3], messages[4]
    assert (first.head.tool_call_id, second.head.tool_call_id) == ("c1", "c2")
    assert "outcome is unknown" in (first.text or "")
    assert "before the Harness recorded it" in (second.text or "")
    assert messages[5].text == "and then"
    assert rows_of(store)["session-a"].resumable


def test_a_waiting_prompt_is_sent_with_all_its_texts(tmp_path: Path) -> None:
    log = Log().talk()
    content = [{"type": "text", "text": "look at this"}, {"type": "image"}, {"type": "text", "text": "and at that"}]
    waiting = {"content": content, "source": {"kind": "user"}, "role": "user", "id": "w"}
    log.event("agent/inbox/spliced", {"target": "next-turn", "start": 0, "inserted": [waiting]})
    log.write(tmp_path)
    assert opened(tmp_path).recovery(A).messages[-1].text == "look at this\nand at that"


def test_an_open_call_is_not_taken_for_an_earlier_one_of_its_id(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("two things")
    log.reply("", used(1, 1, 1, 1), call=("call_0", "bash"))
    log.event("tool/call", {"turn": 1, "step": 1, "callId": "call_0", "name": "bash", "arguments": "{}"})
    log.result("call_0", "out")
    log.reply("", used(1, 1, 1, 1), call=("call_0", "bash"))
    log.write(tmp_path)
    last = opened(tmp_path).recovery(A).messages[-1]
    assert last.head.tool_call_id == "call_0"
    assert "before the Harness recorded it" in (last.text or "")


def test_log_of_a_whole_frame_with_half_a_line_is_corrupt(tmp_path: Path) -> None:
    data = Log().talk("one", "eins").talk("two", "zwei").bytes()
    put(tmp_path, zipped(data[:-5]), log_name(4, zipped=True))
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.resumable, row.problems) == (False, 1)
    with pytest.raises(SessionCorruptError):
        store.recovery(A)
    assert store.recovery(A, PowerCut(6)).row.resumable
