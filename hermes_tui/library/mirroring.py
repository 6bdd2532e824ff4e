"""The mirror as the front ends see it: used where it is ready, filled in the background, never needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hermes_tui.library.health import MirrorHealth, mirror_fallbacks
from hermes_tui.library.sources import Library
from hermes_tui.mirror.answers import KeptAnswers
from hermes_tui.mirror.backfill import Backfill, OnProgress, Progress
from hermes_tui.mirror.database import MirrorDatabase, MirrorState
from hermes_tui.mirror.lines import line_index
from hermes_tui.mirror.source import MirrorSource
from hermes_tui.records import dataclass
from hermes_tui.stores.log_source import ScanSource
from hermes_tui.stores.logs import LogStore
from hermes_tui.stores.protocol import Store

__all__ = ["MirrorUpdate", "Progress", "drop_mirror", "mirror_health", "update_mirror", "use_mirror"]


@dataclass(frozen=True, slots=True)
class MirrorUpdate:
    """What an update did."""

    progress: Progress
    set_aside: str | None
    """Where a mirror that could not be used was put."""


def log_stores(stores: Iterable[Store]) -> list[LogStore]:
    """The stores a mirror is made for: Hermes has its own database and indexes."""
    return [store for store in stores if isinstance(store, LogStore) and store.files]


def use_mirror(library: Library) -> MirrorState:
    """Let the stores ask the mirror first, if it can be asked."""
    database = library.mirror
    if database is None:
        return "missing"
    state = database.state()
    for store in log_stores(library.stores):
        if state == "ready" and not isinstance(store.source, MirrorSource):
            store.source = MirrorSource(database, store, ScanSource(store.fold))
            store.line_index = line_index(database, store.ref.path)
        elif state != "ready" and isinstance(store.source, MirrorSource):
            store.source = ScanSource(store.fold)
            store.line_index = None
    return state


def update_mirror(
    library: Library,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    *,
    tools: bool = True,
) -> MirrorUpdate:
    """Bring the mirror up to the logs; one that cannot be used is set aside and made anew.

    Raises:
        StorageError: it cannot be written.
        OSError: our cache folder cannot be made.
    """
    database = _database(library)
    moved = database.set_aside() if database.state() in ("corrupt", "other-format") else None
    progress = Backfill(database, log_stores(library.stores), on_progress, stop, tools=tools).run()
    use_mirror(library)
    return MirrorUpdate(progress, None if moved is None else str(moved))


def drop_mirror(library: Library) -> list[str]:
    """Delete the mirror and the answers kept beside it; what went.

    Raises:
        OSError: one cannot be deleted.
    """
    gone = [str(path) for path in _database(library).drop()]
    if (library.answers or KeptAnswers(library.locations.answers)).drop():
        gone.append(str(library.locations.answers))
    use_mirror(library)
    return gone


def mirror_health(library: Library) -> MirrorHealth:
    """How the mirror is; lag and lead are counted against the logs on disk."""
    database = library.mirror
    if database is None:
        return MirrorHealth()
    state = database.state()
    counts = mirror_fallbacks(library)
    if library.answers is not None:
        counts.update({f"answer-{reason}": count for reason, count in library.answers.troubles.items()})
    if state != "ready":
        counts[state] += 1
        return MirrorHealth(str(database.path), _bytes(database), None, None, None, tuple(counts.items()))
    lag, lead = _against_logs(log_stores(library.stores))
    return MirrorHealth(str(database.path), _bytes(database), database.logs_known(), lag, lead, tuple(counts.items()))


def _against_logs(stores: Sequence[LogStore]) -> tuple[int, int]:
    lag = lead = 0
    for store in stores:
        if not isinstance(store.source, MirrorSource):
            continue
        try:
            logs = store.logs()
        except OSError:
            # Its own status says that the folder cannot be read.
            continue
        lag += store.source.lag(logs) or 0
        lead += store.source.lead(logs)
    return lag, lead


def _bytes(database: MirrorDatabase) -> int | None:
    return database.bytes_on_disk() or None


def _database(library: Library) -> MirrorDatabase:
    return library.mirror or MirrorDatabase(library.locations.mirror)


def with_mirror(library: Library) -> Library:
    """The library with its mirror beside it, asked from now on."""
    found = replace(library, mirror=MirrorDatabase(library.locations.mirror))
    use_mirror(found)
    return found
