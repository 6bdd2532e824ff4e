"""Beside the real thing: two processes of hermes-agent 0.19.0 append while ours changes the same store.

The product is installed from the package index into an environment of its own the first time, under the user's cache
folder; HERMES_TUI_HERMES names the Python of another one. Nothing of it is imported here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hermes_tui.library.cleanup import ChangeResult, apply, plan, plan_prune, restore
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.model import ListQuery
from hermes_tui.stores.changing import PruneRule
from hermes_tui.stores.hermes.session_db import SessionDB
from hermes_tui.stores.hermes.tokenizer import register_tokenizers

VERSION = "0.19.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tui-tests"
SAMPLES = Path(__file__).parents[1] / "data" / "samples" / "hermes"
NOW = 1_795_000_000.0
MESSAGES = 400

pytestmark = [pytest.mark.beside, pytest.mark.slow]


def _install() -> tuple[str | None, str]:
    """The Python that has the product, or why there is none."""
    named = os.environ.get("HERMES_TUI_HERMES")
    if named:
        return named, ""
    place = CACHE / f"hermes-agent-{VERSION}"
    python = place / "bin" / "python"
    if (place / "installed").exists():
        return str(python), ""
    shutil.rmtree(place, ignore_errors=True)
    for command in (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "-q", f"hermes-agent=={VERSION}"],
        [str(python), "-c", "import hermes_state"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        if done.returncode:
            return None, f"hermes-agent {VERSION} cannot be installed: {' '.join(done.stderr.split())[-300:]}"
    (place / "installed").touch()
    return str(python), ""


@pytest.fixture(scope="module")
def product() -> str:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: the real program must reach no network")
    python, reason = _install()
    if python is None:
        pytest.skip(reason)
    return python


HEAD = """
    import json, sys, time, random
    from pathlib import Path
    import hermes_state
    if sys.argv[2] == "delete":
        # As on a file system that refuses WAL.
        hermes_state.apply_wal_with_fallback = lambda conn, **_: conn.execute("PRAGMA journal_mode=DELETE") and "delete"
    db = hermes_state.SessionDB(db_path=Path(sys.argv[1]))
"""
SETUP = """
    for n in range(24):
        db.create_session(f"victim-{n:02d}", "cli")
        for m in range(4):
            db.append_message(f"victim-{n:02d}", "user", f"pelican {n} {m}")
        db.append_message(f"victim-{n:02d}", "user", [{"type": "text", "text": f"structured pelican {n}"}])
        if n % 3:
            db.end_session(f"victim-{n:02d}", "cli_close")
    for name in ("a", "b"):
        db.create_session(name, "cli")
    db.close()
"""
WRITER = """
    name, count = sys.argv[3], int(sys.argv[4])
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        if n % 40 == 0:
            db.append_message(name, "user", [{"type": "text", "text": f"harbour {name} {n}"}])
        else:
            db.append_message(name, "user", f"harbour {name} {n}")
        if n % 50 == 0:
            db.update_token_counts(name, input_tokens=1, output_tokens=1, model="m")
        time.sleep(random.uniform(0, 0.01))
    db.close()
    print("done", flush=True)
"""
READER = """
    rows = db.list_sessions_rich(limit=1000, include_archived=True, include_children=True)
    found = db.search_messages("pelican", limit=1000)
    print(json.dumps({
        "sessions": {row["id"]: [row["message_count"], row["title"], row["ended_at"] is not None] for row in rows},
        "messages": {row["id"]: len(db.get_messages(row["id"])) for row in rows},
        "hits": len(found),
    }))
    db.close()
"""
UPDATER = """
    print("ready", flush=True)
    sys.stdin.readline()
    ids = [row["id"] for row in db.list_sessions_rich(limit=20)]
    for n in range(200):
        db.set_session_title(ids[n % len(ids)], f"title {n}")
        time.sleep(random.uniform(0, 0.01))
    db.close()
    print("done", flush=True)
"""


class Product:
    """Starts processes of the real program on one store, without a network and with a home of their own."""

    def __init__(self, python: str, store: Path, mode: str, home: Path) -> None:
        self._python, self._store, self._mode = python, store, mode
        variables = {"HOME": str(home), "HERMES_HOME": str(home / "hermes"), "PATH": os.environ["PATH"], "TZ": "UTC"}
        self._environ = variables
        (home / "hermes").mkdir(parents=True, exist_ok=True)

    def start(self, script: str, *words: str) -> subprocess.Popen[str]:
        isolate = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
        body = textwrap.dedent(HEAD) + textwrap.dedent(script)
        return subprocess.Popen(
            [*isolate, self._python, "-c", body, str(self._store), self._mode, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environ,
        )

    def run(self, script: str, *words: str) -> str:
        out, err = self.start(script, *words).communicate(timeout=300)
        assert "Traceback" not in err, err
        return out

    def together(self, *children: subprocess.Popen[str]) -> None:
        """Let them go at the same moment."""
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n", child.communicate()[1]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()


@pytest.fixture(params=["wal", "delete"])
def beside(request: pytest.FixtureRequest, product: str, tmp_path: Path) -> Iterator[tuple[Product, Path, Library]]:
    store = tmp_path / "state.db"
    made = Product(product, store, request.param, tmp_path / "their-home")
    made.run(SETUP)
    assert store.read_bytes()[18:20] == (b"\2\2" if request.param == "wal" else b"\1\1")
    yield made, store, open_library(SourceOptions((str(store),)), {"HERMES_TUI_HOME": str(tmp_path / "own")})
    assert store.read_bytes()[18:20] == (b"\2\2" if request.param == "wal" else b"\1\1"), "its journal mode stayed"


def good(result: ChangeResult) -> ChangeResult:
    assert not result.failures, result
    assert result.done, result
    return result


def test_changes_beside_two_writers(beside: tuple[Product, Path, Library]) -> None:
    product, _, library = beside
    writers = [product.start(WRITER, name, str(MESSAGES)) for name in ("a", "b")]
    product.together(*writers)
    rounds, retries, titles = 0, 0, 0
    while any(writer.poll() is None for writer in writers) or rounds == 0:
        one, other = f"victim-{rounds % 12:02d}", f"victim-{12 + rounds % 12:02d}"
        title = f"round {rounds}"
        for verb in ("archive", "unarchive"):
            retries += good(apply(library, plan(library, verb, [one], now=NOW), now=NOW)).retries  # type: ignore[arg-type]
        good(apply(library, plan(library, "rename", [one], now=NOW, title=title), now=NOW))
        apply(library, plan(library, "end", [one], now=NOW), now=NOW)
        deleted = good(apply(library, plan(library, "delete", [one, other], now=NOW), now=NOW))
        assert set(deleted.done) == {one, other}
        assert deleted.messages == 10
        good(restore(library, one, now=NOW))
        good(restore(library, other, now=NOW))
        rounds, titles = rounds + 1, titles + 1
    for writer in writers:
        out, err = writer.communicate(timeout=300)
        assert (writer.returncode, out) == (0, "done\n"), err
        assert "Traceback" not in err, err
        assert "ERROR" not in err, err
    theirs = json.loads(product.run(READER))
    assert len(theirs["sessions"]) == 26
    assert {theirs["messages"][name] for name in ("a", "b")} == {MESSAGES}
    assert {theirs["messages"][f"victim-{n:02d}"] for n in range(24)} == {5}
    # One library finds all; the other stops at the NUL only in trigrams: word search finds structured rows too.
    assert theirs["hits"] == 24 * 5
    (shown,) = library.stores
    ours = {row.id: row.message_count for row in shown.rows(list(theirs["sessions"]), conversation=False)}
    assert ours == {name: values[0] for name, values in theirs["sessions"].items()}
    product.run(CHECK)


CHECK = """
    raw = db._conn
    for table in ("messages_fts", "messages_fts_trigram"):
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    assert raw.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    db.close()
"""


AGE = """
    # By their own library: their update trigger indexes every row anew.
    db._conn.execute("UPDATE sessions SET started_at = 1700000000 WHERE id LIKE 'victim-%'")
    db._conn.execute("UPDATE messages SET timestamp = 1700000000 WHERE session_id LIKE 'victim-%'")
    db.close()
"""


def test_prune_beside_two_writers(beside: tuple[Product, Path, Library]) -> None:
    product, _, library = beside
    product.run(AGE)
    now = 1_700_000_000 + 200 * 86_400.0
    writers = [product.start(WRITER, name, str(MESSAGES)) for name in ("a", "b")]
    product.together(*writers)
    rule = PruneRule(90 * 86_400, ListQuery())
    pruned = good(apply(library, plan_prune(library, rule, now=now), now=now))
    assert len(pruned.done) == 16
    assert pruned.summary == {"never-ended": 8, "too-young": 2}
    for identity in pruned.done[::2]:
        good(restore(library, identity, now=now))
    for writer in writers:
        out, err = writer.communicate(timeout=300)
        assert (writer.returncode, out) == (0, "done\n"), err
        assert "Traceback" not in err, err
    theirs = json.loads(product.run(READER))
    assert len(theirs["sessions"]) == 2 + 8 + 8
    assert {theirs["messages"][name] for name in ("a", "b")} == {MESSAGES}
    product.run(CHECK)


def test_our_session_db_is_the_second_writer_on_a_cjk_store(product: str, tmp_path: Path) -> None:
    """0.19 cannot append to such a file itself; it renames while ours appends."""
    store = tmp_path / "state.db"
    shutil.copy(SAMPLES / "home" / "profiles" / "newlayout" / "state.db", store)
    theirs = Product(product, store, "wal", tmp_path / "their-home")
    updater = theirs.start(UPDATER)
    theirs.together(updater)
    with SessionDB(store) as db:
        session = db.create_session("cli", "ours")
        for n in range(200):
            db.append_message(session, "user", f"게이트웨이내부 {n} docker")
    out, err = updater.communicate(timeout=300)
    assert (updater.returncode, out) == (0, "done\n"), err
    raw = apsw.Connection(str(store))
    register_tokenizers(raw)
    raw.execute("INSERT INTO messages_fts_cjk(messages_fts_cjk, rank) VALUES ('integrity-check', 1)")
    assert raw.execute("SELECT count(*) FROM messages WHERE session_id = 'ours'").fetchall() == [(200,)]
    raw.close()
