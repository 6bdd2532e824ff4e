"""How long the list of a store of logs takes, and transcript and recovery of its largest log: ``list_logs.py HOME``.

Prints one line a figure: seconds of the clock, seconds of the processor, megabytes of memory so far, the limit where
one is set. ``--check`` ends with 1 when a limit is passed. Run it twice: the first run also fills the page cache.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from figures import Figures

from hermes_tui.collector import collect_rarely
from hermes_tui.model import ListQuery, SessionId
from hermes_tui.storage.reading import Interrupts
from hermes_tui.stores.claude.inline import ANY_VERSION_BELOW
from hermes_tui.stores.claude.peek import LITE
from hermes_tui.stores.claude.store import ClaudeStore
from hermes_tui.stores.codex.agent_mirror import mirror_files, read_mirror
from hermes_tui.stores.codex.store import CodexStore
from hermes_tui.stores.logs import LogFile, LogStore
from hermes_tui.stores.registry import open_places, places_at

HEAD = 64 << 10
TAIL = 8 << 10
"""What a peek at a rollout reads."""
LIST_FACTOR = 3.0
"""A list from a scan takes at most so many times a bare pass that reads the same bytes (issue 5)."""
MIRROR_QUERY_S = 0.05
"""The first page from the agent's own mirror takes no more than this of query (issue 5)."""
FIRST_SCREEN_S = 0.3
RECOVER_S = 2.0
PAGE = 50


def reads_of(store: LogStore, log: LogFile) -> list[tuple[int, int]]:
    """Offset and length of what a peek may read of a log: small transcripts are looked through for sub-agents."""
    if not isinstance(store, ClaudeStore):
        head, tail = HEAD, TAIL
    elif log.size < ANY_VERSION_BELOW:
        return [(0, log.size)]
    else:
        head = tail = LITE
    return [(0, head)] if log.size <= head else [(0, head), (max(head, log.size - tail), tail)]


def bare_pass(reads: list[tuple[str, list[tuple[int, int]]]]) -> int:
    """Read what a peek reads, and nothing else."""
    total = 0
    for path, pieces in reads:
        handle = os.open(path, os.O_RDONLY)
        for offset, length in pieces:
            total += len(os.pread(handle, length, offset))
        os.close(handle)
    return total


def measure_mirror(store: CodexStore, figures: Figures) -> None:
    """What the agent's own list of threads costs, where there is one."""
    if mirror_files((store.ref.path,)):
        read = lambda: read_mirror((store.ref.path,), Interrupts())  # noqa: E731
        read()
        mirror, _ = figures.measure("query of the agent's mirror", read, MIRROR_QUERY_S)
        print(f"it knows {len(mirror.rows):,} threads; {mirror.fallback or 'the list comes from it'}")


def measure_list(store: LogStore, figures: Figures) -> None:
    """List, first page, and the list again while nothing changed."""
    logs = store.logs()
    reads = [(log.path, reads_of(store, log)) for log in logs]
    bare_pass(reads)
    walked, walk_s = figures.measure("walk the folders", store.logs)
    _, bare_s = figures.measure(f"bare pass over {len(walked)} logs", lambda: bare_pass(reads))
    limit = LIST_FACTOR * (bare_s + walk_s)
    if isinstance(store, CodexStore):
        measure_mirror(store, figures)
    listing, _ = figures.measure("list", lambda: store.listing(ListQuery()), limit)
    page = [entry.id for entry in listing.entries[:PAGE]]
    figures.measure(f"rows of the first {len(page)}", lambda: store.rows(page))
    figures.measure("list again", lambda: store.listing(ListQuery()))


def measure_largest(store: LogStore, figures: Figures) -> None:
    """First screen, end and recovery of the largest log."""
    log: LogFile = max(store.logs(), key=lambda one: one.size)
    session: SessionId = store.index().session_of[log.path]
    print(f"largest log: {log.size:,} bytes")
    transcript = store.transcript([session])
    heads, _ = figures.measure("first screen: heads", lambda: next(iter(transcript.heads())), FIRST_SCREEN_S)
    figures.measure("first screen: texts", lambda: transcript.load(heads[:PAGE]), FIRST_SCREEN_S)
    fresh = store.transcript([session])
    last, _ = figures.measure("jump to the end: heads", lambda: fresh.tail(PAGE), FIRST_SCREEN_S)
    figures.measure("jump to the end: texts", lambda: fresh.load(last), FIRST_SCREEN_S)
    figures.measure("recover", lambda: store.recovery(session), RECOVER_S)
    figures.measure("whole transcript", lambda: sum(len(batch) for batch in store.transcript([session]).heads()))


def main() -> int:
    """Measure every store of logs at a place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is passed")
    asked = parser.parse_args()
    collect_rarely()
    figures = Figures()
    for store in open_places(places_at(asked.home), {}):
        if isinstance(store, LogStore):
            measure_list(store, figures)
            measure_largest(store, figures)
    for name in figures.passed:
        print(f"too slow: {name}", file=sys.stderr)
    return 1 if asked.check and figures.passed else 0


if __name__ == "__main__":
    sys.exit(main())
