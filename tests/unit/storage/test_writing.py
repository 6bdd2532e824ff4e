"""The retrying writer: nothing lost, nothing doubled, nothing half done, also when it is killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hermes_tui.storage.errors import StoreUnreadable, WriteFailed, WriteLost
from hermes_tui.storage.reading import read_only
from hermes_tui.storage.writing import TRIES, RetryingWriter

SCHEMA = """
CREATE TABLE t(id INTEGER PRIMARY KEY, writer INTEGER, n INTEGER, words TEXT, UNIQUE(writer, n));
CREATE VIRTUAL TABLE f USING fts5(words, content='t', content_rowid='id');
CREATE TRIGGER ti AFTER INSERT ON t BEGIN INSERT INTO f(rowid, words) VALUES (new.id, new.words); END;
"""


def create(path: Path, journal: str = "wal") -> Path:
    with RetryingWriter(path, create=True, journal="wal" if journal == "wal" else "delete") as writer:
        writer.write(lambda raw: raw.execute(SCHEMA).fetchall())
    return path


def insert(raw: apsw.Connection, writer: int, n: int) -> int:
    raw.execute("INSERT INTO t(writer, n, words) VALUES (?, ?, ?)", (writer, n, f"word{n} by writer{writer}"))
    return raw.last_insert_rowid()


@pytest.fixture(params=["wal", "delete"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return create(tmp_path / "a.db", request.param)


@pytest.fixture
def holder(store: Path) -> Iterator[apsw.Connection]:
    """Another connection that holds the write lock. In this process: APSW keeps its locks apart."""
    raw = apsw.Connection(str(store))
    raw.execute("BEGIN IMMEDIATE")
    yield raw
    raw.close()


def test_a_new_file_is_ours_alone_and_in_the_mode_asked_for(store: Path) -> None:
    assert store.stat().st_mode & 0o777 == 0o600
    with read_only(store) as connection:
        assert connection.way in ("plain", "immutable")


def test_a_write_says_what_it_took(store: Path) -> None:
    with RetryingWriter(store) as writer:
        written = writer.write(lambda raw: insert(raw, 1, 1))
    assert (written.value, written.tries) == (1, 1)
    assert written.waited_s < 1


def test_the_journal_mode_of_a_file_stays_as_it_was(tmp_path: Path) -> None:
    for journal in ("wal", "delete"):
        store = create(tmp_path / f"{journal}.db", journal)
        header = store.read_bytes()[18:20]
        with RetryingWriter(store, create=True, journal="delete" if journal == "wal" else "wal") as writer:
            writer.write(lambda raw: insert(raw, 1, 1))
        assert store.read_bytes()[18:20] == header == (b"\2\2" if journal == "wal" else b"\1\1")
        assert os.listdir(tmp_path).count(f"{journal}.db-wal") == 0


def test_a_failing_callback_is_rolled_back_and_raised(store: Path) -> None:
    def half(raw: apsw.Connection) -> None:
        insert(raw, 1, 1)
        raise ValueError("enough")

    with RetryingWriter(store) as writer:
        with pytest.raises(ValueError, match="enough"):
            writer.write(half)
        with pytest.raises(WriteFailed, match="UNIQUE"):
            writer.write(lambda raw: [insert(raw, 1, 2), insert(raw, 1, 2)])
    with read_only(store) as connection:
        assert connection.one("SELECT count(*) FROM t") == (0,)


def test_all_tries_lost_is_a_typed_error_and_nothing_is_done(
    store: Path, holder: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_tui.storage.writing.TIMEOUT_MS", 1)
    calls: list[int] = []
    told: list[int] = []
    with RetryingWriter(store, pause=lambda: 0.001, on_wait=lambda tries, waited: told.append(tries)) as writer:
        with pytest.raises(WriteLost) as lost:
            writer.write(lambda raw: calls.append(1))
        holder.execute("ROLLBACK")
        assert writer.write(lambda raw: insert(raw, 1, 1)).tries == 1
    assert lost.value.tries == TRIES == 15
    assert told == list(range(1, 15))
    assert calls == []
    assert "Nothing was changed" in str(lost.value)


def test_a_lock_that_ends_is_waited_for(store: Path, holder: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_tui.storage.writing.TIMEOUT_MS", 1)
    pauses: list[int] = []

    def pause() -> float:
        pauses.append(1)
        if len(pauses) == 3:
            holder.execute("ROLLBACK")
        return 0.001

    with RetryingWriter(store, pause=pause) as writer:
        assert writer.write(lambda raw: insert(raw, 1, 1)).tries == 4


def test_tokenizers_are_registered_when_the_lock_ends(
    store: Path, holder: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes_tui.storage.writing.TIMEOUT_MS", 1)
    holder.execute("ROLLBACK")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("INSERT INTO t(writer, n, words) VALUES (9, 9, 'x')")
    pauses: list[int] = []

    def pause() -> float:
        pauses.append(1)
        if len(pauses) == 3:
            holder.execute("ROLLBACK")
        return 0.001

    def prepare(raw: apsw.Connection) -> None:
        plain = raw.fts5_tokenizer("unicode61", [])
        raw.register_fts5_tokenizer("ours", lambda connection, arguments: plain)

    with RetryingWriter(store, pause=pause, prepare=prepare) as writer:
        assert writer.write(lambda raw: insert(raw, 1, 1)).tries == 4


def test_a_commit_that_meets_a_reader_runs_the_callback_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes_tui.storage.writing.TIMEOUT_MS", 1)
    store = create(tmp_path / "a.db", "delete")
    with RetryingWriter(store) as writer:
        writer.write(lambda raw: [insert(raw, 0, n) for n in range(3)])
    reader = apsw.Connection(str(store))
    cursor = reader.execute("SELECT * FROM t")
    next(cursor)
    calls: list[int] = []

    def pause() -> float:
        cursor.close(True)
        return 0.001

    with RetryingWriter(store, pause=pause) as writer:
        written = writer.write(lambda raw: (calls.append(1), insert(raw, 1, 1)))
    assert (written.tries, len(calls)) == (2, 2)
    reader.close()
    with read_only(store) as connection:
        assert connection.one("SELECT count(*) FROM t WHERE writer = 1") == (1,)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreadable, match="no such file"):
        RetryingWriter(tmp_path / "none.db")
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"x" * 5000)
    with pytest.raises(StoreUnreadable, match="not an SQLite"), RetryingWriter(garbage) as writer:
        writer.write(lambda raw: insert(raw, 1, 1))
    if os.geteuid() == 0:
        foreign = create(tmp_path / "foreign.db")
        os.chown(foreign, 65534, 65534)
        with pytest.raises(WriteFailed, match="another user"):
            RetryingWriter(foreign)


def _write_many(path: str, number: int, count: int, results: multiprocessing.Queue[tuple[int, float]]) -> None:
    slowest = 0.0
    for n in range(count):
        with RetryingWriter(path) if n % 100 == 0 else _kept(path) as writer:
            slowest = max(slowest, writer.write(lambda raw, n=n: insert(raw, number, n)).waited_s)  # type: ignore[misc]
    results.put((number, slowest))


_KEPT: dict[str, RetryingWriter] = {}


class _kept:  # noqa: N801
    """The writer this process keeps, as an agent does."""

    def __init__(self, path: str) -> None:
        self._writer = _KEPT.setdefault(path, RetryingWriter(path)) if path not in _KEPT else _KEPT[path]

    def __enter__(self) -> RetryingWriter:
        return self._writer

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("journal", "count"), [("wal", 150), ("delete", 40), pytest.param("wal", 2000, marks=pytest.mark.slow)]
)
def test_eight_processes_lose_and_double_nothing(tmp_path: Path, journal: str, count: int) -> None:
    """Not 2,000 in DELETE mode: eight writers that never pause starve one of them past its 15 tries there."""
    store = create(tmp_path / "a.db", journal)
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[int, float]] = context.Queue()
    children = [context.Process(target=_write_many, args=(str(store), number, count, results)) for number in range(8)]
    for child in children:
        child.start()
    slowest = max(results.get(timeout=900)[1] for _ in children)
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert slowest < 17
    with read_only(store) as connection:
        assert connection.rows("SELECT writer, count(*), count(DISTINCT n) FROM t GROUP BY writer ORDER BY 1") == [
            (number, count, count) for number in range(8)
        ]
    raw = apsw.Connection(str(store))
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.execute("INSERT INTO f(f, rank) VALUES ('integrity-check', 1)")
    raw.close()


KILLED = textwrap.dedent("""
    import sys
    from hermes_tui.storage.writing import RetryingWriter
    sys.path.insert(0, sys.argv[3])
    from test_writing import insert
    with RetryingWriter(sys.argv[1]) as writer:
        n = 0
        print("ready", flush=True)
        while True:
            writer.write(lambda raw: [insert(raw, int(sys.argv[2]), n + i) for i in range(7)])
            n += 7
            print(n, flush=True)
""")


@pytest.mark.parametrize("times", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_any_point_leaves_whole_transactions(store: Path, times: int) -> None:
    script = store.parent / "killed.py"
    script.write_text(KILLED)
    seed = random.Random(7)
    for number in range(times):
        child = subprocess.Popen(
            [sys.executable, str(script), str(store), str(number), str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(seed.uniform(0, 0.06))
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().splitlines()
        child.wait()
        promised = int(said[-1]) if said else 0
        with read_only(store) as connection:
            (found,) = connection.one("SELECT count(*) FROM t WHERE writer = ?", (number,)) or (0,)
        assert found % 7 == 0, "half a transaction"
        assert promised <= found <= promised + 7, "what was committed is there, and at most one more"
    raw = apsw.Connection(str(store))
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.execute("INSERT INTO f(f, rank) VALUES ('integrity-check', 1)")
    raw.close()
