"""The command line on the Claude Code sample, against its answers.json and README."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES, Cli, Contract

ANSWERS = json.loads((SAMPLES / "claude/answers.json").read_text())
SESSIONS: dict[str, dict[str, Any]] = {one["file"]: one for one in ANSWERS["sessions"] if one["is_session"]}
THEIR_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
OUR_TOKENS = ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")
SUB_AGENTS = {
    "agent-a30bafb0196f3212d": (6, 2_543, 2_062, 22),
    "agent-a63578453268fe579": (3, 2_060, 0, 8),
    "agent-a9c8fe6e8b0c47adc": (6, 2_537, 2_057, 23),
}
TITLES = {
    "4c46f094": "Header work", "1ae02728": "Green branch", "48640aaf": "Mock title 57", "aec92984": "Mock title 54",
    "9f358a08": "Fix the footer",
}  # fmt: skip


@pytest.fixture
def home(sample: Callable[[str], Path]) -> Path:
    return sample("claude/dot-claude")


def first_file_of_requests() -> dict[str, str]:
    """Which session a request belongs to where a fork or a branch copied it: the one it was made in."""
    owner: dict[str, str] = {}
    copies = ("66bb7bfa", "1ae02728")  # README: the fork of basic, and what /branch made of 4c46f094
    for one in sorted(SESSIONS.values(), key=lambda one: one["file"].startswith(copies)):
        for request in one["requests"]:
            owner.setdefault(request, one["file"])
    return owner


def own_tokens(session_id: str) -> tuple[int, ...]:
    owner = first_file_of_requests()
    own = [usage for request, usage in SESSIONS[session_id]["requests"].items() if owner[request] == session_id]
    return tuple(sum(usage[key] for usage in own) for key in THEIR_TOKENS)


def test_every_session_with_its_tokens(cli: Cli, contract: Contract, home: Path) -> None:
    found = contract("list", cli("list", "--json", "--sessions", "--all", store=home).json)
    rows = {row["id"]: row for row in found["sessions"]}
    assert set(rows) == set(SESSIONS) | set(SUB_AGENTS)
    for session_id in SESSIONS:
        assert tuple(rows[session_id][key] for key in OUR_TOKENS) == own_tokens(session_id), session_id
        assert rows[session_id]["cwd"] == SESSIONS[session_id]["cwd"]
    for session_id, tokens in SUB_AGENTS.items():
        assert tuple(rows[session_id][key] for key in OUR_TOKENS) == tokens
        assert rows[session_id]["lineage_kind"] == "delegation"
        assert rows[session_id]["parent_id"].startswith("499224dd")
    for start, title in TITLES.items():
        assert next(row["title"] for row in found["sessions"] if row["id"].startswith(start)) == title


def test_the_default_list_leaves_sub_agents_out_and_counts_them(cli: Cli, home: Path) -> None:
    found = cli("list", "--json", store=home).json
    assert {row["id"] for row in found["sessions"]} == set(SESSIONS)
    assert found["left_out"] == {"delegated": 3}
    assert len(cli("list", "--json", "--children", store=home).json["sessions"]) == 18


def test_every_request_once(cli: Cli, contract: Contract, home: Path) -> None:
    totals = {key: ANSWERS["store_total_once"][key] for key in THEIR_TOKENS}
    for by in ("model", "day", "session", "cwd", "source", "provider", "task", "store"):
        found = contract("cost", cli("cost", "--json", "--by", by, store=home).json)
        assert tuple(found["totals"][key] for key in OUR_TOKENS) == tuple(totals.values()), by
        assert found["totals"]["requests"] == ANSWERS["requests_once"] == 54
    cache = contract("cache", cli("cache", "--json", store=home).json)
    assert len({point["request_id"] for point in cache["points"]}) == len(cache["points"]) == 54


def test_live_prompts(cli: Cli, contract: Contract, home: Path) -> None:
    for session_id, answer in SESSIONS.items():
        found = contract("show", cli("show", session_id, "--json", "--all", store=home).json)
        prompts = [message["text"] for message in found["messages"] if message["kind"] == "prompt"]
        assert prompts == answer["prompts_live"], session_id
        everything = contract("show", cli("show", session_id, "--json", "--all", "--all-states", store=home).json)
        every_prompt = [message["text"] for message in everything["messages"] if message["kind"] == "prompt"]
        assert sorted(every_prompt) == sorted(answer["all_prompt_texts"]), session_id


def test_hit_rates_in_order(cli: Cli, home: Path) -> None:
    owner = first_file_of_requests()
    for session_id, answer in SESSIONS.items():
        points = cli("cache", session_id, "--json", store=home).json["points"]
        rates = [
            round(usage["cache_read_input_tokens"] / max(1, sum(usage[key] for key in THEIR_TOKENS[:3])), 4)
            for request, usage in answer["requests"].items()
            if owner[request] == session_id
        ]
        # The README has them in file order; in 4c46f094 a line stands before its parent, and requests go by time.
        ours = [round(point["cache_hit_rate"], 4) for point in points]
        assert (sorted(ours) if session_id.startswith("4c46f094") else ours) == (
            sorted(rates) if session_id.startswith("4c46f094") else rates
        ), session_id
        assert [point["at"] for point in points] == sorted(point["at"] for point in points)


def test_the_planned_miss_is_the_one_to_flag(cli: Cli, contract: Contract, home: Path) -> None:
    session_id = next(name for name in SESSIONS if name.startswith("e0d62a17"))
    found = contract("cache", cli("cache", session_id, "--json", store=home).json)
    requests = [point["request_id"] for point in found["points"]]
    bad = {requests.index(drop["request_id"]) + 1 for drop in found["drops"] if not drop["expected"]}
    assert bad == {2, 4}, "the README: the rate falls to 0 at requests 2 and 4"
    fourth = next(drop for drop in found["drops"] if drop["request_id"] == requests[3])
    assert fourth["from_rate"] == pytest.approx(0.984, abs=0.001)
    assert (fourth["to_rate"], fourth["read_tokens"]) == (0.0, 0)
    assert fourth["cost_usd"] > 0


def test_compactions_are_expected_drops_and_stand_in_the_lineage(cli: Cli, contract: Contract, home: Path) -> None:
    session_id = next(name for name in SESSIONS if name.startswith("a23b72c3"))
    found = contract("lineage", cli("lineage", session_id, "--json", store=home).json)
    node = next(node for node in found["nodes"] if node["id"] == session_id)
    assert [(one["trigger"], one["before_tokens"], one["after_tokens"]) for one in node["compactions"]] == [
        ("manual", 3_558, 577), ("manual", 3_673, 570),
    ]  # fmt: skip
    drops = cli("cache", session_id, "--json", store=home).json["drops"]
    assert [drop["cause"] for drop in drops if drop["cause"] == "compaction"] != []
    assert all(drop["expected"] for drop in drops if drop["cause"] == "compaction")


def test_forks_hang_off_what_they_copied(cli: Cli, contract: Contract, home: Path) -> None:
    basic = next(name for name in SESSIONS if name.startswith("41979902"))
    found = contract("lineage", cli("lineage", basic, "--json", store=home).json)
    kinds = {node["id"][:8]: (node["kind"], (node["parent_id"] or "")[:8]) for node in found["nodes"]}
    assert kinds == {"41979902": ("root", ""), "66bb7bfa": ("fork", "41979902")}
    tree = cli("lineage", next(name for name in SESSIONS if name.startswith("4c46f094")), "--json", store=home).json
    kinds = {node["id"][:8]: node["kind"] for node in tree["nodes"]}
    assert kinds["1ae02728"] == "branch"


def test_recovery_after_a_compaction_begins_with_it(cli: Cli, contract: Contract, home: Path) -> None:
    for session_id in SESSIONS:
        found = contract("recover", cli("recover", session_id, "--json", store=home).json)
        assert found["base"]["kind"] == ("compaction" if SESSIONS[session_id]["compactions"] else "start"), session_id


def test_changes_name_the_agents_own_command(cli: Cli, home: Path) -> None:
    session_id = next(iter(SESSIONS))
    answer = cli("resume", session_id, "--print", store=home)
    assert answer.code == 0
    assert f"claude --resume {session_id}" in answer.out
    assert SESSIONS[session_id]["cwd"] in answer.out.replace("'", "")
