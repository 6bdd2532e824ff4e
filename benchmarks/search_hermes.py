"""Search in a Hermes store against a bare LIKE scan of the same columns (issue 3).

    python benchmarks/search_hermes.py FOLDER/large/state.db

Figures are milliseconds of the clock, then of the processor, which other work on the machine disturbs least: the least
of some runs after one to warm the caches. A long scan is done in two halves side by side, so that the two differ. The
ratios are to the bare scan, which is one thread, measured in the same run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes_tui.library.search import SearchRequest, search
from hermes_tui.library.sources import Library, SourceOptions, open_library

RUNS = 5
CASES = (
    ("common word, newest", SearchRequest("gateway"), 60.0),
    ("two words, newest", SearchRequest("gateway deploy"), None),
    ("phrase, newest", SearchRequest('"gateway deploy"'), None),
    ("two Korean letters, newest", SearchRequest("비용"), 150.0),
    ("five Korean letters, newest", SearchRequest("게이트웨이"), None),
    ("one Chinese letter, newest", SearchRequest("录"), None),
    ("absent Korean letters", SearchRequest("쾌적"), 50.0),
    ("rare word, newest", SearchRequest("zebrafish"), None),
    ("common word, by rank", SearchRequest("gateway", sort="rank"), 120.0),
    ("rare word, by rank", SearchRequest("zebrafish", sort="rank"), 5.0),
    ("regular expression, first page", SearchRequest(r"gate\w+", regex=True), None),
)


class Spent(NamedTuple):
    """Milliseconds."""

    clock: float
    processor: float


def spent(work: Callable[[], object], runs: int = RUNS) -> Spent:
    """The least of some runs, each by itself."""
    work()
    clocks, processors = [], []
    for _ in range(runs):
        clock, processor = time.perf_counter(), time.process_time()
        work()
        clocks.append((time.perf_counter() - clock) * 1000)
        processors.append((time.process_time() - processor) * 1000)
    return Spent(min(clocks), min(processors))


def like_scan(path: str, word: str) -> Spent:
    """What the same search costs where every row is looked at, and nothing else is done."""
    connection = apsw.Connection(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1",
                                 flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)  # fmt: skip
    sql = (
        "SELECT id FROM messages WHERE content LIKE :like OR tool_name LIKE :like OR tool_calls LIKE :like"
        " ORDER BY id DESC LIMIT 50"
    )
    return spent(lambda: connection.execute(sql, {"like": f"%{word}%"}).fetchall(), runs=2)


def first_page(library: Library, request: SearchRequest) -> int:
    """Run a search to the end of its first page."""
    return len(list(search(library, request)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="a state.db; one without text indexes is measured as a scan")
    arguments = parser.parse_args()
    library = open_library(SourceOptions(paths=(arguments.store,)), {"HERMES_TUI_HOME": "/nonexistent", "HOME": "/"})
    scan = like_scan(arguments.store, "쾌적")
    print(f"bare LIKE scan for an absent word: {scan.clock:.0f} ms, {scan.processor:.0f} of the processor")
    for name, request, wanted in CASES:
        took = spent(lambda request=request: first_page(library, request), runs=RUNS if scan.clock < 5_000 else 2)
        hits = first_page(library, request)
        verdict = "" if wanted is None else f"  wanted under {wanted:.0f}: {'yes' if took.clock < wanted else 'NO'}"
        ratios = f"{took.clock / scan.clock:6.3f} {took.processor / scan.processor:6.3f} of a scan"
        print(f"{name:32} {took.clock:8.1f} {took.processor:8.1f} ms  {ratios}  {hits:3} hits{verdict}")


if __name__ == "__main__":
    main()
