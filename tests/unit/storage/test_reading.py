"""Every state a database can be found in: what is seen, and that the folder is as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from hermes_tui.storage import reading
from hermes_tui.storage.errors import (
    DeadlineExceeded,
    Interrupted,
    QueryFailed,
    SchemaDrift,
    StoreBusy,
    StoreDamaged,
    StoreUnreadable,
)
from hermes_tui.storage.reading import Interrupts, read_only
from hermes_tui.storage.stamps import file_stamp

NOBODY = 65534
ROWS = 84


def make(path: Path, journal: str = "wal", rows: int = ROWS) -> apsw.Connection:
    raw = apsw.Connection(str(path))
    raw.execute(f"PRAGMA journal_mode={journal}").fetchall()
    raw.execute("CREATE TABLE m(id INTEGER PRIMARY KEY, content TEXT)")
    with raw:
        raw.executemany("INSERT INTO m(content) VALUES (?)", [(f"message {n} " + "x" * 200,) for n in range(rows // 2)])
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with raw:
        raw.executemany("INSERT INTO m(content) VALUES (?)", [(f"message {n} " + "x" * 200,) for n in range(rows // 2)])
    return raw


def wal_closed(folder: Path) -> Path:
    make(folder / "s.db").close()
    return folder / "s.db"


def wal_open(folder: Path) -> Path:
    """As beside a running agent: -wal with bytes and -shm. The holder lives in the folder's name."""
    _HELD.append(make(folder / "s.db"))
    return folder / "s.db"


def wal_crashed(folder: Path) -> Path:
    """A -wal with frames and no -shm: the machine went off."""
    scratch = folder.parent / (folder.name + "-scratch")
    scratch.mkdir()
    raw = make(scratch / "s.db")
    for suffix in ("", "-wal"):
        shutil.copy(scratch / f"s.db{suffix}", folder / f"s.db{suffix}")
    raw.close()
    return folder / "s.db"


def wal_crashed_with_shm(folder: Path) -> Path:
    """The agent was killed and the machine went on."""
    scratch = folder.parent / (folder.name + "-scratch")
    scratch.mkdir()
    raw = make(scratch / "s.db")
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(scratch / f"s.db{suffix}", folder / f"s.db{suffix}")
    raw.close()
    return folder / "s.db"


def wal_garbage(folder: Path) -> Path:
    """A -wal that holds no valid frame."""
    path = wal_closed(folder)
    (folder / "s.db-wal").write_bytes(b"x" * 5000)
    return path


def wal_empty(folder: Path) -> Path:
    path = wal_closed(folder)
    (folder / "s.db-wal").write_bytes(b"")
    return path


def wal_left_shm(folder: Path) -> Path:
    path = wal_closed(folder)
    (folder / "s.db-shm").write_bytes(b"\0" * 32768)
    return path


def rollback(folder: Path) -> Path:
    make(folder / "s.db", "delete").close()
    return folder / "s.db"


def rollback_persisted(folder: Path) -> Path:
    """A journal whose header is zeroed is not hot."""
    make(folder / "s.db", "persist").close()
    assert (folder / "s.db-journal").stat().st_size
    return folder / "s.db"


def rollback_hot(folder: Path) -> Path:
    path = rollback(folder)
    script = """
        import os, sys, apsw
        raw = apsw.Connection(sys.argv[1])
        raw.execute("PRAGMA cache_size=1; PRAGMA synchronous=FULL").fetchall()
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("UPDATE m SET content = 'half written ' || content || hex(randomblob(500))")
        os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=False)
    assert (folder / "s.db-journal").stat().st_size > 512
    return path


_HELD: list[apsw.Connection] = []


@pytest.fixture(autouse=True)
def _let_go() -> object:
    yield
    while _HELD:
        _HELD.pop().close()


STATES: list[tuple[Callable[[Path], Path], str]] = [
    (wal_closed, "immutable"),
    (wal_empty, "immutable"),
    (wal_left_shm, "immutable"),
    (wal_crashed, "private-index"),
    (wal_crashed_with_shm, "plain"),
    (wal_garbage, "private-index"),
    (wal_open, "plain"),
    (rollback, "plain"),
    (rollback_persisted, "plain"),
    (rollback_hot, "copy"),
]


def listing(folder: Path) -> list[tuple[str, int, int, int]]:
    """A reader of a live WAL file notes its place in the -shm; that is memory, and its time moves."""
    found = [(f.name, f.stat()) for f in sorted(folder.iterdir())]
    return [(n, s.st_ino, s.st_size, 0 if n.endswith("-shm") else s.st_mtime_ns) for n, s in found]


@pytest.mark.parametrize(("state", "way"), STATES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_a_read_sees_everything_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: Callable[[Path], Path], way: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # Of this test alone: other tests and programs make private copies too.
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    folder = tmp_path / "hash # and ? and % in the name"
    folder.mkdir()
    path = state(folder)
    before = listing(folder)
    for _ in range(3):
        with read_only(path) as connection:
            assert connection.way == way
            assert connection.one("SELECT count(*) FROM m") == (ROWS,)
            assert connection.rows("SELECT id FROM m WHERE content LIKE 'half%'") == []
            assert [row[0] for row in connection.iterate("SELECT id FROM m")] == list(range(1, ROWS + 1))
            assert [f.code for f in connection.findings] == (["write-cut-off"] if way == "copy" else [])
        assert listing(folder) == before
    assert not list(temporary.iterdir())


def read_as_somebody_else(path: Path) -> str:
    """Way and count as a user sees them who may read the folder and not write it. A fork: nothing to import there."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            with read_only(path) as connection:
                told = f"{connection.way} {connection.one('SELECT count(*) FROM m')}"
        except Exception as error:  # noqa: BLE001 - told to the parent
            told = repr(error)
        os.write(send, told.encode())
        os._exit(0)
    os.close(send)
    with os.fdopen(receive) as said:
        told = said.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.parametrize(
    ("state", "way"),
    [(s, "copy" if s is rollback_hot else w) for s, w in STATES],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_a_folder_that_may_only_be_read(tmp_path: Path, state: Callable[[Path], Path], way: str) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = state(folder)
    for file in folder.iterdir():
        file.chmod(0o644)
    folder.chmod(0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == folder.owner() and parent != Path(parent.anchor):
            parent.chmod(parent.stat().st_mode | 0o011)
    before = listing(folder)
    try:
        assert read_as_somebody_else(path) == f"{way} ({ROWS},)"
    finally:
        folder.chmod(0o755)
    assert listing(folder) == before


def test_a_symbolic_link_is_read_with_what_lies_beside_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = wal_crashed(tmp_path / "real")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    with read_only(link) as connection:
        assert connection.one("SELECT count(*) FROM m") == (ROWS,)
    assert sorted(os.listdir(tmp_path)) == ["link.db", "real", "real-scratch"]


def test_zero_bytes_is_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"")
    with read_only(tmp_path / "s.db") as connection:
        assert connection.way == "empty"
        assert connection.tables() == {}
        with pytest.raises(SchemaDrift):
            connection.rows("SELECT * FROM m")
    assert os.listdir(tmp_path) == ["s.db"]


@pytest.mark.parametrize("size", [3, 50, 5000])
def test_what_is_no_database_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "s.db").write_bytes(b"not a database at all " * 300)
    os.truncate(tmp_path / "s.db", size)
    with pytest.raises(StoreUnreadable, match="not an SQLite database"), read_only(tmp_path / "s.db") as connection:
        connection.tables()
    assert os.listdir(tmp_path) == ["s.db"]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_file_cut_short_is_said_to_be_damaged(tmp_path: Path, journal: str) -> None:
    make(tmp_path / "s.db", journal).close()
    os.truncate(tmp_path / "s.db", 8192)
    with pytest.raises(StoreDamaged, match="damaged"), read_only(tmp_path / "s.db") as connection:
        connection.rows("SELECT * FROM m")
    assert os.listdir(tmp_path) == ["s.db"]


def test_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreadable, match="no such file"), read_only(tmp_path / "none.db"):
        pass
    with pytest.raises(StoreUnreadable, match="not a file"), read_only(tmp_path):
        pass
    os.mkfifo(tmp_path / "pipe.db")
    with pytest.raises(StoreUnreadable, match="not a file"), read_only(tmp_path / "pipe.db"):
        pass
    assert os.listdir(tmp_path) == ["pipe.db"]


def test_nothing_can_be_written_through_it(tmp_path: Path) -> None:
    for state in (wal_closed, wal_crashed, wal_open, rollback, rollback_hot):
        folder = tmp_path / state.__name__
        folder.mkdir()
        path = state(folder)
        with read_only(path) as connection, pytest.raises((QueryFailed, StoreUnreadable)):
            connection.rows("DELETE FROM m")


def test_a_commit_between_two_statements_is_seen(tmp_path: Path) -> None:
    path = wal_closed(tmp_path)
    with read_only(path) as connection:
        assert connection.way == "immutable"
        told: list[str] = []
        connection.prepare(lambda raw: told.append("prepared"))
        assert connection.one("SELECT count(*) FROM m") == (ROWS,)
        writer = apsw.Connection(str(path))
        writer.execute("INSERT INTO m(content) VALUES ('new')")
        assert connection.one("SELECT count(*) FROM m") == (ROWS + 1,)
        assert connection.way == "plain"
        assert told == ["prepared", "prepared"]
        writer.close()
        assert connection.one("SELECT count(*) FROM m") == (ROWS + 1,)


def test_a_commit_while_rows_are_given_is_said(tmp_path: Path) -> None:
    path = wal_closed(tmp_path)
    with read_only(path) as connection:
        rows = connection.iterate("SELECT a.id FROM m a, m b")
        next(rows)
        writer = apsw.Connection(str(path))
        writer.execute("INSERT INTO m(content) VALUES ('new')")
        with pytest.raises(StoreBusy, match="changed"):
            list(rows)
        assert len(list(connection.iterate("SELECT a.id FROM m a, m b"))) == (ROWS + 1) ** 2
        writer.close()


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_text_that_is_not_utf8_comes_with_replacement(tmp_path: Path, encoding: str) -> None:
    raw = apsw.Connection(str(tmp_path / "s.db"))
    raw.execute(f"PRAGMA encoding='{encoding}'")
    raw.execute("CREATE TABLE m(id INTEGER PRIMARY KEY, content TEXT)")
    raw.executemany("INSERT INTO m VALUES (?, ?)", [(n, f"row {n}") for n in range(600)])
    raw.execute("UPDATE m SET content = x'00ff41' WHERE id = 3")
    bad = "x'61ff'" if encoding == "UTF-8" else "x'610000d8'"
    raw.execute(f"UPDATE m SET content = CAST({bad} AS TEXT) WHERE id IN (5, 500)")
    raw.close()
    with read_only(tmp_path / "s.db") as connection:
        expected: list[tuple[object, ...]] = [(n, f"row {n}") for n in range(600)]
        expected[3] = (3, b"\x00\xffA")
        expected[5] = (5, "a\ufffd")
        expected[500] = (500, "a\ufffd")
        sql = "SELECT id, content FROM m WHERE id >= ? ORDER BY id;"
        assert connection.rows(sql, (0,)) == expected
        assert list(connection.iterate(sql, (0,))) == expected
        assert connection.rows(sql, (501,)) == expected[501:]


def test_what_goes_wrong_has_its_own_error(tmp_path: Path) -> None:
    path = wal_closed(tmp_path)
    with read_only(path) as connection:
        with pytest.raises(SchemaDrift, match="no such column"):
            connection.rows("SELECT absent FROM m")
        with pytest.raises(SchemaDrift, match="no such table"):
            connection.rows("SELECT 1 FROM absent")
        with pytest.raises(QueryFailed, match="malformed JSON"):
            connection.rows("SELECT json_extract('{', '$')")
        with pytest.raises(QueryFailed, match="syntax"):
            connection.rows("SELEKT")
        assert connection.columns("m") == {"id", "content"}
        assert connection.columns("absent") == frozenset()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_every_statement_has_a_deadline(tmp_path: Path) -> None:
    path = wal_closed(tmp_path)
    with read_only(path, deadline_s=0.2) as connection:
        begun = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            connection.rows(ENDLESS)
        assert time.monotonic() - begun < 2
        assert connection.one("SELECT 1") == (1,)


def test_another_thread_can_end_it(tmp_path: Path) -> None:
    path = wal_closed(tmp_path)
    interrupts = Interrupts()
    with read_only(path, interrupts=interrupts) as connection:
        threading.Timer(0.2, interrupts.interrupt).start()
        begun = time.monotonic()
        with pytest.raises(Interrupted):
            connection.rows(ENDLESS)
        assert time.monotonic() - begun < 2
        with pytest.raises(Interrupted):
            connection.rows("SELECT 1")
    with read_only(path, interrupts=interrupts) as connection:
        assert connection.one("SELECT 1") == (1,)


def test_a_passing_io_error_is_tried_again_on_the_same_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wal_open(tmp_path)
    failures = [apsw.IOError("disk I/O error"), apsw.IOError("disk I/O error")]
    everything = reading.Statement.everything

    def failing(self: reading.Statement) -> list[reading.Row]:
        if failures:
            raise failures.pop()
        return everything(self)

    monkeypatch.setattr(reading.Statement, "everything", failing)
    with read_only(path) as connection:
        raw = connection.raw
        assert connection.one("SELECT count(*) FROM m") == (ROWS,)
        assert connection.raw is raw
        failures.extend([apsw.IOError("disk I/O error")] * 4)
        with pytest.raises(StoreUnreadable, match="I/O"):
            connection.one("SELECT count(*) FROM m")


def test_a_locked_file_is_waited_for_and_then_said(tmp_path: Path) -> None:
    path = rollback(tmp_path)
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreBusy, match="another program held it"), read_only(path, busy_ms=100):
        pass
    threading.Timer(0.2, lambda: holder.execute("ROLLBACK")).start()
    with read_only(path) as connection:
        assert connection.one("SELECT count(*) FROM m") == (ROWS,)
    holder.close()


def test_a_lock_that_comes_before_a_tokenizer_is_registered_is_said(tmp_path: Path) -> None:
    path = rollback(tmp_path)
    with read_only(path, busy_ms=100) as connection:
        holder = apsw.Connection(str(path))
        holder.execute("BEGIN EXCLUSIVE")

        def register(raw: apsw.Connection) -> None:
            raw.fts5_tokenizer("unicode61", [])

        with pytest.raises(StoreBusy, match="another program held it"):
            connection.prepare(register)
        holder.execute("ROLLBACK")
        connection.prepare(register)
        assert connection.one("SELECT count(*) FROM m") == (ROWS,)
        holder.close()


def test_readers_in_many_threads_beside_a_writer(tmp_path: Path) -> None:
    """Ways with and without locks are kept apart, so that no close drops another connection's locks."""
    path = wal_crashed(tmp_path)
    stop = threading.Event()
    errors: list[BaseException] = []
    counts: list[int] = []

    def read() -> None:
        while not stop.is_set():
            try:
                with read_only(path) as connection:
                    counts.append((connection.one("SELECT count(*) FROM m") or (0,))[0])
            except Exception as error:  # noqa: BLE001 - told by the test
                errors.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    script = """
        import sys, apsw
        for n in range(60):
            raw = apsw.Connection(sys.argv[1])
            raw.set_busy_timeout(5000)
            raw.execute("INSERT INTO m(content) VALUES ('new')")
            raw.close()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=True)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ROWS <= min(counts) <= max(counts) <= ROWS + 60
    with read_only(path) as connection:
        assert connection.one("SELECT count(*) FROM m") == (ROWS + 60,)
        assert connection.one("PRAGMA integrity_check") == ("ok",)


def test_a_stamp_changes_with_a_write_and_not_with_a_read(tmp_path: Path) -> None:
    path = wal_crashed(tmp_path)
    before = file_stamp(path)
    with read_only(path) as connection:
        connection.rows("SELECT * FROM m")
    assert file_stamp(path) == before
    apsw.Connection(str(path)).execute("INSERT INTO m(content) VALUES ('new')")
    assert file_stamp(path) != before


def test_opening_and_one_question_takes_about_a_millisecond(tmp_path: Path) -> None:
    for state in (wal_closed, rollback, wal_crashed):
        folder = tmp_path / state.__name__
        folder.mkdir()
        path = state(folder)
        begun = time.perf_counter()
        for _ in range(50):
            with read_only(path) as connection:
                connection.one("SELECT count(*) FROM m")
        # Ten times the figure: other work shares the machine.
        assert (time.perf_counter() - begun) / 50 < 0.010
