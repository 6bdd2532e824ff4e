"""The gate: whatever is not in the store any more is in the trash, also when the power goes in the middle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import apsw
import pytest

from hermes_tui.library.cleanup import restore
from hermes_tui.library.sources import SourceOptions, open_library
from hermes_tui.library.trash import Trash
from hermes_tui.stores.hermes.session_db import SessionDB

NOW = 1_795_000_000.0
SESSIONS = 60
DELETE = """
    import sys
    from hermes_tui.library.cleanup import apply, plan
    from hermes_tui.library.sources import SourceOptions, open_library
    library = open_library(SourceOptions((sys.argv[1],)), {"HERMES_TUI_HOME": sys.argv[2]})
    print("ready", flush=True)
    for n in range(0, 60, 3):
        ids = [f"s{n + i:02d}" for i in range(3)]
        apply(library, plan(library, "delete", ids, now=1795000000.0), now=1795000000.0)
        print(n, flush=True)
"""


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 60))])
def test_killed_while_it_deletes(tmp_path: Path, seed: int) -> None:
    store, own = tmp_path / "state.db", tmp_path / "own"
    with SessionDB(store, create=True, clock=lambda: NOW - 1e6) as db:
        for n in range(SESSIONS):
            db.create_session("cli", f"s{n:02d}")
            for m in range(5):
                db.append_message(f"s{n:02d}", "user", f"words {n} {m} " + "x" * 500)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DELETE), str(store), str(own)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(random.Random(seed).uniform(0.0, 0.5))
    child.send_signal(signal.SIGKILL)
    child.communicate()
    raw = apsw.Connection(str(store))
    left = {row[0]: row[1] for row in raw.execute("SELECT session_id, count(*) FROM messages GROUP BY 1")}
    rows = {row[0] for row in raw.execute("SELECT id FROM sessions")}
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.close()
    assert set(left) == rows
    assert set(left.values()) <= {5}, "a session is there whole or not at all"
    library = open_library(SourceOptions((str(store),)), {"HERMES_TUI_HOME": str(own)})
    held = {identity for entry in Trash(library.locations.trash).entries() for identity in entry.holds}
    gone = {f"s{n:02d}" for n in range(SESSIONS)} - rows
    assert gone <= held, "what went is in the trash"
    for identity in sorted(gone):
        assert restore(library, identity, now=NOW).messages == 5
    raw = apsw.Connection(str(store))
    assert raw.execute("SELECT count(*), count(DISTINCT session_id) FROM messages").fetchall() == [(300, 60)]
    for table in ("messages_fts", "messages_fts_trigram"):
        raw.execute(f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)")
    raw.close()
