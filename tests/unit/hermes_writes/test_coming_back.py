"""What comes back from the trash although something stands in its way, and what stays because it could not."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.conftest import Cli, Contract

CHAIN = ("20260226_061323_ca264e", "20260226_154924_18b8ff", "20260227_012525_25165e")
PLAIN = "20260225_061321_a5cd68"


@pytest.fixture
def store(sample: Callable[[str], Path]) -> Path:
    return sample("hermes/home/state.db")


def rows(store: Path, sql: str) -> list[tuple[object, ...]]:
    raw = apsw.Connection(str(store))
    try:
        return raw.execute(sql).fetchall()
    finally:
        raw.close()


def parents(store: Path) -> list[tuple[object, ...]]:
    return rows(store, "SELECT id, parent_session_id FROM sessions ORDER BY id")


@pytest.mark.parametrize("back", itertools.permutations(range(3)))
@pytest.mark.parametrize("gone", itertools.permutations(range(3)))
def test_parts_of_a_chain_come_back_linked_in_whatever_order(
    cli: Cli, store: Path, gone: tuple[int, ...], back: tuple[int, ...]
) -> None:
    before = parents(store)
    for place in gone:
        assert cli("delete", CHAIN[place], "--yes", "--json", store=store).json["done"] == [CHAIN[place]]
    for place in back:
        assert cli("restore", CHAIN[place], "--yes", "--json", store=store).json["done"] == [CHAIN[place]]
    assert parents(store) == before


def test_a_session_comes_back_into_an_index_that_never_let_it_go(cli: Cli, store: Path) -> None:
    rows(store, "DROP TRIGGER messages_fts_delete")
    before = rows(store, "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'docker' ORDER BY 1")
    assert cli("delete", PLAIN, "--yes", "--json", store=store).code == 0
    answer = cli("restore", PLAIN, "--yes", "--json", store=store)
    assert (answer.code, answer.json.get("done")) == (0, [PLAIN])
    assert rows(store, "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'docker' ORDER BY 1") == before


def test_columns_of_any_name_come_back(cli: Cli, store: Path) -> None:
    rows(store, 'ALTER TABLE messages ADD COLUMN "a ""quoted"" one" TEXT')
    rows(store, 'UPDATE messages SET "a ""quoted"" one" = \'kept\'')
    assert cli("delete", PLAIN, "--yes", "--json", store=store).json["done"] == [PLAIN]
    assert cli("restore", PLAIN, "--yes", "--json", store=store).json["done"] == [PLAIN]
    assert rows(store, 'SELECT DISTINCT "a ""quoted"" one" FROM messages') == [("kept",)]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no file owners")
def test_restoring_into_a_store_of_somebody_else_is_refused_in_the_shape_of_a_change(
    cli: Cli, contract: Contract, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("delete", PLAIN, "--yes", store=store)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    answer = cli("restore", PLAIN, "--yes", "--json", store=store)
    assert answer.code == 1
    assert contract("change", answer.json)["kept"] == [{"id": PLAIN, "reason": "not-written"}]
    monkeypatch.undo()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no file owners")
def test_prune_says_by_its_exit_code_that_it_may_not(
    cli: Cli, contract: Contract, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    answer = cli("prune", "--older-than", "0d", "--yes", "--json", store=store)
    assert answer.code == 1
    assert contract("change", answer.json)["summary"]["other-owner"]
    young = cli("prune", "--older-than", "90000d", "--yes", "--json", store=store)
    assert (young.code, young.json["done"]) == (0, [])


@pytest.mark.parametrize("argv", [("delete", PLAIN), ("prune", "--older-than", "0d", "--end-idle", "0d")], ids="_".join)
def test_a_session_stays_whose_side_file_cannot_be_kept(
    cli: Cli, contract: Contract, store: Path, argv: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = store.parent / "sessions" / f"{PLAIN}.json"
    beside.parent.mkdir(exist_ok=True)
    beside.write_text("{}")
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(beside) and allowed(path, mode))
    answers = [cli(*argv, how, "--json", store=store) for how in ("--dry-run", "--yes")]
    for answer in answers:
        assert {"id": PLAIN, "reason": "unreadable-file"} in contract("change", answer.json)["kept"]
    assert answers[0].json["done"] == answers[1].json["done"]
    assert beside.exists()


def test_a_side_file_that_went_meanwhile_keeps_nothing_from_going(
    cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = store.parent / "sessions" / f"{PLAIN}.json"
    beside.parent.mkdir(exist_ok=True)
    beside.write_text("{}")
    allowed = os.access

    def gone_after_the_look(path: object, mode: int) -> bool:
        found = allowed(str(path), mode)
        if str(path) == str(beside):
            beside.unlink()
        return found

    monkeypatch.setattr(os, "access", gone_after_the_look)
    answer = cli("delete", PLAIN, "--yes", "--json", store=store)
    assert (answer.code, answer.json["done"], answer.json["failures"]) == (0, [PLAIN], [])


def test_damage_in_the_trash_is_a_refusal(cli: Cli, contract: Contract, store: Path, own_home: Path) -> None:
    cli("delete", PLAIN, "--yes", store=store)
    entry = next((own_home / "own" / "data" / "trash").iterdir())
    lines = entry.read_bytes().split(b"\n")
    lines[3] = b"{broken"
    entry.write_bytes(b"\n".join(lines))
    answer = cli("restore", PLAIN, "--yes", "--json", store=store)
    assert answer.code == 1
    assert "line 4" in contract("error", answer.json)["error"]["message"]


def test_a_log_of_ours_that_may_not_be_read_or_written_is_a_refusal(
    cli: Cli, contract: Contract, store: Path, own_home: Path
) -> None:
    (own_home / "own" / "data" / "annotations.jsonl").mkdir(parents=True)
    for argv in (["pin", PLAIN], ["pins"]):
        answer = cli(*argv, "--json", store=store)
        assert answer.code == 1
        assert contract("error", answer.json)["error"]["code"] == "refused"


def test_messages_come_back_to_an_orphan_that_stays_one(cli: Cli, store: Path) -> None:
    """Its row was never gone: that its parent is missing is not ours to mend."""
    rows(store, f"UPDATE sessions SET parent_session_id = 'long gone' WHERE id = '{PLAIN}'")
    before = parents(store)
    assert cli("clear", PLAIN, "--yes", "--json", store=store).json["done"] == [PLAIN]
    assert cli("restore", PLAIN, "--yes", "--json", store=store).json["done"] == [PLAIN]
    assert parents(store) == before


@pytest.mark.parametrize("mark", ["archived", "pinned"])
def test_prune_takes_nothing_from_under_a_mark_on_an_older_part(cli: Cli, store: Path, mark: str) -> None:
    """A conversation that went on after it was archived or pinned lost its newest parts, and kept the older ones."""
    rows(store, "ALTER TABLE sessions ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0")
    rows(store, "UPDATE sessions SET ended_at = started_at + 60 WHERE ended_at IS NULL")
    assert {*CHAIN} <= {*cli("prune", "--older-than", "1d", "--dry-run", "--json", store=store).json["done"]}
    rows(store, f"UPDATE sessions SET {mark} = 1 WHERE id = '{CHAIN[0]}'")
    answer = cli("prune", "--older-than", "1d", "--dry-run", "--json", store=store).json
    assert not {*CHAIN} & {*answer["done"]}
    assert {one["reason"] for one in answer["kept"] if one["id"] in CHAIN} == {mark}
