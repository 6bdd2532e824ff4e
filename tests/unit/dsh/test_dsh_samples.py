"""Every fact of the samples' answers, from stores the real program wrote."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from hermes_tui.model import CostGrouping, ListQuery, SessionId, Usage
from hermes_tui.stores.dsh.package import PACKAGE
from hermes_tui.stores.dsh.store import DshStore
from tests.unit.dsh.conftest import SAMPLES, messages_of, opened, problems_of, rows_of, texts

ANSWERS: dict[str, Any] = json.loads((SAMPLES / "answers.json").read_text())
SESSIONS = [
    pytest.param(home, answer, id=f"{home}-{answer['id'][:16]}")
    for home, found in ANSWERS.items()
    for answer in found["sessions"]
]


def usage_of(answer: dict[str, int]) -> Usage:
    return Usage(answer["inputTokens"], answer["outputTokens"], answer["cacheReadTokens"], answer["cacheWriteTokens"])


def without_reasoning(usage: Usage) -> Usage:
    return Usage(usage.input, usage.output, usage.cache_read, usage.cache_write)


def store_with(home: str) -> DshStore:
    return opened(SAMPLES / home)


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_row(home: str, answer: dict[str, Any]) -> None:
    row = rows_of(store_with(home))[answer["id"]]
    assert row.usage is not None
    assert without_reasoning(row.usage) == usage_of(answer["total"])
    assert (row.title, row.cwd, row.parent_id) == (answer["title"], answer["cwd"], answer["parent"])
    assert row.started_at == answer["createdAt"] / 1000
    assert row.request_count == len(answer["calls"])
    assert row.compactions == len(answer["compactions"])
    assert row.lineage_kind == ("delegation" if answer["depth"] else "root")
    assert row.resumable == (not answer["depth"])
    assert row.problems == 0


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_peek_says_what_the_row_says(home: str, answer: dict[str, Any]) -> None:
    store = store_with(home)
    row, peeked = rows_of(store)[answer["id"]], store.index().rows[SessionId(answer["id"])]
    for name in ("title", "preview", "last_active_at", "started_at", "model", "parent_id", "lineage_kind", "cwd"):
        assert getattr(peeked, name) == getattr(row, name), name


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_prompts_and_states(home: str, answer: dict[str, Any]) -> None:
    store = store_with(home)
    messages = messages_of(store, answer["id"])
    assert texts(messages, "prompt") == answer["prompts"]
    own = [m for m in messages if m.head.state != "inherited"]
    assert texts(own, "prompt") == answer["own_prompts"]
    assert problems_of(store, answer["id"]) == []


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_requests_in_order(home: str, answer: dict[str, Any]) -> None:
    requests = list(store_with(home).requests([SessionId(answer["id"])]))
    rates = [None if r.usage.hit_rate is None else round(r.usage.hit_rate, 4) for r in requests]
    assert rates == [call["hit"] for call in answer["calls"]]


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_surface_and_events(home: str, answer: dict[str, Any]) -> None:
    store = store_with(home)
    state = store.backend.read(store.index().logs_of[SessionId(answer["id"])][0]).state
    assert len(state.surface) == answer["surface"]
    assert state.events == answer["events"]
    assert state.inherited == answer["inherited"]


@pytest.mark.parametrize(("home", "answer"), SESSIONS)
def test_compactions(home: str, answer: dict[str, Any]) -> None:
    nodes = store_with(home).lineage(SessionId(answer["id"])).nodes
    node = next(node for node in nodes if node.id == answer["id"])
    told = [(item.dropped, item.before_tokens) for item in node.compactions]
    assert told == [(item["shadowed"], item["tokens"]) for item in answer["compactions"]]


@pytest.mark.parametrize("home", ANSWERS)
@pytest.mark.parametrize("grouping", ["model", "day", "session", "cwd", "provider", "source"])
def test_ledger_adds_up_to_the_store(home: str, grouping: CostGrouping) -> None:
    report = store_with(home).usage(grouping, None, None, UTC)
    total = sum((part.spend.usage for part in report.sums), Usage())
    assert without_reasoning(total) == usage_of(ANSWERS[home]["total"])


def test_compaction_calls_stand_apart_from_the_sums() -> None:
    report = store_with("dot-dsh").usage("task", None, None, UTC)
    (apart,) = report.apart
    answer = next(s for s in ANSWERS["dot-dsh"]["sessions"] if s["compactions"])
    assert apart.key == "compaction"
    assert apart.spend.usage == usage_of(answer["compaction_usage"])
    assert apart.spend.requests == len(answer["compactions"])
    assert [(part.key, part.spend.usage) for part in report.sums] == [("", usage_of(ANSWERS["dot-dsh"]["total"]))]


def test_list_leaves_sub_agents_out_and_counts_them() -> None:
    listing = store_with("dot-dsh").listing(ListQuery())
    assert (listing.total, listing.left_out) == (4, {"delegated": 2})
    assert store_with("dot-dsh").listing(ListQuery(children=True)).total == 6


def test_lineage_is_the_whole_tree_from_any_of_its_sessions() -> None:
    parent = "session-3db74b1b-b7e7-4156-b12a-82baa6291cb8"
    for asked in (parent, "ee1ed286-441e-433a-b419-b318ed262991", "f0347234-e1ed-49a3-9f48-66e86a7e19ae"):
        lineage = store_with("dot-dsh").lineage(SessionId(asked))
        assert lineage.tree_root_id == parent
        assert [node.kind for node in lineage.nodes] == ["root", "delegation", "delegation"]


def test_database_rows() -> None:
    (store,) = PACKAGE.open(SAMPLES / "sqlite-synthetic", {})
    rows = {row.id: row for row in store.rows([e.id for e in store.listing(ListQuery(sessions=True)).entries])}
    first, fork, newer = (rows[SessionId(f"session-db-{name}")] for name in ("1", "fork", "v9"))
    assert (first.title, first.usage, first.message_count) == ("Kept in a database", Usage(130, 1020, 100, 45), 4)
    assert (fork.parent_id, fork.usage) == ("session-db-1", Usage(7, 6, 130, 9))
    assert (newer.usage, newer.problems, newer.resumable, newer.cwd) == (None, 1, False, "/home/ana/code/weather-cli")
    transcript = store.transcript([fork.id])
    heads = [head for batch in transcript.heads() for head in batch]
    assert [head.state for head in heads if head.kind == "prompt"] == ["inherited", "live"]
    assert all(head.path is None and head.line is None for head in heads)


def test_database_keeps_an_ignorable_event_with_a_row_tag() -> None:
    (store,) = PACKAGE.open(SAMPLES / "sqlite-synthetic" / "sessions.db", {})
    transcript = store.transcript([SessionId("session-db-1")])
    messages = [message for batch in transcript.heads() for message in transcript.load(batch)]
    assert [m.head.kind for m in messages] == ["prompt", "reply", "prompt", "reply", "unknown"]
    assert len(messages[3].text or "") > 4_096


def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    import shutil

    home = tmp_path / "home"
    shutil.copytree(SAMPLES, home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    for name in (*ANSWERS, "sqlite-synthetic"):
        for store in PACKAGE.open(home / name, {}):
            for entry in store.listing(ListQuery(sessions=True)).entries:
                for _ in store.transcript([entry.id]).heads():
                    pass
            store.findings()
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
