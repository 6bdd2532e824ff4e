"""Any bytes in: no crash, nothing lost without a count, and two ways to the same answer agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import COUNTED_KINDS, PowerCut, SessionId, StoreRef
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.stores.codex.discovery import walk
from hermes_tui.stores.codex.entries import PROMPTS_KEY, TEXT_KEY, Entry, kept_by
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.codex.items import Nature
from hermes_tui.stores.codex.live import LiveEntries
from hermes_tui.stores.codex.recovery import merge_patch
from hermes_tui.stores.codex.rollout import line_of
from hermes_tui.stores.codex.spans import ThreadFiles
from hermes_tui.stores.codex.transcript import CodexTranscript
from hermes_tui.stores.log_source import LogFile, fold_log
from tests.unit.codex.conftest import SAMPLE, open_home
from tests.unit.codex.rollouts import THREAD

REF = StoreRef("codex", "codex", "/nowhere")
FILES = sorted(path for path in SAMPLE.rglob("*.jsonl") if path.name.startswith("rollout-"))


def log_of(path: Path) -> LogFile:
    stat = path.stat()
    return LogFile(str(path), SessionId(THREAD), stat.st_size, stat.st_mtime_ns, stat.st_dev, stat.st_ino)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[-6:])
def test_a_fold_put_away_at_any_line_gives_the_same_summary(path: Path) -> None:
    log = log_of(path)
    whole = fold_log(log, lambda one, state: CodexFold(REF, one, state)).summary
    records = list(read_records(path))
    for stop in range(0, len(records), 3):
        first = CodexFold(REF, log)
        for record in records[:stop]:
            if first.wants(record.raw):
                first.feed(record)
        second = CodexFold(REF, log, first.dump())
        for record in records[stop:]:
            if second.wants(record.raw):
                second.feed(record)
        assert second.summary() == whole


@st.composite
def damaged(draw: st.DrawFn) -> list[bytes]:
    """A sample rollout with lines lost, torn, doubled or turned to noise."""
    lines = list(lines_of(draw(st.sampled_from(FILES))))
    for _ in range(draw(st.integers(0, 6))):
        place = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(["lose", "tear", "glue", "double", "noise", "nul"]))
        if how == "lose":
            del lines[place]
        elif how == "tear":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))] + b"\n"
        elif how == "glue":
            lines[place] = lines[place].rstrip(b"\n")
        elif how == "double":
            lines.insert(place, lines[place])
        elif how == "noise":
            lines[place] = draw(st.binary(max_size=60)) + b"\n"
        else:
            lines[place] = b"\0" * 40 + lines[place]
        if not lines:
            return [b"\n"]
    return lines


@settings(max_examples=150)
@given(lines=damaged())
def test_row_and_transcript_agree_on_damaged_rollouts(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    home = tmp_path_factory.mktemp("home")
    folder = home / "sessions"
    folder.mkdir()
    path = folder / f"rollout-2026-11-18T10-00-00-{THREAD}.jsonl"
    path.write_bytes(b"".join(lines))
    store = open_home(home)
    (thread,) = store.index().rows
    row = store.rows([thread])[0]
    transcript = store.transcript([thread])
    heads = [head for batch in transcript.heads() for head in batch]
    live = [head for head in heads if head.state == "live" and head.kind in COUNTED_KINDS]
    assert row.message_count == len(live)
    assert row.tool_call_count == sum(head.kind == "tool-call" for head in live)
    assert len({(head.id, head.part) for head in heads}) == len(heads)
    bad = sum(1 for record in read_records(path) if record.problem is not None)
    assert len(transcript.problems) >= bad
    for message in transcript.load(heads):
        assert message.head.line is not None
    recovery = store.recovery(thread)
    assert len(recovery.messages) <= len(heads) + 200
    assert store.status().state in ("ok", "degraded")


@settings(max_examples=60)
@given(data=st.data())
def test_a_power_cut_anywhere_has_an_answer(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    home = tmp_path_factory.mktemp("home")
    source = data.draw(st.sampled_from(FILES))
    lines = lines_of(source)
    line = data.draw(st.integers(1, len(lines)))
    byte = data.draw(st.none() | st.integers(0, len(lines[line - 1])))
    folder = home / "sessions"
    folder.mkdir()
    path = folder / source.name
    path.write_bytes(b"".join(lines))
    store = open_home(home)
    (thread,) = store.index().rows
    told = store.recovery(thread, PowerCut(line, byte))
    # The same as if the file really ended there.
    kept = b"".join(lines[: line - 1]) + (lines[line - 1] if byte is None else lines[line - 1][:byte])
    path.write_bytes(kept)
    truth = open_home(home).recovery(thread) if kept.strip() else None
    if truth is None or thread not in open_home(home).index().rows:
        return
    assert [message.text for message in told.messages] == [message.text for message in truth.messages]
    assert (told.base_line, told.baseline, told.window) == (truth.base_line, truth.baseline, truth.window)
    assert told.ignored == truth.ignored
    assert told.row.message_count == truth.row.message_count
    assert told.row.usage == truth.row.usage
    assert told.row.title == truth.row.title


@settings(max_examples=100)
@given(content=st.lists(st.binary(max_size=80), max_size=12))
def test_any_bytes_are_a_thread(tmp_path_factory: pytest.TempPathFactory, content: list[bytes]) -> None:
    home = tmp_path_factory.mktemp("home")
    folder = home / "sessions"
    folder.mkdir()
    (folder / f"rollout-2026-11-18T10-00-00-{THREAD}.jsonl").write_bytes(b"\n".join(content))
    store = open_home(home)
    assert list(store.index().rows) == [THREAD]
    assert store.rows([SessionId(THREAD)])[0].problems >= 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(target=json_values, patch=json_values)
def test_merge_patches_delete_by_null_and_merge_objects(target: object, patch: object) -> None:
    merged = merge_patch(target, patch)
    if not isinstance(patch, dict):
        assert merged == patch
        return
    assert isinstance(merged, dict)
    for key, value in patch.items():
        assert (key in merged) == (value is not None)
    kept = {key: value for key, value in target.items() if key not in patch} if isinstance(target, dict) else {}
    assert {key: merged[key] for key in kept} == kept
    assert merge_patch(merged, {}) == merged


@given(value=json_values)
def test_any_json_is_a_line_or_none(value: object) -> None:
    line = line_of(value)
    assert (line is None) == (not isinstance(value, dict))


def test_a_transcript_begun_at_its_end_is_the_same(tmp_path: Path) -> None:
    logs = {log.session_id: [log] for log in walk(str(SAMPLE)).logs}
    for thread in logs:
        files = ThreadFiles(lambda one: logs.get(one, []))
        spans = files.spans(thread)
        everything = [head for batch in CodexTranscript(thread, spans).heads() for head in batch]
        for count in (1, 3, 10, 1000):
            assert list(CodexTranscript(thread, spans).tail(count)) == everything[-count:]


@given(st.lists(st.sets(st.integers(0, 30)), min_size=1, max_size=5))
def test_a_compaction_keeps_what_it_names_in_its_order(kept: list[set[int]]) -> None:
    live = LiveEntries()
    for number in range(31):
        live.add(f"m{number}", "reply")
    left = [f"m{number}" for number in range(31)]
    for numbers in kept:
        names = frozenset(f"m{number}" for number in numbers)
        entry = Entry(Record(1, 0, 0, None, b""), Nature("notice", None), None, "c")
        entry.kept = names
        weighed = live.take(entry, "c")
        after = [name for name in left if name in names]
        assert weighed == (len(after), len(left) - len(after))
        assert [link[0] for link in live] == after[::-1]
        left = after


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([{"id": "a"}, {"id": "b", "role": "user"}], {"a", "b"}),
        ([{"id": "a"}, {"role": "user", "content": [{"type": "input_text", "text": "go"}]}], {"a", f"{TEXT_KEY}go"}),
        ([{"id": ["a"]}, {"id": 7}, {"id": ""}, "a", None, {"id": "b"}], {"b"}),
        ([], set()),
        (None, {PROMPTS_KEY}),
    ],
)
def test_what_a_compaction_names_as_kept(history: object, kept: set[str]) -> None:
    assert kept_by({"replacement_history": history}) == kept
