"""Long messages and long transcripts, and usage by day."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest

from hermes_tui.model import NO_USAGE, CostGrouping, ListQuery, SessionId
from hermes_tui.stores.hermes.store import HermesStore
from hermes_tui.stores.protocol import TEXT_PIECE

from .samples import copied, names, stores

NAMES = names()
PLAIN = SessionId(NAMES["plain"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copied(tmp_path)


def opened(home: Path) -> HermesStore:
    return stores(home)["hermes/default"]


def test_a_long_message_is_read_in_pieces(home: Path) -> None:
    long = "가나다 long text 😀 " * 1_000_000
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("DROP TRIGGER messages_fts_update; DROP TRIGGER messages_fts_trigram_update")
    connection.execute("UPDATE messages SET content = ? WHERE id = 2", (long,))
    connection.close()
    transcript = opened(home).transcript([PLAIN])
    heads = [head for batch in transcript.heads() for head in batch]
    message = transcript.load(heads)[1]
    assert message.cut
    assert message.head.size == len(long.encode())
    assert message.text is not None
    assert len(message.text.encode()) <= TEXT_PIECE + 3
    assert long.startswith(message.text.rstrip("\ufffd"))
    for start in (0, 5_000_000, 1_234_567, len(long) - 7):
        assert transcript.piece(heads[1], start, 100) == long[start : start + 100]
    assert transcript.piece(heads[1], len(long), 10) == ""


def test_a_long_transcript_comes_in_batches_in_order_of_ids(home: Path) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("DROP TRIGGER messages_fts_insert; DROP TRIGGER messages_fts_trigram_insert")
    connection.execute(
        "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        f" INSERT INTO messages (session_id, role, content, timestamp) SELECT '{PLAIN}', 'user', 'm' || i,"
        " 1772000100 - i FROM n"
    )
    connection.close()
    transcript = opened(home).transcript([PLAIN])
    batches = transcript.heads()
    first = next(batches)
    assert len(first) < 1_000
    heads = [*first, *(head for batch in batches for head in batch)]
    assert len(heads) == 20_004
    assert [int(head.id) for head in heads] == sorted(int(head.id) for head in heads)
    tail = transcript.tail(3)
    assert [head.id for head in tail] == [head.id for head in heads[-3:]]
    assert transcript.load(tail)[-1].text == "m20000"


def test_days_are_local_and_come_from_daily_sums_where_there_are_some(home: Path) -> None:
    connection = apsw.Connection(str(home / "state.db"))
    # 2026-02-25 23:30 in Seoul; the clock of Berlin changes on 29 March.
    connection.execute("UPDATE session_model_usage SET last_seen = 1772029800 WHERE session_id = ?", (PLAIN,))
    connection.execute(
        "CREATE TABLE session_daily_usage (session_id TEXT, day TEXT, input_tokens INTEGER, output_tokens INTEGER,"
        " cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER, estimated_cost_usd REAL)"
    )
    connection.executemany(
        "INSERT INTO session_daily_usage VALUES (?, ?, ?, 1, 0, 0, 0, 0.1)",
        [(NAMES["rich"], "2026-03-05", 7), (NAMES["rich"], "2026-03-06", 9)],
    )
    connection.close()
    store = opened(home)
    seoul = store.usage("day", None, None, ZoneInfo("Asia/Seoul"))
    assert seoul.sessions["2026-02-25"] == 2  # type: ignore[index]
    found = {part.key: part.spend.usage.input for part in seoul.sums if part.spend.model == "sol-9"}
    assert found["2026-03-05"] + found["2026-03-06"] >= 16
    by_model = store.usage("model", None, None, ZoneInfo("Asia/Seoul"))
    total = sum(part.spend.usage.total for part in by_model.sums)
    assert sum(part.spend.usage.total for part in seoul.sums) == total
    berlin = store.usage("day", None, None, ZoneInfo("Europe/Berlin"))
    assert sum(part.spend.usage.total for part in berlin.sums) == sum(part.spend.usage.total for part in seoul.sums)


def test_a_period_counts_usage_by_its_time(home: Path) -> None:
    store = opened(home)
    zone = ZoneInfo("UTC")
    whole = store.usage("model", None, None, zone)
    parts = [store.usage("model", None, 1772500000, zone), store.usage("model", 1772500000, None, zone)]
    assert sum(sum(s.spend.usage.total for s in part.sums) for part in parts) == sum(
        s.spend.usage.total for s in whole.sums
    )
    assert sum(part.distinct or 0 for part in parts) == whole.distinct


def test_a_chain_of_many_parts_is_one_conversation(home: Path) -> None:
    parts = [f"part{number:03}" for number in range(150)]
    with closing(apsw.Connection(str(home / "state.db"))) as connection:
        for number, part in enumerate(parts):
            connection.execute(
                "INSERT INTO sessions(id, source, started_at, parent_session_id, end_reason, input_tokens)"
                " VALUES (?, 'cli', ?, ?, ?, 10)",
                (
                    part,
                    1_780_000_000 + number,
                    parts[number - 1] if number else None,
                    "compression" if number < 149 else None,
                ),
            )
    store = opened(home)
    queries = (ListQuery(), ListQuery(order="started"))
    for query in queries:
        listing = store.listing(query)
        ids = [entry.id for entry in listing.entries]
        assert "part149" in ids
        assert len(store.rows(ids)) == len(ids) == listing.total
    (row,) = store.rows([SessionId("part007")])
    assert (row.id, row.root_id, row.parts) == ("part149", "part000", 150)
    points = [point for point in store.requests(None) if point.session_id.startswith("part")]
    assert sum(point.usage.input for point in points) == 1500


def test_days_that_hold_more_than_their_session_are_not_counted(home: Path) -> None:
    """Every grouping adds up to the same, whatever the daily rows say; a day that is none is not believed."""
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute(
        "CREATE TABLE session_daily_usage (session_id TEXT, day TEXT, input_tokens INTEGER, output_tokens INTEGER);"
    )
    for name, day, tokens in (
        ("plain", "2026-03-01", 10**9),
        ("zh", "2026-03-01", 7),
        ("ja", "garbage", 7),
        ("tg", None, 7),
        ("ghost", "2026-03-01", 7),
        ("chain1", "2026-02-30", 7),
    ):
        connection.execute("INSERT INTO session_daily_usage VALUES (?, ?, ?, 0)", (NAMES[name], day, tokens))
    connection.execute(
        "INSERT INTO session_daily_usage VALUES (NULL, '2026-03-01', 7, 0), ('gone', '2026-03-01', 7, 0)"
    )
    connection.close()
    store = opened(home)
    totals = {}
    for grouping in GROUPINGS:
        sums = store.usage(grouping, None, None, ZoneInfo("UTC")).sums
        totals[grouping] = sum((one.spend.usage for one in sums), NO_USAGE)
    assert set(totals.values()) == {totals["model"]}
    days = {one.key: one.spend.usage.input for one in store.usage("day", None, None, ZoneInfo("UTC")).sums if one.key}
    assert all(date.fromisoformat(day) for day in days)
    assert days["2026-03-01"] >= 7


GROUPINGS: tuple[CostGrouping, ...] = ("model", "day", "session")
