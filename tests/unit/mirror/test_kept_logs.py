"""Answers of stores of logs that were kept: the same as fresh ones after every kind of change."""

from __future__ import annotations

import dataclasses
import os
import random
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any

import apsw
import pytest

from hermes_tui.library.mirroring import update_mirror, with_mirror
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.model import ListQuery, SessionId
from hermes_tui.stores.claude.store import ClaudeStore
from hermes_tui.stores.kept_answers import NothingKept
from hermes_tui.stores.logs import LogFile, LogStore

SAMPLES = {"codex": "codex", "claude": "claude/dot-claude", "dsh": "dsh/dot-dsh-raw"}
LATER_NS = 60_000_000_000


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes a minute ahead of the file system's."""
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() + LATER_NS)


def opened(home: Path) -> Library:
    """The store as a new process opens it, with the mirror beside it."""
    return with_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))


def store_of(library: Library, *, fresh: bool = False) -> LogStore:
    (store,) = library.stores
    assert isinstance(store, LogStore)
    if fresh:
        store.answers = NothingKept()
    store.clock = lambda: 1.8e9
    return store


def everything(store: LogStore) -> dict[str, Any]:
    """Every answer that may be kept, and what is made of kept ones."""
    queries = (
        ListQuery(),
        ListQuery(archived=True, children=True),
        ListQuery(order="tokens"),
        ListQuery(sessions=True),
    )
    found: dict[str, Any] = {
        f"{query} {limit}": store.listing(query, limit) for query in queries for limit in (2, None)
    }
    every = [entry.id for entry in found[f"{queries[-1]} None"].entries]
    found["rows"] = [dataclasses.replace(row, running=False) for row in store.rows(every)]
    found["status"] = dataclasses.replace(store.status(), fallbacks=())
    for grouping in ("model", "day", "session", "source", "cwd", "task"):
        found[f"usage {grouping}"] = store.usage(grouping, None, None, UTC)  # type: ignore[arg-type]
    found["since"] = store.usage("model", 1.77e9, None, UTC)
    found["requests"] = list(store.requests(None, 0.0))
    found["lineage"] = [store.lineage(one).nodes for one in every[:3]]
    found["heads"] = [list(store.transcript([one]).heads()) for one in every[:3]]
    found["ids"] = [store.resolve(one[:9]) for one in every[:3]]
    return found


def same(home: Path) -> dict[str, Any]:
    """The answers of two processes after each other, which are those of one that keeps nothing."""
    fresh = everything(store_of(opened(home), fresh=True))
    for _ in range(2):
        kept = everything(store_of(opened(home)))
        for name, answer in fresh.items():
            assert kept[name] == answer, name
    return fresh


@pytest.fixture(params=SAMPLES)
def home(request: pytest.FixtureRequest, sample: Callable[[str], Path]) -> Path:
    path = sample(SAMPLES[request.param])
    update_mirror(open_library(SourceOptions(paths=(str(path),)), os.environ))
    return path


def logs(home: Path) -> list[Path]:
    return [Path(log.path) for log in store_of(opened(home), fresh=True).logs()]


def test_what_was_kept_is_given_without_looking_into_a_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = same(home)
    store = store_of(opened(home))

    def refuse(*_: object) -> None:
        raise AssertionError("the index was made anew")

    monkeypatch.setattr(store, "peeks", refuse)
    monkeypatch.setattr("hermes_tui.mirror.source.MirrorSource.peeks", refuse)
    kept = everything(store)
    assert kept == fresh


def test_a_log_that_is_cut_and_grows_again_is_noticed(home: Path) -> None:
    before = same(home)
    whole = {log: log.read_bytes() for log in logs(home) if log.suffix == ".jsonl"}
    for log, data in whole.items():
        lines = data.splitlines(keepends=True)
        log.write_bytes(b"".join(lines[: len(lines) // 2]))
    half = same(home)
    assert half != before
    for log, data in whole.items():
        with log.open("ab") as file:
            file.write(data[log.stat().st_size :])
    assert same(home)["requests"] == before["requests"]


def test_a_log_that_comes_or_goes_is_noticed(home: Path) -> None:
    before = same(home)
    first = logs(home)[0]
    kept = first.read_bytes()
    first.unlink()
    without = same(home)
    assert without != before
    first.write_bytes(kept)
    same(home)


def test_a_replaced_log_is_noticed(home: Path) -> None:
    same(home)
    one = logs(home)[0]
    data = one.read_bytes()
    one.replace(one.with_name("aside"))
    one.write_bytes(data[: data.index(b"\n") + 1])
    same(home)


def test_a_name_that_changes_is_noticed(sample: Callable[[str], Path]) -> None:
    home = sample("codex")
    update_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))
    (home / "state_5.sqlite").unlink()
    before = same(home)
    thread = before["rows"][0].id
    with (home / "session_index.jsonl").open("a", encoding="utf-8") as file:
        file.write(f'{{"id": "{thread}", "thread_name": "Another name", "updated_at": "2026-03-01T00:00:00Z"}}\n')
    assert [row.title for row in same(home)["rows"] if row.id == thread] == ["Another name"]


def test_the_agents_own_mirror_is_part_of_the_evidence(sample: Callable[[str], Path]) -> None:
    home = sample("codex")
    update_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))
    before = same(home)
    connection = apsw.Connection(str(home / "state_5.sqlite"))
    connection.execute("UPDATE threads SET title = 'renamed', name = 'renamed'")
    assert {row.title for row in same(home)["rows"]} != {row.title for row in before["rows"]}
    connection.close()


def test_an_archived_thread_is_noticed(sample: Callable[[str], Path]) -> None:
    home = sample("codex")
    update_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))
    before = same(home)
    log = next(path for path in logs(home) if "archived_sessions" not in path.parts)
    log.replace(home / "archived_sessions" / log.name)
    assert same(home)[f"{ListQuery()} None"] != before[f"{ListQuery()} None"]


def test_what_stands_beside_a_sub_agents_log_is_part_of_the_evidence(sample: Callable[[str], Path]) -> None:
    home = sample("claude/dot-claude")
    update_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))
    store = store_of(opened(home), fresh=True)
    store.logs()
    beside = list(store.also_read())
    assert beside
    before = store._evidence()
    assert before is not None
    again = store._evidence()
    assert again is not None
    assert again.seen == before.seen
    Path(beside[0]).write_text('{"description": "Another purpose"}', encoding="utf-8")
    after = store._evidence()
    assert after is not None
    assert after.seen != before.seen


def test_relations_of_copies_are_not_worked_out_again_while_other_logs_change(
    sample: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = sample("claude/dot-claude")
    fresh = same(home)
    related = {row.id for row in fresh["rows"] if row.lineage_kind in ("fork", "branch")}
    assert related
    traced: list[str] = []
    whole = ClaudeStore._traced

    def counted(self: ClaudeStore, family: Any) -> Any:
        traced.extend(log.path for log in family)
        return whole(self, family)

    monkeypatch.setattr(ClaudeStore, "_traced", counted)
    alone = next(log for log in logs(home) if not any(str(log) in one.path for one in families_of(home)))
    with alone.open("ab") as file:
        file.write(alone.read_bytes().splitlines(keepends=True)[-1])
    assert traced == []
    kept = everything(store_of(opened(home)))
    assert traced == []
    assert {row.id for row in kept["rows"] if row.lineage_kind in ("fork", "branch")} == related
    copy = next(iter(families_of(home)))
    Path(copy.path).touch()
    traced.clear()
    same(home)
    assert copy.path in traced


def families_of(home: Path) -> list[LogFile]:
    """The logs that have lines in common with others."""
    store = store_of(opened(home))
    assert isinstance(store, ClaudeStore)
    store.answers.find = lambda question, seen: None  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClaudeStore, "_keep_families", lambda self, settled: None)
        patch.setattr(ClaudeStore, "_traced", lambda self, family: ())
        store.index()
    return [log for family in store._families for log in family]


def test_what_could_not_be_read_is_not_kept(home: Path, monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    def broken(*_: object) -> None:
        raise OSError(24, "Too many open files")

    library = open_library(SourceOptions(paths=(str(home),)), os.environ)
    store = store_of(library)
    with monkeypatch.context() as patch:
        patch.setattr(store, "peek", broken)
        store.listing(ListQuery())
    assert not (own_home / "own" / "cache" / "answers").exists()
    same(home)


def test_after_random_changes_kept_and_fresh_are_the_same(home: Path) -> None:
    dice = random.Random(11)
    for _ in range(12):
        for _ in range(dice.randrange(3)):
            change(home, dice)
        if dice.random() < 0.3:
            update_mirror(open_library(SourceOptions(paths=(str(home),)), os.environ))
        same(home)


def change(home: Path, dice: random.Random) -> None:
    """One log cut, grown, doubled, touched or taken away."""
    log = dice.choice(logs(home))
    data = log.read_bytes()
    match dice.randrange(5):
        case 0 if log.suffix == ".jsonl":
            lines = data.splitlines(keepends=True)
            log.write_bytes(b"".join(lines[: dice.randrange(1, len(lines) + 1)]))
        case 1 if log.suffix == ".jsonl":
            with log.open("ab") as file:
                file.write(dice.choice(data.splitlines(keepends=True)))
        case 2:
            log.with_name(log.name[:-7] + f"{dice.randrange(16):x}" + log.name[-6:]).write_bytes(data)
        case 3:
            os.utime(log, (1.77e9 + dice.random(), 1.77e9 + dice.random()))
        case _:
            if len(logs(home)) > 3:
                log.unlink()


def test_sessions_of_an_unsettled_store_are_read_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for log in logs(home):
        log.touch()
    store = store_of(open_library(SourceOptions(paths=(str(home),)), os.environ))
    ids = [entry.id for entry in store.listing(ListQuery(sessions=True)).entries]
    assert ids
    asked = store.ask_kept(store.walked(), "listing", "whole", ListQuery(sessions=True))
    assert asked.found() is None
    assert SessionId(ids[0]) in store.index().rows
