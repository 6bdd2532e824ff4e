"""Where DSH homes lie, what is one, what a walk finds, and what the demo writes."""

from __future__ import annotations

import os
import shutil
from datetime import UTC
from pathlib import Path

import pytest

from hermes_tui.model import ListQuery, SessionId, Usage
from hermes_tui.stores.dsh.demo_session import project_folder
from hermes_tui.stores.dsh.discovery import log_generation
from hermes_tui.stores.dsh.package import PACKAGE
from hermes_tui.stores.registry import default_places, open_places
from tests.unit.dsh.conftest import SAMPLES, Log, log_name, opened, put, rows_of, zipped


def test_home_follows_the_environment(tmp_path: Path) -> None:
    assert PACKAGE.default_homes({}, tmp_path) == [tmp_path / ".dsh"]
    assert PACKAGE.default_homes({"DSH_HOME": ""}, tmp_path) == [tmp_path / ".dsh"]
    assert PACKAGE.default_homes({"DSH_HOME": "/elsewhere"}, tmp_path) == [Path("/elsewhere")]
    roots = PACKAGE.default_homes({"DSH_SESSION_ROOT": "/w/.sessions"}, tmp_path)
    assert roots == [tmp_path / ".dsh", Path("/w/.sessions")]


@pytest.mark.parametrize("name", ["dot-dsh", "dot-dsh-raw", "dot-dsh-v0", "dot-dsh-v0-raw", "sqlite-synthetic"])
def test_samples_are_recognised(name: str) -> None:
    assert PACKAGE.recognise(SAMPLES / name)


def test_a_session_root_alone_is_a_store(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "dot-dsh-raw" / "sessions", tmp_path / "roots")
    assert PACKAGE.recognise(tmp_path / "roots")
    (store,) = PACKAGE.open(tmp_path / "roots", {})
    assert store.listing(ListQuery()).total == 1


@pytest.mark.parametrize(
    "path",
    [
        "sessions/2026/11/29/rollout-2026-11-29T16-35-31-x.jsonl",
        "projects/-home-ana-code/0.jsonl",
        "sessions/--w--/x/notes.txt",
        "sessions/a/b/session.jsonl",
        "state.db",
        "sessions.db",
    ],
)
def test_other_stores_are_not_taken_for_one(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(b"{}\n")
    assert not PACKAGE.recognise(tmp_path)
    assert not PACKAGE.recognise(tmp_path / path)
    assert not PACKAGE.recognise(tmp_path / "nowhere")
    assert list(PACKAGE.open(tmp_path, {})) == []


def test_sessions_without_a_folder_are_found(tmp_path: Path) -> None:
    Log(cwd=...).talk().write(tmp_path, project="_no-cwd")
    assert PACKAGE.recognise(tmp_path)
    assert rows_of(opened(tmp_path))["session-a"].cwd is None


@pytest.mark.parametrize("project", ["----", "kept by hand"])
def test_project_folders_of_any_name_are_walked(tmp_path: Path, project: str) -> None:
    Log("session-b").talk().write(tmp_path)
    Log(cwd="/").talk().write(tmp_path, project=project)
    (tmp_path / "sessions" / "empty" / "session-c").mkdir(parents=True)
    assert rows_of(opened(tmp_path)).keys() == {"session-a", "session-b"}


def test_a_home_and_its_session_root_are_one_store(tmp_path: Path) -> None:
    Log().talk().write(tmp_path / "home")
    (tmp_path / "link").symlink_to(tmp_path / "home" / "sessions")
    environ = {"DSH_HOME": str(tmp_path / "home"), "DSH_SESSION_ROOT": str(tmp_path / "link")}
    places, _ = default_places(environ, tmp_path)
    (store,) = open_places(places, environ)
    assert store.ref.path == str(tmp_path / "home")
    assert store.listing(ListQuery()).total == 1


def test_sessions_of_the_topmost_folder_make_a_store(tmp_path: Path) -> None:
    assert project_folder("/") == "----"
    Log(cwd="/").talk().write(tmp_path, project="----")
    assert PACKAGE.recognise(tmp_path)


def test_folder_of_a_session_comes_from_its_header_not_its_path(tmp_path: Path) -> None:
    Log(cwd="/a/b").talk().write(tmp_path, project="--a-b--")
    Log("session-b", cwd="/a-b").talk().write(tmp_path, project="--a-b--")
    rows = rows_of(opened(tmp_path))
    assert {row.cwd for row in rows.values()} == {"/a/b", "/a-b"}


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        ("/home/ana/노트/연습 v1.0", "--home-ana-~B178~D2B8-~C5F0~C2B5~0020v1.0--"),
        ("/a//b", "--a-b--"),
        ("C:\\w\\x", "--C-w-x--"),
        (None, "_no-cwd"),
        ("/" + "x" * 400, f"--{'x' * 251}--"),
    ],
)
def test_project_folders_are_written_as_the_real_program_does(cwd: str | None, folder: str) -> None:
    assert project_folder(cwd) == folder


@pytest.mark.parametrize(
    ("name", "generation"),
    [
        ("session.jsonl", 0), ("session.jsonl.zstd", 0), ("session.v1.jsonl", 1), ("session.v4.jsonl.zstd", 4),
        ("session.v12.jsonl", 12), ("session.v0.jsonl", None), ("session.v04.jsonl", None), ("session.v4.json", None),
        ("Session.v4.jsonl", None), ("session.v4.jsonl.zstd.tmp", None), ("session.lock", None),
    ],
)  # fmt: skip
def test_generation_is_told_by_the_name(name: str, generation: int | None) -> None:
    assert log_generation(name) == generation


def test_links_and_loops_are_walked_once(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    root = tmp_path / "sessions"
    (root / "--again--").symlink_to(root / "--w-a--")
    (root / "--loop--").mkdir()
    (root / "--loop--" / "session-loop").symlink_to(root)
    (root / "--gone--").symlink_to(tmp_path / "nowhere")
    (root / "--file--").write_text("no folder")
    store = opened(tmp_path)
    assert set(rows_of(store)) == {"session-a"}
    assert store.status().state == "ok"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    closed = tmp_path / "sessions" / "--closed--"
    closed.mkdir(mode=0)
    assert [finding.code for finding in opened(tmp_path).status().findings] == ["unreadable-folder"]


def test_a_home_without_sessions_is_empty(tmp_path: Path) -> None:
    (tmp_path / "storages" / "session_projcache").mkdir(parents=True)
    assert PACKAGE.recognise(tmp_path)
    (store,) = PACKAGE.open(tmp_path, {})
    assert (store.status().state, store.status().sessions) == ("empty", 0)


def test_refused_sessions_are_a_finding_of_their_own(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    path = Log("session-b", version=9).talk().write(tmp_path)
    torn = Log("session-c").talk("one", "eins").bytes()
    put(tmp_path, torn + b'{"half', log_name(4), folder="session-c")
    store = opened(tmp_path)
    told = {finding.code: finding for finding in store.findings()}
    assert set(told) == {"session-format-unsupported", "unreadable-lines"}
    assert told["session-format-unsupported"].paths == (str(path),)
    assert "version 9" in told["session-format-unsupported"].detail


def test_a_log_that_grows_is_seen(tmp_path: Path) -> None:
    log = Log().talk("one", "eins")
    put(tmp_path, zipped(log.bytes()), log_name(4, zipped=True))
    store = opened(tmp_path)
    stamp = store.stamp()
    assert rows_of(store)["session-a"].message_count == 2
    put(tmp_path, zipped(log.talk("two", "zwei").bytes()), log_name(4, zipped=True))
    assert store.stamp() != stamp
    assert rows_of(store)["session-a"].message_count == 4


def test_changes_are_left_to_the_agent(tmp_path: Path) -> None:
    Log().talk().write(tmp_path)
    store = opened(tmp_path)
    assert store.change_command("delete", SessionId("session-a")) is None
    assert "dsh web" in (store.change_command("rename", SessionId("session-a"), "x") or "")


def test_demo_is_believable(tmp_path: Path) -> None:
    now = 1_800_000_000.0
    PACKAGE.write_demo(tmp_path, now)
    assert PACKAGE.recognise(tmp_path)
    store = opened(tmp_path, now)
    rows = rows_of(store)
    assert len(rows) == 8
    assert store.findings() == ()
    assert all(row.problems == 0 and row.title and (row.last_active_at or 0) < now for row in rows.values())
    assert {row.lineage_kind for row in rows.values()} == {"root", "delegation"}
    assert sum(row.compactions for row in rows.values()) == 1
    assert any("深色" in (row.title or "") for row in rows.values())
    total = sum((row.usage or Usage() for row in rows.values()), Usage())
    report = store.usage("model", None, None, UTC)
    assert sum((part.spend.usage for part in report.sums), Usage()) == total
    missed = [request for request in store.requests(None) if request.usage.hit_rate == 0]
    assert len(missed) >= 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.rglob("*.zstd"))


def test_demo_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        PACKAGE.write_demo(tmp_path / name, 1_800_000_000.0)
    first = {path.relative_to(tmp_path / "one"): path.read_bytes() for path in (tmp_path / "one").rglob("*.zstd")}
    second = {path.relative_to(tmp_path / "two"): path.read_bytes() for path in (tmp_path / "two").rglob("*.zstd")}
    assert first == second
