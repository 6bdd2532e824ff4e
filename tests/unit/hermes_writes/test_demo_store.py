"""The demo's Hermes home shows every kind of thing the screens can show."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from hermes_tui.storage.errors import WriteFailed
from hermes_tui.storage.reading import read_only
from hermes_tui.stores.hermes.demo import write_demo

NOW = 1_790_000_000.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "hermes"
    write_demo(folder, NOW)
    return folder


def test_two_profiles_and_an_empty_one(home: Path) -> None:
    assert (home / "state.db").stat().st_mode & 0o777 == 0o600
    assert (home / "profiles" / "sales" / "state.db").is_file()
    assert list((home / "profiles" / "spare").iterdir()) == []
    assert (home / "active_profile").read_text() == "default\n"
    left = {path.name for path in home.rglob("state.db*")}
    assert left == {"state.db"}, "nothing lies beside the stores"


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        ("SELECT count(*) FROM sessions", 40),
        ("SELECT count(*) FROM sessions WHERE end_reason = 'compression'", 3),
        ("SELECT count(*) FROM sessions WHERE model_config LIKE '%_branched_from%'", 1),
        ("SELECT count(*) FROM sessions WHERE model_config LIKE '%_delegate_from%'", 3),
        ("SELECT count(*) FROM sessions WHERE archived = 1", 2),
        ("SELECT count(*) FROM sessions WHERE ended_at IS NULL", 4),
        ("SELECT count(*) FROM sessions WHERE source = 'tool'", 1),
        ("SELECT count(*) FROM sessions WHERE source = 'cron'", 2),
        ("SELECT count(DISTINCT model) FROM session_model_usage", 6),
        ("SELECT count(DISTINCT cost_status) FROM session_model_usage", 4),
        ("SELECT count(*) FROM messages WHERE active = 0 AND compacted = 1", 8),
        ("SELECT count(*) FROM messages WHERE active = 0 AND compacted = 0", 2),
        ("SELECT max(length(content)) FROM messages", 30_000),
        ("SELECT count(*) FROM messages WHERE api_content IS NOT NULL", 10),
        ("SELECT count(*) FROM messages WHERE content LIKE '%게이트웨이내부%'", 1),
        ("SELECT count(*) FROM sessions WHERE title = 'Fix Docker Build #2'", 1),
        ("SELECT count(*) FROM sessions WHERE started_at < ? - 86400 * 90", 2),
    ],
)
def test_there_is_something_for_every_screen(home: Path, sql: str, least: int) -> None:
    with read_only(home / "state.db") as connection:
        found = connection.one(sql, (NOW,) if "?" in sql else ())
    assert found is not None
    assert found[0] >= least


def test_the_indexes_are_exact(home: Path) -> None:
    for path in home.rglob("state.db"):
        raw = apsw.Connection(str(path))
        for table in ("messages_fts", "messages_fts_trigram"):
            raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        raw.close()


def test_it_is_not_written_over_a_store(home: Path) -> None:
    with pytest.raises(WriteFailed):
        write_demo(home, NOW)


def test_every_conversation_begins_before_now(home: Path) -> None:
    with read_only(home / "state.db") as connection:
        assert connection.one("SELECT max(timestamp) < ? FROM messages", (NOW,)) == (1,)
