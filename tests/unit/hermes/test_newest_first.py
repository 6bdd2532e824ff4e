"""The short way to the usual list gives what the general way gives, whatever hangs together how."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import ListQuery
from hermes_tui.storage.errors import QueryFailed
from hermes_tui.stores.hermes import newest_first
from hermes_tui.stores.hermes.links import all_links, kind_expression
from hermes_tui.stores.hermes.listing import read_listing
from hermes_tui.stores.hermes.store import HermesStore

from .samples import stores

COUNT = 9
ID = st.integers(0, COUNT).map(lambda number: f"s{number}")
PARENT = st.one_of(st.none(), st.just("missing"), ID)
TIME = st.one_of(st.integers(1_772_000_000, 1_772_000_020), st.sampled_from(["text", -1, 9e18]))
FLAG = st.sampled_from([0, 0, 1, "text", b"\1", None, 2.5])
PLAIN_SESSION: dict[str, object] = {
    "source": "cli", "parent": None, "branch": None, "reset": None, "delegate": None, "bad": False, "key": None,
    "started": 1_772_000_000, "ended": None, "reason": None, "archived": 0, "hidden": 0, "messages": [],
}  # fmt: skip
SESSION = st.fixed_dictionaries(
    {
        "source": st.sampled_from(["cli", "tool", "subagent", "cron"]),
        "parent": PARENT,
        "branch": PARENT,
        "reset": PARENT,
        "delegate": PARENT,
        "bad": st.booleans(),
        "key": st.sampled_from([None, "", "k"]),
        "started": TIME,
        "ended": st.one_of(st.none(), TIME),
        "reason": st.sampled_from([None, "compression", "compression", "branched", "daily", "cli_close"]),
        "archived": FLAG,
        "hidden": FLAG,
        "messages": st.lists(TIME, max_size=2),
    }
)


def filled(folder: Path, sessions: list[dict[str, object]]) -> HermesStore:
    connection = apsw.Connection(str(folder / "state.db"))
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, session_key TEXT, model_config TEXT,"
        " parent_session_id TEXT, started_at REAL, ended_at REAL, end_reason TEXT, archived INTEGER, hidden INTEGER);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL);"
        "CREATE INDEX m ON messages(session_id, timestamp)"
    )
    for number, one in enumerate(sessions):
        marks = {f"_{name}": one[key] for name, key in MARKS.items() if one[key] is not None}
        config = "{bad _from" if one["bad"] else json.dumps(marks)
        connection.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (f"s{number}", one["source"], one["key"], config, one["parent"], one["started"], one["ended"],
             one["reason"], one["archived"], one["hidden"]),
        )  # fmt: skip
        times = one["messages"]
        assert isinstance(times, list)
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', 'x', ?)",
            [(f"s{number}", at) for at in times],
        )
    connection.close()
    return stores(folder)["hermes/default"]


MARKS = {"branched_from": "branch", "reset_from": "reset", "delegate_from": "delegate"}


@settings(max_examples=250, deadline=None)
@given(
    st.lists(SESSION, min_size=1, max_size=COUNT),
    st.booleans(),
    st.booleans(),
    st.integers(1, 12),
    st.sampled_from([0, 0, 1, 30]),
)
def test_both_ways_agree(
    sessions: list[dict[str, object]], archived: bool, children: bool, limit: int, spare: int
) -> None:
    query = ListQuery(archived=archived, children=children)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        store = filled(Path(folder), sessions)
        general = store.asking.ask(read_listing, query, limit)
        patched.setattr(newest_first, "WORTH_IT", 1)
        # With few to spare there are sessions enough for a bound, and none are read that are not needed.
        patched.setattr(newest_first, "SPARE", spare)
        short = newest_first.read_newest_first(store.asking, query, limit)
        assert short is None or short == general


@settings(max_examples=150, deadline=None)
@given(st.lists(SESSION, min_size=1, max_size=COUNT))
def test_kinds_are_the_same_in_sql(sessions: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), sessions)
        links = store.asking.ask(all_links)
        if links.rings:
            return
        rows = store.asking.ask(
            lambda connection, schema: connection.rows(
                f"SELECT s.id, {kind_expression(schema)} FROM sessions s"
                " LEFT JOIN sessions p ON p.id = s.parent_session_id"
            )
        )
        assert dict(rows) == {link.id: links.kind(link) for link in links.by_id.values()}


def test_the_short_way_is_taken(tmp_path: Path) -> None:
    session = {
        "source": "cli", "parent": None, "branch": None, "reset": None, "delegate": None, "bad": False, "key": None,
        "started": 1_772_000_000, "ended": None, "reason": None, "archived": 0, "hidden": 0,
        "messages": [1_772_000_001],
    }  # fmt: skip
    store = filled(tmp_path, [dict(session) for _ in range(newest_first.WORTH_IT)])
    short = newest_first.read_newest_first(store.asking, ListQuery(), 20)
    assert short is not None
    assert short == store.asking.ask(read_listing, ListQuery(), 20)
    assert store.listing(ListQuery(), 20) == short


def test_a_bound_leaves_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows with the newest messages, sessions without any, and times that are none, beside many of the usual."""
    session = {
        "source": "cli", "parent": None, "branch": None, "reset": None, "delegate": None, "bad": False, "key": None,
        "started": 1_772_000_000, "ended": None, "reason": None, "archived": 0, "hidden": 0,
    }  # fmt: skip
    times: list[list[object]] = [[1_772_000_000 + number] for number in range(40)]
    odd: list[list[object]] = [[1_772_000_500, 5], [1_772_000_900, "later"], [9e18, 1_772_000_700], [-1, 4], []]
    sessions: list[dict[str, object]] = [{**session, "messages": one} for one in (*odd, *times)]
    sessions[3]["started"] = sessions[4]["started"] = 1_772_000_800
    store = filled(tmp_path, sessions)
    monkeypatch.setattr(newest_first, "WORTH_IT", 1)
    monkeypatch.setattr(newest_first, "SPARE", 0)
    short = newest_first.read_newest_first(store.asking, ListQuery(), 8)
    assert short is not None
    assert [entry.id for entry in short.entries] == ["s1", "s4", "s3", "s2", "s0", "s44", "s43", "s42"]
    assert short == store.asking.ask(read_listing, ListQuery(), 8)


@pytest.mark.parametrize("part", ["_newest", "_looked_at"])
@pytest.mark.parametrize("fails", [True, False])
def test_a_half_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, fails: bool
) -> None:
    """What goes wrong in the other thread is raised as if there were only one, and no connection stays open."""
    store = filled(tmp_path, [PLAIN_SESSION, PLAIN_SESSION])
    monkeypatch.setattr(newest_first, "WORTH_IT", 1)
    half = getattr(newest_first, part)

    def failing(*args: Any, upper: bool) -> object:
        if upper is fails:
            raise QueryFailed("state.db", "no such thing")
        return half(*args, upper=upper)

    monkeypatch.setattr(newest_first, part, failing)
    with pytest.raises(QueryFailed, match="no such thing"):
        newest_first.read_newest_first(store.asking, ListQuery(), 8)
    assert not store.asking.interrupts._alive


def test_neither_half_waits_while_it_is_connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways of reading may keep each other out: a connection that waits would wait for itself."""
    store = filled(tmp_path, [PLAIN_SESSION, PLAIN_SESSION])
    monkeypatch.setattr(newest_first, "WORTH_IT", 1)
    begun = threading.Event()
    waited: list[int] = []

    class Slow(newest_first.Aside[Any]):
        def run(self) -> None:
            begun.wait(10)
            super().run()

        def join(self, timeout: float | None = None) -> None:
            if not begun.is_set():
                waited.append(len(store.asking.interrupts._alive))
            begun.set()
            super().join(timeout)
            begun.clear()

    monkeypatch.setattr(newest_first, "Aside", Slow)
    found = newest_first.read_newest_first(store.asking, ListQuery(), 2)
    assert found is not None
    assert set(waited) == {0}


def test_a_store_without_rowids_is_listed_the_general_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = {
        "source": "cli", "parent": None, "branch": None, "reset": None, "delegate": None, "bad": False, "key": None,
        "started": 1_772_000_000, "ended": None, "reason": None, "archived": 0, "hidden": 0, "messages": [],
    }  # fmt: skip
    filled(tmp_path, [session, session])
    connection = apsw.Connection(str(tmp_path / "state.db"))
    columns = connection.execute("SELECT group_concat(name) FROM pragma_table_info('sessions')").get
    connection.execute(
        f"CREATE TABLE other ({columns.replace('id,', 'id TEXT PRIMARY KEY,', 1)}) WITHOUT ROWID;"
        "INSERT INTO other SELECT * FROM sessions; DROP TABLE sessions; ALTER TABLE other RENAME TO sessions"
    )
    connection.close()
    monkeypatch.setattr(newest_first, "WORTH_IT", 1)
    found = stores(tmp_path)["hermes/default"].listing(ListQuery(), 8)
    assert [entry.id for entry in found.entries] == ["s1", "s0"]
