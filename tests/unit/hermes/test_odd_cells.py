"""Ids, counts and times that no agent writes: nothing goes missing, and each is told."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC
from pathlib import Path

import apsw

from hermes_tui.model import NO_USAGE, CostGrouping, ListQuery
from tests.conftest import Cli

from .samples import copied, names, stores
from .test_hermes_damage import changed, codes, damage_first_leaf

NAMES = names()


def test_an_id_that_is_not_utf8_is_listed_and_told(tmp_path: Path) -> None:
    """It was counted in the total and shown nowhere."""
    store = changed(
        tmp_path, "INSERT INTO sessions(id, source, started_at) VALUES (CAST(x'6964ff' AS TEXT), 'cli', 1772400000)"
    )
    for query in (ListQuery(), ListQuery(sessions=True)):
        found = store.listing(query)
        rows = store.rows([entry.id for entry in found.entries], conversation=not query.sessions)
        assert len(rows) == found.total
        assert [row.problems for row in rows if row.id == "id\ufffd"] == [1]
    assert codes(store)["bad-id"] == 1


def test_a_table_without_its_key_holds_a_session_twice(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "CREATE TABLE sessions(id TEXT, source TEXT, started_at REAL, parent_session_id TEXT, end_reason TEXT);"
            "CREATE TABLE messages(id INTEGER, session_id TEXT, role TEXT, content TEXT, timestamp REAL);"
            "INSERT INTO sessions(id, source, started_at) VALUES"
            " ('one', 'cli', 1772400000), ('one', 'cli', 1772400001), ('two', 'cli', 1772400002)"
        )
    for order in ("activity", "started"):
        listed = cli("list", "--order", order, "--json", store=path).json
        assert ([row["id"] for row in listed["sessions"]], listed["total"]) == (["two", "one"], 2)
    (store,) = cli("doctor", "--json", store=path).json["stores"]
    assert [finding["count"] for finding in store["findings"] if finding["code"] == "duplicate-id"] == [1]


def test_large_counts_are_added_up_like_any(tmp_path: Path) -> None:
    """A sum of allowed counts was taken for an absurd one, and left out of the costs."""
    store = changed(
        tmp_path,
        f"UPDATE session_model_usage SET input_tokens = {10**15 - 1} WHERE rowid IN (1, 2, 3)",
    )
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    listed = sum((row.usage for row in store.rows(ids, conversation=False) if row.usage is not None), NO_USAGE)
    assert listed.input > 10**15
    groupings: tuple[CostGrouping, ...] = ("model", "day", "session", "store")
    totals = [sum((one.spend.usage for one in store.usage(name, None, None, UTC).sums), NO_USAGE) for name in groupings]
    assert totals == [listed] * len(groupings)


def test_counts_that_are_none_are_told(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        "UPDATE sessions SET input_tokens = -5 WHERE rowid = 1",
        "UPDATE sessions SET message_count = 'many' WHERE rowid = 2",
        "UPDATE session_model_usage SET output_tokens = x'05' WHERE rowid = 3",
    )
    counts = [finding.count for finding in store.findings() if finding.code == "absurd-count"]
    assert counts == [2, 1]


def test_damage_in_several_tables_is_told_of_each(tmp_path: Path) -> None:
    home = copied(tmp_path)
    for table in ("idx_sessions_started", "idx_session_model_usage_model"):
        damage_first_leaf(home / "state.db", table)
    told = [one.detail for one in stores(home)["hermes/default"].findings() if one.code == "damaged-pages"]
    assert {detail.split(":")[0] for detail in told} == {"Table sessions", "Table session_model_usage"}


def test_a_printed_time_is_part_of_its_own_range(cli: Cli, tmp_path: Path) -> None:
    """A row with a finer time than the milliseconds printed was not found up to its own time."""
    home = copied(tmp_path)
    with closing(apsw.Connection(str(home / "state.db"))) as connection:
        connection.execute(
            "UPDATE messages SET timestamp = 1780000000.1239996 WHERE session_id = ?;"
            "UPDATE messages SET timestamp = 1780000001.1234567 WHERE session_id = ?",
            (NAMES["plain"], NAMES["zh"]),
        )
    for name in ("plain", "zh"):
        row = cli("show", NAMES[name], "--json", store=home / "state.db").json["session"]
        at = row["last_active_at"]
        found = cli("list", "--since", at, "--until", at, "--json", store=home / "state.db").json["sessions"]
        assert [one["id"] for one in found] == [NAMES[name]]


def test_a_channel_is_followed_through_compaction_in_both_lists(cli: Cli, tmp_path: Path) -> None:
    changed(tmp_path, f"UPDATE sessions SET session_key = 'k9' WHERE id = '{NAMES['chain2']}'")
    chain = [NAMES[f"chain{number}"] for number in (4, 3, 2, 1)]
    store = tmp_path / "home" / "state.db"
    for options, ids in (([], chain[:1]), (["--sessions"], chain), (["--sessions", "--order", "started"], chain)):
        found = cli("list", "--channel", "k9", *options, "--json", store=store).json
        assert [row["id"] for row in found["sessions"]] == ids


def test_text_that_is_not_utf8_is_told_wherever_it_is_shown(tmp_path: Path) -> None:
    bad = "CAST(x'6964ff' AS TEXT)"
    store = changed(
        tmp_path,
        "DROP TRIGGER messages_fts_update",
        "DROP TRIGGER messages_fts_trigram_update",
        f"UPDATE messages SET tool_calls = {bad} WHERE id = 3",
        f"UPDATE messages SET content = {bad} WHERE id IN (3, 5)",
        f"UPDATE sessions SET title = {bad} WHERE id = '{NAMES['plain']}'",
    )
    told = {one.detail.split(" ")[0]: one.count for one in store.findings() if one.code == "bad-utf8"}
    assert told == {"Messages": 2, "Sessions": 1}


def test_a_model_of_an_older_part_finds_the_conversation(cli: Cli, tmp_path: Path) -> None:
    """The costs of that model lead to the list of its conversations."""
    changed(tmp_path, f"UPDATE sessions SET model = 'early-1' WHERE id = '{NAMES['chain1']}'")
    store = tmp_path / "home" / "state.db"
    for options in ([], ["--order", "started"], ["--order", "cost"], ["--channel", "none"]):
        found = cli("list", "--model", "early-1", *options, "--json", store=store).json["sessions"]
        assert [row["id"] for row in found] == ([] if "--channel" in options else [NAMES["chain4"]])
    alone = cli("list", "--model", "early-1", "--sessions", "--json", store=store).json["sessions"]
    assert [row["id"] for row in alone] == [NAMES["chain1"]]


def test_sessions_without_rowid_cost_what_they_list(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT, started_at REAL, parent_session_id TEXT,"
            " end_reason TEXT, model TEXT, input_tokens INTEGER, output_tokens INTEGER, api_call_count INTEGER)"
            " WITHOUT ROWID;"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);"
            "CREATE TABLE session_model_usage(session_id TEXT, model TEXT, task TEXT, input_tokens INTEGER,"
            " output_tokens INTEGER, api_call_count INTEGER, PRIMARY KEY(session_id, model, task)) WITHOUT ROWID;"
            "INSERT INTO sessions VALUES('one', 'cli', 1772400000, NULL, NULL, 'm', 10, 5, 1),"
            " ('two', 'cli', 1772400001, NULL, NULL, 'm', 7, 3, 1);"
            "INSERT INTO session_model_usage VALUES('one', 'm', '', 10, 5, 1), ('two', 'm', '', 2, 1, 1)"
        )
    listed = cli("list", "--json", store=path)
    assert (listed.code, [row["input_tokens"] for row in listed.json["sessions"]]) == (0, [7, 10])
    for by in ("model", "day", "session"):
        cost = cli("cost", "--by", by, "--json", store=path)
        assert (cost.code, cost.json["totals"]["input_tokens"], cost.json["totals"]["sessions"]) == (0, 17, 2)


def test_reasoning_without_output_is_listed_as_it_is_added_up(cli: Cli, tmp_path: Path) -> None:
    """Output that is no number leaves its reasoning alone in the row: only the costs had it."""
    zeros = ", ".join(f"{name} = 0" for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
    changed(
        tmp_path,
        f"UPDATE session_model_usage SET {zeros}, output_tokens = 'x', api_call_count = 0, estimated_cost_usd = 0,"
        f" reasoning_tokens = 70 WHERE session_id = '{NAMES['plain']}'",
        f"UPDATE sessions SET {zeros}, output_tokens = 'x', api_call_count = 0, estimated_cost_usd = 0,"
        f" reasoning_tokens = 70 WHERE id IN ('{NAMES['plain']}', '{NAMES['nomodel']}')",
    )
    store = tmp_path / "home" / "state.db"
    rows = cli("list", "--sessions", "--all", "--json", store=store).json["sessions"]
    total = cli("cost", "--json", store=store).json["totals"]["reasoning_tokens"]
    assert total == sum(row["reasoning_tokens"] or 0 for row in rows)
    assert {row["reasoning_tokens"] for row in rows if row["id"] in (NAMES["plain"], NAMES["nomodel"])} == {70}


def test_money_alone_is_listed_as_it_is_added_up(cli: Cli, tmp_path: Path) -> None:
    """A bill without a count of tokens or calls: the costs left it out."""
    zeros = ", ".join(f"{name} = 0" for name in ("api_call_count", "input_tokens", "output_tokens"))
    changed(
        tmp_path,
        f"DELETE FROM session_model_usage WHERE session_id = '{NAMES['nomodel']}'",
        f"UPDATE sessions SET {zeros}, estimated_cost_usd = NULL, actual_cost_usd = 40, cost_status = 'actual'"
        f" WHERE id = '{NAMES['nomodel']}'",
    )
    store = tmp_path / "home" / "state.db"
    rows = cli("list", "--sessions", "--all", "--json", store=store).json["sessions"]
    (row,) = [row for row in rows if row["id"] == NAMES["nomodel"]]
    assert (row["cost_usd"], row["cost_status"]) == (40.0, "actual")
    (line,) = [
        line for line in cli("cost", "--by", "session", "--json", store=store).json["rows"] if line["key"] == row["id"]
    ]
    assert (line["cost_usd"], line["cost_status"]) == (40.0, "actual")
