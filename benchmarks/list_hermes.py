"""Time the list of a Hermes store: the query alone, the rows of a page, and the command as a whole process.

    python benchmarks/list_hermes.py FOLDER      (a store made by make_hermes_store.py)

CPU time stands beside wall time, for other programs may be using the machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC
from pathlib import Path

from hermes_tui.model import ListQuery
from hermes_tui.stores.hermes.package import PACKAGE

RUNS = 5
PAGE = 50


def timed(name: str, call: Callable[[], object]) -> None:
    walls, cpus = [], []
    for _ in range(RUNS):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    print(f"{name:28} {min(walls):8.1f} ms   cpu {min(cpus):8.1f} ms")


def main() -> None:
    folder = sys.argv[1]
    store = PACKAGE.open(Path(folder), {})[0]
    ids = [entry.id for entry in store.listing(ListQuery(), PAGE).entries]
    command = [sys.executable, "-m", "hermes_tui", "--store", folder, "list", "--limit", str(PAGE), "--json"]
    timed("first page, ids", lambda: store.listing(ListQuery(), PAGE))
    timed("every id", lambda: store.listing(ListQuery()))
    timed("rows of the page", lambda: store.rows(ids))
    timed("status", store.status)
    timed("usage by model", lambda: store.usage("model", None, None, UTC))
    timed("the command", lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


if __name__ == "__main__":
    main()
