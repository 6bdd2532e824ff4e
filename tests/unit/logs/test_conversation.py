"""Folding sessions to a conversation and adding up what is priced alike (contract.md, list)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes_tui.model import ListQuery, Request, SessionId, SessionRow, Spend, StoreRef, Usage
from hermes_tui.stores.conversation import (
    below,
    fold_conversation,
    is_running,
    left_out_reason,
    matches,
    merged_spend,
    order_value,
    spend_of_requests,
    usage_of,
)
from hermes_tui.text import RawText

STORE = StoreRef("hermes", "hermes/default", "/h/state.db", "default")


def row(name: str, **more: object) -> SessionRow:
    one = SessionRow(STORE, SessionId(name), SessionId("root"), SessionId("tip"))
    return replace(one, **more)


def spend(usage: Usage, model: str = "m", requests: int | None = 1, **more: object) -> Spend:
    return replace(Spend(RawText(model), None, usage, requests), **more)


def test_fold_takes_each_field_from_where_the_contract_says() -> None:
    chain = (
        row("root", title=RawText("oldest"), model=RawText("a"), models=(RawText("a"),), started_at=1.0, ended_at=2.0,
            last_active_at=2.0, end_reason=RawText("compression"), message_count=3, tool_call_count=1, request_count=2,
            parent_id=SessionId("before"), lineage_kind="branch", usage=Usage(1, 1), spend=(spend(Usage(1, 1)),),
            problems=1, cwd=RawText("/w")),
        row("mid", title=RawText("nearest"), started_at=3.0, message_count=None, request_count=None, usage=None,
            lineage_kind="compaction", parent_id=SessionId("root")),
        row("tip", title=None, model=RawText("b"), models=(RawText("b"), RawText("a")), started_at=5.0, ended_at=None,
            last_active_at=9.0, message_count=4, request_count=5, usage=Usage(2, 2, 3),
            spend=(spend(Usage(2, 2, 3), "b"), spend(Usage(0, 0), "m")), lineage_kind="compaction",
            parent_id=SessionId("mid")),
    )  # fmt: skip
    folded = fold_conversation(chain)
    assert (folded.id, folded.tip_id, folded.root_id) == ("tip", "tip", "root")
    assert (folded.title, folded.model, folded.models) == ("nearest", "b", ("a", "b"))
    assert (folded.ended_at, folded.end_reason, folded.last_active_at) == (None, None, 9.0)
    assert (folded.started_at, folded.parent_id, folded.lineage_kind) == (1.0, "before", "branch")
    assert (folded.message_count, folded.tool_call_count, folded.request_count, folded.parts) == (7, 1, 7, 3)
    assert folded.usage == Usage(3, 3, 3) == usage_of(folded.spend)
    assert [(part.model, part.requests) for part in folded.spend] == [("m", 2), ("b", 1)]
    assert (folded.problems, folded.cwd) == (1, "/w")


def test_a_chain_of_one_is_its_row() -> None:
    one = row("tip")
    assert fold_conversation([one]) is one


def test_an_empty_chain_is_no_conversation() -> None:
    with pytest.raises(ValueError, match="at least one"):
        fold_conversation([])


def test_spend_keeps_apart_what_is_priced_apart() -> None:
    usage = Usage(10, 1)
    spends = merged_spend(
        [
            spend(usage, cost_usd=0.5, cost_status="actual", last_at=5.0),
            spend(usage, cost_usd=0.25, cost_status="actual", last_at=3.0),
            spend(usage, cost_usd=None, cost_status="unknown"),
            spend(usage, task="title_generation"),
            spend(usage, band=200_000, write_1h=4),
            spend(usage, band=200_000, write_1h=5, requests=None),
        ]
    )
    told = [(part.cost_usd, part.cost_status, part.task, part.band, part.requests, part.write_1h) for part in spends]
    assert told == [
        (0.75, "actual", "", 0, 2, 0),
        (None, "unknown", "", 0, 1, 0),
        (None, None, "title_generation", 0, 1, 0),
        (None, None, "", 200_000, 1, 9),
    ]
    assert spends[0].last_at == 5.0


def test_requests_fall_into_bands_by_their_own_prompt() -> None:
    def request(fresh: int, read: int) -> Request:
        return Request(SessionId("s"), "s", None, None, 1.0, RawText("m"), None, Usage(fresh, 1, read))

    spends = spend_of_requests([request(1, 128_000), request(0, 128_000), request(250_000, 50_000)])
    assert [(part.band, part.requests) for part in spends] == [(128_000, 1), (0, 1), (272_000, 1)]


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("/w/a", "/w/a", True), ("/w/a/b", "/w/a", True), ("/w/ab", "/w/a", False), ("/w/a", "/w/a/", True),
        ("/w/a/", "/w/a", True), (None, "/w", False), ("/w", "/", True), ("C:\\w\\a", "C:\\w", True), ("", "/", False),
    ],
)  # fmt: skip
def test_folder_filter(path: str | None, folder: str, inside: bool) -> None:
    assert below(path, folder) is inside


def test_left_out_reasons_follow_the_asked_filters() -> None:
    tool = row("t", source=RawText("tool"))
    assert left_out_reason(tool, ListQuery()) == "tool"
    assert left_out_reason(tool, ListQuery(sessions=True)) is None
    assert left_out_reason(row("a", archived=True), ListQuery(archived=True)) is None
    assert left_out_reason(row("a", archived=True, lineage_kind="delegation"), ListQuery()) == "archived"
    assert left_out_reason(row("c", source=RawText("cron")), ListQuery(automated=False)) == "automated"
    assert left_out_reason(row("c", source=RawText("tool")), ListQuery(source="tool")) is None
    assert left_out_reason(row("h"), ListQuery(), hidden=True) == "hidden"


def test_filters_are_and() -> None:
    one = row("s", source=RawText("cli"), model=RawText("b"), models=(RawText("a"), RawText("b")), last_active_at=5.0)
    assert matches(one, ListQuery(source="cli", model="a", since=5.0, until=5.0))
    assert not matches(one, ListQuery(source="cli", model="c"))
    assert not matches(one, ListQuery(until=4.9))
    assert not matches(replace(one, last_active_at=None), ListQuery(since=0.0))


def test_running_is_recent_and_not_ended() -> None:
    one = row("s", last_active_at=1_000.0)
    assert is_running(one, 1_299.0)
    assert not is_running(one, 1_300.0)
    assert not is_running(replace(one, ended_at=1_000.0), 1_001.0)
    assert not is_running(row("s"), 1.0)
    assert is_running(replace(one, running=True), 10**9)


def test_order_by_money_is_what_the_store_says() -> None:
    one = row("s", usage=Usage(1, 2, 3, 4, 2), spend=(spend(Usage(), cost_usd=0.5), spend(Usage(), cost_usd=0.25)))
    assert order_value(one, "cost") == 0.75
    assert order_value(one, "tokens") == 10
    assert order_value(row("s"), "cost") == -float("inf")
