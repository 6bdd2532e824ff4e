"""Killed in the middle of a backfill, the mirror is whole batches of what the logs say, and the next run ends it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import apsw
import pytest

from hermes_tui.mirror.backfill import Backfill
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.lease import LEASE_SECONDS

from .line_store import append, line_store

_PROGRAM = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from hermes_tui.mirror import backfill
    from hermes_tui.mirror.database import MirrorDatabase
    from tests.unit.mirror.line_store import line_store

    backfill.BATCH_BYTES = 2_000
    print("ready", flush=True)
    backfill.Backfill(MirrorDatabase(Path(sys.argv[2])), [line_store(Path(sys.argv[1]))]).run()
    """
)
LOGS, LINES = 60, 12


def _logs(folder: Path) -> None:
    folder.mkdir()
    for number in range(LOGS):
        lines = [{"text": f"word{number} common talk", "at": 100.0 * number + line} for line in range(LINES - 2)]
        append(folder, f"s{number}", *lines, {"tool": f"tool{number}", "at": 1.0}, {"tool": "common", "at": 2.0})


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_backfill_is_gone_on_with(tmp_path: Path, seed: int) -> None:
    folder, path = tmp_path / "logs", tmp_path / "own" / "mirror.sqlite"
    _logs(folder)
    root = Path(__file__).parents[3]
    child = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(folder), str(path)], stdout=subprocess.PIPE, cwd=root)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.02, 0.25))
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    database = MirrorDatabase(path)
    if database.state() == "ready":
        _holds_whole_batches(database)
    else:
        assert database.state() in ("missing", "other-format")
        database.set_aside()
    # The dead one's lease must run out first: a clock that is ahead stands for the wait.
    ahead = Backfill(database, [line_store(folder)], clock=lambda: time.time() + 2 * LEASE_SECONDS)
    assert ahead.run().phase == "done"
    assert database.rows("SELECT COUNT(*), SUM(offset = size) FROM logs") == [(LOGS, LOGS)]
    assert database.rows("SELECT COUNT(*) FROM texts") == [(LOGS * LINES,)]
    assert database.rows("SELECT COUNT(*) FROM talk WHERE talk MATCH 'common'") == [(LOGS * (LINES - 2),)]
    database.close()
    with apsw.Connection(str(path)) as check:
        for table in ("talk", "tools"):
            check.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")


def _holds_whole_batches(database: MirrorDatabase) -> None:
    """Every log that is there is there with all its talk: rows and checkpoint came in one transaction."""
    rows = database.rows(
        "SELECT logs.id, COUNT(texts.id), tools_offset >= logs.offset FROM logs LEFT JOIN texts ON texts.log = logs.id"
        " GROUP BY logs.id"
    )
    for _, texts, tools in rows:
        assert texts == (LINES if tools else LINES - 2)
