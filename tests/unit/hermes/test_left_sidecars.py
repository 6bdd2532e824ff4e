"""What a crash leaves beside a store stays as it is when the store is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hermes_tui.model import ListQuery

from .samples import copied, stores

CRASH = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("INSERT INTO sessions(id, source, started_at) VALUES ('in_the_wal', 'cli', 1772400000)")
os._exit(0)
"""


def test_an_empty_wal_index_is_not_filled(tmp_path: Path) -> None:
    home = copied(tmp_path)
    subprocess.run([sys.executable, "-c", CRASH, str(home / "state.db")], check=True)
    (home / "state.db-shm").write_bytes(b"")
    before = {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in home.iterdir()}
    assert before["state.db-wal"][0] > 0
    store = stores(home)["hermes/default"]
    assert "in_the_wal" in [entry.id for entry in store.listing(ListQuery()).entries]
    assert {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in home.iterdir()} == before
