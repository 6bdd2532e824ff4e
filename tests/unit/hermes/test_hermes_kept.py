"""Answers of a Hermes store that were kept: given again while nothing changed, and never when something did."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import apsw
import pytest

from hermes_tui.mirror.answers import KeptAnswers
from hermes_tui.model import ListQuery, SessionId, SessionRow
from hermes_tui.stores.hermes.store import HermesStore

from .samples import copied, stores

LATER_NS = 60_000_000_000
"""Long enough after the last write."""
QUERIES = (
    ListQuery(),
    ListQuery(archived=True, children=True),
    ListQuery(sessions=True),
    ListQuery(order="tokens"),
    ListQuery(order="cost"),
)
GROUPINGS = ("model", "day", "session", "source", "cwd", "channel", "task", "provider")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return copied(tmp_path, "home")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes a minute ahead of the file system's."""
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() + LATER_NS)


def opened(home: Path, folder: Path | None = None) -> HermesStore:
    """A new process' store; without a folder it keeps nothing."""
    store = stores(home)["hermes/default"]
    if folder is not None:
        store.answers = KeptAnswers(folder)
    return store


def everything(store: HermesStore) -> list[object]:
    """Every answer that may be kept."""
    found: list[object] = [store.listing(query, limit) for query in QUERIES for limit in (3, None)]
    found += [store.usage(grouping, None, None, UTC) for grouping in GROUPINGS]  # type: ignore[arg-type]
    found += [first_rows(store, query) for query in QUERIES]
    found += [store.usage("model", 1.7e9, None, UTC), list(store.requests(None, 0.0)), store.status()]
    return found


def first_rows(store: HermesStore, query: ListQuery, limit: int = 4) -> list[SessionRow]:
    """The rows at the top of a list, as a screen asks for them."""
    ids = [entry.id for entry in store.listing(query, limit).entries]
    return store.rows(ids, conversation=not query.sessions)


def without_logs(home: Path) -> None:
    """Which of them the database has is asked anew each time."""
    for folder in ("sessions", "pending_messages"):
        shutil.rmtree(home / folder, ignore_errors=True)


def no_asking(store: HermesStore) -> HermesStore:
    """The same store, which may not open its database."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the database was opened")

    store.asking.ask = refuse  # type: ignore[method-assign,assignment]
    return store


def write(home: Path, *statements: str, wal: bool = False) -> apsw.Connection:
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute("PRAGMA journal_mode=WAL" if wal else "PRAGMA journal_mode=DELETE")
    for statement in statements:
        connection.execute(statement)
    return connection


NEW_SESSION = (
    "INSERT INTO sessions(id, source, model, started_at, input_tokens, output_tokens)"
    " VALUES ('20260301_101010_abcdef', 'cli', 'm', 1772359810.0, 77, 7)"
)
CHANGES: dict[str, Callable[[Path], object]] = {
    "a row": lambda home: write(home, NEW_SESSION).close(),
    "a row that is in the -wal alone": lambda home: write(home, NEW_SESSION, wal=True),
    "a row of usage": lambda home: write(
        home, "UPDATE session_model_usage SET input_tokens = input_tokens + 1"
    ).close(),
    "an archived session": lambda home: write(home, "UPDATE sessions SET archived = 1 WHERE parent_session_id IS NULL"),
}


@pytest.mark.usefixtures("settled")
def test_an_unchanged_store_is_not_opened_for_what_was_kept(home: Path, tmp_path: Path) -> None:
    without_logs(home)
    fresh = everything(opened(home))
    assert everything(opened(home, tmp_path / "kept")) == fresh, "kept while it is answered"
    assert everything(no_asking(opened(home, tmp_path / "kept"))) == fresh


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", CHANGES)
def test_every_kind_of_change_is_noticed(home: Path, tmp_path: Path, change: str) -> None:
    before = everything(opened(home, tmp_path / "kept"))
    held = CHANGES[change](home)
    after = everything(opened(home, tmp_path / "kept"))
    assert after == everything(opened(home))
    assert after != before
    del held


@pytest.mark.usefixtures("settled")
def test_a_checkpoint_changes_no_answer_and_hides_none(home: Path, tmp_path: Path) -> None:
    connection = write(home, NEW_SESSION, wal=True)
    inside = everything(opened(home, tmp_path / "kept"))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("DELETE FROM sessions WHERE id = '20260301_101010_abcdef'")
    assert everything(opened(home, tmp_path / "kept")) == everything(opened(home)) != inside
    connection.close()


@pytest.mark.usefixtures("settled")
def test_a_replaced_store_is_noticed_though_size_and_time_are_the_same(home: Path, tmp_path: Path) -> None:
    before = everything(opened(home, tmp_path / "kept"))
    database = home / "state.db"
    stat = database.stat()
    other = tmp_path / "other.db"
    other.write_bytes(database.read_bytes())
    connection = apsw.Connection(str(other))
    connection.execute("UPDATE sessions SET archived = 1 - archived")
    connection.close()
    assert other.stat().st_size == stat.st_size
    other.replace(database)
    os.utime(database, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert everything(opened(home, tmp_path / "kept")) == everything(opened(home)) != before


@pytest.mark.usefixtures("settled")
def test_a_rewrite_in_place_is_noticed_though_size_and_time_are_the_same(home: Path, tmp_path: Path) -> None:
    before = everything(opened(home, tmp_path / "kept"))
    database = home / "state.db"
    stat = database.stat()
    write(home, "UPDATE sessions SET archived = 1 - archived").close()
    assert database.stat().st_size == stat.st_size
    os.utime(database, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert everything(opened(home, tmp_path / "kept")) == everything(opened(home)) != before


def test_what_was_written_just_now_is_not_kept(home: Path, tmp_path: Path) -> None:
    write(home, NEW_SESSION).close()
    everything(opened(home, tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


@pytest.mark.usefixtures("settled")
def test_what_changes_while_it_is_answered_is_not_kept(home: Path, tmp_path: Path) -> None:
    store = opened(home, tmp_path / "kept")
    ask = store.asking.ask

    def meanwhile(*args: object, **kwargs: object) -> object:
        found = ask(*args, **kwargs)  # type: ignore[arg-type]
        write(home, "UPDATE sessions SET archived = 1 - archived").close()
        return found

    store.asking.ask = meanwhile  # type: ignore[method-assign,assignment]
    store.listing(ListQuery())
    assert not (tmp_path / "kept").exists()
    assert opened(home, tmp_path / "kept").listing(ListQuery()) == opened(home).listing(ListQuery())


@pytest.mark.usefixtures("settled")
def test_days_of_another_zone_are_another_answer(home: Path, tmp_path: Path) -> None:
    for zone in (UTC, ZoneInfo("Pacific/Auckland"), ZoneInfo("America/Los_Angeles")):
        kept = opened(home, tmp_path / "kept").usage("day", None, None, zone)
        assert kept == opened(home).usage("day", None, None, zone)


@pytest.mark.usefixtures("settled")
def test_a_later_window_is_answered_as_if_it_were_read(home: Path, tmp_path: Path) -> None:
    times = sorted(request.at for request in opened(home).requests(None) if request.at is not None)
    moments = [moment for at in times for moment in (at - 0.5, at, at + 0.5)]
    for since in (*moments, *reversed(moments)):
        kept = opened(home, tmp_path / "kept")
        fresh = opened(home)
        assert kept.usage("model", since, None, UTC) == fresh.usage("model", since, None, UTC)
        recent = {request.chain for request in fresh.requests(None) if request.at is not None and request.at >= since}
        wanted = [request for request in fresh.requests(None) if request.chain in recent]
        assert [request for request in kept.requests(None, since) if request.chain in recent] == wanted


@pytest.mark.usefixtures("settled")
def test_more_rows_than_were_kept_are_read(home: Path, tmp_path: Path) -> None:
    for limit in (2, 5, None, 1, 4, 10_000):
        assert opened(home, tmp_path / "kept").listing(ListQuery(), limit) == opened(home).listing(ListQuery(), limit)


@pytest.mark.usefixtures("settled")
def test_after_random_changes_kept_and_fresh_are_the_same(home: Path, tmp_path: Path) -> None:
    dice = random.Random(7)
    for step in range(40):
        for _ in range(dice.randrange(3)):
            next(changes(home, dice))
        assert everything(opened(home, tmp_path / "kept")) == everything(opened(home)), f"step {step}"


def changes(home: Path, dice: random.Random) -> Iterator[None]:
    """One change, each of its own kind."""
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute(f"PRAGMA journal_mode={dice.choice(('WAL', 'DELETE'))}")
    ids = [row[0] for row in connection.execute("SELECT id FROM sessions ORDER BY id")]
    one, other = dice.choice(ids), dice.choice(ids)
    statements = (
        ("UPDATE sessions SET archived = 1 - archived WHERE id = ?", (one,)),
        ("UPDATE sessions SET parent_session_id = ? WHERE id = ?", (other, one)),
        ("UPDATE sessions SET end_reason = 'compression', ended_at = started_at WHERE id = ?", (one,)),
        ("UPDATE session_model_usage SET last_seen = last_seen + 86400, input_tokens = 5 WHERE session_id = ?", (one,)),
        ("DELETE FROM sessions WHERE id = ? AND (SELECT count(*) FROM sessions) > 5", (one,)),
        ("UPDATE messages SET timestamp = timestamp + 1000 WHERE session_id = ?", (one,)),
    )
    connection.execute(*dice.choice(statements))
    if dice.random() < 0.3:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    yield


def test_a_log_beside_the_store_that_grows_moves_the_stamp(home: Path) -> None:
    folder = home / "sessions"
    folder.mkdir(exist_ok=True)
    log = folder / "20250101_101010_aaaaaa.jsonl"
    log.write_text('{"role": "user", "content": "one"}\n', encoding="utf-8")
    store = opened(home)
    before = store.stamp()
    assert store.stamp() == before
    rows = store.rows([SessionId("20250101_101010_aaaaaa")])
    with log.open("a", encoding="utf-8") as file:
        file.write('{"role": "assistant", "content": "two"}\n')
    assert store.stamp() != before, "its folder did not change"
    assert store.rows([SessionId("20250101_101010_aaaaaa")]) != rows


LIVELY = {
    "was written to a moment ago": "UPDATE messages SET timestamp = {now} - 200",
    "will be begun tomorrow": "UPDATE sessions SET started_at = {now} + 86400",
    "is held": "INSERT INTO compression_locks(session_id, holder, acquired_at, expires_at)"
    " SELECT id, 'x', 1, {now} + 99 FROM sessions LIMIT 1",
}


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", LIVELY)
def test_rows_that_may_change_by_the_clock_alone_are_not_kept(home: Path, tmp_path: Path, change: str) -> None:
    without_logs(home)
    write(home, "UPDATE sessions SET ended_at = NULL").close()
    first_rows(opened(home, tmp_path / "kept"), ListQuery())
    assert first_rows(no_asking(opened(home, tmp_path / "kept")), ListQuery())
    write(home, LIVELY[change].format(now=time.time())).close()
    first_rows(opened(home, tmp_path / "kept"), ListQuery())
    with pytest.raises(AssertionError, match="opened"):
        first_rows(no_asking(opened(home, tmp_path / "kept")), ListQuery())


@pytest.mark.usefixtures("settled")
def test_only_the_rows_at_the_top_of_a_list_are_kept(home: Path, tmp_path: Path) -> None:
    store = opened(home, tmp_path / "kept")
    rows = first_rows(store, ListQuery(), 6)
    files = len(list((tmp_path / "kept").iterdir()))
    assert store.rows([row.id for row in rows[2:]]) == rows[2:]
    assert len(list((tmp_path / "kept").iterdir())) == files
    again = opened(home, tmp_path / "kept")
    again.listing(ListQuery(), 6)
    # As many as were kept, but of others.
    other = [SessionId(row.id) for row in reversed(rows)]
    assert [row.id for row in again.rows(other)] == other
