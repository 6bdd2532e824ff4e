"""What a person may change on a Hermes store: planned first, done as planned, and undone byte for byte."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_tui.cli.run import run_command
from hermes_tui.library import trash as trash_module
from hermes_tui.library.cleanup import apply, plan, plan_prune, restore
from hermes_tui.library.failures import AmbiguousId, Refused, UnknownId
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.library.trash import Trash
from hermes_tui.model import ListQuery
from hermes_tui.stores.changing import PruneRule
from hermes_tui.stores.hermes.dialects import Dialect
from hermes_tui.stores.hermes.tokenizer import register_tokenizers

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "hermes"
NOW = 1_795_000_000.0
DAY = 86_400.0
BOSS, KID, GRANDKID = "20260301_061330_1332a1", "20260301_061345_2c0146", "20260301_061427_d61aa9"
CHAIN = ["20260226_061323_ca264e", "20260226_154924_18b8ff", "20260227_012525_25165e", "20260227_110126_3031d0"]
PLAIN, RICH, GHOST = "20260225_061321_a5cd68", "20260305_061339_cb19b4", "20260309_083745_d69964"
"""RICH holds structured content, which begins with a NUL."""


@pytest.fixture(params=["default", "newlayout"])
def profile(request: pytest.FixtureRequest) -> str:
    """Inline indexes of schema 22, and external ones with a live CJK index of schema 30."""
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / "home", tmp_path / "home")
    for path in (tmp_path / "home").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return tmp_path / "home"


@pytest.fixture
def store(home: Path, profile: str) -> Path:
    return home / "state.db" if profile == "default" else home / "profiles" / profile / "state.db"


@pytest.fixture
def library(home: Path, profile: str, tmp_path: Path) -> Library:
    environ = {**os.environ, "HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    return open_library(SourceOptions((str(home),), (), (profile,)), environ)


def ask(store: Path, sql: str, *params: object) -> list[tuple[Any, ...]]:
    raw = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return raw.execute(sql, params).fetchall()
    finally:
        raw.close()


def change(store: Path, sql: str, *params: object) -> None:
    raw = apsw.Connection(str(store))
    raw.execute(sql, params).fetchall()
    raw.close()


def contents(store: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table that belongs to sessions; bytes, so that nothing is decoded."""
    tables = ("sessions", "messages", "session_model_usage", "state_meta")
    found = {}
    for table in tables:
        names = [row[0] for row in ask(store, "SELECT name FROM pragma_table_info(?)", table)]
        cells = ", ".join(f"typeof({n}), CAST({n} AS BLOB)" for n in names)
        found[table] = sorted(ask(store, f"SELECT {cells} FROM {table}"), key=repr)
    return found


OLD_LIBRARY = """
    import sqlite3, sys
    raw = sqlite3.connect(sys.argv[1], isolation_level=None)
    for table in ("messages_fts", "messages_fts_trigram"):
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    print("sound")
"""


def sound(store: Path) -> None:
    """The agent's own library finds the indexes exact, and so does ours with the tokens they hold.

    On a copy: the check is a write.
    """
    copy = store.with_name("copy-for-check.db")
    shutil.copy(store, copy)
    script = textwrap.dedent(OLD_LIBRARY)
    done = subprocess.run([sys.executable, "-c", script, str(copy)], capture_output=True, text=True, check=False)
    assert done.stdout == "sound\n", done.stderr
    raw = apsw.Connection(str(copy))
    register_tokenizers(raw)
    Dialect(stops=True).register(raw)
    for (table,) in raw.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%USING fts5%'").fetchall():
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    raw.close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{copy}{suffix}").unlink(missing_ok=True)


def cli(home: Path, profile: str, *words: str) -> tuple[int, Any]:
    out, err = io.StringIO(), io.StringIO()
    code = run_command(["--store", str(home), "--profile", profile, *words, "--json"], out, err)
    return code, json.loads(out.getvalue())


def folder(store: Path) -> dict[str, str]:
    files = sorted(path for path in store.parent.glob("**/*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_plan_and_a_dry_run_touch_nothing(home: Path, store: Path, library: Library, profile: str) -> None:
    before = folder(home / "state.db")
    planned = plan(library, "delete", [BOSS], now=NOW)
    assert planned.going[0].id == BOSS
    assert {one.cause for one in planned.going} == {"asked", "delegated"}
    assert len(planned.going) == 4
    plan_prune(library, PruneRule(90 * DAY, ListQuery()), now=NOW)
    assert folder(home / "state.db") == before


@pytest.mark.parametrize("session", [BOSS, KID, RICH, GHOST, PLAIN, CHAIN[1], CHAIN[3]])
def test_what_is_deleted_comes_back_byte_for_byte(
    home: Path, store: Path, library: Library, profile: str, session: str
) -> None:
    before, files = contents(store), folder(home / "state.db")
    sessions = ask(store, "SELECT count(*) FROM sessions")[0][0]
    result = apply(library, plan(library, "delete", [session], now=NOW), now=NOW)
    assert result.done[0] == session
    assert not result.failures
    assert ask(store, "SELECT count(*) FROM sessions")[0][0] == sessions - len(result.done)
    marks = ",".join("?" * len(result.done))
    for table in ("messages", "session_model_usage"):
        assert ask(store, f"SELECT 1 FROM {table} WHERE session_id IN ({marks})", *result.done) == []
    assert ask(store, f"SELECT 1 FROM sessions WHERE parent_session_id IN ({marks})", *result.done) == []
    sound(store)
    back = restore(library, session, now=NOW)
    assert set(back.done) == set(result.done)
    assert back.messages == result.messages
    assert contents(store) == before
    sound(store)
    databases = {str(path) for path in home.rglob("state.db")}
    assert {k: v for k, v in folder(home / "state.db").items() if k not in databases} == {
        k: v for k, v in files.items() if k not in databases
    }
    with pytest.raises(UnknownId):
        restore(library, session, now=NOW)


def test_the_counts_of_the_boss_are_the_products(library: Library, store: Path, profile: str) -> None:
    """facts/hermes.md section 10: 36 -> 32 sessions, usage rows 27 -> 23."""
    usage = ask(store, "SELECT count(*) FROM session_model_usage")[0][0]
    apply(library, plan(library, "delete", [BOSS], now=NOW), now=NOW)
    assert ask(store, "SELECT count(*) FROM sessions") == [(32,)]
    assert ask(store, "SELECT count(*) FROM session_model_usage") == [(usage - 4,)]


def test_a_part_of_a_conversation_is_deleted_with_a_warning_and_the_rest_is_a_root(
    library: Library, store: Path
) -> None:
    planned = plan(library, "delete", [CHAIN[1]], now=NOW)
    assert any("other 3 sessions stay" in warning for warning in planned.warnings)
    assert planned.going[0].orphaned == (CHAIN[2],)
    apply(library, planned, now=NOW)
    assert ask(store, "SELECT parent_session_id FROM sessions WHERE id = ?", CHAIN[2]) == [(None,)]
    whole = plan(library, "delete", [CHAIN[3]], now=NOW, whole=True)
    assert {one.id for one in whole.going} == {CHAIN[2], CHAIN[3]}


def test_side_files_go_and_come_back(home: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    library = open_library(SourceOptions((str(home),), (), ("default",)), environ)
    large = home / "sessions" / f"request_dump_{PLAIN}_20990101_000000_000001.json"
    large.write_bytes(os.urandom(3_000_000))
    before = folder(home / "state.db")
    result = apply(library, plan(library, "delete", [PLAIN], now=NOW), now=NOW)
    assert result.done == (PLAIN,)
    names = {path.name for path in (home / "sessions").iterdir()}
    assert names == {"20250101_090000_legacy.jsonl", "sessions.json"}
    restore(library, PLAIN, now=NOW)
    after = folder(home / "state.db")
    assert set(after) == set(before)
    assert after[str(large)] == before[str(large)]


def test_a_side_file_that_cannot_come_back_is_told_and_its_session_is_back(home: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    library = open_library(SourceOptions((str(home),), (), ("default",)), environ)
    (home / "sessions" / f"{PLAIN}.json").write_text("{}")
    apply(library, plan(library, "delete", [PLAIN], now=NOW), now=NOW)
    (home / "sessions").rename(home / "moved")
    (home / "sessions").write_text("no folder any more")
    back = restore(library, PLAIN, now=NOW)
    assert back.done == (PLAIN,)
    assert any("could not be written" in failure for failure in back.failures)


def test_long_and_broken_texts_come_back(store: Path, library: Library) -> None:
    register: Callable[[apsw.Connection], None] = register_tokenizers
    raw = apsw.Connection(str(store))
    register(raw)
    insert = "INSERT INTO messages(session_id, role, content, timestamp, reasoning) VALUES (?, ?, {}, ?, ?)"
    raw.execute(insert.format("?"), (GHOST, "assistant", "한글 \x01\x02 " * 60_000, 1e300 * 1e300, "r"))
    raw.execute(insert.format("CAST(x'61ff62' AS TEXT)"), (GHOST, "user", 5, None))
    raw.execute(insert.format("x'00ff'"), (GHOST, "user", -0.0, None))
    raw.close()
    before = contents(store)
    result = apply(library, plan(library, "delete", [GHOST], now=NOW), now=NOW)
    assert result.messages == 3, result.failures
    restore(library, GHOST, now=NOW)
    assert contents(store) == before


def test_clearing_keeps_the_session_and_its_tokens(store: Path, library: Library) -> None:
    before = contents(store)
    tokens = ask(store, "SELECT input_tokens FROM sessions WHERE id = ?", PLAIN)
    result = apply(library, plan(library, "clear", [PLAIN], now=NOW), now=NOW)
    assert result.messages > 0
    assert ask(store, "SELECT message_count, tool_call_count FROM sessions WHERE id = ?", PLAIN) == [(0, 0)]
    assert ask(store, "SELECT input_tokens FROM sessions WHERE id = ?", PLAIN) == tokens
    sound(store)
    again = plan(library, "clear", [PLAIN], now=NOW)
    assert [one.reason for one in again.kept] == ["no-messages"]
    restore(library, PLAIN, now=NOW)
    assert contents(store) == before


def test_archiving_takes_the_whole_conversation_both_ways(store: Path, library: Library) -> None:
    result = apply(library, plan(library, "archive", [CHAIN[2]], now=NOW), now=NOW)
    assert set(result.done) == set(CHAIN)
    again = plan(library, "archive", [CHAIN[0]], now=NOW)
    assert [one.reason for one in again.kept] == ["already-archived"] * 4
    result = apply(library, plan(library, "unarchive", [CHAIN[0]], now=NOW), now=NOW)
    assert set(result.done) == set(CHAIN)
    assert ask(store, "SELECT count(*) FROM sessions WHERE archived = 1") == [(3,)]


def test_the_first_end_of_a_session_stays(store: Path, library: Library) -> None:
    ended = ask(store, "SELECT ended_at, end_reason FROM sessions WHERE id = ?", PLAIN)
    planned = plan(library, "end", [PLAIN, BOSS], now=NOW)
    assert [(one.id, one.reason) for one in planned.kept] == [(PLAIN, "already-ended")]
    apply(library, planned, now=NOW)
    assert ask(store, "SELECT ended_at, end_reason FROM sessions WHERE id = ?", PLAIN) == ended
    assert ask(store, "SELECT ended_at, end_reason FROM sessions WHERE id = ?", BOSS) == [(NOW, "ended_by_user")]


def test_titles_follow_the_products_rules(store: Path, library: Library) -> None:
    def rename(session: str, title: str) -> str | None:
        apply(library, plan(library, "rename", [session], now=NOW, title=title), now=NOW)
        return str(ask(store, "SELECT title FROM sessions WHERE id = ?", session)[0][0])

    assert rename(PLAIN, "  two\t words\u200b \u202e ") == "two words"
    with pytest.raises(Refused, match="100"):
        rename(PLAIN, "x" * 101)
    with pytest.raises(Refused, match=PLAIN) as told:
        rename(BOSS, "two words")
    assert told.value.advice == "Free is: two words #2"
    first = ask(store, "SELECT title FROM sessions WHERE id = ?", CHAIN[0])[0][0]
    assert rename(CHAIN[3], first) == first
    assert ask(store, "SELECT title FROM sessions WHERE id = ?", CHAIN[0]) == [(None,)]


@pytest.mark.parametrize("table", ["compression_locks", "session_turn_leases"])
def test_what_an_agent_holds_is_left_alone(store: Path, library: Library, table: str) -> None:
    column = "session_id" if table == "compression_locks" else "conversation_id"
    change(store, f"CREATE TABLE IF NOT EXISTS {table}({column} TEXT PRIMARY KEY, holder, acquired_at, expires_at)")
    change(store, f"INSERT INTO {table} VALUES (?, 'pid=1:x', ?, ?)", CHAIN[0], NOW - 5, NOW + 60)
    reason = "compressing" if table == "compression_locks" else "leased"
    for verb in ("delete", "clear", "end"):
        planned = plan(library, verb, [CHAIN[3]], now=NOW)  # type: ignore[arg-type]
        assert [one.reason for one in planned.kept] == [reason]
    pruned = plan_prune(library, PruneRule(0, ListQuery(), end_idle=0), now=NOW)
    assert {one.id: one.reason for one in pruned.kept}[CHAIN[3]] == reason
    # Its time is over: nobody holds it any more.
    assert plan(library, "delete", [CHAIN[3]], now=NOW + 61).going


def test_a_session_that_grew_since_the_plan_is_taken_as_it_is_now(store: Path, library: Library) -> None:
    planned = plan(library, "delete", [PLAIN], now=NOW)
    change(store, "UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", PLAIN)
    before = contents(store)
    assert apply(library, planned, now=NOW).done == (PLAIN,)
    restore(library, PLAIN, now=NOW)
    assert contents(store) == before


def test_a_session_that_changes_all_the_time_is_kept(
    store: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan(library, "delete", [PLAIN], now=NOW)
    keep = trash_module.TrashWriter.keep

    def and_meanwhile(self: trash_module.TrashWriter, taken: Any) -> None:
        keep(self, taken)
        change(store, "UPDATE sessions SET message_count = message_count + 1 WHERE id = ?", PLAIN)

    monkeypatch.setattr(trash_module.TrashWriter, "keep", and_meanwhile)
    result = apply(library, planned, now=NOW)
    assert (result.done, [one.reason for one in result.kept]) == ((), ["changed"])
    assert ask(store, "SELECT count(*) FROM sessions WHERE id = ?", PLAIN) == [(1,)]
    assert Trash(library.locations.trash).entries() == []


def test_nothing_is_deleted_when_the_trash_cannot_be_written(store: Path, library: Library) -> None:
    library.locations.trash.parent.mkdir(parents=True)
    library.locations.trash.write_text("in the way")
    before = contents(store)
    result = apply(library, plan(library, "delete", [PLAIN], now=NOW), now=NOW)
    assert (result.done, [one.reason for one in result.kept]) == ((), ["not-written"])
    assert "trash" in result.failures[0]
    assert contents(store) == before


@pytest.mark.parametrize("block", ["zeroblob(8)", "x'ffffffffffff'", "x''"])
def test_a_damaged_index_stops_a_deletion_and_nothing_is_half_done(store: Path, library: Library, block: str) -> None:
    raw = apsw.Connection(str(store))
    raw.execute(f"UPDATE messages_fts_trigram_data SET block = {block} WHERE id = 10")
    raw.close()
    before = contents(store)
    result = apply(library, plan(library, "delete", [PLAIN], now=NOW), now=NOW)
    assert (result.done, [one.reason for one in result.kept]) == ((), ["damaged-store"])
    assert result.failures
    assert contents(store) == before
    assert apply(library, plan(library, "archive", [PLAIN], now=NOW), now=NOW).done


def test_prune_explains_every_session(home: Path, library: Library, store: Path, profile: str) -> None:
    code, answer = cli(home, profile, "prune", "--dry-run")
    assert code == 0
    assert len(answer["done"]) + len(answer["kept"]) == 36
    assert answer["summary"]["never-ended"] == 21
    assert any("never ended" in note for note in answer["notes"])
    assert answer["dry_run"] is True
    planned = plan_prune(library, PruneRule(90 * DAY, ListQuery(archived=True)), now=NOW)
    reasons = {one.reason for one in planned.kept}
    assert reasons == {"never-ended", "living-chain"}
    everything = plan_prune(library, PruneRule(90 * DAY, ListQuery(archived=True), end_idle=90 * DAY), now=NOW)
    assert len(everything.going) == 36
    result = apply(library, everything, now=NOW)
    assert len(result.done) == 36
    assert ask(store, "SELECT count(*) FROM sessions") == [(0,)]
    assert ask(store, "SELECT count(*) FROM messages") == [(0,)]
    sound(store)


def test_a_whole_prune_can_be_undone_one_by_one(store: Path, library: Library) -> None:
    before = contents(store)
    rule = PruneRule(90 * DAY, ListQuery(archived=True), end_idle=90 * DAY)
    done = apply(library, plan_prune(library, rule, now=NOW), now=NOW).done
    for identity in done:
        try:
            restore(library, identity, now=NOW)
        except UnknownId:
            # It came back with the session that delegated it.
            assert ask(store, "SELECT 1 FROM sessions WHERE id = ?", identity)
    assert contents(store) == before
    sound(store)


def test_end_idle_ends_what_stays(library: Library, store: Path) -> None:
    newest = ask(store, "SELECT max(timestamp) FROM messages")[0][0]
    now = newest + 40 * DAY
    planned = plan_prune(library, PruneRule(90 * DAY, ListQuery(), end_idle=30 * DAY), now=now)
    assert planned.going == ()
    assert len(planned.ending) == 21
    result = apply(library, planned, now=now)
    assert len(result.ended) == 21
    assert ask(store, "SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(0,)]
    assert ask(store, "SELECT count(*) FROM sessions") == [(36,)]


def test_prune_filters_narrow(home: Path, profile: str) -> None:
    _, answer = cli(home, profile, "prune", "--dry-run", "--source", "cron")
    assert {row["reason"] for row in answer["kept"]} == {"never-ended"}
    assert len(answer["done"]) == 1
    _, answer = cli(home, profile, "prune", "--dry-run", "--older-than", "5000d")
    assert answer["summary"] == {"too-young": 36}
    code, answer = cli(home, profile, "prune", "--dry-run", "--older-than", "soon")
    assert (code, "error" in answer) == (2, True)


def test_without_a_terminal_and_without_yes_nothing_is_done(home: Path, store: Path, profile: str) -> None:
    before = contents(store)
    for words in (["delete", PLAIN], ["rename", PLAIN, "x"], ["prune", "--end-idle", "1d"]):
        code, answer = cli(home, profile, *words)
        assert code == 1
        assert answer["error"]["code"] == "refused"
    assert contents(store) == before


def test_the_command_line_deletes_and_restores(
    home: Path, store: Path, profile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HERMES_TUI_HOME", str(tmp_path / "own"))
    before = contents(store)
    code, would = cli(home, profile, "delete", BOSS, "--dry-run")
    assert (code, len(would["done"]), would["dry_run"]) == (0, 4, True)
    code, did = cli(home, profile, "delete", BOSS, "--yes")
    assert (code, did["done"], did["messages"], did["kept"]) == (0, would["done"], would["messages"], [])
    code, lying = cli(home, profile, "restore")
    assert (code, sorted(lying["done"]), lying["messages"]) == (0, sorted(did["done"]), did["messages"])
    assert (lying["dry_run"], contents(store) == before) == (True, False)
    code, back = cli(home, profile, "restore", BOSS, "--yes")
    assert (code, sorted(back["done"])) == (0, sorted(did["done"]))
    assert contents(store) == before
    code, lying = cli(home, profile, "restore")
    assert (code, lying["done"]) == (0, [])
    code, answer = cli(home, profile, "restore", BOSS, "--yes")
    assert (code, answer["error"]["code"]) == (1, "unknown-id")
    code, answer = cli(home, profile, "delete", "20260401_120000", "--yes")
    assert (code, answer["error"]["code"]) == (1, "ambiguous-id")


def test_a_store_of_the_future_is_not_deleted_from(store: Path, library: Library) -> None:
    change(store, "UPDATE schema_version SET version = 99")
    planned = plan(library, "delete", [PLAIN], now=NOW)
    assert [one.reason for one in planned.kept] == ["future-schema"]
    assert plan(library, "archive", [PLAIN], now=NOW).going


def test_a_store_of_somebody_else_is_not_changed(store: Path, library: Library) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(store, 65534, 65534)
    for verb in ("rename", "archive", "end", "delete", "clear"):
        planned = plan(library, verb, [PLAIN], now=NOW, title="x")  # type: ignore[arg-type]
        assert [one.reason for one in planned.kept] == ["other-owner"]


def test_old_trash_is_thrown_away(library: Library) -> None:
    apply(library, plan(library, "delete", [PLAIN], now=NOW), now=NOW)
    trash = Trash(library.locations.trash)
    assert trash.size() > 0
    apply(library, plan(library, "delete", [GHOST], now=NOW), now=NOW + 31 * DAY)
    assert [entry.asked for entry in trash.entries()] == [(GHOST,)]


def test_a_title_that_is_in_use_by_now_gets_a_number(store: Path, library: Library) -> None:
    title = ask(store, "SELECT title FROM sessions WHERE id = ?", BOSS)[0][0]
    apply(library, plan(library, "delete", [BOSS], now=NOW), now=NOW)
    apply(library, plan(library, "rename", [PLAIN], now=NOW, title=title), now=NOW)
    back = restore(library, BOSS, now=NOW)
    assert ask(store, "SELECT title FROM sessions WHERE id = ?", BOSS) == [(f"{title} #2",)]
    assert any("#2" in one for one in back.failures)


def test_a_child_deleted_before_its_parent_finds_it_again(store: Path, library: Library) -> None:
    before = contents(store)
    apply(library, plan(library, "delete", [KID], now=NOW), now=NOW)
    apply(library, plan(library, "delete", [BOSS], now=NOW), now=NOW)
    restore(library, BOSS, now=NOW)
    restore(library, KID, now=NOW)
    assert contents(store) == before


def test_stores_of_other_agents_are_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_TUI_HOME", str(tmp_path / "own"))
    for agent, place in (("codex", "codex"), ("claude", "claude/dot-claude"), ("dsh", "dsh")):
        shutil.copytree(SAMPLES.parent / place, tmp_path / agent)
        environ = {**os.environ, "HERMES_TUI_HOME": str(tmp_path / "own")}
        opened = open_library(SourceOptions((str(tmp_path / agent),)), environ)
        assert opened.stores, agent
        ids = [entry.id for store in opened.stores for entry in store.listing(ListQuery(sessions=True)).entries]
        for verb in ("delete", "archive", "rename", "end", "clear"):
            with pytest.raises(Refused, match="never written") as told:
                plan(opened, verb, ids[:1], now=NOW, title="x")  # type: ignore[arg-type]
            assert told.value.advice
        with pytest.raises(Refused, match="never written"):
            plan_prune(opened, PruneRule(DAY, ListQuery()), now=NOW)
    # Answers may be kept; nothing went into the trash.
    assert not (tmp_path / "own" / "data").exists()


def test_an_id_in_two_stores_is_asked_for(home: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "HERMES_TUI_HOME": str(tmp_path / "own")}
    both = open_library(SourceOptions((str(home),)), environ)
    with pytest.raises(AmbiguousId):
        plan(both, "delete", [PLAIN], now=NOW)
    assert plan(both, "delete", [f"hermes/default:{PLAIN}"], now=NOW).going
