"""The version and vocabulary rule, session by session (facts/dsh.md section 3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_tui.model import ListQuery, SessionId, Usage
from hermes_tui.stores.dsh.format import SessionCorruptError, SessionFormatUnsupportedError
from tests.unit.dsh.conftest import Log, log_name, messages_of, opened, problems_of, put, rows_of, texts, used, zipped


def good(home: Path) -> None:
    """A session beside the odd one: it must always be there, whole."""
    Log("session-good").talk("fine", "yes").write(home)


def version_5(home: Path) -> None:
    Log(version=5).talk().write(home)


def header_1_in_v4(home: Path) -> None:
    Log(version=1).talk().write(home, log_name(4))


def header_1_in_v0(home: Path) -> None:
    Log(version=1).talk().write(home, log_name(0))


def header_5_in_v4(home: Path) -> None:
    Log(version=5).talk().write(home, log_name(4))


def v4_shape_stamped_1(home: Path) -> None:
    Log(version=1, isSeeded=False).talk().write(home, log_name(1))


def unknown_event(home: Path) -> None:
    log = Log().talk()
    log.event("memory/note", {"text": "a plug-in wrote this"})
    log.talk("again").write(home)


def chunk_rows_in_v4(home: Path) -> None:
    log = Log()
    log.packed(["a", "b", "c", "d"])
    log.talk().write(home)


def other_folder(home: Path) -> None:
    log = Log("session-b").talk()
    log.write(home, folder="session-a")


def unknown_header_key(home: Path) -> None:
    Log(colour="red").talk().write(home)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (version_5, ["version 5"]),
        (header_1_in_v4, ["version 4", "version 1"]),
        (header_1_in_v0, ["version 0", "version 1"]),
        (header_5_in_v4, ["version 5"]),
        (v4_shape_stamped_1, ["isSeeded"]),
        (unknown_event, ["memory/note", "seq 6", "line 8"]),
        (chunk_rows_in_v4, ["text-chunks", "seq 0"]),
        (other_folder, ["session-a", "session-b"]),
        (unknown_header_key, ["colour"]),
    ],
)
def test_refused_session_is_listed_from_its_header(
    tmp_path: Path, make: Callable[[Path], None], words: list[str]
) -> None:
    good(tmp_path)
    make(tmp_path)
    store = opened(tmp_path)
    rows = rows_of(store)
    row = rows["session-a"]
    assert (row.cwd, row.started_at, row.resumable) == ("/w/a", 1_795_000_000.0, False)
    assert row.problems == 1
    assert (row.usage, row.message_count, row.request_count, row.title) == (None, None, None, None)
    (reason,) = problems_of(store, "session-a")
    assert reason.startswith("SessionFormatUnsupportedError: ")
    assert all(word in reason for word in words), reason
    with pytest.raises(SessionFormatUnsupportedError) as refused:
        store.recovery(SessionId("session-a"))
    assert "session" in str(refused.value)
    assert refused.value.path in str(refused.value)
    assert rows["session-good"].usage == Usage(3, 20, 100, 10)
    assert store.status().state == "degraded" or make in (unknown_event, chunk_rows_in_v4)
    assert any(finding.severity == "warn" for finding in store.findings())


def test_ignorable_event_is_kept_as_unknown(tmp_path: Path) -> None:
    log = Log().talk()
    log.event("memory/note", {"text": "a plug-in wrote this"}, ignorable=True)
    log.talk("again").write(tmp_path)
    messages = messages_of(opened(tmp_path), "session-a")
    (kept,) = texts(messages, "unknown")
    assert "a plug-in wrote this" in kept
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.problems, row.message_count, row.resumable) == (0, 4, True)


def test_ignorable_false_behind_the_last_turn_is_a_torn_tail(tmp_path: Path) -> None:
    log = Log().talk()
    log.event("memory/note", {}, ignorable=False)
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.problems, row.message_count, row.resumable) == (1, 2, True)
    assert "ignorable" in problems_of(store, "session-a")[0]
    assert len(store.recovery(row.id).messages) == 2


@pytest.mark.parametrize("damage", [b'{"type":"step/start","se', b"", b"\0" * 40, b"\xff\xfe{}"])
def test_bad_row_before_a_later_turn_end_is_corrupt_but_shown(tmp_path: Path, damage: bytes) -> None:
    good(tmp_path)
    log = Log().talk("one", "eins")
    log.talk("two", "zwei")
    log.talk("three", "drei")
    place = next(at for at, line in enumerate(log.lines) if b'"text": "two"' in line)
    log.lines[place] = damage
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert row.resumable is False
    assert row.problems >= 1
    assert texts(messages_of(store, "session-a"), "reply") == ["eins", "zwei", "drei"]
    assert row.usage == Usage(9, 60, 300, 30)
    with pytest.raises(SessionCorruptError):
        store.recovery(row.id)
    assert rows_of(store)["session-good"].problems == 0


def test_sequence_gap_names_its_line(tmp_path: Path) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei")
    del log.lines[7]
    log.write(tmp_path)
    store = opened(tmp_path)
    (reason,) = problems_of(store, "session-a")
    assert "8" in reason
    assert "7" in reason
    assert not rows_of(store)["session-a"].resumable


def test_a_row_written_twice_is_counted_once(tmp_path: Path) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei")
    reply = next(at for at, line in enumerate(log.lines) if b"eins" in line)
    log.lines.insert(reply + 1, log.lines[reply])
    log.write(tmp_path)
    store = opened(tmp_path)
    assert rows_of(store)["session-a"].usage == Usage(6, 40, 200, 20)
    assert texts(messages_of(store, "session-a"), "reply") == ["eins", "zwei"]


def _renumbered(line: bytes, number: int) -> bytes:
    return json.dumps({**json.loads(line), "seq": number}).encode()


def test_one_number_that_is_far_too_high_hides_nothing_behind_it(tmp_path: Path) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei").talk("three", "drei")
    log.lines[8] = _renumbered(log.lines[8], 1_200)
    log.lines.insert(10, log.lines[9])
    log.write(tmp_path)
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.message_count, row.usage, row.resumable) == (6, Usage(9, 60, 300, 30), False)
    messages = messages_of(store, "session-a")
    assert texts(messages) == ["one", "eins", "two", "zwei", "three", "drei"]
    assert problems_of(store, "session-a") == ["sequence number 1200 where 8 was due"]


def test_a_number_changed_before_a_counted_cut_does_not_move_it(tmp_path: Path) -> None:
    fork = Log("fork", version=0, parentSession="gone").talk("one", "eins").talk("two", "zwei")
    fork.header["seedLength"] = fork.seq
    fork.lines[8] = _renumbered(fork.lines[8], 1_200)
    fork.user("own")
    fork.reply("eigen", used(1, 1, 1, 1))
    fork.write(tmp_path)
    row = rows_of(opened(tmp_path))["fork"]
    assert (row.message_count, row.request_count) == (2, 1)
    messages = messages_of(opened(tmp_path), "fork")
    assert texts(messages, state="inherited") == ["one", "eins", "two", "zwei"]
    assert texts(messages, state="live") == ["own", "eigen"]


def test_a_session_that_inherited_nothing_is_no_fork_to_its_first_request(tmp_path: Path) -> None:
    Log("child", version=0, parentSession="p", seedLength=0).talk().write(tmp_path)
    (request,) = opened(tmp_path).requests([SessionId("child")])
    assert [event.cause for event in request.events] == []


def test_two_rows_of_one_number_are_both_counted(tmp_path: Path) -> None:
    log = Log().talk("one", "eins").talk("two", "zwei")
    prompt = next(at for at, line in enumerate(log.lines) if b"two" in line)
    log.lines[prompt] = _renumbered(log.lines[prompt], prompt + 1)
    log.lines.insert(prompt + 1, _renumbered(log.lines[0], prompt))
    log.write(tmp_path)
    assert rows_of(opened(tmp_path))["session-a"].message_count == 4
    assert texts(messages_of(opened(tmp_path), "session-a")) == ["one", "eins", "two", "zwei"]


def test_a_number_changed_in_what_a_fork_copied_stays_the_parents(tmp_path: Path) -> None:
    fork = Log("fork", parentSession="gone", isSeeded=True).talk("one", "eins").talk("two", "zwei")
    fork.lines[8] = _renumbered(fork.lines[8], 1_200)
    fork.event("session/end-seed", {"inherited": True})
    fork.talk("own", "eigen").write(tmp_path)
    store = opened(tmp_path)
    assert rows_of(store)["fork"].message_count == 2
    messages = messages_of(store, "fork")
    assert texts(messages, "prompt", "inherited") == ["one", "two"]
    assert texts(messages, state="live") == ["own", "eigen"]


@pytest.mark.parametrize("compressed", [False, True])
def test_every_cut_of_the_last_turn_opens_up_to_the_last_whole_row(tmp_path: Path, compressed: bool) -> None:
    log = Log().talk("one", "eins")
    kept = len(log.bytes())
    whole = log.talk("two", "zwei").bytes()
    for size in range(kept, len(whole), 37):
        home = tmp_path / str(size)
        data = zipped(whole[:size]) if compressed else whole[:size]
        put(home, data, log_name(4, compressed))
        row = rows_of(opened(home))["session-a"]
        # Half a line in a whole frame is no cut of a writer: the real program calls that log corrupt.
        assert row.resumable == (not compressed or whole[size - 1 : size] == b"\n")
        assert row.problems <= 1
        assert texts(messages_of(opened(home), "session-a"), "reply")[0] == "eins"


def test_cut_last_frame(tmp_path: Path) -> None:
    data = zipped(Log().talk("one", "eins").talk("two", "zwei").bytes(), lines_a_frame=6)
    path = put(tmp_path, data[:-9], log_name(4, zipped=True))
    store = opened(tmp_path)
    row = rows_of(store)["session-a"]
    assert (row.message_count, row.problems, row.resumable) == (2, 1, True)
    assert texts(messages_of(store, "session-a"), "reply") == ["eins"]
    path.write_bytes(data)
    assert rows_of(store)["session-a"].message_count == 4


def test_header_only_is_an_empty_session(tmp_path: Path) -> None:
    Log().write(tmp_path)
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.usage, row.message_count, row.problems, row.resumable) == (Usage(), 0, 0, True)


def test_zero_bytes_is_named(tmp_path: Path) -> None:
    good(tmp_path)
    put(tmp_path, b"", log_name(4))
    rows = rows_of(opened(tmp_path))
    assert (rows["session-a"].problems, rows["session-a"].resumable, rows["session-a"].usage) == (1, False, None)
    assert rows["session-good"].problems == 0


@pytest.mark.parametrize(
    "name", ["session.v0.jsonl", "session.v04.jsonl", "SESSION.v4.jsonl", "session.v4.jsonl.tmp", "x.jsonl", ".session"]
)
def test_other_names_are_no_logs(tmp_path: Path, name: str) -> None:
    good(tmp_path)
    Log(version=4).talk().write(tmp_path, name)
    assert set(rows_of(opened(tmp_path))) == {"session-good"}


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_known_version_is_read(tmp_path: Path, version: int, compressed: bool) -> None:
    log = Log(version=version).talk("one", "eins")
    put(tmp_path, zipped(log.bytes()) if compressed else log.bytes(), log_name(version, compressed))
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.usage, row.problems, row.message_count) == (Usage(3, 20, 100, 10), 0, 2)


def test_the_highest_generation_is_the_session(tmp_path: Path) -> None:
    Log(version=0).talk("old", "alt", used(900, 0, 0, 900)).write(tmp_path)
    Log(version=2).talk("old", "alt", used(900, 0, 0, 900)).write(tmp_path)
    Log(version=4).talk("new", "neu").write(tmp_path)
    store = opened(tmp_path)
    (row,) = rows_of(store).values()
    assert (row.preview, row.usage) == ("new", Usage(3, 20, 100, 10))
    finding = next(f for f in store.status().findings if f.code == "older-generation")
    assert finding.count == 2
    assert store.status().state == "ok"


def test_a_newer_generation_hides_an_older_one_even_when_it_is_refused(tmp_path: Path) -> None:
    Log(version=4).talk().write(tmp_path)
    Log(version=7).talk().write(tmp_path)
    (row,) = rows_of(opened(tmp_path)).values()
    assert (row.usage, row.problems) == (None, 1)


def test_plain_and_compressed_log_of_one_session_are_one(tmp_path: Path) -> None:
    log = Log().talk()
    log.write(tmp_path)
    put(tmp_path, zipped(log.bytes()), log_name(4, zipped=True))
    store = opened(tmp_path)
    (row,) = rows_of(store).values()
    assert row.usage == Usage(3, 20, 100, 10)
    assert [finding.code for finding in store.status().findings] == ["mixed-encoding"]


def test_mixed_encodings_of_a_root_are_all_listed_and_the_odd_one_named(tmp_path: Path) -> None:
    for name in ("session-b", "session-c"):
        put(tmp_path, zipped(Log(name).talk().bytes()), log_name(4, zipped=True), folder=name)
    odd = Log().talk().write(tmp_path)
    store = opened(tmp_path)
    assert len(rows_of(store)) == 3
    (finding,) = store.status().findings
    assert (finding.code, finding.paths) == ("mixed-encoding", (str(odd),))


def test_flat_log_is_named_not_read(tmp_path: Path) -> None:
    good(tmp_path)
    flat = tmp_path / "sessions" / "--w-a--" / "session-flat.jsonl"
    flat.write_bytes(Log("session-flat").talk().bytes())
    store = opened(tmp_path)
    assert set(rows_of(store)) == {"session-good"}
    assert [(f.code, f.paths) for f in store.status().findings] == [("flat-log", (str(flat),))]


def test_one_session_in_two_project_folders_is_counted_once(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    Log().talk().talk("more").write(tmp_path, project="--elsewhere--")
    store = opened(tmp_path)
    assert len(rows_of(store)) == 1
    assert [f.code for f in store.status().findings] == ["duplicate-session"]


def test_projection_cache_is_never_believed(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    cache = tmp_path / "storages" / "session_projcache" / "sessions" / "session-a.json"
    cache.parent.mkdir(parents=True)
    rows = {"title": {"ver": 1, "seq": 5, "val": "A lie"}, "tokenUsage": {"val": {"inputTokens": 10**9}}}
    cache.write_text(json.dumps({"version": 7, "record": {"identity": {}, "rows": rows}}))
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.title, row.usage) == (None, Usage(3, 20, 100, 10))
    assert opened(tmp_path).listing(ListQuery(text="lie")).total == 0


def test_absurd_times_are_unknown(tmp_path: Path) -> None:
    log = Log(createdAt=-5).talk()
    log.lines = [line.replace(b'"time": 17950', b'"time": 99999999917950') for line in log.lines]
    log.write(tmp_path)
    row = rows_of(opened(tmp_path))["session-a"]
    assert (row.started_at, row.last_active_at, row.message_count) == (None, None, 2)
