"""A list from the kept overview is the list the general way gives, however it is narrowed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import ListEntry, ListQuery, SessionId
from hermes_tui.stores.hermes import overview, rows
from hermes_tui.stores.hermes.listing import read_listing
from hermes_tui.stores.hermes.rows import first_prompts, read_previews

from .test_newest_first import COUNT, SESSION, filled

WORDS = st.sampled_from([None, "", "Alpha", "beta\nGAMMA", "s1", "straße", "/work/a", "/work"])
MESSAGE = st.tuples(
    st.integers(0, COUNT).map(lambda number: f"s{number}"),
    st.sampled_from(["user", "user", "assistant"]),
    st.one_of(WORDS, st.just("[CONTEXT COMPACTION]\nAlpha"), st.just(b"\xff Alpha")),
)
QUERY = st.builds(
    ListQuery,
    source=st.sampled_from([None, None, "cli", "cron", "tool"]),
    model=st.sampled_from([None, None, "Alpha"]),
    cwd=st.sampled_from([None, None, "/work"]),
    since=st.sampled_from([None, None, 1_772_000_005.0]),
    until=st.sampled_from([None, None, 1_772_000_015.0]),
    archived=st.booleans(),
    children=st.booleans(),
    automated=st.booleans(),
    text=st.sampled_from(["", "a", "al", "alpha", "lpha", "GAMMA", "s", "cli", "STRASSE", "/work", "\n"]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(SESSION, min_size=1, max_size=COUNT),
    st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=COUNT, max_size=COUNT),
    st.lists(MESSAGE, max_size=12),
    st.lists(QUERY, min_size=1, max_size=6),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 2, 3, 2_000]),
)
def test_both_ways_agree(
    sessions: list[dict[str, object]],
    words: list[tuple[str | None, str | None, str | None]],
    messages: list[tuple[str, str, object]],
    queries: list[ListQuery],
    limit: int | None,
    at_once: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), sessions)
        connection = apsw.Connection(str(Path(folder) / "state.db"))
        connection.execute("PRAGMA synchronous = OFF")
        for name in ("title", "model", "cwd"):
            connection.execute(f"ALTER TABLE sessions ADD COLUMN {name} TEXT")
        connection.executemany(
            "UPDATE sessions SET title = ?, model = ?, cwd = ? WHERE id = ?",
            [(*cells, f"s{number}") for number, cells in enumerate(words)],
        )
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, 5)", messages
        )
        connection.close()
        overviews = overview.Overviews(store.asking)
        for query in queries:
            assert overview.answers(query)
            found = overviews.listing(query, limit, store.stamp())
            assert found == store.asking.ask(read_listing, query, limit)
            assert store.listing(query, limit) == found
        ids = [f"s{number}" for number in range(COUNT)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "SESSIONS_AT_ONCE", at_once)
            assert store.asking.ask(first_prompts, ids) == store.asking.ask(read_previews, ids)


def test_a_change_of_the_store_makes_it_anew(tmp_path: Path) -> None:
    session = {
        "source": "cli", "parent": None, "branch": None, "reset": None, "delegate": None, "bad": False, "key": None,
        "started": 1_772_000_000, "ended": None, "reason": None, "archived": 0, "hidden": 0,
        "messages": [1_772_000_001],
    }  # fmt: skip
    store = filled(tmp_path, [session, session])
    query = ListQuery(text="hello")
    assert store.listing(ListQuery()).total == 2
    assert store.listing(query).total == 0
    connection = apsw.Connection(str(tmp_path / "state.db"))
    connection.execute("UPDATE messages SET content = 'Hello there' WHERE session_id = 's1'")
    connection.close()
    assert [entry.id for entry in store.listing(query).entries] == ["s1"]


def test_a_letter_more_is_looked_for_among_the_rows_of_the_letters_before() -> None:
    words = ("gate", "gateway", "gap", "other")
    rows = tuple(ListEntry(SessionId(word), 0.0) for word in words)
    looked: list[str] = []
    found = overview._Found()

    def typed(text: str, among: tuple[ListEntry, ...] = rows) -> list[str]:
        looked.clear()

        def has(entry: ListEntry) -> bool:
            looked.append(entry.id)
            return text in entry.id

        return [entry.id for entry in found.with_text(among, text, has)]

    assert typed("ga") == ["gate", "gateway", "gap"]
    assert looked == list(words)
    assert typed("gat") == ["gate", "gateway"]
    assert looked == ["gate", "gateway", "gap"]
    assert typed("ga") == ["gate", "gateway", "gap"]
    assert not looked, "it was typed before"
    assert typed("r") == ["other"]
    assert looked == list(words), "a word with other letters may be in any row"
    assert typed("gat", rows[1:]) == ["gateway"]
    assert looked == list(words[1:]), "another list"
    for number in range(overview.MOST_TEXTS):
        typed(str(number), rows[1:])
    typed("gat", rows[1:])
    assert looked == list(words[1:]), "it was forgotten"
