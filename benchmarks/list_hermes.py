"""Time the list of a Hermes store: the query alone, the rows of a page, and the command as a whole process.

    python benchmarks/list_hermes.py FOLDER      (a store made by make_hermes_store.py)

CPU time stands beside wall time, for other programs may be using the machine, and a large store is asked in two halves
side by side. The ratio is to the bare statement that puts all sessions in order, in CPU time and in the same run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hermes_tui.model import ListQuery
from hermes_tui.stores.hermes import newest_first
from hermes_tui.stores.hermes.newest_first import by_activity
from hermes_tui.stores.hermes.package import PACKAGE
from hermes_tui.stores.hermes.store import HermesStore

RUNS = 5
PAGE = 50


def processor_time() -> float:
    """Seconds of this process and of those it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(name: str, call: Callable[[], object], bare: float | None = None, runs: int = RUNS) -> float:
    """Print the best of some runs; answers CPU milliseconds."""
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), processor_time()
        call()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((processor_time() - cpu) * 1000)
    ratio = "" if bare is None else f"  {min(cpus) / bare:6.2f} of the bare statement"
    print(f"{name:28} {min(walls):8.1f} ms   cpu {min(cpus):8.1f} ms{ratio}")
    return min(cpus)


def fresh(folder: str) -> HermesStore:
    """The store as a new process finds it."""
    store = PACKAGE.open(Path(folder), {})[0]
    assert isinstance(store, HermesStore)
    return store


def order(store: HermesStore) -> list[newest_first.Newest]:
    """The order of a first page, without the counts of what it leaves out."""
    halves = store.asking.ask(newest_first.halves_of, PAGE * 3 // 2)
    assert halves is not None
    return newest_first.in_order(store.asking, halves, PAGE * 3 // 2)


def run(command: list[str], own: str) -> None:
    """Run the command with our own folder at a place; what it keeps there, it finds the next time."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "HERMES_TUI_HOME": own})


def run_anew(command: list[str]) -> None:
    """Run the command as the first one ever."""
    with tempfile.TemporaryDirectory() as own:
        run(command, own)


def main() -> None:
    folder = sys.argv[1]
    store = fresh(folder)
    ids = [entry.id for entry in store.listing(ListQuery(), PAGE).entries]
    command = [sys.executable, "-m", "hermes_tui", "--store", folder, "list", "--limit", str(PAGE), "--json"]
    bare = timed("bare statement", lambda: store.asking.ask(by_activity))
    timed("newest 75, in order alone", lambda: order(fresh(folder)), bare)
    timed("first page, ids", lambda: fresh(folder).listing(ListQuery(), PAGE), bare)
    timed("every id", lambda: fresh(folder).listing(ListQuery()), bare)
    timed("first letter of a filter", lambda: fresh(folder).listing(ListQuery(text="g")), bare, runs=1)
    store.listing(ListQuery(text="g"))
    timed("every id again", lambda: store.listing(ListQuery()), bare)
    timed("next letter of a filter", lambda: store.listing(ListQuery(text="ga")), bare)
    timed("rows of the page", lambda: store.rows(ids), bare)
    timed("status", store.status, bare)
    with tempfile.TemporaryDirectory() as kept:
        timed("the command, kept", lambda: run(command, kept))
    timed("the command, nothing kept", lambda: run_anew(command))


if __name__ == "__main__":
    main()
