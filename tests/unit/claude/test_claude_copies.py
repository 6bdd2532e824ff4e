"""What lies in several files is told once: moved folders, sub-agents that copy, a reply that one file tells in part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.unit.claude.building import Made


def used(output: int) -> dict[str, Any]:
    return {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": output}


def folder(root: Path, name: str = "-home-ana-code") -> Path:
    return root / "projects" / name


def begun(name: str) -> Made:
    return Made(name).user("1", None).reply("2", "1", usage=used(10)).user("3", "2").reply("4", "3", usage=used(20))


def copied(source: Made, name: str, lines: list[str] | None = None, **more: Any) -> Made:
    """A new session that begins with lines of another, and goes on with them by their names."""
    made = Made(name)
    made.name, made.time = source.name, source.time
    for line in source.lines if lines is None else lines:
        made.add({**json.loads(line), "sessionId": made.id, **more})
    return made


def rows(cli: Cli, root: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in cli("list", "--sessions", "--all", "--json", store=root).json["sessions"]}


def total(cli: Cli, root: Path) -> dict[str, Any]:
    totals: dict[str, Any] = cli("cost", "--json", store=root).json["totals"]
    return totals


@pytest.fixture(params=["scan", "mirror"])
def asked(request: pytest.FixtureRequest, cli: Cli) -> Cli:
    """Asks the logs, and asks again where they were indexed before."""
    if request.param == "scan":
        return cli

    def ask(*argv: str, store: Path | None = None) -> Any:
        assert cli("mirror", "update", store=store).code == 0
        return cli(*argv, store=store)

    return ask


def test_the_copy_that_was_written_to_last_speaks_for_its_session(asked: Cli, tmp_path: Path) -> None:
    made = begun("moved").boundary("b", "4").summary("s", "b").user("5", "s").reply("6", "5", usage=used(30))
    made.write(folder(tmp_path, "-z-before"))
    made.user("7", "6", dt=60_000).reply("8", "7", model="claude-sonnet-4-5", usage=used(40))
    made.user("9", "6").reply("10", "9", model="claude-sonnet-4-5", usage=used(50))
    made.add({"type": "custom-title", "customTitle": "Went on", "sessionId": made.id})
    made.write(folder(tmp_path, "-a-after"))
    (row,) = rows(asked, tmp_path).values()
    assert (row["title"], row["model"], row["parts"]) == ("Went on", "claude-sonnet-4-5", 2)
    assert row["last_active_at"] == "2026-11-28T10:01:09.110Z"
    assert row["started_at"] == "2026-11-28T10:00:01.000Z"
    assert (row["request_count"], row["output_tokens"]) == (5, 150)
    shown = asked("show", made.id, "--all-states", "--json", store=tmp_path).json["messages"]
    told = {message["text"]: message["state"] for message in shown if message["kind"] in ("prompt", "reply")}
    dead = {"P 7", "R 8"}
    assert {text for text, state in told.items() if state == "dead-branch"} == dead
    assert {text for text, state in told.items() if state == "live"} == {"P 5", "R 6", "P 9", "R 10"}
    assert row["message_count"] == 4
    (node,) = asked("lineage", made.id, "--json", store=tmp_path).json["nodes"]
    assert len(node["compactions"]) == 1
    again = asked("recover", made.id, "--json", store=tmp_path).json["list"]
    assert {key for key in row if key not in ("parts", "origin") and row[key] != again[key]} == set()


def test_a_fork_in_two_folders_stays_a_fork(asked: Cli, tmp_path: Path) -> None:
    source = begun("source")
    source.write(folder(tmp_path))
    fork = copied(source, "fork").user("5", "4").reply("6", "5", usage=used(30))
    fork.write(folder(tmp_path, "-b"))
    fork.user("7", "6").reply("8", "7", usage=used(40)).write(folder(tmp_path, "-a"))
    found = rows(asked, tmp_path)
    assert (found[fork.id]["lineage_kind"], found[fork.id]["parent_id"]) == ("fork", source.id)
    assert (found[fork.id]["output_tokens"], found[fork.id]["message_count"]) == (70, 4)
    assert total(asked, tmp_path)["output_tokens"] == 100


def test_sub_agents_of_a_session_in_two_folders_count_once(asked: Cli, tmp_path: Path) -> None:
    made = begun("moved-with-agents")
    agent = Made("errand").user("1", None, side=True, agentId="a1")
    agent.reply("2", "1", side=True, agentId="a1", usage=used(500))
    for name in ("-before", "-after"):
        made.write(folder(tmp_path, name))
        below = folder(tmp_path, name) / made.id / "subagents"
        below.mkdir(parents=True)
        (below / "agent-a1.jsonl").write_text(agent.text())
    row = rows(asked, tmp_path)["agent-a1"]
    assert (row["request_count"], row["output_tokens"], row["message_count"]) == (1, 500, 2)
    assert (row["lineage_kind"], row["parent_id"]) == ("delegation", made.id)
    assert total(asked, tmp_path)["output_tokens"] == 530


def test_what_a_sub_agent_took_over_from_its_session_is_the_sessions(asked: Cli, tmp_path: Path) -> None:
    made = begun("asks")
    made.write(folder(tmp_path))
    agent = copied(made, "agent", made.lines[:2], isSidechain=True, agentId="a1", sessionId=made.id)
    agent.user("own", "2", side=True, agentId="a1", sessionId=made.id)
    agent.reply("said", "own", side=True, agentId="a1", sessionId=made.id, usage=used(500))
    below = folder(tmp_path) / made.id / "subagents"
    below.mkdir(parents=True)
    (below / "agent-a1.jsonl").write_text(agent.text())
    found = rows(asked, tmp_path)
    assert (found[made.id]["output_tokens"], found[made.id]["message_count"]) == (30, 4)
    row = found["agent-a1"]
    assert (row["lineage_kind"], row["parent_id"]) == ("delegation", made.id)
    assert (row["request_count"], row["output_tokens"], row["message_count"]) == (1, 500, 2)
    shown = asked("show", "agent-a1", "--json", store=tmp_path).json["messages"]
    assert [message["state"] for message in shown] == ["inherited", "inherited", "live", "live"]
    assert total(asked, tmp_path)["output_tokens"] == 530


def test_a_reply_whose_last_line_is_lost_counts_what_its_copy_tells(asked: Cli, tmp_path: Path) -> None:
    made = Made("torn").user("1", None).think("2", "1", message="m", usage=used(1))
    made.reply("3", "2", message="m", usage={**used(900), "cache_creation": {"ephemeral_1h_input_tokens": 2}})
    fork = copied(made, "whole").user("4", "3").reply("5", "4", usage=used(30))
    made.lines[-1] = made.lines[-1][:300]
    made.write(folder(tmp_path))
    fork.write(folder(tmp_path))
    found = rows(asked, tmp_path)
    assert (found[made.id]["output_tokens"], found[fork.id]["output_tokens"]) == (900, 30)
    assert total(asked, tmp_path)["output_tokens"] == 930
    again = asked("recover", made.id, "--json", store=tmp_path).json["list"]
    assert again["output_tokens"] == 900
    (point,) = asked("cache", made.id, "--json", store=tmp_path).json["points"]
    assert point["output_tokens"] == 900


def test_a_sub_agent_inside_a_file_that_was_forked_is_one(asked: Cli, tmp_path: Path) -> None:
    old = {"version": "1.0.51"}
    made = Made("old").user("1", None, **old).use("2", "1", usage=used(1), **old)
    made.user("s1", None, side=True, **old).reply("s2", "s1", side=True, usage=used(10), **old)
    made.result("r2", "2", "2", **old).reply("3", "r2", usage=used(100), **old)
    fork = copied(made, "fork").user("4", "3", **old).reply("5", "4", usage=used(1000), **old)
    made.write(folder(tmp_path))
    fork.write(folder(tmp_path))
    inside = f"sidechain-{made.uuid('s1')}"
    found = rows(asked, tmp_path)
    assert (found[inside]["parent_id"], found[inside]["message_count"], found[inside]["parts"]) == (made.id, 2, 1)
    assert total(asked, tmp_path)["output_tokens"] == 1111


def test_a_copy_behind_a_beginning_of_its_own_is_one(asked: Cli, tmp_path: Path) -> None:
    made = begun("first")
    made.write(folder(tmp_path))
    fork = Made("second").user("0", None)
    fork.lines += [json.dumps({**json.loads(line), "sessionId": fork.id}) for line in made.lines]
    fork.name, fork.time = made.name, made.time
    fork.user("5", "4").reply("6", "5", usage=used(30)).write(folder(tmp_path))
    found = rows(asked, tmp_path)
    assert (found[fork.id]["parent_id"], found[fork.id]["output_tokens"]) == (made.id, 30)
    assert total(asked, tmp_path)["output_tokens"] == 60


def test_a_session_whose_first_line_is_lost_is_none_of_its_sub_agents(asked: Cli, tmp_path: Path) -> None:
    made = Made("torn head").user("1", None).user("s1", None, "ERRAND", side=True).reply("s2", "s1", side=True)
    made.reply("2", "1", usage=used(10)).user("3", "2").reply("4", "3", usage=used(20))
    fork = copied(made, "fork").user("5", "4").reply("6", "5", usage=used(30))
    made.lines[0] = made.lines[0][:100]
    made.write(folder(tmp_path))
    fork.write(folder(tmp_path))
    found = rows(asked, tmp_path)
    assert (found[made.id]["lineage_kind"], found[made.id]["preview"], found[made.id]["resumable"]) == (
        "root",
        "P 3",
        True,
    )
    assert {row["parent_id"] for row in found.values()} == {None, made.id}
    assert total(asked, tmp_path)["output_tokens"] == 64


def test_forks_that_begin_with_the_same_compaction_find_the_file_it_was_made_in(asked: Cli, tmp_path: Path) -> None:
    made = Made("long").user("1", None, "word " * 80_000).reply("2", "1", usage=used(10))
    made.boundary("b", "2").summary("s", "b").user("3", "s").reply("4", "3", usage=used(20))
    made.write(folder(tmp_path, "-z"))
    for number in (1, 2):
        fork = copied(made, f"fork {number}", made.lines[2:])
        fork.user(f"own {number}", "4").reply(f"said {number}", f"own {number}", usage=used(100))
        fork.write(folder(tmp_path, "-a"))
    found = rows(asked, tmp_path)
    assert sorted(row["parent_id"] or "" for row in found.values()) == ["", made.id, made.id]
    assert sorted(row["output_tokens"] for row in found.values()) == [30, 100, 100]
    assert total(asked, tmp_path)["output_tokens"] == 230


def test_copies_whose_beginning_is_cut_out_of_a_damaged_line_are_one(asked: Cli, tmp_path: Path) -> None:
    made = begun("glued")
    made.lines[0] = "{" + made.lines[0]
    made.lines[1] = made.lines[1][:100]
    made.write(folder(tmp_path, "-before"))
    made.write(folder(tmp_path, "-after"))
    (row,) = rows(asked, tmp_path).values()
    assert (row["message_count"], row["output_tokens"]) == (3, 20)
    fork = Made("fork")
    fork.lines = [made.lines[0].replace(made.id, fork.id)]
    fork.name, fork.time = made.name, made.time
    fork.user("own", "1").write(folder(tmp_path))
    found = rows(asked, tmp_path)
    assert (found[fork.id]["parent_id"], found[fork.id]["message_count"]) == (made.id, 1)


def test_two_copies_without_heads_find_the_file_that_has_it(asked: Cli, tmp_path: Path) -> None:
    made = Made("whole").user("1", None).reply("2", "1", usage=used(10)).user("3", "2").user("4", "3")
    made.reply("5", "4", usage=used(20)).write(folder(tmp_path, "-b"))
    first, second = made.lines[2:4]
    for name, lines in (("one", [first, second]), ("two", [second, first])):
        copied(made, name, [*lines, *made.lines[4:]]).write(folder(tmp_path, "-a"))
    found = rows(asked, tmp_path)
    assert [row["output_tokens"] for row in found.values() if row["output_tokens"]] == [30]
    assert total(asked, tmp_path)["output_tokens"] == 30


@pytest.mark.parametrize("folders", [("-a", "-z"), ("-z", "-a")])
def test_requests_of_copies_that_both_went_on_are_judged_in_the_order_of_their_times(
    asked: Cli, tmp_path: Path, folders: tuple[str, str]
) -> None:
    cold = {**used(1), "cache_creation_input_tokens": 40_000, "cache_read_input_tokens": 0}
    warm = {**used(1), "cache_read_input_tokens": 40_000}
    made = Made("both").user("1", None).reply("2", "1", usage=cold).user("3", "2").reply("4", "3", usage=warm)
    older = copied(made, "both").user("a", "4").reply("b", "a", usage=warm)
    older.write(folder(tmp_path, folders[0]))
    made.user("5", "4", dt=60_000).reply("6", "5", usage=warm).write(folder(tmp_path, folders[1]))
    told = asked("cache", made.id, "--json", store=tmp_path).json
    assert [point["request_id"] for point in told["points"]] == [f"msg_both-{name}" for name in ("2", "4", "b", "6")]
    assert [drop["cause"] for drop in told["drops"]] == ["first-request"]
    assert asked("cache", "--json", store=tmp_path).json["points"] == told["points"]
