"""The sample home: rows, usage, transcripts and recovery against what the real program said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import ListQuery, Message, MessageHead, SessionId, SessionRow
from hermes_tui.stores.codex.store import CodexStore
from tests.unit.codex.conftest import SAMPLE, open_home

# label: own prompt size, cached, output, requests, title, preview (the table of the sample's README)
ROWS = {
    "exec": (1875, 896, 242, 3, "List the files here", "List the files here"),
    "exec_tz": (380, 0, 46, 1, "Say something about the evening", "Say something about the evening"),
    "provider2": (344, 0, 45, 1, "Hello from the other provider", "Hello from the other provider"),
    "patch": (3697, 2304, 412, 5, "Cart rounding", "Fix the rounding bug in cart.py"),
    "fork_first_turn": (1038, 0, 48, 1, "Cart rounding", "Fix the rounding bug in cart.py"),
    "fork_whole": (2392, 1024, 128, 2, "Cart rounding", "Fix the rounding bug in cart.py"),
    "compacted": (60134, 49024, 1914, 16, "Read the grammar file", "Read the grammar file"),
    "legacy": (32502, 14976, 556, 8, "Legacy: first task", "Legacy: first task"),
    "legacy_fork": (923, 0, 45, 1, "Legacy: first task", "Legacy: first task"),
    "image": (460, 0, 44, 1, "What is in this picture?", "What is in this picture?"),
    "interrupted": (550, 256, 43, 1, "Do the long job", "Do the long job"),
    "failed": (0, 0, 0, 0, "This request will fail", "This request will fail"),
    "reverted": (1895, 1024, 164, 4, "Question one", "Question one"),
    "archived": (376, 0, 42, 1, "An old question", "An old question"),
    "parent_of_subagent": (904, 256, 132, 2, "Ask a helper to count the files", "Ask a helper to count the files"),
    "subagents": (344, 0, 45, 1, "SUBTASK count the files", "SUBTASK count the files"),
    "model_switch": (998, 256, 82, 2, "Which model are you?", "Which model are you?"),
}


def row_of(store: CodexStore, thread: str) -> SessionRow:
    return store.rows([SessionId(thread)])[0]


def heads_of(store: CodexStore, thread: str) -> list[MessageHead]:
    return [head for batch in store.transcript([SessionId(thread)]).heads() for head in batch]


def messages_of(store: CodexStore, thread: str, *, sent: bool = False) -> list[Message]:
    transcript = store.transcript([SessionId(thread)])
    return transcript.load([head for batch in transcript.heads() for head in batch], sent=sent)


@pytest.mark.parametrize("mirror", [True, False])
@pytest.mark.parametrize("label", sorted(ROWS))
def test_rows_and_usage_are_the_programs(home: Path, labels: dict[str, str], label: str, mirror: bool) -> None:
    if not mirror:
        (home / "state_5.sqlite").unlink()
    row = row_of(open_home(home), labels[label])
    size, cached, output, requests, title, preview = ROWS[label]
    assert row.usage is not None
    assert (row.usage.prompt_size, row.usage.cache_read, row.usage.output) == (size, cached, output)
    assert row.request_count == requests
    assert (row.title, row.preview) == (title, preview)
    assert row.origin == ("agent-mirror" if mirror else "scan")
    assert row.problems == 0


@pytest.mark.parametrize("mirror", [True, False])
def test_the_list_shows_seventeen_threads(home: Path, labels: dict[str, str], mirror: bool) -> None:
    if not mirror:
        (home / "state_5.sqlite").unlink()
    store = open_home(home)
    listing = store.listing(ListQuery())
    assert (listing.total, listing.left_out) == (15, {"archived": 1, "delegated": 1})
    everything = store.listing(ListQuery(sessions=True))
    assert everything.total == 17
    assert {entry.id for entry in everything.entries} == {labels[label] for label in ROWS}


def test_kinds_parents_and_parts(store: CodexStore, labels: dict[str, str]) -> None:
    told = {label: row_of(store, labels[label]) for label in ROWS}
    kinds = {label: (row.lineage_kind, row.parent_id) for label, row in told.items() if row.lineage_kind != "root"}
    assert kinds == {
        "fork_first_turn": ("fork", labels["patch"]),
        "fork_whole": ("fork", labels["patch"]),
        "legacy_fork": ("fork", labels["legacy"]),
        "subagents": ("delegation", labels["parent_of_subagent"]),
    }
    assert [label for label, row in told.items() if row.parts == 2] == ["reverted"]
    assert [label for label, row in told.items() if row.archived] == ["archived"]
    assert told["subagents"].source == "subagent"
    assert told["exec"].source == "exec"
    assert told["model_switch"].models == ("gpt-5.5", "mock-large")
    assert told["provider2"].provider == "mock2"


@pytest.mark.parametrize("label", [label for label in ROWS if label != "archived"])
def test_recovery_is_what_the_program_sends(
    store: CodexStore, labels: dict[str, str], expected: dict[str, Any], label: str
) -> None:
    # The first entry is the base instructions, the last the probe; what the environment then added is not stored.
    sent = expected["threads"][labels[label]]["resume"]["model_input"][1:-1]
    if label == "exec_tz":
        assert sent.pop()[2].startswith("<environment_context>")
    recovery = store.recovery(SessionId(labels[label]))
    told = [(message.head.role, (message.text or "")[:110]) for message in recovery.messages]
    assert told == [(role, text[:110]) for _, role, text in sent]
    kinds = {"function_call": "tool-call", "custom_tool_call": "tool-call", "reasoning": "reasoning"}
    kinds |= {"function_call_output": "tool-result", "custom_tool_call_output": "tool-result"}
    for message, (kind, _, _) in zip(recovery.messages, sent, strict=True):
        assert message.head.kind == kinds.get(kind, message.head.kind)
    assert not recovery.reinjects_context
    assert recovery.ignored == ()


def test_usage_of_the_whole_store_is_counted_once(store: CodexStore) -> None:
    requests = list(store.requests(None))
    assert len(requests) == sum(values[3] for values in ROWS.values())
    assert sum(request.usage.prompt_size for request in requests) == sum(values[0] for values in ROWS.values())
    assert len({request.request_id for request in requests}) == len(requests)


def test_message_counts_are_those_of_the_transcript(store: CodexStore, labels: dict[str, str]) -> None:
    counted = {"prompt", "reply", "tool-call", "tool-result"}
    for label in ROWS:
        heads = heads_of(store, labels[label])
        live = [head for head in heads if head.state == "live" and head.kind in counted]
        row = row_of(store, labels[label])
        assert row.message_count == len(live), label
        assert row.tool_call_count == sum(head.kind == "tool-call" for head in live), label


def test_every_place_holds_what_is_shown(store: CodexStore, labels: dict[str, str]) -> None:
    for label in ROWS:
        for message in messages_of(store, labels[label], sent=True):
            head = message.head
            assert head.path is not None
            assert head.offset is not None
            assert head.length is not None
            data = Path(head.path).read_bytes()
            assert data[: head.offset].count(b"\n") + 1 == head.line
            line = data[head.offset : head.offset + head.length]
            assert line.startswith(b"{")
            assert line.endswith(b"}")


def test_reading_leaves_the_sample_as_it_was(home: Path, labels: dict[str, str]) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    store = open_home(home)
    store.findings()
    for label in ROWS:
        messages_of(store, labels[label])
        store.recovery(SessionId(labels[label]))
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert set(before) == {home / path.relative_to(SAMPLE) for path in SAMPLE.rglob("*") if path.is_file()}
