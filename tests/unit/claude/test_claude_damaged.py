"""Stores that are old, damaged or copied: nothing is lost without a count, nothing is counted twice."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import ListQuery, Message, SessionId, StoreRef, Usage
from hermes_tui.stores.claude.store import ClaudeStore
from tests.unit.claude.building import Made, mark
from tests.unit.claude.cases import refused, resumable, talk

CASES = [*resumable(), *refused()]


def opened(root: Path) -> ClaudeStore:
    return ClaudeStore(StoreRef("claude", "claude", str(root)))


def project(root: Path, name: str = "-home-ana-code") -> Path:
    return root / "projects" / name


def messages(store: ClaudeStore, session_id: str) -> list[Message]:
    transcript = store.transcript([SessionId(session_id)])
    return [message for batch in transcript.heads() for message in transcript.load(batch)]


def tokens(number: int) -> dict[str, Any]:
    return {"input_tokens": number, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}


def own_input(store: ClaudeStore) -> dict[str, int]:
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    return {row.id: row.usage.input for row in store.rows(ids) if row.usage is not None}


def store_input(store: ClaudeStore) -> int:
    return sum(part.spend.usage.input for part in store.usage("model", None, None, UTC).sums)


def copy_of(made: Made, name: str, lines: int, *, marked: bool = False) -> Made:
    """A fork of the first lines of a transcript."""
    fork = Made(name)
    for text in made.lines[:lines]:
        fields = json.loads(text)
        copied = {"forkedFrom": {"sessionId": made.id, "messageUuid": fields["uuid"]}} if marked else {}
        fork.add({**fields, "sessionId": fork.id, **copied})
    fork.time = made.time
    return fork


def goes_on(fork: Made, made: Made, last: str) -> Made:
    """Two own lines behind a copied one."""
    fork.user("own", None).reply("answer", "own", usage=tokens(1000))
    own = json.loads(fork.lines[-2])
    fork.lines[-2] = json.dumps({**own, "parentUuid": made.uuid(last)})
    return fork


# ------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("made", CASES, ids=[made.name for made in CASES])
def test_every_awkward_transcript_is_listed_and_shown(made: Made, tmp_path: Path) -> None:
    made.write(project(tmp_path))
    store = opened(tmp_path)
    (row,) = store.rows([SessionId(made.id)])
    shown = messages(store, made.id)
    assert all(message.text is not None for message in shown)
    heads = [(message.head.id, message.head.part) for message in shown]
    assert len(heads) == len(set(heads))
    assert row.message_count == sum(
        message.head.state == "live" and message.head.kind in ("prompt", "reply", "tool-call", "tool-result")
        for message in shown
    )
    assert store.findings() is not None


def test_glued_and_half_lines_are_rescued_for_reading_and_named(tmp_path: Path) -> None:
    made = next(case for case in CASES if case.name == "glued")
    made.write(project(tmp_path))
    store = opened(tmp_path)
    assert [message.text for message in messages(store, made.id)] == ["P 1", "R 2", "P 3", "R 4", "P 5", "R 6"]
    (row,) = store.rows([SessionId(made.id)])
    assert row.problems == 1
    transcript = store.transcript([SessionId(made.id)])
    list(transcript.heads())
    assert [problem.line for problem in transcript.problems] == [3]


def test_a_time_that_is_none_is_told(tmp_path: Path) -> None:
    made = Made("timeless").user("1", None)
    stamps: list[object] = ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "soon", 5, None]
    for number, said in enumerate(stamps):
        made.reply(f"r{number}", f"r{number - 1}" if number else "1")
        made.raw(json.dumps({**json.loads(made.lines.pop()), "timestamp": said}))
    made.write(project(tmp_path))
    store = opened(tmp_path)
    shown = store.transcript([SessionId(made.id)])
    heads = [head for batch in shown.heads() for head in batch]
    assert [head.at is None for head in heads] == [False] + [True] * len(stamps)
    assert {problem.line for problem in shown.problems} == {2, 3, 4, 5, 6}
    assert [(one.code, one.count) for one in store.findings()] == [("absurd-time", len(stamps))]
    (row,) = store.rows([SessionId(made.id)])
    assert (row.problems, row.started_at, row.request_count) == (len(stamps), row.last_active_at, len(stamps))
    assert store.recovery(SessionId(made.id)).ignored == ()


def test_what_cannot_be_resumed_says_so(tmp_path: Path) -> None:
    made = refused()
    for one in made:
        one.write(project(tmp_path))
    rows = opened(tmp_path).rows([SessionId(one.id) for one in made])
    assert [row.resumable for row in rows] == [False, False, False]
    assert [row.title for row in rows][-1] == "Only a title"


def test_a_giant_line_keeps_its_place_in_the_chain(tmp_path: Path) -> None:
    made = talk("giant", 1).use("3", "2").result("4", "3", "3", "x" * (5 << 20)).reply("5", "4", dt=60_000)
    compact = [json.dumps(json.loads(line), separators=(",", ":")) for line in made.lines]
    made.lines = compact
    made.write(project(tmp_path))
    store = opened(tmp_path)
    shown = messages(store, made.id)
    assert [message.head.state for message in shown] == ["live"] * 5
    assert "not loaded" in (shown[3].text or "")
    assert store.rows([SessionId(made.id)])[0].problems == 1


def test_a_giant_reply_costs_what_it_says(tmp_path: Path) -> None:
    made = Made("giant").user("1", None).think("2", "1", message="m", usage={**tokens(3), "output_tokens": 1})
    write = {"type": "tool_use", "id": "toolu_3", "name": "Write", "input": {"content": "x" * (5 << 20)}}
    made.reply("3", "2", message="m", block=write, usage={**tokens(3), "output_tokens": 900})
    made.result("4", "3", "3").write(project(tmp_path))
    store = opened(tmp_path)
    (request,) = store.requests(None)
    assert (request.request_id, request.usage.output, request.model) == ("msg_m", 900, "claude-opus-4-8")
    (row,) = store.rows([SessionId(made.id)])
    assert (row.message_count, row.tool_call_count, row.problems) == (3, 1, 1)
    shown = messages(store, made.id)
    assert [(one.head.kind, one.head.tool_name) for one in shown[2:]] == [
        ("tool-call", "Write"),
        ("tool-result", "Write"),
    ]


# ---------------------------------------------------------------------------------------------- copies and tokens


def test_forks_of_forks_count_every_request_once(tmp_path: Path) -> None:
    base = talk("base", 3)
    base.lines.insert(2, json.dumps({"type": "mode", "mode": "normal", "sessionId": base.id}))
    plain = [line for line in base.lines if "uuid" in json.loads(line)]
    source = Made("base")
    source.lines, source.time = plain, base.time
    one = goes_on(copy_of(source, "fork-one", 4), source, "4")
    two = goes_on(copy_of(one, "fork-two", 6), one, "answer")
    marked = goes_on(copy_of(source, "branched", 2, marked=True), source, "2")
    for made in (base, one, two, marked):
        made.write(project(tmp_path))
    store = opened(tmp_path)
    own = own_input(store)
    assert own == {base.id: 9, one.id: 1000, two.id: 1000, marked.id: 1000}
    assert store_input(store) == sum(own.values())
    rows = {row.id: row for row in store.rows([SessionId(made.id) for made in (one, two, marked)])}
    assert (rows[SessionId(one.id)].parent_id, rows[SessionId(one.id)].lineage_kind) == (base.id, "fork")
    assert (rows[SessionId(two.id)].parent_id, rows[SessionId(two.id)].lineage_kind) == (one.id, "fork")
    assert (rows[SessionId(marked.id)].parent_id, rows[SessionId(marked.id)].lineage_kind) == (base.id, "branch")


def test_a_fork_after_a_compaction_finds_its_parent_and_zeroed_copies_lose_nothing(tmp_path: Path) -> None:
    base = talk("long", 3).boundary("b", "6", kept=["6"], segment=("6", "6")).summary("s", "b").user("7", "s")
    base.reply("8", "7")
    fork = Made("after")
    zero = dict.fromkeys(tokens(0), 0)
    for name in ("b", "s", "6"):
        fields = next(json.loads(line) for line in base.lines if json.loads(line)["uuid"] == base.uuid(name))
        if name == "6":
            fields["parentUuid"] = base.uuid("s")
            fields["message"]["usage"] = {**zero, "cache_creation": {"ephemeral_5m_input_tokens": 10}}
        fork.add({**fields, "sessionId": fork.id})
    fork.time = base.time
    goes_on(fork, base, "6")
    for made in (base, fork):
        made.write(project(tmp_path))
    store = opened(tmp_path)
    assert own_input(store) == {base.id: 12, fork.id: 1000}
    (row,) = store.rows([SessionId(fork.id)])
    assert (row.parent_id, row.lineage_kind) == (base.id, "fork")
    states = [(message.text, message.head.state) for message in messages(store, fork.id)]
    assert states[-2:] == [("P own", "live"), ("R answer", "live")]
    assert {state for _, state in states[:-2]} == {"inherited"}
    (project(tmp_path) / f"{base.id}.jsonl").unlink()
    (row,) = store.rows([SessionId(fork.id)])
    assert (row.parent_id, row.lineage_kind) == (None, "root"), "its parent went while the screen is open"


def test_a_reply_of_several_lines_is_counted_once_with_the_largest_values(tmp_path: Path) -> None:
    early = {**tokens(3), "output_tokens": 1}
    late = {**tokens(3), "output_tokens": 900, "cache_creation": {"ephemeral_1h_input_tokens": 7},
            "cache_creation_input_tokens": 20}  # fmt: skip
    made = Made("stream").user("1", None).think("2", "1", message="m", usage=early)
    made.reply("3", "2", message="m", usage=late).reply("4", "3", message="m", usage=early)
    made.reply("5", "4", model="<synthetic>", usage=tokens(999))
    made.write(project(tmp_path))
    (request,) = opened(tmp_path).requests(None)
    assert request.usage == Usage(3, 900, 0, 20)
    assert request.write_1h == 7
    assert request.message_id == made.uuid("2")


# ------------------------------------------------------------------------------------------------------ sub-agents


@pytest.mark.parametrize("version", ["1.0.51", "2.1.197"])
def test_old_sub_agents_lie_beside_or_inside_their_session(tmp_path: Path, version: str) -> None:
    old = {"version": version}
    made = Made("old").user("1", None, **old).use("2", "1", usage=tokens(1), **old)
    made.user("s1", None, "INSIDE", side=True, **old)
    made.reply("s2", "s1", side=True, usage=tokens(10), **old)
    made.result("r2", "2", "2", **old).reply("3", "r2", usage=tokens(100), **old)
    made.write(project(tmp_path))
    beside = Made("helper")
    beside.user("1", None, "BESIDE", side=True, agentId="b1", sessionId=made.id)
    beside.reply("2", "1", side=True, agentId="b1", sessionId=made.id, usage=tokens(5000))
    (project(tmp_path) / "agent-b1.jsonl").write_text(beside.text())
    store = opened(tmp_path)
    assert [entry.id for entry in store.listing(ListQuery()).entries] == [made.id]
    assert store.listing(ListQuery()).left_out == {"delegated": 2}
    inside = f"sidechain-{made.uuid('s1')}"
    rows = {row.id: row for row in store.rows([SessionId("agent-b1"), SessionId(inside), SessionId(made.id)])}
    assert {row.parent_id for name, row in rows.items() if name != made.id} == {made.id}
    assert [message.text for message in messages(store, inside)] == ["INSIDE", "R s2"]
    assert [m.text for m in messages(store, made.id) if m.head.kind == "prompt"] == ["P 1"]
    assert rows[SessionId(made.id)].delegated == 2
    assert sum(row.usage.input for row in rows.values() if row.usage) == store_input(store) == 5111
    assert len({request.chain for request in store.requests([SessionId(made.id)])}) == 2


def test_the_model_of_a_session_is_not_that_of_a_sub_agent_inside_it(tmp_path: Path) -> None:
    made = Made("busy").user("1", None).use("2", "1").user("s1", None, side=True)
    made.reply("s2", "s1", side=True, model="claude-haiku-4-5").write(project(tmp_path))
    (row,) = opened(tmp_path).rows([SessionId(made.id)])
    assert (row.model, row.models) == ("claude-opus-4-8", ("claude-opus-4-8", "claude-haiku-4-5"))


def test_nested_sub_agents_and_those_of_a_deleted_session_are_found(tmp_path: Path) -> None:
    gone = mark("deleted")
    folder = project(tmp_path) / gone / "subagents" / "workflows" / "run-1"
    folder.mkdir(parents=True)
    nested = Made("nested").user("1", None, side=True).reply("2", "1", side=True)
    (folder / "agent-n1.jsonl").write_text(nested.text())
    (folder / "agent-n1.meta.json").write_text(json.dumps({"description": "deep errand"}))
    store = opened(tmp_path)
    (row,) = store.rows([SessionId("agent-n1")])
    assert (row.parent_id, row.title) == (gone, "deep errand")
    assert store.lineage(SessionId("agent-n1")).nodes[0].findings == ("orphan",)


# ------------------------------------------------------------------------------------------------------- folders


def test_links_loops_strangers_and_stale_indexes_are_told(tmp_path: Path) -> None:
    made = talk("here")
    path = made.write(project(tmp_path))
    other = project(tmp_path, "-other")
    other.mkdir()
    (other / path.name).symlink_to(path)
    (other / f"{mark('dangling')}.jsonl").symlink_to(other / "nowhere")
    (other / "loop").symlink_to(other)
    (other / "notes.jsonl").write_text("{}\n")
    (other / "sessions-index.json").write_text(json.dumps({"entries": [{"sessionId": mark("ghost")}]}))
    (project(tmp_path, "-again")).symlink_to(project(tmp_path))
    os.mkfifo(other / f"{mark('pipe')}.jsonl")
    store = opened(tmp_path)
    assert [entry.id for entry in store.listing(ListQuery(sessions=True)).entries] == [made.id]
    told = {finding.code: finding.count for finding in store.status().findings}
    assert told == {"unreadable-folder": 2, "not-a-session": 1, "same-file-twice": 1, "sessions-index-ignored": 1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_an_unreadable_folder_hides_no_other(tmp_path: Path) -> None:
    made = talk("open")
    made.write(project(tmp_path))
    closed = project(tmp_path, "-closed")
    closed.mkdir(mode=0)
    store = opened(tmp_path)
    assert store.listing(ListQuery()).total == 1
    assert [finding.code for finding in store.status().findings] == ["unreadable-folder"]
    closed.chmod(0o700)


def test_folders_come_from_the_lines_and_relocation_overrides(tmp_path: Path) -> None:
    made = talk("moved")
    made.add({"type": "relocated", "relocatedCwd": "/home/ana/new place", "sessionId": made.id})
    made.write(project(tmp_path, "-quite-another-name"))
    (row,) = opened(tmp_path).rows([SessionId(made.id)])
    assert row.cwd == "/home/ana/new place"


def test_a_live_process_marks_its_session_as_running(tmp_path: Path) -> None:
    busy, idle = talk("busy"), talk("idle")
    for made in (busy, idle):
        made.write(project(tmp_path))
    marks = tmp_path / "sessions"
    marks.mkdir()
    now = int(time.time() * 1000)
    mine = {"pid": os.getpid(), "sessionId": busy.id, "startedAt": now}
    (marks / f"{os.getpid()}.json").write_text(json.dumps(mine))
    (marks / "4194304.json").write_text(json.dumps({"pid": 4194304, "sessionId": idle.id, "startedAt": now}))
    (marks / "broken.json").write_text("{")
    rows = {row.id: row.running for row in opened(tmp_path).rows([SessionId(busy.id), SessionId(idle.id)])}
    assert rows == {busy.id: True, idle.id: False}


def test_titles_come_in_order(tmp_path: Path) -> None:
    made = talk("titles")
    steps = [
        ({"type": "summary", "summary": "Summary", "leafUuid": made.uuid("4")}, "Summary"),
        ({"type": "last-prompt", "lastPrompt": "Last", "sessionId": made.id}, "Last"),
        ({"type": "ai-title", "aiTitle": "Made up", "sessionId": made.id}, "Made up"),
        ({"type": "custom-title", "customTitle": "Mine", "sessionId": made.id}, "Mine"),
        ({"type": "ai-title", "aiTitle": "Again", "sessionId": made.id}, "Mine"),
    ]
    for fields, title in steps:
        made.add(fields).write(project(tmp_path))
        (row,) = opened(tmp_path).rows([SessionId(made.id)])
        assert row.title == title
        assert row.preview == "P 1"


def test_an_old_title_may_lie_in_another_file(tmp_path: Path) -> None:
    named, other = talk("named"), talk("other")
    other.lines.insert(0, json.dumps({"type": "summary", "summary": "About the named", "leafUuid": named.uuid("4")}))
    for made in (named, other):
        made.write(project(tmp_path))
    rows = {row.id: row.title for row in opened(tmp_path).rows([SessionId(named.id), SessionId(other.id)])}
    assert rows == {named.id: "About the named", other.id: "P 1"}


def test_one_session_in_two_folders_is_one_row_and_counts_once(tmp_path: Path) -> None:
    made = talk("moved-copy", 2)
    made.write(project(tmp_path, "-before"))
    made.user("5", "4").reply("6", "5").write(project(tmp_path, "-after"))
    store = opened(tmp_path)
    assert store.listing(ListQuery()).total == 1
    (row,) = store.rows([SessionId(made.id)])
    assert (row.parent_id, row.lineage_kind, row.parts) == (None, "root", 2)
    assert row.usage == Usage(9, 12, 15, 30)
    shown = [message.text for message in messages(store, made.id)]
    assert sorted(text or "" for text in shown) == ["P 1", "P 3", "P 5", "R 2", "R 4", "R 6"]
    assert [message.text for message in store.recovery(SessionId(made.id)).messages][-1] == "R 6"


def test_an_empty_file_and_one_of_noise_are_listed(tmp_path: Path) -> None:
    folder = project(tmp_path)
    folder.mkdir(parents=True)
    (folder / f"{mark('empty')}.jsonl").write_bytes(b"")
    (folder / f"{mark('noise')}.jsonl").write_bytes(bytes(range(256)) * 600)
    store = opened(tmp_path)
    rows = {row.id: row for row in store.rows([SessionId(mark("empty")), SessionId(mark("noise"))])}
    assert [row.resumable for row in rows.values()] == [False, False]
    assert rows[SessionId(mark("empty"))].problems == 0
    assert rows[SessionId(mark("noise"))].problems > 0
    assert messages(store, mark("noise")) == []
    assert store.recovery(SessionId(mark("empty"))).messages == ()


@pytest.mark.parametrize("odd", [{}, ["tool_use"], 7, None])
def test_a_block_whose_type_is_no_word_hides_none_beside_it(tmp_path: Path, odd: object) -> None:
    made = Made("odd").user("1", None)
    call = {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}
    for blocks in ([call, {**call, "type": odd}], [{**call, "type": odd}, call]):
        made.reply(f"2{len(made.lines)}", "1", block=call)
        line = json.loads(made.lines[-1])
        line["message"]["content"] = blocks
        made.lines[-1] = json.dumps(line)
    # As the program writes lines: without spaces between words.
    made.lines = [json.dumps(json.loads(line), separators=(",", ":")) for line in made.lines]
    made.write(project(tmp_path))
    store = opened(tmp_path)
    kinds = [message.head.kind for message in messages(store, made.id)]
    assert (kinds.count("tool-call"), kinds.count("unknown")) == (2, 2)
    assert store.rows([SessionId(made.id)])[0].problems == 0
    assert store.recovery(SessionId(made.id)).messages
