"""Histories that span files: forks of forks, reverts after reverts, forks of reverted threads, long lines."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
import zstandard

from hermes_tui.model import PowerCut, SessionId
from hermes_tui.stores.codex.demo import write_demo
from hermes_tui.stores.codex.demo_writer import Clock, Rollout, uuid7
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.conversation import usage_of
from tests.unit.codex.conftest import open_home
from tests.unit.codex.rollouts import THREAD, call, event, meta, output, said, turn, write

NOW = 1_795_000_000.0


def talk(home: Path, source: random.Random) -> Rollout:
    return Rollout(home, Clock(NOW), source, "/home/mina/src")


def exchange(talk: Rollout, name: str) -> None:
    """One prompt and its reply."""
    talk.turn(f"ask {name}")
    talk.answer(f"say {name}")


def after(old: Rollout, base: dict[str, object], *, revert: bool) -> Rollout:
    """A fork or a later segment that begins at a cut."""
    at = old.clock.at + 50
    ordinal = base["end_ordinal_exclusive"]
    assert isinstance(ordinal, int)
    return Rollout(
        old.home,
        Clock(at),
        old.source,
        old.cwd,
        base=base,
        thread_id=old.thread_id if revert else "",
        segment=uuid7(at, old.source) if revert else None,
        forked_from=None if revert else old.thread_id,
        named_at=old.named_at if revert else None,
        ordinal=ordinal,
        totals=dict(old.totals),
    )


def continued(home: Path, seed: int, *, revert: bool = True) -> tuple[Rollout, Rollout]:
    """A talk of two turns, and a file after its first one: a later segment, or a fork."""
    first = talk(home, random.Random(seed))
    exchange(first, "one")
    cut = first.cut()
    exchange(first, "two")
    first.save()
    return first, after(first, cut, revert=revert)


def reverted(home: Path, seed: int) -> tuple[Rollout, Rollout]:
    """The same, reverted, with one turn more in the later segment."""
    first, second = continued(home, seed)
    exchange(second, "three")
    return first, second


def told(store: CodexStore, thread: str) -> list[tuple[str | None, str]]:
    transcript = store.transcript([SessionId(thread)])
    heads = [head for batch in transcript.heads() for head in batch if head.kind in ("prompt", "reply")]
    return [(message.text, message.head.state) for message in transcript.load(heads)]


def recovered(store: CodexStore, thread: str) -> list[str | None]:
    return [m.text for m in store.recovery(SessionId(thread)).messages if m.head.kind in ("prompt", "reply")]


def test_a_thread_reverted_twice_shows_what_each_revert_took_away(tmp_path: Path) -> None:
    first = talk(tmp_path, random.Random(1))
    for name in ("one", "two"):
        exchange(first, name)
    cut = first.cut()
    exchange(first, "three")
    first.save()
    second = after(first, cut, revert=True)
    exchange(second, "four")
    again = second.cut()
    exchange(second, "five")
    second.save()
    third = after(second, again, revert=True)
    exchange(third, "six")
    third.save()
    store = open_home(tmp_path)
    live = ["ask one", "say one", "ask two", "say two", "ask four", "say four", "ask six", "say six"]
    assert recovered(store, first.thread_id) == live
    shown = told(store, first.thread_id)
    assert [text for text, state in shown if state == "live"] == live
    assert [text for text, state in shown if state == "rewound"] == ["ask three", "say three", "ask five", "say five"]
    row = store.rows([SessionId(first.thread_id)])[0]
    assert (row.parts, row.title, row.request_count, row.message_count) == (3, "ask one", 6, 8)
    nodes = store.lineage(SessionId(first.thread_id)).nodes
    kinds = [(node.kind, node.parent_id) for node in nodes]
    assert kinds == [("root", None), ("revert", first.thread_id), ("revert", first.thread_id)]
    assert [(node.row.request_count, node.row.message_count) for node in nodes] == [(3, 4), (2, 2), (1, 2)]
    assert usage_of(spend for node in nodes for spend in node.row.spend) == row.usage


@pytest.mark.parametrize("revert", [True, False])
def test_a_count_repeated_before_the_first_answer_of_a_continued_history_is_no_request(
    tmp_path: Path, revert: bool
) -> None:
    """A compaction right after a fork or revert tells the newest count again (facts/codex.md section 5)."""
    _, later = continued(tmp_path, seed=6, revert=revert)
    info = {"total_token_usage": later.totals, "last_token_usage": later.totals, "model_context_window": 258_400}
    assert later.totals["input_tokens"] > 0
    path = later.save()
    with path.open("a", encoding="utf-8") as file:
        for _ in range(2):
            file.write(event("token_count", 100, info=info) + "\n")
    row = open_home(tmp_path).rows([SessionId(later.thread_id)])[0]
    assert row.request_count == (2 if revert else 0)


def test_the_parts_of_a_reverted_thread_sum_up_after_a_compaction(tmp_path: Path) -> None:
    """The compaction of the second file takes the first one's answers out of the model's view as well."""
    first, second = reverted(tmp_path, seed=4)
    path = second.save()
    kept = {"message": "told", "replacement_history": [], "window_number": 1}
    value = {"timestamp": "2026-11-29T16:35:34.547Z", "type": "compacted", "payload": kept}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
    exchange(second, "unsaved")
    store = open_home(tmp_path)
    row = store.rows([SessionId(first.thread_id)])[0]
    nodes = store.lineage(SessionId(first.thread_id)).nodes
    assert row.message_count == 0
    assert [(node.row.message_count, node.row.tool_call_count) for node in nodes] == [(0, 0), (0, 0)]


def test_the_row_after_a_cut_of_the_last_segment_is_that_of_the_cut_file(tmp_path: Path) -> None:
    first, second = reverted(tmp_path, seed=1)
    path = second.save()
    lines = path.read_bytes().splitlines(keepends=True)
    store = open_home(tmp_path)
    rows = [store.recovery(SessionId(first.thread_id), PowerCut(number)).row for number in range(1, len(lines))]
    for number, row in enumerate(rows, 1):
        path.write_bytes(b"".join(lines[:number]))
        assert row.message_count == open_home(tmp_path).rows([SessionId(first.thread_id)])[0].message_count


def test_a_segment_without_its_first_line_still_follows_the_cut(tmp_path: Path) -> None:
    first, second = reverted(tmp_path, seed=1)
    path = second.save()
    path.write_bytes(path.read_bytes()[100:])
    store = open_home(tmp_path)
    live = ["ask one", "say one", "ask three", "say three"]
    assert [text for text, state in told(store, first.thread_id) if state == "live"] == live
    assert recovered(store, first.thread_id) == live
    row = store.rows([SessionId(first.thread_id)])[0]
    assert (row.parts, row.message_count, row.request_count) == (2, 4, 3)
    transcript = store.transcript([SessionId(first.thread_id)])
    list(transcript.heads())
    assert "does not start with session metadata" in " ".join(problem.reason for problem in transcript.problems)
    path.write_bytes(b"")
    assert [text for text, _ in told(store, first.thread_id)] == ["ask one", "say one", "ask two", "say two"]
    assert [problem.path for problem in store.transcript([SessionId(first.thread_id)]).problems] == [str(path)]


def test_a_segment_that_is_all_that_is_left_of_a_thread_cannot_be_resumed(tmp_path: Path) -> None:
    first, second = reverted(tmp_path, 5)
    first.save().unlink()
    second.save()
    store = open_home(tmp_path)
    [row] = store.rows([SessionId(first.thread_id)])
    assert (row.parts, row.resumable, row.problems) == (1, False, 1)
    assert "history is missing" in store.recovery(row.id).ignored[0].reason


def test_a_revert_back_into_the_first_segment_leaves_the_second_as_rewound(tmp_path: Path) -> None:
    first = talk(tmp_path, random.Random(2))
    exchange(first, "one")
    early = first.cut()
    exchange(first, "two")
    late = first.cut()
    first.save()
    second = after(first, late, revert=True)
    exchange(second, "three")
    second.save()
    third = after(second, early, revert=True)
    exchange(third, "four")
    third.save()
    store = open_home(tmp_path)
    assert recovered(store, first.thread_id) == ["ask one", "say one", "ask four", "say four"]
    rewound = [text for text, state in told(store, first.thread_id) if state == "rewound"]
    assert rewound == ["ask two", "say two", "ask three", "say three"]


def test_a_fork_made_before_a_revert_keeps_the_turns_it_was_made_from(tmp_path: Path) -> None:
    """The segment after the revert reaches the same ordinal with other turns: the byte offset decides."""
    first = talk(tmp_path, random.Random(8))
    exchange(first, "one")
    early = first.cut()
    exchange(first, "two")
    late = first.cut()
    first.save()
    fork = after(first, late, revert=False)
    exchange(fork, "forked")
    fork.save()
    second = after(first, early, revert=True)
    second.clock.at += 1000
    for name in ("four, at more length", "five"):
        exchange(second, name)
    second.save()
    store = open_home(tmp_path)
    whole = ["ask one", "say one", "ask two", "say two", "ask forked", "say forked"]
    assert [text for text, _ in told(store, fork.thread_id)] == whole
    assert recovered(store, fork.thread_id) == whole


def test_a_fork_of_a_fork_of_a_reverted_thread(tmp_path: Path) -> None:
    root = talk(tmp_path, random.Random(3))
    exchange(root, "one")
    cut = root.cut()
    exchange(root, "lost")
    root.save()
    segment = after(root, cut, revert=True)
    exchange(segment, "two")
    base = segment.cut()
    exchange(segment, "later")
    segment.save()
    fork = after(segment, base, revert=False)
    exchange(fork, "three")
    inner = fork.cut()
    fork.save()
    grandchild = after(fork, inner, revert=False)
    exchange(grandchild, "four")
    grandchild.save()
    store = open_home(tmp_path)
    whole = ["ask one", "say one", "ask two", "say two", "ask three", "say three", "ask four", "say four"]
    assert recovered(store, grandchild.thread_id) == whole
    assert [text for text, _ in told(store, grandchild.thread_id)] == whole
    row = store.rows([SessionId(grandchild.thread_id)])[0]
    assert (row.lineage_kind, row.parent_id, row.preview, row.title) == ("fork", fork.thread_id, "ask one", "ask four")
    assert (row.request_count, row.message_count, row.resumable) == (1, 2, True)
    tree = store.lineage(SessionId(grandchild.thread_id))
    assert tree.tree_root_id == root.thread_id
    assert {node.id for node in tree.nodes} >= {root.thread_id, fork.thread_id, grandchild.thread_id}


def test_a_history_base_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    one, other = THREAD, THREAD[:-1] + "9"
    for own, base in ((one, other), (other, one)):
        cut = {"thread_id": base, "end_ordinal_exclusive": 1, "end_byte_offset": 10}
        lines = [
            meta(own, history_mode="paginated", forked_from_id=base, history_base=cut),
            *turn(1, own, "x", 5, thread=own),
        ]
        write(tmp_path, lines, thread=own)
    store = open_home(tmp_path)
    assert [text for text, _ in told(store, one)][-2:] == [one, "x"]
    assert "cycle" in store.lineage(SessionId(one)).nodes[0].findings


def test_a_giant_line_is_named_and_read_in_pieces(tmp_path: Path) -> None:
    big = "가" * 7_000_000
    lines = [
        meta(),
        *turn(1, "ask", "say", 10),
        event("task_started", 20, turn_id="t2"),
        said("user", "show it", "msg_x", 20),
        event("user_message", 20, message="show it"),
        output("call_big", big, 21),
        said("assistant", "that was long", "msg_y", 22),
    ]
    write(tmp_path, lines)
    store = open_home(tmp_path)
    transcript = store.transcript([SessionId(THREAD)])
    heads = [head for batch in transcript.heads() for head in batch]
    giant = next(head for head in heads if head.size > 20_000_000)
    assert (giant.kind, giant.tool_call_id) == ("tool-result", "call_big")
    took = []
    for _ in range(5):
        begin = time.thread_time()
        (message,) = transcript.load([giant])
        took.append(time.thread_time() - begin)
    # A screen is not held up longer than this by a line of 20 MB; parsing the line alone takes longer.
    assert min(took) < 0.05
    assert message.cut
    assert message.text is not None
    assert len(message.text) < 100_000
    piece = transcript.piece(giant, 1_000_000, 50)
    assert piece == "가" * 50
    assert transcript.piece(giant, 8_000_000, 50) == ""
    assert [problem.line for problem in transcript.problems] == [13]
    assert store.rows([SessionId(THREAD)])[0].message_count == 5


@pytest.mark.parametrize("packed", [False, True])
def test_giant_texts_are_shown_once_and_read_to_their_end(tmp_path: Path, packed: bool) -> None:
    """A prompt, an output and a reply of 5 MB each, with the events that repeat them."""
    long = "wörter " * 800_000
    lines = [
        meta(),
        event("task_started", 1, turn_id="t"),
        said("user", long, "msg_u"),
        event("user_message", 1, message=long),
        call("c1"),
        event("exec_command_end", 2, call_id="c1", stdout=long),
        output("c1", long),
        event("agent_message", 3, message=long),
        said("assistant", long, "msg_a"),
        event("task_complete", 4, turn_id="t"),
    ]
    path = write(tmp_path, lines)
    if packed:
        path.with_name(path.name + ".zst").write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
    store = open_home(tmp_path)
    assert store.rows([SessionId(THREAD)])[0].message_count == 4
    transcript = store.transcript([SessionId(THREAD)])
    heads = [head for batch in transcript.heads() for head in batch]
    assert [head.kind for head in heads] == ["prompt", "tool-call", "tool-result", "reply"]
    for head in (heads[0], heads[2], heads[3]):
        pieces, start = [], 0
        while piece := transcript.piece(head, start, 1 << 20):
            pieces.append(piece)
            start += len(piece)
        assert json.loads("".join(pieces))["type"] == "response_item"
        assert transcript.piece(head, 0, 20) == "".join(pieces)[:20]


def test_a_giant_compaction_is_still_the_base_of_a_resume(tmp_path: Path) -> None:
    kept = {"type": "message", "role": "user", "id": "msg_u011", "content": [{"type": "input_text", "text": "ask"}]}
    summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "s" * 6_000_000}]}
    compacted = json.dumps(
        {
            "timestamp": "2026-11-18T10:00:00.000Z",
            "type": "compacted",
            "payload": {"message": "s", "replacement_history": [kept, summary], "window_number": 4},
        },
        separators=(",", ":"),
    )
    write(tmp_path, [meta(), *turn(1, "ask", "say", 10), compacted, *turn(2, "more", "done", 30)])
    store = open_home(tmp_path)
    recovery = store.recovery(SessionId(THREAD))
    assert (recovery.base_kind, recovery.base_line, recovery.window) == ("compaction", 10, 4)
    assert [m.text[:4] for m in recovery.messages if m.text] == ["ask", "ssss", "more", "done"]
    assert [state for _, state in told(store, THREAD)] == ["live", "compacted", "live", "live"]
    assert store.rows([SessionId(THREAD)])[0].message_count == 3


def test_the_demo_holds_what_it_promises(tmp_path: Path) -> None:
    write_demo(tmp_path, NOW)
    store = open_home(tmp_path)
    rows = [store.rows([thread])[0] for thread in store.index().rows]
    assert {row.lineage_kind for row in rows} == {"root", "fork", "delegation"}
    assert any(row.parts == 2 for row in rows)
    assert any(row.compactions == 2 for row in rows)
    assert any(len(row.models) == 2 for row in rows)
    assert any(row.archived for row in rows)
    assert any(row.title and "강의" in row.title for row in rows)
    assert all(row.problems == 0 for row in rows)
    assert [finding.code for finding in store.findings()] == ["agent-mirror-missing"]
    cold = [request for request in store.requests(None) if not request.usage.cache_read]
    assert max(request.usage.prompt_size for request in cold) > 10_000
    again = tmp_path / "again"
    write_demo(again, NOW)
    first = {
        path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.jsonl") if again not in path.parents
    }
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*.jsonl")} == first
