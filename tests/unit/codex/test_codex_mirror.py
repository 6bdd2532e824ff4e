"""The agent's own mirror: used where it can be, reconciled with the folders, never believed against a rollout."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import apsw
import pytest

from hermes_tui.library.health import mirror_fallbacks
from hermes_tui.library.sources import SourceOptions, open_library
from hermes_tui.model import ListQuery, SessionId, StoreStatus
from hermes_tui.stores.codex.package import PACKAGE
from hermes_tui.stores.codex.store import CodexStore
from tests.unit.codex.conftest import SAMPLE, open_home
from tests.unit.codex.rollouts import OTHER, THREAD, meta, turn, write

LINES = [meta(), *turn(1, "a question", "an answer", 10)]


def change(home: Path, *statements: str) -> None:
    """Change the mirror, leaving one plain file."""
    connection = apsw.Connection(str(home / "state_5.sqlite"))
    connection.execute("PRAGMA journal_mode=DELETE")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def status_of(home: Path) -> StoreStatus:
    return open_home(home).status()


def codes(home: Path) -> set[str]:
    return {finding.code for finding in open_home(home).findings()}


def as_recorded(home: Path) -> None:
    """Give the rollouts the times they had when the mirror was written, and the mirror their true paths."""
    connection = apsw.Connection(str(home / "state_5.sqlite"))
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.execute("UPDATE threads SET rollout_path = replace(rollout_path, '/home/ana/.codex', ?)", (str(home),))
    for path, updated in connection.execute("SELECT rollout_path, updated_at_ms FROM threads"):
        os.utime(path, (updated / 1000, updated / 1000))
    connection.close()


def test_an_untouched_home_is_listed_without_opening_a_rollout(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_recorded(home)
    monkeypatch.setattr("hermes_tui.stores.codex.store.peek", lambda *_: pytest.fail("a rollout was read for the list"))
    store = open_home(home)
    # Of a reverted thread both files are looked at; it is not part of this.
    for path in home.rglob("*7211-7ff3*"):
        path.unlink()
    change(home, "DELETE FROM threads WHERE id LIKE '%cfa8ab'")
    listing = store.listing(ListQuery(order="started"))
    assert (listing.total, listing.left_out) == (14, {"archived": 1, "delegated": 1})


def test_the_status_names_where_the_list_comes_from(home: Path) -> None:
    status = status_of(home)
    assert (status.state, status.origin, status.sessions, status.lag, status.fallbacks) == (
        "ok",
        "agent-mirror",
        17,
        0,
        (),
    )


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(b"garbage" * 1000), "broken"),
        (lambda path: path.write_bytes(path.read_bytes()[:9000]), "broken"),
        (lambda path: path.write_bytes(b""), "broken"),
    ],
)
def test_without_a_mirror_the_folders_are_scanned(home: Path, spoil: object, reason: str) -> None:
    assert callable(spoil)
    spoil(home / "state_5.sqlite")
    status = status_of(home)
    assert (status.origin, status.sessions, status.fallbacks) == ("scan", 17, ((f"agent-mirror-{reason}", 1),))
    assert f"agent-mirror-{reason}" in codes(home)
    # Names survive in session_index.jsonl.
    titles = {
        row.title for row in open_home(home).rows([entry.id for entry in open_home(home).listing(ListQuery()).entries])
    }
    assert "Cart rounding" in titles


def test_an_agents_mirror_that_is_missing_is_not_said_to_be_ours(home: Path, tmp_path: Path) -> None:
    (home / "state_5.sqlite").unlink()
    environ = {"HERMES_TUI_HOME": str(tmp_path / "own"), "HOME": str(tmp_path)}
    library = open_library(SourceOptions(paths=(str(home),)), environ)
    library.store_named("codex").listing(ListQuery())  # type: ignore[union-attr]
    assert dict(mirror_fallbacks(library)) == {}


def test_in_the_middle_of_a_backfill_the_folders_are_scanned(home: Path) -> None:
    change(home, "UPDATE backfill_state SET status = 'running'", "DELETE FROM threads WHERE source = 'vscode'")
    status = status_of(home)
    assert (status.origin, status.sessions, status.fallbacks) == ("scan", 17, (("agent-mirror-mid-backfill", 1),))


def test_a_locked_mirror_is_no_reason_to_wait_for_ever(home: Path) -> None:
    holder = apsw.Connection(str(home / "state_5.sqlite"))
    holder.execute("PRAGMA journal_mode=DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        status = status_of(home)
    finally:
        holder.execute("ROLLBACK")
        holder.close()
    assert (status.origin, status.sessions, status.fallbacks) == ("scan", 17, (("agent-mirror-locked", 1),))


def test_rows_only_in_the_write_ahead_log_are_read_and_nothing_is_left(tmp_path: Path) -> None:
    whole = Path(shutil.copytree(SAMPLE, tmp_path / "whole"))
    writer = apsw.Connection(str(whole / "state_5.sqlite"))
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("UPDATE threads SET name = 'Only in the log' WHERE title = 'An old question'")
    home = tmp_path / "copied"
    shutil.copytree(whole, home)
    (home / "state_5.sqlite-shm").unlink()
    writer.close()
    before = sorted(path.name for path in home.iterdir())
    store = open_home(home)
    titles = [store.index().rows[entry.id].title for entry in store.listing(ListQuery(archived=True)).entries]
    assert "Only in the log" in titles
    assert sorted(path.name for path in home.iterdir()) == before


def test_a_row_without_a_file_is_shown_as_missing(home: Path, labels: dict[str, str]) -> None:
    for path in home.rglob(f"*{labels['image']}*"):
        path.unlink()
    store = open_home(home)
    row = store.rows([SessionId(labels["image"])])[0]
    assert (row.title, row.resumable, row.problems, row.origin) == (
        "What is in this picture?",
        False,
        1,
        "agent-mirror",
    )
    status = store.status()
    assert (status.state, status.sessions) == ("degraded", 17)
    assert "rollout-missing" in {finding.code for finding in status.findings}
    transcript = store.transcript([SessionId(labels["image"])])
    assert list(transcript.heads()) == []
    assert [problem.reason for problem in transcript.problems] == [
        "the rollout is gone: only its row in Codex' own mirror is left"
    ]
    recovery = store.recovery(SessionId(labels["image"]))
    assert (recovery.messages, len(recovery.ignored)) == ((), 1)


def test_a_file_without_a_row_is_scanned(home: Path) -> None:
    write(home, LINES)
    store = open_home(home)
    row = store.rows([SessionId(THREAD)])[0]
    assert (row.origin, row.title) == ("scan", "a question")
    status = store.status()
    assert (status.origin, status.lag, status.sessions) == ("agent-mirror", 1, 18)
    assert "agent-mirror-lag" in {finding.code for finding in status.findings}


def test_a_lying_row_does_not_reach_the_screen(home: Path, labels: dict[str, str]) -> None:
    thread = labels["exec"]
    lies = ", ".join(f"{column} = 'wrong'" for column in ("title", "preview", "cwd", "model", "git_branch"))
    change(home, f"UPDATE threads SET {lies}, tokens_used = 9 WHERE id = '{thread}'")
    row = open_home(home).rows([SessionId(thread)])[0]
    assert (row.title, row.preview, row.cwd, row.model, row.git_branch) == (
        "List the files here", "List the files here", "/home/ana/src/webshop", "gpt-5.5", "main",
    )  # fmt: skip
    assert "agent-mirror-stale" in codes(home)


def test_a_rollout_that_grew_after_its_row_is_shown_as_it_is(home: Path, labels: dict[str, str]) -> None:
    as_recorded(home)
    path = next(home.rglob(f"*{labels['exec']}*"))
    with path.open("ab") as file:
        file.write(("\n".join(turn(7, "one more", "said", 4_000_000, thread=labels["exec"])) + "\n").encode())
    store = open_home(home)
    listing = store.listing(ListQuery())
    assert listing.entries[0].id == labels["exec"]
    assert store.rows([listing.entries[0].id])[0].message_count == 10
    assert "agent-mirror-behind" in {finding.code for finding in store.status().findings}


def test_the_newest_generation_that_can_be_read_counts(home: Path) -> None:
    shutil.copy(home / "state_5.sqlite", home / "state_6.sqlite")
    change(home, "DELETE FROM threads")
    assert status_of(home).lag == 0
    assert "agent-mirror-newer" in codes(home)
    (home / "state_7.sqlite").write_bytes(b"not a database at all" * 99)
    status = status_of(home)
    assert (status.lag, status.origin, status.state) == (0, "agent-mirror", "degraded")
    told = next(finding for finding in status.findings if finding.code == "agent-mirror-broken")
    assert "generation 7 of the mirror is not used" in told.detail
    assert told.detail.endswith("the list is by generation 6")


def test_columns_of_another_version_are_no_reason_to_fail(home: Path) -> None:
    change(home, "ALTER TABLE threads RENAME COLUMN name TO label", "ALTER TABLE threads ADD COLUMN mood TEXT")
    store = open_home(home)
    assert store.status().origin == "agent-mirror"
    assert "Cart rounding" in {store.index().rows[e.id].title for e in store.listing(ListQuery()).entries}


def test_the_last_line_of_the_index_names_a_thread(tmp_path: Path) -> None:
    write(tmp_path, LINES)
    names = [
        {"id": THREAD, "thread_name": "old"},
        {"id": OTHER, "thread_name": "x"},
        {"id": THREAD, "thread_name": "new"},
    ]
    (tmp_path / "session_index.jsonl").write_text(
        "\n".join(map(json.dumps, names)) + '\n{"id": "torn', encoding="utf-8"
    )
    row = open_home(tmp_path).rows([SessionId(THREAD)])[0]
    assert (row.title, row.preview) == ("new", "a question")


def test_databases_may_lie_elsewhere(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "databases"
    elsewhere.mkdir()
    (home / "state_5.sqlite").rename(elsewhere / "state_5.sqlite")
    environ = {"CODEX_HOME": str(home), "CODEX_SQLITE_HOME": str(elsewhere)}
    assert [str(path) for path in PACKAGE.default_homes(environ, tmp_path)] == [str(home)]
    assert PACKAGE.open(home, environ)[0].status().origin == "agent-mirror"
    assert PACKAGE.open(home, {})[0].status().origin == "scan"
    (home / "config.toml").write_text(f'sqlite_home = "{elsewhere}"\n', encoding="utf-8")
    assert PACKAGE.open(home, {})[0].status().origin == "agent-mirror"


def test_commands_are_the_agents_own(home: Path, labels: dict[str, str]) -> None:
    store = open_home(home)
    thread = SessionId(labels["exec"])
    command = store.resume_command(store.rows([thread])[0])
    assert command.argv == ("codex", "resume", thread)
    assert command.cwd == "/home/ana/src/webshop"
    assert command.environment == (("CODEX_HOME", str(home)),)
    assert store.change_command("archive", thread) == f"CODEX_HOME={home} codex archive {thread}"
    assert store.change_command("delete", thread) == f"CODEX_HOME={home} codex delete {thread}"
    assert store.change_command("rename", thread, "x") is None
    usual = CodexStore(store.ref, default_home=True)
    assert usual.change_command("unarchive", thread) == f"codex unarchive {thread}"


def test_ids_by_prefix_and_by_segment(store: CodexStore, labels: dict[str, str]) -> None:
    assert store.resolve(labels["exec"]) == (labels["exec"],)
    assert store.resolve("01a22829-6457") == [labels["exec"]]
    assert len(store.resolve("01a22829-")) == 17
    assert store.resolve("01a22829-7286") == [labels["reverted"]]
    assert store.resolve("nothing") == []
