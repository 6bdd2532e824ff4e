"""The command line on the DSH samples, against answers.json and the README."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SAMPLES, Cli, Contract

ANSWERS = json.loads((SAMPLES / "dsh/answers.json").read_text())
HOMES = ("dot-dsh", "dot-dsh-raw", "dot-dsh-v0", "dot-dsh-v0-raw")
THEIR_TOKENS = ("inputTokens", "cacheWriteTokens", "cacheReadTokens", "outputTokens")
OUR_TOKENS = ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")


def sessions_of(name: str) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in ANSWERS[name]["sessions"]}


@pytest.mark.parametrize("name", HOMES)
def test_sessions_tokens_titles(cli: Cli, contract: Contract, sample: Callable[[str], Path], name: str) -> None:
    found = contract("list", cli("list", "--json", "--sessions", "--all", store=sample(f"dsh/{name}")).json)
    answers = sessions_of(name)
    rows = {row["id"]: row for row in found["sessions"]}
    assert set(rows) == set(answers)
    for session_id, answer in answers.items():
        row = rows[session_id]
        assert tuple(row[key] for key in OUR_TOKENS) == tuple(answer["total"][key] for key in THEIR_TOKENS), session_id
        assert (row["title"] or "").startswith(answer["title"][:36])
        assert row["cwd"] == answer["cwd"]
        assert row["parent_id"] == answer["parent"]


@pytest.mark.parametrize("name", HOMES)
def test_totals_at_every_grouping(cli: Cli, contract: Contract, sample: Callable[[str], Path], name: str) -> None:
    home = sample(f"dsh/{name}")
    wanted = [sum(one["total"][key] for one in sessions_of(name).values()) for key in THEIR_TOKENS]
    for by in ("model", "task", "day", "session", "cwd", "source", "provider", "store"):
        found = contract("cost", cli("cost", "--json", "--by", by, store=home).json)
        assert [found["totals"][key] for key in OUR_TOKENS] == wanted, by
        apart = [sum(one["compaction_usage"][key] for one in sessions_of(name).values()) for key in THEIR_TOKENS]
        assert [sum(row[key] for row in found["apart"]) for key in OUR_TOKENS] == apart, by


@pytest.mark.parametrize("name", HOMES)
def test_prompts_and_hit_rates(cli: Cli, contract: Contract, sample: Callable[[str], Path], name: str) -> None:
    home = sample(f"dsh/{name}")
    for session_id, answer in sessions_of(name).items():
        found = contract("show", cli("show", session_id, "--json", "--all", store=home).json)
        prompts = [message for message in found["messages"] if message["kind"] == "prompt"]
        assert [message["text"] for message in prompts] == answer["prompts"], session_id
        own = [message["text"] for message in prompts if message["state"] != "inherited"]
        assert own == answer["own_prompts"], session_id
        points = cli("cache", session_id, "--json", store=home).json["points"]
        rates = [call["hit"] for call in answer["calls"] if call.get("hit") is not None]
        assert [
            round(point["cache_hit_rate"], 4) for point in points if point["cache_hit_rate"] is not None
        ] == rates, session_id


def test_the_planned_miss(cli: Cli, contract: Contract, sample: Callable[[str], Path]) -> None:
    found = contract("cache", cli("cache", "session-e8a532fc", "--json", store=sample("dsh/dot-dsh")).json)
    (bad,) = [drop for drop in found["drops"] if not drop["expected"]]
    assert bad["to_rate"] == 0.0
    assert bad["from_rate"] == pytest.approx(0.965, abs=0.001)


def test_the_database_layout(cli: Cli, contract: Contract, sample: Callable[[str], Path]) -> None:
    store = sample("dsh/sqlite-synthetic/sessions.db")
    found = contract("list", cli("list", "--json", "--sessions", "--all", store=store).json)
    rows = {row["id"]: row for row in found["sessions"]}
    assert set(rows) == {"session-db-1", "session-db-fork", "session-db-v9"}
    assert [rows["session-db-1"][key] for key in OUR_TOKENS] == [130, 45, 100, 1_020]
    assert [rows["session-db-fork"][key] for key in OUR_TOKENS] == [7, 9, 130, 6]
    assert rows["session-db-1"]["title"] == "Kept in a database"
    assert rows["session-db-fork"]["parent_id"] == "session-db-1"
    assert rows["session-db-v9"]["problems"] > 0


def test_recovery_is_the_surface(cli: Cli, contract: Contract, sample: Callable[[str], Path]) -> None:
    home = sample("dsh/dot-dsh")
    for session_id, answer in sessions_of("dot-dsh").items():
        found = contract("recover", cli("recover", session_id, "--json", store=home).json)
        assert found["base"]["kind"] == ("compaction" if answer["compactions"] else "start"), session_id
        assert len({message["id"] for message in found["messages"]}) == answer["surface"], session_id
