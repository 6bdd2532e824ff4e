"""A damaged page of an index loses nothing; one of a table loses what lies on it, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.model import ListQuery, Message, SessionId, SessionRow
from hermes_tui.stores.hermes.store import HermesStore
from tests.conftest import Cli

from .samples import copied, names, stores
from .test_hermes_damage import codes, damage_first_leaf

NAMES = names()


def everything(store: HermesStore) -> tuple[list[SessionRow], dict[str, list[Message]]]:
    """Every row and every text."""
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    texts: dict[str, list[Message]] = {}
    for identity in ids:
        transcript = store.transcript([identity])
        texts[identity] = transcript.load([head for batch in transcript.heads() for head in batch])
    return store.rows(ids, conversation=False), texts


def texts_of(messages: dict[str, list[Message]]) -> dict[str, list[str | None]]:
    return {identity: [one.text for one in some] for identity, some in messages.items()}


@pytest.mark.parametrize(
    "index",
    [
        "sqlite_autoindex_sessions_1",
        "idx_sessions_parent",
        "idx_messages_session",
        "idx_messages_session_active",
        "sqlite_autoindex_session_model_usage_1",
    ],
)
def test_a_damaged_index_loses_nothing(tmp_path: Path, index: str) -> None:
    home = copied(tmp_path)
    whole = everything(stores(home)["hermes/default"])
    damage_first_leaf(home / "state.db", index)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in home.iterdir())
    store = stores(home)["hermes/default"]
    assert everything(store) == whole
    assert store.chain(SessionId(NAMES["chain2"])) == tuple(NAMES[f"chain{number}"] for number in (1, 2, 3, 4))
    assert len(store.lineage(SessionId(NAMES["chain2"])).nodes) == 4
    assert len(list(store.requests(None))) > 20
    assert codes(store)["damaged-pages"] >= 1
    assert sorted((path.name, path.stat().st_mtime_ns) for path in home.iterdir()) == before


def test_messages_of_a_session_whose_row_is_gone_are_read(cli: Cli, tmp_path: Path) -> None:
    home = copied(tmp_path)
    whole = everything(stores(home)["hermes/default"])[1]
    damage_first_leaf(home / "state.db", "sessions")
    store = stores(home)["hermes/default"]
    # Which of a branch's messages were copied is not known without its row.
    assert texts_of(everything(store)[1]) == texts_of(whole)
    found = codes(store)
    assert found["unreadable-sessions"] > 0
    assert "absurd-time" not in found
    lost = next(row for row in everything(store)[0] if row.problems and not row.resumable)
    answer = cli("show", lost.id, "--all", "--json", store=home / "state.db")
    assert answer.code == 0
    assert len(answer.json["messages"]) == len(whole[lost.id])
    assert answer.json["session"]["problems"]
    assert cli("lineage", lost.id, store=home / "state.db").code == 0


def test_what_lies_on_a_damaged_page_of_messages_is_counted(cli: Cli, tmp_path: Path) -> None:
    home = copied(tmp_path)
    whole = everything(stores(home)["hermes/default"])[1]
    damage_first_leaf(home / "state.db", "messages")
    kept = everything(stores(home)["hermes/default"])[1]
    assert 0 < sum(map(len, kept.values())) < sum(map(len, whole.values()))
    hurt = [identity for identity in whole if kept[identity] != whole[identity]]
    assert hurt
    for identity in hurt:
        answer = cli("show", identity, "--all", "--json", store=home / "state.db")
        assert answer.code == 0
        assert any("damaged page" in problem["reason"] for problem in answer.json["problems"])


@pytest.mark.parametrize("table", ["schema_version", "state_meta", "compression_locks", "gateway_routing"])
def test_a_damaged_small_table_hides_no_conversation(cli: Cli, tmp_path: Path, table: str) -> None:
    home = copied(tmp_path)
    asked = (
        ("list", "--all"),
        ("search", "docker"),
        ("show", NAMES["chain4"], "--conversation"),
        ("cost",),
        ("cache",),
    )
    whole = [cli(*question, "--json", store=home / "state.db").json for question in asked]
    damage_first_leaf(home / "state.db", table)
    for question, before in zip(asked, whole, strict=True):
        answer = cli(*question, "--json", store=home / "state.db")
        assert answer.code == 0
        for key in ("sessions", "hits", "messages", "rows", "totals", "points", "drops"):
            assert answer.json.get(key) == before.get(key)
    assert {"damaged", "damaged-pages"} & set(codes(stores(home)["hermes/default"]))


def test_points_of_a_chain_stay_where_messages_are_damaged(tmp_path: Path) -> None:
    home = copied(tmp_path)
    before = [(point.session_id, point.usage) for point in stores(home)["hermes/default"].requests(None)]
    damage_first_leaf(home / "state.db", "messages")
    assert [(point.session_id, point.usage) for point in stores(home)["hermes/default"].requests(None)] == before
