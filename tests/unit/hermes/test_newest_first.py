"""The short way to the usual list gives what the general way gives, whatever hangs together how."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import ListQuery
from hermes_tui.stores.hermes import newest_first
from hermes_tui.stores.hermes.links import all_links, kind_expression
from hermes_tui.stores.hermes.listing import read_listing
from hermes_tui.stores.hermes.store import HermesStore

from .samples import stores

COUNT = 9
ID = st.integers(0, COUNT).map(lambda number: f"s{number}")
PARENT = st.one_of(st.none(), st.just("missing"), ID)
TIME = st.one_of(st.integers(1_772_000_000, 1_772_000_020), st.sampled_from(["text", -1, 9e18]))
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
        "archived": st.sampled_from([0, 0, 1]),
        "hidden": st.sampled_from([0, 0, 1]),
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


@settings(max_examples=150, deadline=None)
@given(st.lists(SESSION, min_size=1, max_size=COUNT), st.booleans(), st.booleans(), st.integers(1, 12))
def test_both_ways_agree(sessions: list[dict[str, object]], archived: bool, children: bool, limit: int) -> None:
    query = ListQuery(archived=archived, children=children)
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), sessions)
        general = store.asking.ask(read_listing, query, limit)
        newest_first.WORTH_IT = 1  # type: ignore[misc]
        try:
            short = newest_first.read_newest_first(store.asking, query, limit)
        finally:
            newest_first.WORTH_IT = 3_000  # type: ignore[misc]
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
