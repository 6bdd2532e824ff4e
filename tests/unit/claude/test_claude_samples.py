"""The sample store of the real Claude Code against its answers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import COUNTED_KINDS, NO_USAGE, SHOWN_STATES, ListQuery, Message, SessionId, StoreRef, Usage
from hermes_tui.stores.claude.package import PACKAGE
from hermes_tui.stores.claude.store import ClaudeStore

SAMPLE = Path(__file__).parents[2] / "data/samples/claude"
ANSWERS: dict[str, Any] = json.loads((SAMPLE / "answers.json").read_text(encoding="utf-8"))
SESSIONS: dict[str, dict[str, Any]] = {session["file"]: session for session in ANSWERS["sessions"]}
FORK, BASIC = "66bb7bfa-b61f-4eb6-b0c9-b209b178bd74", "41979902-5ff9-411b-9f5b-e9f7e7bff453"
BRANCH, TUI = "1ae02728-0213-49af-9ea1-942dd33af214", "4c46f094-0fd2-42fc-8f31-dc05e4a5da0c"
AGENTS = "499224dd-36eb-4c71-88e7-5d02da3145b5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("claude") / "dot-claude"
    shutil.copytree(SAMPLE / "dot-claude", copy)
    return copy


@pytest.fixture
def store(folder: Path) -> Iterator[ClaudeStore]:
    before = sorted((path, os.stat(path).st_mtime_ns) for path in folder.rglob("*"))
    yield ClaudeStore(StoreRef("claude", "claude", str(folder)))
    assert sorted((path, os.stat(path).st_mtime_ns) for path in folder.rglob("*")) == before


def messages(store: ClaudeStore, session_id: str) -> list[Message]:
    transcript = store.transcript([SessionId(session_id)])
    return [message for batch in transcript.heads() for message in transcript.load(batch)]


def tokens(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def test_the_list_shows_every_session_and_leaves_out_sub_agents(store: ClaudeStore) -> None:
    listing = store.listing(ListQuery())
    assert {entry.id for entry in listing.entries} == set(SESSIONS)
    assert listing.left_out == {"delegated": 3}
    assert store.listing(ListQuery(sessions=True)).total == 18


def test_rows_say_what_the_answers_say(store: ClaudeStore) -> None:
    for row in store.rows([SessionId(session_id) for session_id in SESSIONS]):
        answer = SESSIONS[row.id]
        assert row.title == answer["title"]
        assert row.preview == answer["prompts_live"][0]
        assert row.cwd == answer["cwd"]
        assert row.compactions == len(answer["compactions"])
        assert row.problems == 0
        assert row.resumable


@pytest.mark.parametrize("session_id", sorted(SESSIONS))
def test_transcripts_show_live_and_dead_prompts(store: ClaudeStore, session_id: str) -> None:
    answer = SESSIONS[session_id]
    shown = messages(store, session_id)
    prompts = [message for message in shown if message.head.kind == "prompt"]
    assert [message.text for message in prompts] == answer["all_prompt_texts"]
    assert [message.text for message in prompts if message.head.state in SHOWN_STATES] == answer["prompts_live"]
    lines = {message.head.id: message.head.state for message in shown}
    assert len(lines) == answer["unique_uuids"]
    assert sum(state != "dead-branch" for state in lines.values()) == answer["live_lines"]
    counted = [m for m in shown if m.head.kind in COUNTED_KINDS and m.head.state == "live"]
    assert store.rows([SessionId(session_id)])[0].message_count == len(counted)
    assert sum(message.usage is not None for message in shown) == len(answer["requests"])


def test_every_request_is_counted_once_over_the_store(store: ClaudeStore) -> None:
    rows = store.rows([entry.id for entry in store.listing(ListQuery(sessions=True)).entries])
    total = NO_USAGE
    for row in rows:
        total += row.usage or NO_USAGE
    assert tokens(total) == ANSWERS["store_total_once"]
    assert sum(row.request_count or 0 for row in rows) == ANSWERS["requests_once"]
    report = store.usage("model", None, None, UTC)
    assert sum(part.spend.requests or 0 for part in report.sums) == ANSWERS["requests_once"]
    assert sum(part.spend.write_1h for part in report.sums) == 12


def test_a_sessions_own_requests_match_the_answers(store: ClaudeStore) -> None:
    for session_id, answer in SESSIONS.items():
        if session_id in (FORK, BRANCH):
            continue
        requests = list(store.requests([SessionId(session_id)]))
        assert {request.request_id: tokens(request.usage) for request in requests} == answer["requests"]


def test_forks_and_branches_own_what_they_did_not_copy(store: ClaudeStore) -> None:
    for child, parent, kind, own in ((FORK, BASIC, "fork", "msg_s000008"), (BRANCH, TUI, "branch", "msg_s000059")):
        row = store.rows([SessionId(child)])[0]
        assert (row.parent_id, row.lineage_kind) == (parent, kind)
        requests = list(store.requests([SessionId(child)]))
        assert [request.request_id for request in requests] == [own]
        assert [event.cause for event in requests[0].events] == ["fork"]
        states = [message.head.state for message in messages(store, child) if message.head.kind == "prompt"]
        assert states == ["inherited"] * (len(states) - 1) + ["live"]
    lineage = store.lineage(SessionId(FORK))
    assert [(node.id, node.kind) for node in lineage.nodes] == [(BASIC, "root"), (FORK, "fork")]


def test_sub_agents_are_rows_under_their_session(store: ClaudeStore) -> None:
    for name, answer in SESSIONS[AGENTS]["subagents"].items():
        row = store.rows([SessionId(name)])[0]
        assert (row.parent_id, row.lineage_kind, row.title) == (AGENTS, "delegation", "small errand")
        assert not row.resumable
        assert tokens(row.usage or NO_USAGE) == answer["total"]
        prompts = [message.text for message in messages(store, name) if message.head.kind == "prompt"]
        assert prompts == answer["prompts"]
    assert store.rows([SessionId(AGENTS)])[0].delegated == 3


def test_rewinds_and_compactions_explain_misses(store: ClaudeStore) -> None:
    causes = {
        session_id: [event.cause for request in store.requests([SessionId(session_id)]) for event in request.events]
        for session_id in SESSIONS
    }
    assert causes["055246cc-dbd3-4961-863b-d3b58922d581"] == ["rewind"]
    assert causes[TUI] == ["rewind"]
    assert causes["a23b72c3-30d9-46bc-b113-cf9f354ff587"] == ["compaction", "compaction"]
    assert causes["e0d62a17-cef5-4048-988f-07aedf8209bd"] == []


def test_compactions_carry_their_numbers(store: ClaudeStore) -> None:
    node = store.lineage(SessionId("a23b72c3-30d9-46bc-b113-cf9f354ff587")).nodes[0]
    said = [(c.trigger, c.before_tokens, c.after_tokens, c.kept, c.dropped) for c in node.compactions]
    assert said == [("manual", 3558, 577, 1, 11), ("manual", 3673, 570, 1, 6)]


def test_commands_bash_input_and_spilled_output_are_shown_for_people(store: ClaudeStore) -> None:
    tui = {message.text for message in messages(store, TUI)}
    assert {"/rename Header work", "Session renamed to: Header work"} <= tui
    bash = {message.text for message in messages(store, "aec92984-ef7b-4382-9cd6-27615f0ebdd9")}
    assert {"! echo from bash mode", "from bash mode"} <= bash
    spill = [m for m in messages(store, "5f76dff2-0329-4da6-b854-73b319a671e3") if m.head.kind == "tool-result"]
    assert spill[0].attachments == ("tool-results/bbx6sgzma.txt",)
    assert spill[0].head.tool_name == "Bash"


def test_commands_name_the_config_folder_and_quote_the_title(store: ClaudeStore, folder: Path) -> None:
    row = store.rows([SessionId(BASIC)])[0]
    command = store.resume_command(row)
    assert (command.argv, command.cwd) == (("claude", "--resume", BASIC), "/home/ana/code/weather-cli")
    assert command.environment == (("CLAUDE_CONFIG_DIR", str(folder)),)
    renamed = store.change_command("rename", SessionId(BASIC), "it's new; rm -rf /")
    assert renamed is not None
    assert f" && CLAUDE_CONFIG_DIR={folder} claude --resume {BASIC} " in renamed
    assert "'/rename it'\"'\"'s new; rm -rf /'" in renamed
    assert store.change_command("delete", SessionId(BASIC)) is None
    assert store.change_command("rename", SessionId("agent-a30bafb0196f3212d"), "a sub-agent") is None


def test_the_package_knows_its_folder(folder: Path, tmp_path: Path) -> None:
    assert PACKAGE.recognise(folder)
    assert not PACKAGE.recognise(tmp_path)
    homes = PACKAGE.default_homes({"CLAUDE_CONFIG_DIR": "/one, /two"}, Path("/home/ana"))
    assert [str(home) for home in homes] == ["/one", "/two"]
    assert [str(home) for home in PACKAGE.default_homes({}, Path("/h"))] == ["/h/.claude", "/h/.config/claude"]
