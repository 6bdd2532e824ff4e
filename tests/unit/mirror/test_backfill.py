"""The mirror is a copy of the logs: never ahead, never twice, and right again after whatever happened to them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import apsw
import pytest

from hermes_tui.mirror import backfill
from hermes_tui.mirror.backfill import Backfill, Progress
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.lease import Lease
from hermes_tui.mirror.source import MirrorSource
from hermes_tui.mirror.words import index_query, index_words
from hermes_tui.model import SessionId
from hermes_tui.storage.errors import StoreUnreadable
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.stores.log_source import LogFile, ScanSource

from .line_store import LineStore, append, line_store


@pytest.fixture
def database(tmp_path: Path) -> MirrorDatabase:
    return MirrorDatabase(tmp_path / "own" / "mirror.sqlite")


@pytest.fixture
def store(tmp_path: Path) -> LineStore:
    return line_store(tmp_path / "logs")


def fill(database: MirrorDatabase, *stores: LineStore) -> Progress:
    return Backfill(database, stores).run()


def found(database: MirrorDatabase, query: str, table: str = "talk") -> list[tuple[str, int]]:
    """(file name, line) of what the index proposes, newest first."""
    rows = database.rows(
        f"SELECT path, line FROM {table} JOIN texts ON texts.id = {table}.rowid JOIN logs ON logs.id = texts.log"
        f" WHERE {table} MATCH ? ORDER BY {table}.rowid DESC",
        (index_query(parse_query(query)),),
    )
    return [(Path(path).stem, line) for path, line in rows]


def counts(database: MirrorDatabase) -> tuple[int, int]:
    return database.rows("SELECT (SELECT COUNT(*) FROM logs), (SELECT COUNT(*) FROM texts)")[0]  # type: ignore[return-value]


class TestProjection:
    def test_words_are_found_newest_first_and_tool_outputs_apart(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path
    ) -> None:
        logs = tmp_path / "logs"
        append(logs, "a", {"text": "rotate the gateway log", "at": 100.0}, {"tool": "gateway ok", "at": 101.0})
        append(logs, "b", {"text": "게이트웨이내부 log", "at": 200.0}, {"text": "gateway again", "at": 50.0})
        assert fill(database, store).phase == "done"
        assert found(database, "gateway") == [("a", 1), ("b", 2)]
        assert found(database, "웨이내부") == [("b", 1)]
        assert found(database, "부") == [("b", 1)]
        assert found(database, "gateway", "tools") == [("a", 2)]

    def test_appended_lines_are_added_and_nothing_twice(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path
    ) -> None:
        logs = tmp_path / "logs"
        append(logs, "a", {"text": "one", "at": 1.0, "in": 3}, {"tool": "first", "at": 2.0})
        fill(database, store)
        append(logs, "a", {"text": "two", "at": 3.0, "in": 4}, {"tool": "second", "at": 4.0})
        fill(database, store)
        fill(database, store)
        assert counts(database) == (1, 4)
        assert found(database, "two") == [("a", 3)]
        assert found(database, "second", "tools") == [("a", 4)]

    def test_a_line_more_of_a_large_log_is_read_here(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Starting processes takes longer than reading what is new."""
        logs = tmp_path / "logs"
        append(logs, "a", *({"text": f"line {number}", "at": float(number)} for number in range(100)))
        fill(database, store)
        monkeypatch.setattr(backfill, "SMALL_BYTES", 1_000)
        monkeypatch.delattr(backfill, "ProcessPoolExecutor")
        append(logs, "a", {"text": "more", "at": 200.0})
        assert (tmp_path / "logs" / "a.jsonl").stat().st_size > 1_000
        fill(database, store)
        assert found(database, "more") == [("a", 101)]

    def test_a_torn_tail_waits_for_its_rest(self, database: MirrorDatabase, store: LineStore, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        path = append(logs, "a", {"text": "whole", "at": 1.0}, torn='{"text": "half a li')
        fill(database, store)
        assert counts(database) == (1, 1)
        with path.open("a") as file:
            file.write('ne", "at": 2.0}\n')
        fill(database, store)
        assert found(database, "half") == [("a", 2)]
        assert counts(database) == (1, 2)

    @pytest.mark.parametrize("how", ["shrunk", "replaced", "rewritten in place", "gone"])
    def test_a_log_that_is_not_what_it_was_is_projected_anew(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path, how: str
    ) -> None:
        logs = tmp_path / "logs"
        path = append(logs, "a", {"text": "older words", "at": 1.0}, {"text": "more", "at": 2.0})
        append(logs, "b", {"text": "beside", "at": 1.0})
        fill(database, store)
        if how == "shrunk":
            path.write_bytes(path.read_bytes().split(b"\n", 1)[0] + b"\n")
        elif how == "replaced":
            other = append(logs, "c", {"text": "newer text", "at": 5.0}, {"text": "longer than before", "at": 6.0})
            os.replace(other, path)
        elif how == "rewritten in place":
            path.write_text('{"text": "newer text", "at": 5.0}\n{"text": "and longer than it was", "at": 6.0}\n')
        else:
            path.unlink()
        fill(database, store)
        assert ("a", 1) not in found(database, "older") or how == "shrunk"
        assert found(database, "more") == []
        expected = {"shrunk": (2, 2), "replaced": (2, 3), "rewritten in place": (2, 3), "gone": (1, 1)}
        assert counts(database) == expected[how]

    def test_stopping_keeps_whole_batches_and_a_later_run_goes_on(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("hermes_tui.mirror.backfill.BATCH_BYTES", 40)
        for number in range(6):
            append(tmp_path / "logs", f"s{number}", {"text": f"word{number}", "at": float(number)})
        stop = threading.Event()
        seen: list[Progress] = []

        def watch(progress: Progress) -> None:
            seen.append(progress)
            if progress.logs_done == 2:
                stop.set()

        assert Backfill(database, (store,), watch, stop).run().phase == "stopped"
        assert counts(database)[0] == 2
        assert fill(database, store).phase == "done"
        assert counts(database) == (6, 6)
        assert seen[0].logs_todo == 6

    @pytest.mark.parametrize("sizes", [[], [5], [300], [10] * 40, [300, 1, 1, 90, 2], [0, 0]])
    def test_the_last_batches_are_small_and_none_is_lost(self, sizes: list[int], store: LineStore) -> None:
        jobs = [
            backfill._Job(store, LogFile(f"/{place}", SessionId(str(place)), size, 0, 0, 0, False), None)
            for place, size in enumerate(sizes)
        ]
        batches = list(backfill._batches(jobs, 100, 20, 2))
        assert [job for batch in batches for job in batch] == jobs
        assert all(batches)
        weights = [sum(job.log.size for job in batch) for batch in batches]
        assert all(weight <= 100 for weight, batch in zip(weights, batches, strict=True) if len(batch) > 1)
        if len(sizes) == 40:
            assert weights[0] == 100
            assert weights == sorted(weights, reverse=True)
            assert weights[-1] <= 20

    @pytest.mark.parametrize("other_too", [False, True])
    def test_a_mirror_of_stale_words_starts_over_where_all_its_stores_are_filled_anew(
        self, database: MirrorDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_too: bool
    ) -> None:
        stores = [line_store(tmp_path / name) for name in ("one", "two")]
        for name in ("one", "two"):
            append(tmp_path / name, "a", {"text": f"word {name}", "at": 1.0}, {"text": "more", "at": 2.0})
        fill(database, *stores)
        for _ in range(5):
            path = append(tmp_path / "one", "b", {"text": "short lived", "at": 9.0})
            fill(database, *stores)
            path.unlink()
            fill(database, *stores)
        assert database.rows("SELECT value FROM meta WHERE key = 'stale'") == [("5",)]
        before = database.rows("SELECT id FROM logs")
        monkeypatch.setattr("hermes_tui.mirror.ledger.MOST_STALE", 1)
        run = stores if other_too else stores[:1]
        assert fill(database, *run).phase == "done"
        assert counts(database) == (2, 4)
        assert len(found(database, "word")) == 2
        after = database.rows("SELECT id FROM logs")
        assert set(after).isdisjoint(before) is other_too, "no id comes twice"

    def test_other_processes_read_and_give_the_same(
        self, database: MirrorDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real thing with worker processes is in the tests of the agents' stores; here one at a time is enough."""
        with database.writer() as writer:
            other = Lease()
            assert other.take(writer)
            store = line_store(tmp_path / "logs")
            append(tmp_path / "logs", "a", {"text": "x", "at": 1.0})
            assert fill(database, store).phase == "waiting"
            assert counts(database) == (0, 0)
            other.give_back(writer)
        assert fill(database, store).phase == "done"

    def test_a_lease_runs_out(self, database: MirrorDatabase) -> None:
        now = [1_000.0]
        with database.writer() as writer:
            dead, next_one = Lease(lambda: now[0]), Lease(lambda: now[0])
            assert dead.take(writer)
            assert not next_one.take(writer)
            now[0] += 60
            assert next_one.take(writer)
            assert not dead.take(writer)


class TestSource:
    def test_summaries_come_from_the_mirror_while_it_is_current(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path
    ) -> None:
        append(tmp_path / "logs", "a", {"text": "x", "at": 1.0, "in": 7, "title": "T"})
        fill(database, store)
        source = MirrorSource(database, store, ScanSource(store.fold))
        LineStore.folds = 0
        ((_, summary),) = source.summaries(store.logs())
        assert (summary.row.message_count, summary.row.title, summary.row.origin) == (1, "T", "mirror")
        assert summary.requests[0].usage.input == 7
        assert LineStore.folds == 0
        assert source.lag(store.logs()) == 0

    def test_a_log_that_grew_is_right_before_the_mirror_is(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path
    ) -> None:
        append(tmp_path / "logs", "a", {"text": "x", "at": 1.0, "in": 7})
        fill(database, store)
        append(tmp_path / "logs", "a", {"text": "y", "at": 2.0, "in": 5})
        append(tmp_path / "logs", "new", {"text": "z", "at": 3.0, "in": 1})
        source = MirrorSource(database, store, ScanSource(store.fold))
        got = {log.session_id: summary for log, summary in source.summaries(store.logs())}
        assert got["a"].requests[0].usage.input == 12
        assert got["a"].row.origin == "scan"
        assert got["new"].row.message_count == 1
        assert source.lag(store.logs()) == 2
        assert source.fallbacks == {"behind": 1, "not-in-mirror": 1}

    def test_a_broken_mirror_costs_nothing_but_time(
        self, database: MirrorDatabase, store: LineStore, tmp_path: Path
    ) -> None:
        append(tmp_path / "logs", "a", {"text": "x", "at": 1.0, "in": 7})
        fill(database, store)
        for side in ("-wal", "-shm"):
            Path(f"{database.path}{side}").unlink(missing_ok=True)
        database.close()
        database.path.write_bytes(b"no database at all" * 100)
        assert database.state() == "corrupt"
        source = MirrorSource(database, store, ScanSource(store.fold))
        ((_, summary),) = source.summaries(store.logs())
        assert summary.requests[0].usage.input == 7
        assert source.fallbacks["unreadable"] == 1
        moved = database.set_aside()
        assert moved is not None
        assert moved.exists()
        assert database.state() == "missing"
        fill(database, store)
        assert database.state() == "ready"


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("plain words", "plain words"),
            ("게이트 log", " 게이 이트 트  log"),
            ("수정youer服务", " 수정 정 youer 服务 务 "),
            ("가", " 가 "),
        ],
    )
    def test_cjk_runs_become_pairs_and_their_last_letter(self, text: str, words: str) -> None:
        assert index_words(text) == words

    @pytest.mark.parametrize(
        ("query", "asked"),
        [
            ("docker deploy*", '("docker" AND "deploy" *)'),
            ("게이트", '("게이" AND "이트")'),
            ("부", '"부" *'),
            ("docker NOT stale", '"docker"'),
            ("회의 OR log", '("회의" OR "log")'),
            ("***", None),
        ],
    )
    def test_a_query_asks_for_no_less_than_it_means(self, query: str, asked: str | None) -> None:
        assert index_query(parse_query(query)) == asked


def test_a_mirror_that_breaks_while_it_is_filled_is_told_and_its_lease_given_back(
    database: MirrorDatabase, store: LineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path / "logs", "a", {"text": "rotate", "at": 100.0})

    def broken(*_: object) -> dict[str, object]:
        raise apsw.CorruptError("database disk image is malformed")

    with monkeypatch.context() as patched:
        patched.setattr("hermes_tui.mirror.backfill.known_logs", broken)
        with pytest.raises(StoreUnreadable, match="malformed"):
            fill(database, store)
    assert fill(database, store).phase == "done"
