"""SessionDB: what scripts may write to a Hermes store, by the product's rules."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from hermes_tui.model import Usage
from hermes_tui.storage.errors import WriteFailed
from hermes_tui.stores.changing import ChangeRefused, StoredRow, Taken
from hermes_tui.stores.hermes.appending import NewUsage, NoSuchSession
from hermes_tui.stores.hermes.session_db import SessionDB
from hermes_tui.stores.hermes.titles import TitleRefused, clean_title
from hermes_tui.stores.hermes.tokenizer import register_tokenizers

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "hermes"
NOW = 1_795_000_000.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def db(path: Path) -> SessionDB:
    return SessionDB(path, create=True, clock=lambda: NOW)


def row(path: Path, sql: str, *params: object) -> tuple[object, ...]:
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = raw.execute(sql, params).fetchall()
    raw.close()
    return found[0]


def test_a_session_from_beginning_to_end(db: SessionDB, path: Path) -> None:
    session = db.create_session("cli", title="Fix Docker Build", model="m", model_config={"max_iterations": 9})
    assert len(session.split("_")[-1]) == 6
    db.append_message(session, "user", "why is docker slow?", api_content="why is docker slow?")
    db.append_message(session, "user", "again", api_content="<memory-context>x</memory-context>again")
    call = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    db.append_message(session, "assistant", None, tool_calls=[call], finish_reason="tool_calls")
    db.append_message(session, "tool", "lone \ud83d surrogate", tool_call_id="c1", tool_name="terminal")
    db.append_message(session, "user", [{"type": "text", "text": "한국어"}])
    assert row(path, "SELECT message_count, tool_call_count FROM sessions") == (5, 1)
    assert row(path, "SELECT group_concat(id) FROM messages WHERE api_content IS NOT NULL") == ("2",)
    assert row(path, "SELECT content FROM messages WHERE id = 4") == ("lone \ufffd surrogate",)
    assert row(path, "SELECT CAST(substr(CAST(content AS BLOB), 1, 6) AS BLOB) FROM messages WHERE id = 5") == (
        b"\0json:",
    )
    assert db.end_session(session, "cli_close")
    assert not db.end_session(session, "other")
    assert row(path, "SELECT ended_at, end_reason FROM sessions") == (NOW, "cli_close")
    db.close()
    assert [one.name for one in path.parent.iterdir()] == ["state.db"]


def test_a_message_for_a_session_that_is_gone_is_refused(db: SessionDB) -> None:
    with pytest.raises(NoSuchSession, match="none"):
        db.append_message("none", "user", "x")
    with pytest.raises(NoSuchSession):
        db.record_usage("none", NewUsage("m"))


def test_usage_of_the_main_loop_is_counted_twice_on_purpose(db: SessionDB, path: Path) -> None:
    """In the ledger and in the session's row; auxiliary calls in the ledger alone (facts/hermes.md section 8)."""
    session = db.create_session("cli")
    spent = NewUsage("a", Usage(10, 5, 90, 3, 2), provider="p", estimated_cost_usd=0.5, cost_status="estimated")
    db.record_usage(session, spent)
    db.record_usage(session, spent)
    db.record_usage(session, NewUsage("b", Usage(1, 1), task="title_generation", provider="p"))
    columns = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, api_call_count"
    assert row(path, f"SELECT {columns} FROM sessions") == (20, 10, 180, 6, 4, 2)
    assert row(path, "SELECT model, billing_provider, estimated_cost_usd, actual_cost_usd FROM sessions") == (
        "a",
        "p",
        1.0,
        None,
    )
    assert row(path, "SELECT count(*), sum(api_call_count) FROM session_model_usage") == (2, 3)


def test_titles(db: SessionDB, path: Path) -> None:
    first, second = db.create_session("cli", "one"), db.create_session("cli", "two")
    assert db.get_next_title_in_lineage("Fix it") == "Fix it"
    assert db.set_title(first, "Fix it")
    assert db.get_next_title_in_lineage("Fix it #7") == "Fix it #2"
    with pytest.raises(TitleRefused):
        db.set_title(second, "Fix it")
    assert db.set_title(second, "fix IT #9")
    assert db.get_next_title_in_lineage("Fix it") == "Fix it #2"
    assert not db.set_title("none", "x")
    assert db.set_title(first, " \u200b ")
    assert row(path, "SELECT title FROM sessions WHERE id = 'one'") == (None,)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("a\x00b\x1fc", "abc"),
        ("a\t\n  b\r\nc", "a b c"),
        ("\ud800x", "\ufffdx"),
        ("👩\u200d💻", "👩💻"),
        ("\u202eabc\u2066", "abc\u2066"[:3]),
        ("", None),
        (None, None),
        ("x" * 100, "x" * 100),
    ],
)
def test_titles_are_cleaned_as_the_product_does(typed: str | None, kept: str | None) -> None:
    assert clean_title(typed) == kept


def test_deleting_gives_what_goes_to_whoever_keeps_it(db: SessionDB, path: Path) -> None:
    session = db.create_session("cli", "s")
    db.append_message(session, "user", "hello")
    taken: list[object] = []

    def keep(what: Taken) -> None:
        taken.extend(what.rows())

    assert db.delete_session(session, keep=keep)
    assert not db.delete_session(session)
    assert [one.table for one in taken if isinstance(one, StoredRow)] == ["sessions", "messages"]
    assert row(path, "SELECT count(*) FROM messages") == (0,)


def test_clear_prune_archive_search_export(db: SessionDB, path: Path) -> None:
    db.create_session("cli", "a", started_at=NOW - 9e6)
    db.append_message("a", "user", "needle in hay", timestamp=NOW - 9e6)
    db.append_message("a", "assistant", "hay", timestamp=NOW - 9e6, active=False)
    db.create_session("cli", "b", started_at=NOW - 9e6, parent_session_id="a")
    db.append_message("b", "user", "needle in hay", timestamp=NOW - 9e6)
    db.write(lambda raw: raw.execute("UPDATE sessions SET ended_at = 5, end_reason = 'compression' WHERE id = 'a'"))
    (hit,) = db.search_messages("needle")
    assert (hit.message.head.session_id, hit.copies) == ("a", 2)
    session = db.export_session("a")
    assert session is not None
    assert [message["content"] for message in session["messages"]] == ["needle in hay"]
    assert db.export_session("none") is None
    assert sorted(one["id"] for one in db.export_all()) == ["a", "b"]
    lineage = db.export_lineage("a")
    assert lineage is not None
    assert (lineage["id"], lineage["parts"], len(lineage["messages"])) == ("b", ["a", "b"], 1)
    assert sorted(db.archive("b")) == ["a", "b"]
    assert db.archive("b") == []
    assert sorted(db.archive("a", archived=False)) == ["a", "b"]
    done, kept = db.prune_sessions()
    assert (done, {one.id: one.reason for one in kept}) == ([], {"b": "never-ended", "a": "living-chain"})
    assert db.clear_messages("b") == 1
    db.end_session("b", "cli_close")
    assert sorted(db.prune_sessions()[0]) == ["a", "b"]


def test_a_store_with_a_cjk_index_is_written_through_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    shutil.copy(SAMPLES / "home" / "profiles" / "newlayout" / "state.db", path)
    with SessionDB(path) as db:
        session = db.create_session("cli")
        number = db.append_message(session, "user", "게이트웨이내부 docker")
        assert db.search_messages("게이트웨이내부")[0].message.head.session_id == session
    raw = apsw.Connection(str(path))
    register_tokenizers(raw)
    raw.execute("INSERT INTO messages_fts_cjk(messages_fts_cjk, rank) VALUES ('integrity-check', 1)")
    found = raw.execute("SELECT rowid FROM messages_fts_cjk WHERE messages_fts_cjk MATCH '\"게이\"'").fetchall()
    assert (number,) in found
    raw.close()


def test_a_cjk_index_that_holds_other_tokens_is_never_written_through(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    shutil.copy(SAMPLES / "home" / "profiles" / "newlayout" / "state.db", path)
    raw = apsw.Connection(str(path))

    def other(connection: apsw.Connection, arguments: list[str]) -> apsw.FTS5Tokenizer:
        return connection.fts5_tokenizer("unicode61", arguments)

    raw.register_fts5_tokenizer("cjk_unicode61", other)
    raw.execute("INSERT INTO messages_fts_cjk(messages_fts_cjk) VALUES ('rebuild')")
    raw.close()
    session = "20260225_061321_a5cd68"
    with SessionDB(path) as db:
        with pytest.raises(WriteFailed, match="cjk_unicode61"):
            db.append_message(session, "user", "내부")
        with pytest.raises(ChangeRefused, match="own extension"):
            db.delete_session(session)
        assert row(path, "SELECT count(*) FROM sessions WHERE id = ?", session) == (1,)
        # Renaming and archiving need none of it.
        assert db.set_title(session, "another")
        assert db.archive(session)
        # Given up by name: what the product does itself where it cannot load its extension.
        assert db.delete_session(session, drop_cjk=True)
    assert row(path, "SELECT value FROM state_meta WHERE key = 'fts_cjk_stale'") == ("1",)
    assert row(
        path, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'messages_fts_cjk_%' AND type = 'trigger'"
    ) == (0,)


def test_columns_are_added_only_when_asked_by_name(path: Path) -> None:
    raw = apsw.Connection(str(path))
    raw.execute(
        "CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL, ended_at REAL,"
        " end_reason TEXT, parent_session_id TEXT, message_count INTEGER, tool_call_count INTEGER, title TEXT);"
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, timestamp REAL)"
    )
    raw.close()
    with SessionDB(path, clock=lambda: NOW) as db:
        db.create_session("cli", "old", cwd="/somewhere")
        db.append_message("old", "user", "hello", reasoning="x")
        before = row(path, "SELECT count(*) FROM pragma_table_info('sessions')")
        assert before == (9,)
        with pytest.raises(ChangeRefused, match="too old"):
            db.archive("old")
        added = db.add_missing_columns()
        assert "sessions.archived" in added
        assert db.archive("old") == ["old"]
        assert db.delete_session("old")
