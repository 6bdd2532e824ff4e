"""How long a write waits when several processes write to one file: random wait between tries against a fixed one.

Two loads: short writes one after another, and writers that hold the lock for over a second. Prints p50, p99 and the
slowest write in milliseconds, the tries beyond the first, and the writes that were lost. The waits differ only in
``pause``; everything else is the retrying writer as it is.

    python benchmarks/writer_contention.py [--processes 8] [--writes 500] [--holds 3]
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Final

import apsw

from hermes_tui.storage.errors import WriteLost
from hermes_tui.storage.writing import WAIT_S, JournalMode, RetryingWriter, jitter

FIXED_S: Final = sum(WAIT_S) / 2
"""The mean of the random wait."""
HOLD_S: Final = 1.2
"""Longer than SQLite's own timeout of one second, so that our tries are needed."""

Result = tuple[list[float], int, int]
"""Seconds each write took, tries beyond the first, writes lost."""


def fixed() -> float:
    return FIXED_S


PAUSES: Final[dict[str, Callable[[], float]]] = {"jitter": jitter, "fixed": fixed}


def work(path: str, number: int, writes: int, hold: float, pause: str, start: float, results: Queue[Result]) -> None:
    took: list[float] = []
    tries = lost = 0

    def insert(raw: apsw.Connection) -> None:
        raw.execute("INSERT INTO t(writer, text) VALUES (?, hex(randomblob(200)))", (number,))
        if hold:
            time.sleep(hold)

    with RetryingWriter(path, pause=PAUSES[pause]) as writer:
        time.sleep(max(0.0, start - time.time()))
        for _ in range(writes):
            begun = time.perf_counter()
            try:
                tries += writer.write(insert).tries - 1
            except WriteLost as error:
                lost += 1
                tries += error.tries - 1
            took.append(time.perf_counter() - begun)
    results.put((took, tries, lost))


def measure(journal: JournalMode, pause: str, processes: int, writes: int, hold: float) -> str:
    """One line of the table; also checks that nothing was lost that was not said to be."""
    context = multiprocessing.get_context("spawn")
    results: Queue[Result] = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "t.db")
        with RetryingWriter(path, create=True, journal=journal) as writer:
            writer.write(lambda raw: raw.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, writer, text)").fetchall())
        start = time.time() + 2
        children = [
            context.Process(target=work, args=(path, number, writes, hold, pause, start, results))
            for number in range(processes)
        ]
        for child in children:
            child.start()
        found = [results.get() for _ in children]
        for child in children:
            child.join()
        with RetryingWriter(path) as writer:
            ((rows,),) = writer.raw.execute("SELECT count(*) FROM t").fetchall()
    took = sorted(one for times, _, _ in found for one in times)
    tries, lost = sum(one for _, one, _ in found), sum(one for _, _, one in found)
    assert rows == len(took) - lost, "a write was lost or doubled"
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    load = f"hold {hold:.1f} s" if hold else "short"
    return (
        f"{journal:<7}{load:<11}{pause:<8}{len(took):>6}{p50 * 1e3:>10.1f}{p99 * 1e3:>10.1f}{took[-1] * 1e3:>10.1f}"
        f"{tries:>7}{lost:>6}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--writes", type=int, default=500, help="short writes of each process")
    parser.add_argument("--holds", type=int, default=3, help="long writes of each process")
    options = parser.parse_args()
    names = ("journal", "load", "wait", "writes", "p50 ms", "p99 ms", "max ms", "tries", "lost")
    print("{:<7}{:<11}{:<8}{:>6}{:>10}{:>10}{:>10}{:>7}{:>6}".format(*names))
    journals: tuple[JournalMode, ...] = ("wal", "delete")
    for journal in journals:
        for writes, hold in ((options.writes, 0.0), (options.holds, HOLD_S)):
            for pause in PAUSES:
                print(measure(journal, pause, options.processes, writes, hold), flush=True)


if __name__ == "__main__":
    main()
