"""The answers of the sample store's README."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest

from hermes_tui.model import ListQuery, SessionId, Usage
from hermes_tui.stores.hermes.store import HermesStore

from .samples import answers, copied, names, stores

NAMES = names()


@pytest.fixture
def home(tmp_path: Path) -> dict[str, HermesStore]:
    return stores(copied(tmp_path))


def listed(store: HermesStore, **query: object) -> list[str]:
    return [entry.id for entry in store.listing(ListQuery(**query)).entries]  # type: ignore[arg-type]


def test_profiles_are_all_there_and_the_active_one_is_marked(home: dict[str, HermesStore]) -> None:
    assert list(home) == ["hermes/default", "hermes/empty", "hermes/newlayout", "hermes/sales"]
    assert [name for name, store in home.items() if store.status().active_profile] == ["hermes/sales"]
    assert home["hermes/empty"].status().state == "empty"


@pytest.mark.parametrize(("name", "which"), [("hermes/default", 0), ("hermes/newlayout", 0), ("hermes/sales", 1)])
def test_the_list_is_the_products_by_last_activity(home: dict[str, HermesStore], name: str, which: int) -> None:
    from_store = [entry for entry in listed(home[name]) if entry in NAMES.values()]
    assert from_store == answers("by last activity", which)
    assert [one for one in listed(home[name], order="started") if one in NAMES.values()] == answers(
        "default list (started_at DESC)", which
    )


def test_what_is_left_out_is_counted(home: dict[str, HermesStore]) -> None:
    found = home["hermes/default"].listing(ListQuery())
    assert found.left_out == {"archived": 2, "delegated": 3, "tool": 1}
    assert found.total == 24 + 1
    everything = home["hermes/default"].listing(ListQuery(sessions=True))
    assert (everything.total, everything.left_out) == (36 + 1, {})
    archived = set(listed(home["hermes/default"], archived=True)) - set(listed(home["hermes/default"]))
    assert archived == set(answers("archived only"))


def test_a_log_the_store_does_not_have_is_listed_from_a_scan(home: dict[str, HermesStore]) -> None:
    store = home["hermes/default"]
    (row,) = store.rows([SessionId("20250101_090000_legacy")])
    assert (row.origin, row.message_count, row.preview, row.resumable) == ("scan", 2, "only in a legacy file", False)
    assert store.resolve("20250101") == ["20250101_090000_legacy"]


@pytest.mark.parametrize("name", ["chain1", "chain2", "chain3", "chain4"])
def test_every_part_of_a_chain_knows_the_chain(home: dict[str, HermesStore], name: str) -> None:
    chain = home["hermes/default"].chain(SessionId(NAMES[name]))
    assert chain == tuple(NAMES[f"chain{number}"] for number in (1, 2, 3, 4))


def test_a_closed_sibling_does_not_win(home: dict[str, HermesStore]) -> None:
    store = home["hermes/default"]
    assert store.chain(SessionId(NAMES["race1"])) == (NAMES["race1"], NAMES["race_live"])
    assert NAMES["race_stale"] not in listed(store)


def test_hit_rates_are_the_readmes(home: dict[str, HermesStore]) -> None:
    # The README gives 0.637 for rich: its main loop alone. A row includes the auxiliary tasks (contract.md, list).
    shares = {"plain": 0.8, "chain3": 0.08, "rich": 0.627, "inplace": 0.946, "boss": 0.82, "kid1": 0.0}
    rows = home["hermes/default"].rows([SessionId(NAMES[name]) for name in shares], conversation=False)
    found = {name: row.usage.hit_rate for name, row in zip(shares, rows, strict=True) if row.usage}
    assert {name: round(rate or 0.0, 3) for name, rate in found.items()} == shares


def test_a_conversation_is_summed_over_its_chain(home: dict[str, HermesStore]) -> None:
    (row,) = home["hermes/default"].rows([SessionId(NAMES["chain4"])])
    assert (row.root_id, row.parts, row.title, row.message_count) == (NAMES["chain1"], 4, "Gateway Notes #4", 19)
    assert row.usage == Usage(122000, 6000, 278000, 0, 0)
    assert row.started_at == pytest.approx(1772086400.001)


def test_usage_by_model_is_the_readmes(home: dict[str, HermesStore]) -> None:
    report = home["hermes/default"].usage("model", None, None, UTC)
    sums: dict[tuple[str | None, str], list[float]] = {}
    for part in report.sums:
        entry = sums.setdefault((part.key, part.spend.task), [0, 0])
        entry[0] += part.spend.requests or 0
        entry[1] += part.spend.usage.input
    assert sums == {
        ("codex-mini", ""): [2, 1800],
        ("local-7b", ""): [2, 1800],
        ("nimbus-4-large", ""): [55, 216600],
        ("nimbus-4-mini", ""): [7, 5500],
        ("nimbus-4-mini", "title_generation"): [1, 400],
        ("nimbus-4-mini", "vision"): [1, 1500],
        ("sol-9", ""): [11, 2500],
    }


@pytest.mark.parametrize("which", ["cli/rotated", "cli/inplace"])
def test_kept_messages_are_shown_once(tmp_path: Path, which: str) -> None:
    store = stores(copied(tmp_path, which))["hermes/default"]
    (tip,) = listed(store)
    heads = [head for batch in store.transcript(store.chain(SessionId(tip))).heads() for head in batch]
    summaries = {head.id for head in heads if head.kind == "summary"}
    assert len(summaries) == 3
    assert len({head.id for head in heads} - summaries) == 26
    roles = Counter(role for _, role in {(head.id, head.role) for head in heads if head.id not in summaries})
    assert roles == {"user": 10, "assistant": 13, "tool": 3}


@pytest.mark.parametrize("which", ["cli/rotated", "cli/inplace"])
def test_recovery_is_the_live_rows_of_the_tip(tmp_path: Path, which: str) -> None:
    store = stores(copied(tmp_path, which))["hermes/default"]
    (tip,) = listed(store)
    recovery = store.recovery(SessionId(tip))
    assert recovery.base_kind == "compaction"
    assert len({message.head.id for message in recovery.messages}) == 22


def test_people_may_repeat_themselves(home: dict[str, HermesStore]) -> None:
    store = home["hermes/default"]
    heads = [head for batch in store.transcript(store.chain(SessionId(NAMES["chain1"]))).heads() for head in batch]
    assert Counter(head.kind for head in heads) == {"prompt": 8, "reply": 8, "summary": 3}


def test_states_of_a_session_compacted_in_place(home: dict[str, HermesStore]) -> None:
    heads = [h for batch in home["hermes/default"].transcript([SessionId(NAMES["inplace"])]).heads() for h in batch]
    assert Counter(head.state for head in heads) == {"compacted": 12, "live": 3, "rewound": 2}


def test_a_branch_marks_what_it_copied(home: dict[str, HermesStore]) -> None:
    heads = [h for batch in home["hermes/default"].transcript([SessionId(NAMES["branch"])]).heads() for h in batch]
    assert [head.state for head in heads] == ["inherited", "inherited", "live", "live"]


def test_every_kind_of_entry_in_the_rich_session(home: dict[str, HermesStore]) -> None:
    transcript = home["hermes/default"].transcript([SessionId(NAMES["rich"])])
    messages = transcript.load([head for batch in transcript.heads() for head in batch], sent=True)
    picture = messages[0]
    assert (picture.text, picture.attachments) == ("What is in this picture of the invoice?", ("image/png",))
    calls = [(one.head.tool_name, one.text) for one in messages if one.head.kind == "tool-call"]
    assert calls == [("terminal", '{"command": "printf \'ok\'"}'), ("read_file", '{"path": "notes/chat-send.md"}')]
    (sent,) = [message.sent_text for message in messages if message.sent_text]
    assert sent.startswith("<memory-context>")
    assert [(one.head.part, one.head.kind) for one in messages[1:3]] == [(0, "reasoning"), (1, "reply")]


def test_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    home = copied(tmp_path)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    for store in stores(home).values():
        for entry in store.listing(ListQuery()).entries:
            store.rows([entry.id])
            list(store.transcript(store.chain(entry.id)).heads())
            store.lineage(entry.id)
        store.findings()
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before
