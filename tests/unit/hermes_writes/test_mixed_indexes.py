"""A store whose rows were indexed by an old library and by ours: each is deleted with the tokenizer that indexed it."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import apsw
import pytest

from hermes_tui.library.cleanup import apply, plan, restore
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.stores.hermes.session_db import SessionDB

NOW = 1_795_000_000.0
INLINE = """
DROP TRIGGER messages_fts_trigram_insert; DROP TRIGGER messages_fts_trigram_delete;
DROP TRIGGER messages_fts_trigram_update; DROP TABLE messages_fts_trigram; DROP VIEW messages_fts_trigram_src;
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, tokenize='trigram');
CREATE TRIGGER messages_fts_trigram_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts_trigram(rowid, content) VALUES (new.id,
        COALESCE(new.content, '') || ' ' || COALESCE(new.tool_name, '') || ' ' || COALESCE(new.tool_calls, ''));
END;
CREATE TRIGGER messages_fts_trigram_delete AFTER DELETE ON messages BEGIN
    DELETE FROM messages_fts_trigram WHERE rowid = old.id;
END;
"""
CONTENTS = [
    "plain words",
    '\0json:[{"type": "text", "text": "structured docker"}]',
    "before the NUL\0behind it",
    "ab\0c",
    "\0x",
    "same same\0same",
    "게이트\0웨이내부",
    "tail\0",
]
BY_THE_OLD = """
    import json, sqlite3, sys
    raw = sqlite3.connect(sys.argv[1], isolation_level=None)
    raw.execute("PRAGMA foreign_keys=ON")
    for content in json.loads(sys.argv[3]):
        raw.execute("INSERT INTO messages(session_id, role, content, timestamp) VALUES (?, 'user', ?, 1790000000)",
                    (sys.argv[2], content))
"""
CHECK = """
    import sqlite3, sys
    raw = sqlite3.connect(sys.argv[1], isolation_level=None)
    for table in ("messages_fts", "messages_fts_trigram"):
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    print("sound")
"""


def old(script: str, *words: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout


def ours_finds_it_sound(store: Path) -> None:
    raw = apsw.Connection(str(store))
    for table in ("messages_fts", "messages_fts_trigram"):
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    raw.close()


@pytest.fixture(params=["external", "inline"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    import json

    path = tmp_path / "state.db"
    with SessionDB(path, create=True, clock=lambda: NOW - 1e6) as db:
        for name in ("old", "ours", "mixed", "other"):
            db.create_session("cli", name)
        if request.param == "inline":
            db.write(lambda raw: raw.execute(INLINE).fetchall())
    old(BY_THE_OLD, str(path), "old", json.dumps(CONTENTS))
    old(BY_THE_OLD, str(path), "mixed", json.dumps(CONTENTS))
    old(BY_THE_OLD, str(path), "other", json.dumps(["nothing special"]))
    with SessionDB(path, clock=lambda: NOW - 1e6) as db:
        for session in ("ours", "mixed"):
            for content in CONTENTS:
                db.append_message(session, "user", content)
    return path


@pytest.fixture
def library(store: Path, tmp_path: Path) -> Library:
    return open_library(SourceOptions((str(store),)), {"HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)})


@pytest.mark.parametrize("order", list(itertools.permutations(["old", "ours", "mixed"])), ids="-".join)
def test_every_row_goes_with_the_tokens_it_came_with(store: Path, library: Library, order: tuple[str, ...]) -> None:
    for session in order:
        result = apply(library, plan(library, "delete", [session], now=NOW), now=NOW)
        assert result.done == (session,), result
    assert old(CHECK, str(store)) == "sound\n"
    ours_finds_it_sound(store)


def test_the_old_library_finds_its_own_rows_sound_after_ours_are_gone(store: Path, library: Library) -> None:
    for session in ("ours", "mixed"):
        assert apply(library, plan(library, "delete", [session], now=NOW), now=NOW).done
    assert old(CHECK, str(store)) == "sound\n"


def test_ours_are_sound_after_the_old_ones_are_gone(store: Path, library: Library) -> None:
    for session in ("old", "mixed"):
        assert apply(library, plan(library, "delete", [session], now=NOW), now=NOW).done
    ours_finds_it_sound(store)


@pytest.mark.parametrize("kept", ["old", "ours"])
def test_what_is_restored_is_indexed_as_it_was(store: Path, library: Library, kept: str) -> None:
    others = {"old", "ours", "mixed"} - {kept}
    for session in (*sorted(others), kept):
        apply(library, plan(library, "delete", [session], now=NOW), now=NOW)
    assert restore(library, kept, now=NOW).messages == len(CONTENTS)
    if kept == "old":
        assert old(CHECK, str(store)) == "sound\n"
    else:
        ours_finds_it_sound(store)
