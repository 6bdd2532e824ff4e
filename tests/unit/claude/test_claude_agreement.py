"""The list, the transcript and the recovery of one session say the same, also where a log is odd or damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.stores.claude import store
from tests.conftest import Cli
from tests.unit.claude.building import Made, mark, stamp
from tests.unit.claude.cases import compactions, damage, talk
from tests.unit.claude.test_claude_damaged import copy_of, goes_on, project

COUNTED = ("prompt", "reply", "tool-call", "tool-result")
UNLIKE = ("origin", "running")
"""Keys of a row that say how and when it was made."""


def rows(cli: Cli, root: Path, *more: str) -> dict[str, dict[str, Any]]:
    found = cli("list", "--json", "--sessions", "--all", *more, store=root).json
    return {row["id"]: row for row in found["sessions"]}


def states(cli: Cli, root: Path, session_id: str) -> dict[str, str]:
    shown = cli("show", session_id, "--json", "--all", "--all-states", store=root).json
    return {message["text"]: message["state"] for message in shown["messages"]}


@pytest.mark.parametrize("made", [*compactions(), *damage()], ids=lambda made: made.name)
def test_recovery_gives_the_row_of_the_list_and_sends_what_is_shown_as_live(
    cli: Cli, tmp_path: Path, made: Made
) -> None:
    made.write(project(tmp_path))
    row = rows(cli, tmp_path)[made.id]
    recovered = cli("recover", made.id, "--json", store=tmp_path).json
    assert {key: value for key, value in recovered["list"].items() if key not in UNLIKE} == {
        key: value for key, value in row.items() if key not in UNLIKE
    }
    shown = cli("show", made.id, "--json", "--all", "--all-states", store=tmp_path).json["messages"]
    live = {message["id"] for message in shown if message["state"] == "live"}
    added = {message["id"] for message in recovered["messages"] if message["id"].startswith("resume-")}
    assert {message["id"] for message in recovered["messages"]} <= live | added
    assert row["message_count"] == sum(one["state"] == "live" and one["kind"] in COUNTED for one in shown)


def test_a_rewind_to_what_a_compaction_kept_still_begins_with_its_summary(cli: Cli, tmp_path: Path) -> None:
    made = next(made for made in compactions() if made.name == "compact-rewound-into-kept")
    made.write(project(tmp_path))
    assert states(cli, tmp_path, made.id) == {
        **dict.fromkeys(("P 1", "R 2", "P 3", "R 4", "R 6"), "compacted"),
        **dict.fromkeys(("P 7", "R 8"), "dead-branch"),
        **dict.fromkeys(("P 5", "Conversation compacted", "SUMMARY s", "INTO", "R 10"), "live"),
    }


def test_recovery_of_a_sub_agent_keeps_what_its_meta_file_calls_it(cli: Cli, tmp_path: Path) -> None:
    talk("boss").write(project(tmp_path))
    agent = Made("agent").user("1", None, side=True, agentId="a1").reply("2", "1", side=True, agentId="a1")
    folder = project(tmp_path) / mark("session boss") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1.jsonl").write_text(agent.text())
    (folder / "agent-a1.meta.json").write_text(json.dumps({"description": "Small errand"}))
    assert cli("recover", "agent-a1", "--json", store=tmp_path).json["list"]["title"] == "Small errand"
    cut = cli("recover", "agent-a1", "--cut", "1", "--json", store=tmp_path).json["list"]
    assert (cut["title"], cut["message_count"], cut["request_count"]) == ("Small errand", 1, 0)


def test_a_title_given_after_the_cut_is_not_the_title_then(cli: Cli, tmp_path: Path) -> None:
    made = talk("named").add({"type": "custom-title", "customTitle": "Late", "sessionId": mark("session named")})
    made.write(project(tmp_path))
    assert cli("recover", made.id, "--json", store=tmp_path).json["list"]["title"] == "Late"
    assert cli("recover", made.id, "--cut", "4", "--json", store=tmp_path).json["list"]["title"] == "P 1"


def test_rows_are_ordered_and_filtered_by_the_times_they_show_where_a_clock_jumped(cli: Cli, tmp_path: Path) -> None:
    jumped = talk("jumped", 3)
    jumped.user("7", "6", "from the future", dt=86_400_000).reply("8", "7")
    for number in range(9, 15):
        jumped.user(str(number), str(number - 1), t=10_000 + number)
    later = Made("later").user("1", None, t=3_600_000).reply("2", "1")
    for made in (jumped, later):
        made.write(project(tmp_path))
    assert list(rows(cli, tmp_path)) == [jumped.id, later.id]
    assert list(rows(cli, tmp_path, "--since", "2026-11-29")) == [jumped.id]
    assert list(rows(cli, tmp_path, "--until", "2026-11-29")) == [later.id]


def test_a_move_in_the_middle_of_a_log_counts_for_the_folder_asked_for(cli: Cli, tmp_path: Path) -> None:
    made = talk("moved", 2).add({"type": "relocated", "relocatedCwd": "/srv/new"})
    made.user("5", "4", "x" * 200_000).reply("6", "5")
    made.user("7", "6", "x" * 200_000).reply("8", "7")
    made.write(project(tmp_path))
    assert list(rows(cli, tmp_path, "--cwd", "/srv/new")) == [made.id]
    assert not rows(cli, tmp_path, "--cwd", "/home/ana/code")


@pytest.mark.parametrize("size", [10, 100_000, 1_000_000])
@pytest.mark.parametrize(("first", "lost"), [(0, "fork"), (3, "fork"), (3, "original")])
def test_a_copy_is_known_though_a_head_is_lost_or_long(
    cli: Cli, tmp_path: Path, size: int, first: int, lost: str
) -> None:
    made = Made("original").add({"type": "queue-operation", "operation": "enqueue", "timestamp": stamp(0)})
    made.user("1", None, "word " * (size // 5)).reply("2", "1").user("3", "2").reply("4", "3")
    made.user("5", "4").reply("6", "5")
    begun, made.lines = made.lines[0], made.lines[1:]
    fork = goes_on(copy_of(made, "fork", 6), made, "6")
    cut = fork if lost == "fork" else made
    del cut.lines[:first]
    made.lines.insert(0, begun)
    for one in (made, fork):
        one.write(project(tmp_path))
    found = rows(cli, tmp_path)
    assert found[fork.id]["lineage_kind"] == "fork"
    assert found[fork.id]["parent_id"] == made.id

    assert sum(row["request_count"] for row in found.values()) == 4


def test_what_an_older_build_wrote_before_the_prompt_is_a_head(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines are the parents of the first message: nothing is lost, and no other log is looked through for it."""
    made = Made("original").progress("p", None).progress("q", "p").user("1", "q").reply("2", "1")
    fork = goes_on(copy_of(made, "fork", 4), made, "2")
    for one in (made, fork, Made("other").progress("p", None).user("1", "p").reply("2", "1")):
        one.write(project(tmp_path))
    searched: list[str] = []
    monkeypatch.setattr(store, "holder_of", lambda uuid, *_: searched.append(uuid))
    found = rows(cli, tmp_path)
    assert (found[fork.id]["lineage_kind"], found[fork.id]["parent_id"]) == ("fork", made.id)
    assert not searched


def test_a_log_that_cannot_be_read_hides_no_hits_of_the_others(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, locked = Made("good").user("1", None, "a word"), Made("locked").user("1", None, "a word")
    paths = [made.write(project(tmp_path)) for made in (good, locked)]
    really_open = os.open

    def refusing(path: Any, *rest: Any, **more: Any) -> int:
        if os.fspath(path) == str(paths[1]):
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    for query in (["word"], ["w*"], ["--regex", "w.rd"]):
        found = cli("search", *query, "--json", store=tmp_path)
        assert (found.code, [hit["session_id"] for hit in found.json["hits"]]) == (0, [good.id])
        assert locked.id in found.json["incomplete"]
    recovered = cli("recover", locked.id, "--json", store=tmp_path)
    assert (recovered.code, recovered.json["error"]["code"]) == (3, "store-unreadable")


def test_a_long_last_line_tells_when_a_session_was_active(cli: Cli, tmp_path: Path) -> None:
    printed = talk("printed").use("5", "4", dt=7_200_000).result("6", "5", "5", "y" * 300_000)
    later = Made("later").user("1", None, t=3_600_000).reply("2", "1")
    for made in (printed, later):
        made.write(project(tmp_path))
    found = cli("list", "--json", "--limit", "1", store=tmp_path).json
    assert [row["id"] for row in found["sessions"]] == [printed.id]


def test_recovery_of_a_sub_agent_inside_a_file_sends_its_lines_alone(cli: Cli, tmp_path: Path) -> None:
    made = Made("two inside").user("1", None).use("2", "1").user("a1", None, side=True).reply("a2", "a1", side=True)
    made.result("r2", "2", "2").reply("3", "r2").boundary("b", "3").summary("s", "b")
    made.user("b1", None, side=True).reply("b2", "b1", side=True).user("4", "s").reply("5", "4")
    made.write(tmp_path / "projects" / "-home-ana-code")
    for first, texts in (("a1", ["P a1", "R a2"]), ("b1", ["P b1", "R b2"])):
        found = cli("recover", f"sidechain-{made.uuid(first)}", "--json", store=tmp_path).json
        assert [message["text"] for message in found["messages"]] == texts


def test_a_line_out_of_order_explains_the_drop_behind_it_in_time(cli: Cli, tmp_path: Path) -> None:
    def written(tokens: int) -> dict[str, int]:
        return {"input_tokens": 1, "cache_creation_input_tokens": tokens, "cache_read_input_tokens": 0}

    made = Made("jumbled").user("1", None).reply("2", "1", usage=written(50_000))
    made.user("3", "2").reply("4", "3", usage=written(50_000)).system("m", "4", "microcompact_boundary")
    made.user("5", "m").reply("6", "5", usage=written(50_000))
    made.lines[3], made.lines[4] = made.lines[4], made.lines[3]
    made.write(project(tmp_path))
    drops = cli("cache", made.id, "--json", store=tmp_path).json["drops"]
    assert [drop["cause"] for drop in drops] == ["first-request", "unknown", "compaction"]


def test_a_line_of_a_type_nobody_knows_is_no_branch(cli: Cli, tmp_path: Path) -> None:
    made = Made("future").user("1", None).reply("2", "1").user("3", "2").reply("4", "3")
    made.add({"type": "something-new", "sessionId": made.id}).user("5", "4").user("6", "2")
    made.write(project(tmp_path))
    (row,) = cli("list", "--json", store=tmp_path).json["sessions"]
    assert row["branches"] == cli("recover", made.id, "--json", store=tmp_path).json["list"]["branches"] == 1
