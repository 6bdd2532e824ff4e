"""A fold put away anywhere goes on as if it had never stopped; any bytes are read without an error."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import COUNTED_KINDS, ListQuery, SessionId, StoreRef
from hermes_tui.storage.jsonl import read_records
from hermes_tui.stores.dsh.backend import JsonlBackend
from hermes_tui.stores.dsh.discovery import session_of_folder, walk
from hermes_tui.stores.dsh.store import DshStore
from hermes_tui.stores.log_source import LogFile, fold_log
from tests.unit.dsh.conftest import SAMPLES, Log, log_name, messages_of, opened, put

LOGS = [log for home in sorted(SAMPLES.glob("dot-dsh*")) for log in walk(home / "sessions").logs]
BACKEND = JsonlBackend(StoreRef("dsh", "dsh", "/h"))


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.session_id[:16])
def test_state_survives_being_put_away_after_any_line(log: LogFile) -> None:
    records = list(read_records(log.path))
    whole = fold_log(log, BACKEND.fold).summary
    fold = BACKEND.fold(log)
    for record in records:
        fold.feed(record)
        fold = BACKEND.fold(log, fold.dump())
    assert fold.summary() == whole


def test_only_new_bytes_are_fed(tmp_path: Path) -> None:
    log = Log().talk("one", "eins")
    path = log.write(tmp_path)
    (before,) = walk(tmp_path / "sessions").logs
    first = fold_log(before, BACKEND.fold, keep=True)
    assert first.place is not None
    assert first.place.offset == len(log.bytes())
    log.talk("two", "zwei")
    half = log.bytes()[:-20]
    path.write_bytes(half)
    (torn,) = walk(tmp_path / "sessions").logs
    second = fold_log(torn, BACKEND.fold, first.place, keep=True)
    assert second.summary.problems
    assert second.place is not None
    path.write_bytes(log.bytes())
    (after,) = walk(tmp_path / "sessions").logs
    third = fold_log(after, BACKEND.fold, second.place, keep=True)
    assert third.summary == fold_log(after, BACKEND.fold).summary
    assert not third.summary.problems


def test_state_with_an_open_damage_survives(tmp_path: Path) -> None:
    log = Log().talk("one", "eins")
    log.begin()
    log.lines.append(b"{half")
    log.user("two")
    log.write(tmp_path)
    (found,) = walk(tmp_path / "sessions").logs
    first = fold_log(found, BACKEND.fold, keep=True)
    assert len(first.summary.problems) == 2
    log.reply("zwei")
    log.end()
    log.write(tmp_path)
    (found,) = walk(tmp_path / "sessions").logs
    second = fold_log(found, BACKEND.fold, first.place)
    assert second.summary == fold_log(found, BACKEND.fold).summary
    assert not second.summary.row.resumable


def test_lone_surrogates_and_huge_numbers_survive(tmp_path: Path) -> None:
    log = Log()
    log.begin()
    log.lines.append(
        b'{"type":"user/message","seq":2,"time":1795000000020,"data":{"role":"user","content":[{"type":"text",'
        b'"text":"half \\ud83c a flag"}],"source":{"kind":"user"},"id":"u","n":123456789012345678901234567890},'
        b'"surfaceOp":"append"}'
    )
    log.seq += 1
    log.end()
    log.write(tmp_path)
    (found,) = walk(tmp_path / "sessions").logs
    folded = fold_log(found, BACKEND.fold, keep=True)
    assert folded.place is not None
    assert BACKEND.fold(found, folded.place.state).summary().row.preview == "half \ud83c a flag"
    assert messages_of(opened(tmp_path), "session-a")[0].text == "half \ud83c a flag"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(
    [
        "user/message", "assistant/message", "tool/result", "tool/call", "session/title", "request/header",
        "agent/inbox/spliced", "compaction/summary", "assistant/chunk", "text-chunks", "session/end-seed",
        "assistant/attempt", "turn/end", "llm/retry", "subagent/catalog", "system/message", "request/context",
    ]
)  # fmt: skip
BLOCKS = st.lists(st.dictionaries(st.sampled_from(["type", "text", "id"]), VALUES, max_size=3), max_size=2)
FIELDS = (
    "message content source usage title header inserted chunk stream reason turn dt inherited compactionId callId"
    " failure"
).split()
DATA = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES | BLOCKS))
EVENTS = st.lists(
    st.tuples(TYPES, DATA, st.sampled_from(["append", None, {"op": "replace", "startSeq": 0, "endSeq": 1}, 7])),
    max_size=8,
)


@given(version=st.sampled_from([0, 1, 4]), events=EVENTS)
@settings(max_examples=150, deadline=None)
def test_events_of_any_shape_are_read(version: int, events: list[tuple[str, dict[str, Any], object]]) -> None:
    with TemporaryDirectory() as folder:
        read_any(Path(folder), version, events)


def read_any(tmp_path: Path, version: int, events: list[tuple[str, dict[str, Any], object]]) -> None:
    log = Log(version=version)
    for event_type, data, operation in events:
        log.event(event_type, data, **({} if operation is None else {"surfaceOp": operation}))
    log.write(tmp_path)
    store = opened(tmp_path)
    (row,) = store.rows([SessionId("session-a")])
    shown = messages_of(store, "session-a")
    state = store.backend.read(store.index().logs[0]).state
    if state.refusal is None:
        counted = [m for m in shown if m.head.state == "live" and m.head.kind in COUNTED_KINDS]
        assert row.message_count == len(counted)
    assert store.peek(store.index().logs[0]).id == row.id


@given(data=st.binary(max_size=400), name=st.sampled_from([log_name(4), log_name(4, zipped=True), log_name(0)]))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_a_row_with_a_problem(data: bytes, name: str) -> None:
    with TemporaryDirectory() as folder:
        put(Path(folder), data, name)
        read_nonsense(opened(Path(folder)))


def read_nonsense(store: DshStore) -> None:
    listing = store.listing(ListQuery(sessions=True))
    (row,) = store.rows([entry.id for entry in listing.entries])
    assert row.problems >= 1
    assert not row.resumable
    assert messages_of(store, "session-a") == []


@given(st.text(min_size=1, max_size=40).filter(lambda text: text not in (".", "..")))
def test_session_folder_names_are_decoded(text: str) -> None:
    from hermes_tui.stores.dsh.demo_session import escaped

    assert session_of_folder(escaped(text)) == text


def test_json_helper_is_compact() -> None:
    from hermes_tui.stores.dsh.content import json_bytes, json_value

    value = {"a": ["\ud83c", 1 << 80]}
    assert json_value(json_bytes(value)) == value
    assert json.loads(json_bytes(value)) == value
