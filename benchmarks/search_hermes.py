"""Search in a Hermes store against a bare LIKE scan of the same columns (issue 3).

    python benchmarks/search_hermes.py FOLDER/large/state.db

Figures are processor milliseconds, the median of some runs after one to warm the caches, so that other work on the
machine counts little. The ratio is to the scan, measured in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

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


def spent(work: Callable[[], object], runs: int = RUNS) -> float:
    """Processor milliseconds, the median."""
    work()
    times = []
    for _ in range(runs):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) * 1000)
    return statistics.median(times)


def like_scan(path: str, word: str) -> float:
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
    print(f"bare LIKE scan for an absent word: {scan:.0f} ms")
    for name, request, wanted in CASES:
        took = spent(lambda request=request: first_page(library, request), runs=RUNS if scan < 5_000 else 2)
        hits = first_page(library, request)
        verdict = "" if wanted is None else f"  wanted under {wanted:.0f}: {'yes' if took < wanted else 'NO'}"
        print(f"{name:32} {took:8.1f} ms  {took / scan:6.3f} of a scan  {hits:3} hits{verdict}")


if __name__ == "__main__":
    main()
