"""Sessions in a database: rows of every kind, damaged ones, and what is no such database (facts/dsh.md section 5)."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
import zstandard

from hermes_tui.model import ListQuery, SessionId, SessionRow, Usage
from hermes_tui.stores.dsh.database import APPLICATION_ID, PAGE
from hermes_tui.stores.dsh.format import SessionCorruptError
from hermes_tui.stores.dsh.package import PACKAGE
from hermes_tui.stores.protocol import Store
from tests.unit.dsh.conftest import MS, used

SCHEMA = """
CREATE TABLE persistence_state (singleton INTEGER PRIMARY KEY, store_id TEXT NOT NULL) STRICT;
CREATE TABLE sessions (id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT,
  parent_session TEXT, seed_length INTEGER, origin TEXT, delegation_depth INTEGER, agent_preset TEXT,
  incarnation TEXT NOT NULL, revision INTEGER NOT NULL) STRICT;
CREATE TABLE events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, time INTEGER NOT NULL,
  data ANY NOT NULL, source_event_seqs ANY, surface_op TEXT, ignorable INTEGER, PRIMARY KEY (session_id, seq)) STRICT;
"""


class Database:
    """A database of one session, written row by row and closed."""

    def __init__(self, path: Path, version: int = 0, user_version: int = 17) -> None:
        self.path = path
        self._connection = apsw.Connection(str(path))
        self._connection.execute(
            f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={user_version};" + SCHEMA
        )
        self._connection.execute(
            "INSERT INTO sessions VALUES ('s', ?, ?, '/w', NULL, NULL, NULL, 0, NULL, 'i', 1)", (version, MS)
        )
        self.seq = 0

    def row(self, kind: str, data: object, op: object = None, ignorable: int | None = None, span: int = 1) -> None:
        stored = data if isinstance(data, bytes | str) else json.dumps(data)
        operation = None if op is None else json.dumps(op)
        values = ("s", self.seq, kind, MS + self.seq, stored, None, operation, ignorable)
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        self.seq += span

    def user(self, text: str) -> None:
        content = [{"type": "text", "text": text}]
        data = {"role": "user", "content": content, "source": {"kind": "user"}, "id": f"u{self.seq}"}
        self.row("user/message", data, "append")

    def reply(self, text: str, *, zipped: bool = False) -> None:
        source = {"kind": "model", "provider": "p", "model": "m"}
        message = {"content": [{"type": "text", "text": text}], "source": source, "id": f"a{self.seq}"}
        data = {"turn": 1, "step": 1, "message": message, "usage": used(1, 2, 3, 4)}
        raw = json.dumps(data)
        self.row("assistant/message", zstandard.ZstdCompressor().compress(raw.encode()) if zipped else raw, "append")

    def end(self) -> None:
        self.row("turn/end", {"turn": 1, "reason": {"kind": "completed"}})

    def store(self) -> Store:
        self._connection.close()
        (store,) = PACKAGE.open(self.path, {})
        return store


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "kept.db")


def row_of(store: Store) -> SessionRow:
    (row,) = store.rows([SessionId("s")])
    return row


def shown(store: Store) -> list[tuple[str, str | None]]:
    transcript = store.transcript([SessionId("s")])
    return [(m.head.kind, m.text) for batch in transcript.heads() for m in transcript.load(batch)]


def test_text_and_compressed_rows(database: Database) -> None:
    database.user("one")
    database.row("text-chunks", {"turn": 1, "step": 1, "dt": [0, 0], "texts": ["a", "b", "c"]}, ignorable=0, span=3)
    database.reply("eins " * 2_000, zipped=True)
    database.end()
    store = database.store()
    row = row_of(store)
    assert (row.usage, row.message_count, row.problems, row.resumable) == (Usage(1, 4, 3, 2), 2, 0, False)
    assert shown(store) == [("prompt", "one"), ("reply", "eins " * 2_000)]
    assert [m.text for m in store.recovery(SessionId("s")).messages] == ["one", "eins " * 2_000]
    assert store.status().origin == "store"


def test_required_event_of_an_unknown_type_refuses_the_session(database: Database) -> None:
    database.user("one")
    database.row("memory/note", {}, ignorable=None)
    row = row_of(database.store())
    assert (row.usage, row.problems, row.cwd) == (None, 1, "/w")


def test_ignorable_event_is_kept(database: Database) -> None:
    database.user("one")
    database.row("memory/note", {"a": 1}, ignorable=1)
    database.row("reasoning-chunks", {"dt": [1, 2, 3]}, ignorable=1)
    database.reply("eins")
    store = database.store()
    assert [kind for kind, _ in shown(store)] == ["prompt", "unknown", "unknown", "reply"]
    assert row_of(store).problems == 0


@pytest.mark.parametrize("data", [b"\x28\xb5\x2f\xfdnonsense", b"plain bytes", "{half", "[]"])
def test_damaged_row_before_a_turn_end_is_corrupt(database: Database, data: object) -> None:
    database.user("one")
    database.row("assistant/message", data, "append")
    database.reply("zwei")
    database.end()
    store = database.store()
    row = row_of(store)
    assert (row.problems, row.message_count) == (1, 2)
    with pytest.raises(SessionCorruptError):
        store.recovery(SessionId("s"))


def test_gap_in_the_sequence(database: Database) -> None:
    database.user("one")
    database.seq += 3
    database.reply("eins")
    database.end()
    row = row_of(database.store())
    assert (row.problems, row.message_count) == (1, 2)


def test_more_rows_than_a_page(database: Database) -> None:
    for number in range(PAGE + 10):
        database.user(str(number))
    store = database.store()
    assert row_of(store).message_count == PAGE + 10
    assert shown(store)[-1] == ("prompt", str(PAGE + 9))


@pytest.mark.parametrize("version", [-1, 5, 9])
def test_versions_that_are_not_known_are_refused(tmp_path: Path, version: int) -> None:
    database = Database(tmp_path / "kept.sqlite", version)
    database.user("one")
    row = row_of(database.store())
    assert (row.usage, row.problems, row.started_at) == (None, 1, MS / 1000)


def test_another_schema_is_a_finding(tmp_path: Path) -> None:
    database = Database(tmp_path / "sessions.db", user_version=18)
    database.user("one")
    store = database.store()
    assert [finding.code for finding in store.status().findings] == ["unknown-schema"]
    assert store.listing(ListQuery()).total == 1
    assert PACKAGE.recognise(tmp_path)


def test_other_databases_are_no_store(tmp_path: Path) -> None:
    for name, application in (("a.db", 0), ("b.db", APPLICATION_ID)):
        connection = apsw.Connection(str(tmp_path / name))
        connection.execute(f"PRAGMA application_id={application}; CREATE TABLE sessions (id TEXT)")
        connection.close()
        assert not PACKAGE.recognise(tmp_path / name)


def test_nothing_is_left_beside_it_and_it_is_not_locked(database: Database) -> None:
    database.user("one")
    store = database.store()
    assert row_of(store).message_count == 1
    assert [path.name for path in database.path.parent.iterdir()] == ["kept.db"]
    writer = apsw.Connection(str(database.path))
    writer.execute("BEGIN EXCLUSIVE")
    writer.close()


def test_new_rows_are_seen(database: Database) -> None:
    database.user("one")
    store = database.store()
    stamp = store.stamp()
    assert row_of(store).message_count == 1
    writer = apsw.Connection(str(database.path))
    data = json.dumps({"role": "user", "content": [{"type": "text", "text": "two"}], "source": {"kind": "user"}})
    writer.execute("INSERT INTO events VALUES ('s', 1, 'user/message', ?, ?, NULL, '\"append\"', NULL)", (MS, data))
    writer.close()
    assert store.stamp() != stamp
    assert row_of(store).message_count == 2


def test_events_whose_session_is_gone_are_counted(database: Database) -> None:
    database.user("hello")
    database.end()
    store = database.store()
    assert "stray-events" not in {finding.code for finding in store.findings()}
    writer = apsw.Connection(str(database.path))
    copied = "seq, type, time, data, source_event_seqs, surface_op, ignorable"
    writer.execute(f"INSERT INTO events (session_id, {copied}) SELECT 'gone', {copied} FROM events")
    writer.close()
    assert {finding.code: finding.count for finding in store.findings()}["stray-events"] == 2


def test_rows_of_one_id_and_time_keep_their_own_texts(database: Database) -> None:
    for text in ("one", "two"):
        content = [{"type": "text", "text": text}]
        data = json.dumps({"role": "user", "content": content, "source": {"kind": "user"}, "id": "u"})
        values = ("s", database.seq, "user/message", MS, data, None, '"append"', None)
        database._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        database.seq += 1
    assert shown(database.store()) == [("prompt", "one"), ("prompt", "two")]


def test_a_number_below_zero_is_told(database: Database) -> None:
    database.user("one")
    database.end()
    database._connection.execute("UPDATE events SET seq = -3 WHERE seq = 0")
    assert row_of(database.store()).problems > 0
