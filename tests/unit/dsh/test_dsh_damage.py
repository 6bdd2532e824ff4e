"""Damaged and odd DSH logs: everything is shown, what is wrong is told (facts/dsh.md sections 2 and 3)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import zstandard

from hermes_tui.model import COUNTED_KINDS, SessionId
from hermes_tui.storage.jsonl import GIANT_LINE
from hermes_tui.stores.dsh import events
from hermes_tui.stores.dsh.format import SessionCorruptError
from tests.unit.dsh.conftest import (
    MS,
    Log,
    log_name,
    messages_of,
    opened,
    problems_of,
    put,
    rows_of,
    texts,
    used,
    zipped,
)

A = SessionId("session-a")


def codes(home: Path) -> dict[str, int]:
    return {finding.code: finding.count for finding in opened(home).findings()}


@pytest.mark.parametrize("packed", [False, True])
def test_giant_prompts_and_replies_are_read_with_their_usage(tmp_path: Path, packed: bool) -> None:
    long = "wörter " * (GIANT_LINE // 7)
    log = Log().talk(f"ask {long}", f"say {long}", used(3, 10, 100, 20)).talk("short", "yes", used(1, 1, 1, 1))
    put(tmp_path, zipped(log.bytes()) if packed else log.bytes(), log_name(4, packed))
    store = opened(tmp_path)
    row = rows_of(store)[A]
    assert (row.preview or "").startswith("ask wörter")
    assert (row.message_count, row.request_count, row.problems, row.resumable) == (4, 2, 0, True)
    assert row.usage is not None
    assert (row.usage.input, row.usage.cache_read) == (4, 101)
    messages = messages_of(store, A)
    assert [message.head.kind for message in messages] == ["prompt", "reply", "prompt", "reply"]
    transcript = store.transcript([A])
    head = messages[0].head
    assert (
        "".join(transcript.piece(head, start, 1 << 20) for start in range(0, len(long) + 4, 1 << 20)) == f"ask {long}"
    )


def test_a_line_too_long_to_be_held_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_WHOLE", GIANT_LINE)
    log = Log().talk("ask", "x" * (GIANT_LINE + 1)).talk("more", "yes")
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)[A]
    shown = [m.head.kind for m in messages_of(store, A) if m.head.kind in COUNTED_KINDS]
    assert (shown, row.message_count) == (["prompt", "reply", "prompt", "reply"], 4)
    assert [reason[:10] for reason in problems_of(store, A)] == ["giant line"]


def test_text_that_is_no_utf_8_is_told_and_the_session_stays_whole(tmp_path: Path) -> None:
    put(tmp_path, Log().talk("ask", "h\xff").bytes().replace("h\xff".encode(), b"h\xff"), log_name(4))
    store = opened(tmp_path)
    assert texts(messages_of(store, A), "reply") == ["h\ufffd"]
    assert [reason[:9] for reason in problems_of(store, A)] == ["bad UTF-8"]
    row = rows_of(store)[A]
    assert (row.problems, row.resumable) == (1, True)
    assert codes(tmp_path) == {"unreadable-lines": 1}


@pytest.mark.parametrize("odd", [0, -5, 1e18, "soon", None, True, MS / 1000])
def test_a_time_that_is_none_is_told(tmp_path: Path, odd: object) -> None:
    log = Log(createdAt=odd).talk("ask", "say")
    log.lines[2] = json.dumps(json.loads(log.lines[2]) | {"time": odd}).encode()
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)[A]
    assert (row.started_at, row.problems, row.resumable) == (None, 2, True)
    assert [message.head.at for message in messages_of(store, A)] == [None, (MS + 30) / 1000]
    assert codes(tmp_path) == {"absurd-time": 2}


def test_half_a_line_in_a_whole_frame_is_told(tmp_path: Path) -> None:
    whole = Log().talk("ask", "say").bytes()
    put(tmp_path, zipped(whole[:-1]), log_name(4, True))
    store = opened(tmp_path)
    assert problems_of(store, A) == ["half a line in a whole compressed frame"]
    row = rows_of(store)[A]
    assert (row.problems, row.resumable) == (1, False)
    with pytest.raises(SessionCorruptError):
        store.recovery(A)


@pytest.mark.parametrize("data", [b"", b'{"type":"session","ver', b"[]\n", zstandard.compress(b"")])
def test_a_log_without_a_header_is_damaged_not_of_another_format(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, data, log_name(4))
    store = opened(tmp_path)
    (reason,) = problems_of(store, A)
    assert "SessionFormatUnsupportedError" not in reason
    assert codes(tmp_path) == {"unreadable-lines": 1}
    with pytest.raises(SessionCorruptError):
        store.recovery(A)


def test_a_damaged_frame_hides_only_what_it_held(tmp_path: Path) -> None:
    log = Log()
    for number in range(4):
        log.talk(f"prompt {number}", f"reply {number}")
    data = zipped(log.bytes(), lines_a_frame=6)
    frames = [at for at in range(len(data)) if data.startswith(b"\x28\xb5\x2f\xfd", at)]
    damaged = bytearray(data)
    damaged[frames[2] + 20] ^= 0xFF
    put(tmp_path, bytes(damaged), log_name(4, zipped=True))
    store = opened(tmp_path)
    row = rows_of(store)[A]
    assert (row.message_count, row.request_count, row.resumable) == (6, 3, False)
    assert texts(messages_of(store, A), "prompt") == ["prompt 0", "prompt 2", "prompt 3"]
    gap, damage = problems_of(store, A)
    assert gap == "sequence number 12 where 6 was due"
    assert "damaged" in damage
    with pytest.raises(SessionCorruptError):
        store.recovery(A)


def test_an_empty_reply_that_carries_usage_counts_as_it_is_shown(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("ask")
    message = {"role": "assistant", "content": [{"type": "text", "text": ""}], "source": {"model": "m"}, "id": "e"}
    log.event("assistant/message", {"turn": 1, "step": 1, "message": message, "usage": used(1, 1, 1, 1)},
              surfaceOp="append")  # fmt: skip
    log.end()
    log.write(tmp_path)
    store = opened(tmp_path)
    shown = [message.head.kind for message in messages_of(store, A)]
    assert (shown, rows_of(store)[A].message_count) == (["prompt", "reply"], 2)


def test_messages_of_one_id_are_told_apart(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.user("one", message_id="same")
    log.user("two", message_id="same")
    log.end()
    log.write(tmp_path)
    messages = messages_of(opened(tmp_path), A)
    assert [(message.head.id, message.text) for message in messages] == [("same", "one"), ("same@seq-3", "two")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_logs_that_are_no_files_and_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    path = Log().talk("ask", "say").write(tmp_path)
    folder = path.parent.parent / "session-pipe"
    folder.mkdir()
    os.mkfifo(folder / log_name(4))
    (path.parent.parent / "session-gone").symlink_to(tmp_path / "nowhere")
    assert codes(tmp_path) == {"unreadable-folder": 2}
    assert set(rows_of(opened(tmp_path))) == {A}


def test_the_row_of_a_recovery_is_the_one_of_the_list(tmp_path: Path) -> None:
    Log().talk("ask", "say").write(tmp_path)
    store = opened(tmp_path)
    assert store.recovery(A).row == rows_of(store)[A]
