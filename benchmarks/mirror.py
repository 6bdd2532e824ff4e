"""What the mirror costs and gives, over the log stores of some homes: ``mirror.py HOME...``.

Everything is measured in one run, so that ratios hold on a busy machine: a bare ``orjson.loads`` over every line, the
backfill of cards, usage, prompts and replies, that of tool calls and results, memory, sizes, an unchanged start, one
appended line, and first pages of searches. ``--check`` ends with 1 when a limit of issue 6 or 7 is passed.

``FAST_RESUME`` names the program fast-resume 2.14.0 (a wheel on PyPI, best in a venv of its own); without it that
figure is left out, and said so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import TypeVar

import apsw
import orjson

from hermes_tui.collector import collect_rarely
from hermes_tui.mirror.backfill import Backfill, Progress
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.lines import line_index
from hermes_tui.mirror.source import MirrorSource
from hermes_tui.model import CostGrouping, ListQuery
from hermes_tui.storage.events import FileEvents
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.storage.log_bytes import open_log, source_of
from hermes_tui.stores.log_source import LogFile, ScanSource
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import SearchFilters
from hermes_tui.stores.registry import open_places, places_at

TALK_FACTOR = 1.3
"""Cards, usage and talk take at most so many times the bare pass (issue 6)."""
TOOLS_FACTOR = 8.0
MEMORY_MB = 300
START_S = 0.2
APPEND_S = 0.05
PAGE_S = 0.05
SCREEN_S = 0.3
PAGE = 20
LATIN_SHARE, CJK_SHARE = 0.65, 2.5
MOST_FILES = 5_000
LARGE_BYTES = 200 << 20
T = TypeVar("T")


class Figures:
    """Measures, prints and remembers what was too slow."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def measure(self, name: str, what: Callable[[], T], limit: float | None = None) -> tuple[T, float]:
        """Run once; the answer and the seconds of the clock. The processor's seconds stand beside them."""
        clock, used = time.perf_counter(), _processor()
        answer = what()
        took, spent = time.perf_counter() - clock, _processor() - used
        self.tell(name, f"{took:9.3f} s {spent:9.3f} s cpu", took, limit)
        return answer, took

    def tell(self, name: str, said: str, value: float, limit: float | None = None) -> None:
        """Print a figure beside its limit."""
        over = limit is not None and value > limit
        print(f"{name:42} {said}" + ("" if limit is None else f"   limit {limit:g}{'   OVER' if over else ''}"))
        sys.stdout.flush()
        if over:
            self.passed.append(name)


def _processor() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _stores(homes: Sequence[Path]) -> list[LogStore]:
    found = [store for home in homes for store in open_places(places_at(home), {})]
    return [store for store in found if isinstance(store, LogStore) and store.files]


def bare_pass(logs: Sequence[LogFile]) -> int:
    """Parse every line and do nothing with it."""
    count = 0
    for log in logs:
        with open_log(log.path) as file:
            for line in source_of(file, 0).reader():
                with contextlib.suppress(orjson.JSONDecodeError):
                    orjson.loads(line)
                count += 1
    return count


def with_mirror(homes: Sequence[Path], path: Path) -> list[LogStore]:
    """The stores as a new start has them, the mirror beside them."""
    database = MirrorDatabase(path)
    stores = _stores(homes)
    for store in stores:
        store.source = MirrorSource(database, store, ScanSource(store.fold))
        store.line_index = line_index(database, store.ref.path)
    return stores


def measure_backfill(homes: Sequence[Path], path: Path, figures: Figures, *, tools: bool) -> None:
    """The bare pass, then both phases beside it."""
    stores = _stores(homes)
    logs = [log for store in stores for log in store.logs()]
    size = sum(log.size for log in logs)
    print(f"{len(logs):,} logs, {size / 1e6:,.0f} MB")
    bare_pass(logs)
    _, bare_s = figures.measure("orjson pass, one process", lambda: bare_pass(logs))
    database = MirrorDatabase(path)
    _, talk_s = figures.measure("backfill: cards, usage, talk", lambda: _fill(database, stores, tools=False))
    figures.tell("  times the orjson pass", f"{talk_s / bare_s:9.2f}", talk_s / bare_s, TALK_FACTOR)
    print(f"{'  index so far':42} {database.bytes_on_disk() / 1e6:9.1f} MB")
    if tools:
        _, tools_s = figures.measure("backfill: tool calls and results", lambda: _fill(database, stores, tools=True))
        times = (talk_s + tools_s) / bare_s
        figures.tell("  all text, times the orjson pass", f"{times:9.2f}", times, TOOLS_FACTOR)
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    figures.tell("peak memory of the largest process", f"{peak:9.0f} MB", peak, MEMORY_MB)


def _fill(database: MirrorDatabase, stores: Sequence[LogStore], *, tools: bool) -> Progress:
    return Backfill(database, stores, tools=tools).run()


def measure_size(homes: Sequence[Path], folder: Path, figures: Figures) -> None:
    """Index bytes against text bytes, Latin and CJK logs apart: each kind in a mirror of its own."""
    for store in _stores(homes):
        groups: dict[str, list[LogFile]] = {"Latin": [], "CJK": []}
        texts: dict[str, int] = {"Latin": 0, "CJK": 0}
        for log in list(store.logs())[::20]:
            size, wide = _text_bytes(store, log)
            kind = "CJK" if wide * 5 > size else "Latin"
            groups[kind].append(log)
            texts[kind] += size
        for kind, logs in groups.items():
            if not texts[kind]:
                continue
            database = MirrorDatabase(folder / f"{store.ref.agent}-{kind}.db")
            store.logs = lambda logs=tuple(logs): logs  # type: ignore[method-assign, misc]
            _fill(database, [store], tools=True)
            # Outside a transaction: within one it would wait for itself.
            with database.writer() as writer:
                writer.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            tables = database.rows(
                "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat"
                " WHERE name LIKE 'talk%' OR name LIKE 'tools%' OR name LIKE 'texts%'"
            )
            share = tables[0][0] / texts[kind]
            limit = LATIN_SHARE if kind == "Latin" else CJK_SHARE
            said = f"{share:9.1%}  ({tables[0][0] / 1e6:.1f} MB of index, {texts[kind] / 1e6:.1f} MB of text)"
            figures.tell(f"index / text, {store.ref.agent}, {kind}", said, share, limit)


def _text_bytes(store: LogStore, log: LogFile) -> tuple[int, int]:
    """Bytes of all searchable text of a log, and those of its wide letters."""
    from hermes_tui.storage.jsonl import read_records

    cutter = store.log_texts(log)
    if cutter is None:
        return 0, 0
    size = wide = 0
    for record in read_records(log.path):
        if cutter.phase(record.raw) is not None:
            for text in cutter.texts(record):
                encoded = text.text.encode("utf-8", "replace")
                size += len(encoded)
                wide += sum(byte >= 0xE1 for byte in encoded) * 3
    return size, wide


def measure_peer(homes: Sequence[Path], figures: Figures) -> None:
    """fast-resume over the same trees, cold."""
    program = os.environ.get("FAST_RESUME")
    if not program or not Path(program).exists():
        why = "FAST_RESUME is not set" if not program else f"{program} is not there"
        print(f"{'fast-resume 2.14.0':42} left out: {why}")
        return
    with tempfile.TemporaryDirectory() as home:
        for place in homes:
            target = Path(home) / (".claude" if (place / "projects").exists() else ".codex")
            target.symlink_to(place)
        environ = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "XDG_DATA_HOME": f"{home}/data"}
        command = [program, "--list", "--rebuild", "zzz"]

        def run() -> subprocess.CompletedProcess[bytes]:
            return subprocess.run(command, env=environ, capture_output=True, check=False, timeout=300)

        done, _ = figures.measure("fast-resume 2.14.0, cold", run)
        if done.returncode:
            print(f"{'':42} it failed: {done.stderr[-200:].decode('utf-8', 'replace').strip()}")


def measure_start(homes: Sequence[Path], path: Path, figures: Figures) -> None:
    """From new stores to the exact list while nothing changed, and what an orderly screen asks then."""
    stores = with_mirror(homes, path)
    files = sum(len(store.logs()) for store in stores)
    stores = with_mirror(homes, path)
    limit = START_S * max(1.0, files / MOST_FILES)
    figures.measure(f"unchanged start to list, {files:,} logs", lambda: [s.listing(ListQuery()) for s in stores], limit)
    figures.measure("  first 50 rows of each", lambda: [_rows(store) for store in stores])
    groupings: tuple[CostGrouping, ...] = ("model", "day", "session")
    for grouping in groupings:
        figures.measure(
            f"cost by {grouping}, first time" if grouping == "model" else f"cost by {grouping}",
            lambda grouping=grouping: [s.usage(grouping, None, None, UTC) for s in stores],  # type: ignore[misc]
            SCREEN_S,
        )
    newest = max((row.last_active_at or 0.0 for store in stores for row in store.index().rows.values()), default=0.0)
    since = newest - 30 * 86_400
    figures.measure(
        "cache: requests of the last 30 days", lambda: [list(s.requests(None, since)) for s in stores], SCREEN_S
    )


def _rows(store: LogStore) -> int:
    ids = [entry.id for entry in store.listing(ListQuery()).entries[:50]]
    return len(store.rows(ids))


def measure_append(homes: Sequence[Path], folder: Path, figures: Figures) -> None:
    """One line more in a copy of the largest log."""
    store, log = max(((store, log) for store in _stores(homes) for log in store.logs()), key=lambda pair: pair[1].size)
    home = folder / "grown"
    target = home / Path(log.path).relative_to(store.ref.path)
    target.parent.mkdir(parents=True)
    shutil.copyfile(log.path, target)
    cutter = store.log_texts(log)
    with target.open("rb") as source:
        # A message: it is to be found afterwards. The last piece is half a line.
        raws = source.read(1 << 20).splitlines()[:-1]
    line = next(raw for raw in reversed(raws) if b'"message"' in raw and cutter and cutter.phase(raw) == "talk")
    database = MirrorDatabase(folder / "grown.db")
    _fill(database, _stores([home]), tools=True)
    with target.open("ab") as file:
        file.write(line + b"\n")
    grown = _stores([home])
    figures.measure(
        f"one line appended to {log.size / 1e6:,.0f} MB", lambda: _fill(database, grown, tools=True), APPEND_S
    )


def measure_search(homes: Sequence[Path], path: Path, words: Sequence[str], figures: Figures) -> None:
    """First pages, warm: the second of two; folders are watched, so that none is walked."""
    for store in with_mirror(homes, path):
        events = FileEvents(store.watched_folders())
        events.start()
        events.wait(0, 2.0)
        store.events = events
        try:
            for word in words:
                matcher = parse_query(word)

                def page(store: LogStore = store, matcher: object = matcher) -> int:
                    proposal = store.propose(matcher, SearchFilters(), "newest")  # type: ignore[arg-type]
                    return sum(1 for _ in zip(proposal.messages, range(PAGE), strict=False))

                page()
                figures.measure(f"search {store.ref.agent}: {word}", page, PAGE_S)
        finally:
            events.stop()


def main() -> int:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("homes", type=Path, nargs="+")
    parser.add_argument("--words", default="cache,zebra,세션,packetloss", help="searched for, with commas between")
    parser.add_argument("--no-tools", action="store_true", help="leave out the second phase and what needs it")
    parser.add_argument("--large", type=Path, help="a home whose largest log takes the appended line")
    parser.add_argument("--mirror", type=Path, help="use this mirror, which is filled already, for the warm figures")
    parser.add_argument("--check", action="store_true", help="end with 1 when a limit is passed")
    asked = parser.parse_args()
    collect_rarely()  # as the program does
    figures = Figures()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = asked.mirror or folder / "mirror.db"
        if not path.exists():
            measure_backfill(asked.homes, path, figures, tools=not asked.no_tools)
            measure_peer(asked.homes, figures)
        measure_start(asked.homes, path, figures)
        measure_search(asked.homes, path, asked.words.split(","), figures)
        if not asked.no_tools:
            measure_append([asked.large] if asked.large else asked.homes, folder, figures)
            measure_size(asked.homes, folder, figures)
    for name in figures.passed:
        print(f"over its limit: {name}", file=sys.stderr)
    return 1 if asked.check and figures.passed else 0


if __name__ == "__main__":
    sys.exit(main())
