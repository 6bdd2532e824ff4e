"""Stores that are damaged, old, or from the future: what can be read is shown, the rest is counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from pathlib import Path

import apsw
import pytest

from hermes_tui.model import NO_USAGE, CostGrouping, ListQuery, SessionId
from hermes_tui.storage.errors import StoreUnreadable
from hermes_tui.stores.hermes.store import HermesStore
from tests.conftest import Cli

from .samples import copied, names, stores

NAMES = names()


def changed(folder: Path, *statements: str, which: str = "home") -> HermesStore:
    """The sample store after these statements."""
    home = copied(folder, which)
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("PRAGMA foreign_keys=OFF")
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return stores(home)["hermes/default"]


def codes(store: HermesStore) -> dict[str, int]:
    return {finding.code: finding.count for finding in store.findings()}


def everything_answers(store: HermesStore) -> None:
    """Every question has an answer for every session."""
    for query in (ListQuery(), ListQuery(sessions=True), ListQuery(order="tokens"), ListQuery(text="a")):
        ids = [entry.id for entry in store.listing(query).entries]
        assert len(store.rows(ids)) == len(ids)
    for identity in ids:
        transcript = store.transcript(store.chain(identity))
        transcript.load([head for batch in transcript.heads() for head in batch], sent=True)
        store.lineage(identity)
    list(store.requests(None))


def test_a_ring_is_cut_at_its_earliest_session_and_told(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        f"UPDATE sessions SET parent_session_id = '{NAMES['chain4']}', end_reason = 'compression'"
        f" WHERE id IN ('{NAMES['chain1']}', '{NAMES['chain4']}')",
        f"UPDATE sessions SET parent_session_id = '{NAMES['chain3']}' WHERE id = '{NAMES['chain4']}'",
    )
    assert NAMES["chain4"] in [entry.id for entry in store.listing(ListQuery()).entries]
    assert store.chain(SessionId(NAMES["chain2"])) == tuple(NAMES[f"chain{number}"] for number in (1, 2, 3, 4))
    nodes = store.lineage(SessionId(NAMES["chain2"])).nodes
    assert all("cycle" in node.findings for node in nodes)
    assert len(nodes) == 4
    assert codes(store)["cycle"] == 1
    everything_answers(store)


def test_a_session_that_is_its_own_parent(tmp_path: Path) -> None:
    store = changed(tmp_path, f"UPDATE sessions SET parent_session_id = id WHERE id = '{NAMES['plain']}'")
    assert NAMES["plain"] in [entry.id for entry in store.listing(ListQuery()).entries]
    everything_answers(store)


def test_an_orphan_is_listed_and_told(tmp_path: Path) -> None:
    store = changed(tmp_path, f"DELETE FROM sessions WHERE id = '{NAMES['chain2']}'")
    chain = store.chain(SessionId(NAMES["chain4"]))
    assert chain == (NAMES["chain3"], NAMES["chain4"])
    (row,) = store.rows([SessionId(NAMES["chain4"])])
    assert (row.lineage_kind, row.parent_id, row.problems) == ("root", NAMES["chain2"], 1)
    found = codes(store)
    assert found["orphan"] == 1
    assert (found["orphan-messages"], found["orphan-usage"]) == (5, 1)


class TestMessagesWithoutTheirSession:
    """A search finds them, so they can be opened; nothing lists or changes them."""

    GONE = SessionId(NAMES["chain2"])

    def opened(self, folder: Path) -> HermesStore:
        return changed(folder, f"DELETE FROM sessions WHERE id = '{self.GONE}'")

    def test_they_are_opened_by_the_id_they_name(self, tmp_path: Path) -> None:
        store = self.opened(tmp_path)
        assert store.resolve(self.GONE) == [self.GONE]
        assert self.GONE not in [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
        (row,) = store.rows([self.GONE])
        assert (row.message_count, row.problems, row.resumable) == (5, 1, False)
        assert row.usage != NO_USAGE
        heads = [head for batch in store.transcript(store.chain(self.GONE)).heads() for head in batch]
        assert {head.session_id for head in heads} == {self.GONE}
        assert len({head.id for head in heads}) == 5

    def test_their_place_in_the_tree_says_that_the_row_is_gone(self, tmp_path: Path) -> None:
        nodes = {node.id: node for node in self.opened(tmp_path).lineage(self.GONE).nodes}
        assert nodes[self.GONE].findings == ("session-row-gone",)
        assert nodes[SessionId(NAMES["chain3"])].findings == ("orphan",)

    def test_every_hit_of_a_search_can_be_shown(self, tmp_path: Path, cli: Cli) -> None:
        home = str(self.opened(tmp_path).home.folder)
        hits = cli("search", "--store", home, "--json", "--limit", "500", "the").json["hits"]
        found = {hit["message_id"] for hit in hits if hit["session_id"] == self.GONE}
        shown = cli("show", "--store", home, "--json", f"hermes/default:{self.GONE}").json["messages"]
        assert found
        assert found <= {message["id"] for message in shown}

    def test_nothing_deletes_them(self, tmp_path: Path, cli: Cli) -> None:
        home = str(self.opened(tmp_path).home.folder)
        for words in (("delete", "--dry-run"), ("archive",)):
            (left,) = cli(*words, "--store", home, "--json", f"hermes/default:{self.GONE}").json["kept"]
            assert (left["id"], left["reason"]) == (self.GONE, "unknown")


def test_a_run_whose_boss_was_deleted_stays_a_delegated_one(tmp_path: Path) -> None:
    store = changed(tmp_path, f"UPDATE sessions SET parent_session_id = NULL WHERE id = '{NAMES['kid1']}'")
    assert store.listing(ListQuery()).left_out["delegated"] == 3


def test_a_run_without_a_marker_does_not_continue_who_started_it(tmp_path: Path) -> None:
    """Before the marker its source alone told; the newest message made it the tip of its boss's conversation."""
    store = changed(
        tmp_path,
        f"UPDATE sessions SET end_reason = 'compression', ended_at = started_at + 60 WHERE id = '{NAMES['boss']}'",
        f"UPDATE sessions SET model_config = NULL WHERE id IN ('{NAMES['kid1']}', '{NAMES['kid2']}')",
        "INSERT INTO sessions(id, source, parent_session_id, started_at, end_reason) VALUES"
        f" ('run', 'subagent', '{NAMES['kid1']}', 1772400000, NULL)",
        f"UPDATE sessions SET end_reason = 'compression' WHERE id = '{NAMES['kid1']}'",
    )
    assert store.chain(SessionId(NAMES["boss"])) == (NAMES["boss"],)
    kinds = {node.id: node.kind for node in store.lineage(SessionId(NAMES["boss"])).nodes}
    assert (kinds[NAMES["kid1"]], kinds[NAMES["kid2"]]) == ("delegation", "delegation")
    assert kinds["run"] == "compaction"


def test_a_continuation_inherits_markers_that_do_not_count(tmp_path: Path) -> None:
    marks = '{{"_branched_from": "{}", "_delegate_from": "{}"}}'.format(NAMES["trunk"], NAMES["boss"])
    store = changed(tmp_path, f"UPDATE sessions SET model_config = '{marks}' WHERE id = '{NAMES['chain3']}'")
    assert len(store.chain(SessionId(NAMES["chain1"]))) == 4


def test_a_reset_by_the_same_channel_is_a_row_of_its_own(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        f"UPDATE sessions SET session_key = 'agent:main:x:dm:1' WHERE id IN ('{NAMES['plain']}', '{NAMES['plain2']}')",
        f"UPDATE sessions SET end_reason = 'daily' WHERE id = '{NAMES['plain']}'",
        f"UPDATE sessions SET parent_session_id = '{NAMES['plain']}' WHERE id = '{NAMES['plain2']}'",
    )
    (row,) = store.rows([SessionId(NAMES["plain2"])])
    assert (row.lineage_kind, row.root_id, row.parts) == ("reset", NAMES["plain2"], 1)
    assert NAMES["plain2"] in [entry.id for entry in store.listing(ListQuery()).entries]


def test_broken_json_and_blobs_do_not_stop_the_list(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        f"UPDATE sessions SET model_config = '{{not json' WHERE id = '{NAMES['branch']}'",
        "DROP TRIGGER messages_fts_update",
        "DROP TRIGGER messages_fts_trigram_update",
        "UPDATE messages SET content = CAST(content AS BLOB) WHERE id = 1",
        "UPDATE messages SET content = CAST(x'c3286162' AS TEXT) WHERE id = 3",
        f"UPDATE sessions SET title = CAST(x'ff41' AS TEXT) WHERE id = '{NAMES['plain']}'",
        "UPDATE messages SET tool_calls = '[{broken' WHERE id = 37",
    )
    found = codes(store)
    assert (found["bad-model-config"], found["blob-content"], found["bad-utf8"]) == (1, 1, 1)
    transcript = store.transcript([SessionId(NAMES["plain"])])
    messages = transcript.load([head for batch in transcript.heads() for head in batch])
    assert messages[0].text == "The docker build fails at the copy step, why?"
    assert messages[2].text == "\ufffd(ab"
    assert len(transcript.problems) == 2
    (row,) = store.rows([SessionId(NAMES["plain"])])
    assert row.title == "\ufffdA"
    everything_answers(store)


@pytest.mark.parametrize("value", ["'yesterday'", "1e18", "-5", "0", "x'00'", "1772000000001"])
def test_times_that_are_none_are_unknown(tmp_path: Path, value: str) -> None:
    store = changed(
        tmp_path,
        f"UPDATE sessions SET started_at = {value}, ended_at = {value} WHERE id = '{NAMES['plain']}'",
        f"UPDATE messages SET timestamp = {value} WHERE session_id = '{NAMES['plain']}'",
    )
    (row,) = store.rows([SessionId(NAMES["plain"])])
    assert (row.started_at, row.ended_at, row.last_active_at) == (None, None, None)
    assert store.status().state == "degraded"
    found = codes(store)
    assert (found["absurd-time"], found["absurd-message-time"]) == (1, 4)
    assert store.listing(ListQuery()).entries[-1].id == NAMES["plain"]
    everything_answers(store)


def test_one_absurd_message_time_does_not_move_the_session(tmp_path: Path) -> None:
    store = changed(tmp_path, "UPDATE messages SET timestamp = 'garbage' WHERE id = 2")
    (row,) = store.rows([SessionId(NAMES["plain"])])
    assert row.last_active_at == pytest.approx(1772000036.005)


def test_a_session_without_an_id_is_counted(tmp_path: Path) -> None:
    store = changed(tmp_path, "UPDATE sessions SET id = NULL WHERE id = '{}'".format(NAMES["ghost"]))
    assert codes(store)["bad-id"] == 1
    everything_answers(store)


def old_schema(folder: Path) -> HermesStore:
    """A store with the columns of schema 11 (facts/hermes.md section 2)."""
    folder.mkdir()
    connection = apsw.Connection(str(folder / "state.db"))
    connection.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT,"
        " parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER,"
        " input_tokens INTEGER, output_tokens INTEGER, title TEXT);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,"
        " content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL);"
        "INSERT INTO sessions VALUES "
        " ('a', 'cli', 'm', NULL, NULL, 1772000000, 1772000100, 'compression', 2, 10, 5, 'T'),"
        " ('b', 'cli', 'm', NULL, 'a', 1772000101, NULL, NULL, 1, 20, 6, NULL);"
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('a', 'user', 'hi', 1772000001),"
        " ('a', 'assistant', 'ho', 1772000002), ('b', 'user', 'more', 1772000102)"
    )
    connection.close()
    return stores(folder)["hermes/default"]


def test_the_oldest_columns_are_enough(tmp_path: Path) -> None:
    store = old_schema(tmp_path / "old")
    (entry,) = store.listing(ListQuery()).entries
    (row,) = store.rows([entry.id])
    assert (row.id, row.root_id, row.title, row.message_count) == ("b", "a", "T", 3)
    assert row.usage is not None
    assert (row.usage.input, row.usage.output) == (30, 11)
    assert store.status().state == "ok"
    everything_answers(store)
    assert [one.count for one in store.findings() if one.severity != "info"] == []


def test_both_ends_of_a_time_are_part_of_it(tmp_path: Path) -> None:
    """As in the stores that are logs: the list tests the last activity, the cost when usage was last added to."""
    store = old_schema(tmp_path / "old")
    moment = 1772000102.0
    for query in (ListQuery(since=moment), ListQuery(until=moment), ListQuery(since=moment, until=moment)):
        assert [entry.id for entry in store.listing(query).entries] == ["b"]
    assert store.listing(ListQuery(until=moment - 1)).total == 0
    assert sum(one.spend.usage.input for one in store.usage("store", 1772000101.0, 1772000101.0, UTC).sums) == 20


def test_a_schema_from_the_future_is_read(tmp_path: Path) -> None:
    store = changed(
        tmp_path, "UPDATE schema_version SET version = 99", "ALTER TABLE messages ADD COLUMN mood TEXT DEFAULT 'fine'"
    )
    assert codes(store)["future-schema"] == 1
    everything_answers(store)


def test_a_view_in_the_place_of_a_table_is_not_believed(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        "ALTER TABLE session_model_usage RENAME TO kept",
        "CREATE VIEW session_model_usage AS SELECT 1/0 AS session_id",
    )
    (row,) = store.rows([SessionId(NAMES["plain"])])
    assert row.usage is not None
    assert row.usage.input == 4800
    everything_answers(store)


def test_messages_gone_leaves_the_sessions(tmp_path: Path) -> None:
    store = changed(tmp_path, "DROP TABLE messages")
    assert store.listing(ListQuery()).total == 25
    assert "no-messages" in {finding.code for finding in store.status().findings}
    everything_answers(store)


def unreadable(fill: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(fill(path.read_bytes())) and None


@pytest.mark.parametrize(
    "damage",
    [
        unreadable(lambda _: b""),
        unreadable(lambda _: b"not a database" * 400),
        unreadable(lambda raw: raw[:9000]),
        unreadable(lambda raw: b"\0" * len(raw)),
    ],
    ids=["zero bytes", "no database", "cut short", "zeroed"],
)
def test_an_unreadable_store_is_named_and_its_logs_are_listed(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    home = copied(tmp_path)
    damage(home / "state.db")
    store = stores(home)["hermes/default"]
    status = store.status()
    assert (status.state, status.origin) == ("unreadable", "scan")
    assert "store-unreadable" in {finding.code for finding in status.findings}
    listed = store.listing(ListQuery())
    assert {entry.id for entry in listed.entries} == {"20250101_090000_legacy", NAMES["plain"]}
    assert [row.origin for row in store.rows([entry.id for entry in listed.entries])] == ["scan", "scan"]
    sales = stores(home)["hermes/sales"]
    (home / "profiles/sales/state.db").write_bytes(b"x" * 5000)
    with pytest.raises(StoreUnreadable):
        sales.listing(ListQuery())


def test_a_damaged_text_index_is_told(tmp_path: Path) -> None:
    store = changed(tmp_path, "UPDATE messages_fts_data SET block = zeroblob(length(block)) WHERE id > 10")
    assert any(code.startswith("messages-fts-damaged") for code in codes(store))
    store = changed(tmp_path / "again", "DELETE FROM messages_fts WHERE rowid = 3")
    assert codes(store)["messages-fts-differs"] == 1


def test_postgres_and_pruning_by_itself_are_told(tmp_path: Path) -> None:
    store = changed(tmp_path)
    store.home.config.write_text("sessions:\n  auto_prune: true\ndatabase:\n  backend: 'postgres' # moved\n")
    found = codes(store)
    assert {"postgres-backend", "auto-prune"} <= set(found)


def test_running_is_a_lock_a_lease_or_recent_activity(tmp_path: Path) -> None:
    import time

    now = time.time()
    store = changed(
        tmp_path,
        f"UPDATE compression_locks SET expires_at = {now + 60}",
        f"UPDATE messages SET timestamp = {now - 60} WHERE session_id = '{NAMES['plain2']}'",
        f"UPDATE messages SET timestamp = {now - 60} WHERE session_id = '{NAMES['plain']}'",
    )
    rows = store.rows([SessionId(NAMES[name]) for name in ("tg", "plain2", "plain", "zh")])
    assert [row.running for row in rows] == [True, True, False, False]


def test_usage_below_the_sessions_row_is_stood_in_for(tmp_path: Path) -> None:
    store = changed(
        tmp_path,
        f"UPDATE session_model_usage SET input_tokens = 1 WHERE session_id = '{NAMES['plain']}'",
        "DELETE FROM session_model_usage WHERE session_id = '{}'".format(NAMES["plain2"]),
    )
    rows = store.rows([SessionId(NAMES["plain"]), SessionId(NAMES["plain2"])])
    assert [row.usage.input for row in rows if row.usage] == [4800, 900]
    assert rows[0].request_count == 4


@pytest.mark.parametrize("table", ["sessions", "messages", "session_model_usage", "idx_sessions_started"])
def test_a_damaged_page_loses_what_lies_on_it_and_nothing_else(tmp_path: Path, table: str) -> None:
    home = copied(tmp_path)
    whole = stores(home)["hermes/default"].listing(ListQuery(sessions=True))
    damage_first_leaf(home / "state.db", table)
    store = stores(home)["hermes/default"]
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    assert sorted(ids) == sorted(entry.id for entry in whole.entries)
    rows = store.rows(ids, conversation=False)
    assert [row.id for row in rows] == ids
    assert any(row.title for row in rows)
    by_tokens = store.listing(ListQuery(sessions=True, order="tokens")).entries
    assert sorted(entry.id for entry in by_tokens) == sorted(ids)
    assert any(entry.order > 0 for entry in by_tokens)
    assert store.listing(ListQuery(sessions=True, text="a")).entries
    assert table == "idx_sessions_started" or any(row.problems for row in rows)
    assert store.status().state != "unreadable"


@pytest.mark.parametrize("table", ["sessions", "session_model_usage"])
def test_a_damaged_page_leaves_costs_and_cache_points_of_the_other_sessions(tmp_path: Path, table: str) -> None:
    home = copied(tmp_path)
    damage_first_leaf(home / "state.db", table)
    store = stores(home)["hermes/default"]
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    listed = sum((row.usage for row in store.rows(ids, conversation=False) if row.usage is not None), NO_USAGE)
    groupings: tuple[CostGrouping, ...] = ("model", "task", "day", "source", "session", "store")
    totals = [sum((one.spend.usage for one in store.usage(name, None, None, UTC).sums), NO_USAGE) for name in groupings]
    assert totals == [listed] * len(groupings)
    assert listed.input > 0
    points = list(store.requests(None))
    # All usage rows of the sample lie on the one page that is broken; then there is no point to give.
    assert points or table == "session_model_usage"
    assert {point.session_id for point in points} <= set(ids)


def damage_first_leaf(path: Path, table: str) -> None:
    """Overwrite one page of rows of a table or index."""
    connection = apsw.Connection(str(path))
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno LIMIT 1"
    page = connection.execute(sql, (table,)).fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_absurd_and_fractional_counters_leave_the_other_sessions_their_cost(tmp_path: Path) -> None:
    """Two counters near 2**63 overflowed SQLite's sum and took the whole cost report with them."""
    plain, plain2, trunk, branch = (NAMES[name] for name in ("plain", "plain2", "trunk", "branch"))
    store = changed(
        tmp_path,
        f"DELETE FROM session_model_usage WHERE session_id IN ('{plain}', '{plain2}', '{trunk}', '{branch}')",
        f"UPDATE sessions SET input_tokens = {2**62} WHERE id IN ('{plain}', '{plain2}')",
        f"UPDATE sessions SET output_tokens = 3.7 WHERE id IN ('{trunk}', '{branch}')",
    )
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    listed = store.rows(ids, conversation=False)
    total = sum((row.usage for row in listed if row.usage is not None), NO_USAGE)
    groupings: tuple[CostGrouping, ...] = ("model", "day", "session", "store")
    for grouping in groupings:
        report = store.usage(grouping, None, None, UTC)
        assert sum((row.spend.usage for row in report.sums), NO_USAGE) == total, grouping
    assert 100_000 < total.input < 10**9


@pytest.mark.parametrize("options", [(), ("--source", "cli"), ("--exclude-source", "cron")])
@pytest.mark.parametrize("table", ["sessions", "messages", "messages_fts_data"])
@pytest.mark.parametrize("sort", ["newest", "oldest", "rank"])
def test_a_search_finds_what_no_damaged_page_holds(
    cli: Cli, tmp_path: Path, table: str, sort: str, options: tuple[str, ...]
) -> None:
    home = copied(tmp_path)
    asked = ("search", "the", "--all", "--json", "--sort", sort, *options)
    whole = cli(*asked, store=home / "state.db").json
    damage_first_leaf(home / "state.db", table)
    ran = cli(*asked, store=home / "state.db")
    found = {hit["message_id"] for hit in ran.json["hits"]}
    assert found <= {hit["message_id"] for hit in whole["hits"]}
    assert len(found) >= len(whole["hits"]) // 3
    assert table != "messages" or "could not be searched" in ran.json["incomplete"]
