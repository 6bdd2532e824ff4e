"""The browser beside a real agent: it lists, reads and searches for as long as the agent works."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_tui.library.catalog import listing, rows
from hermes_tui.library.live import Live
from hermes_tui.library.search import SearchRequest, search
from hermes_tui.library.sources import Library, SourceOptions, open_library
from hermes_tui.model import ListQuery, SessionRow

_CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d|(?<=-)\d{5,}|[0-9a-f]{16,}|(?<=\.)\d{8,}"
)
"""What differs from run to run in the names of files: ids and times."""


def names(folder: Path, passing: tuple[str, ...] = ()) -> Counter[str]:
    """What lies in a folder, without ids, times and the top folders named."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if name.parts[0] not in passing:
            found[_CHANGING.sub("*", str(name))] += 1
    return found


def opened(store: Path, own: Path) -> Library:
    """A store of a real agent with our own files elsewhere."""
    return open_library(SourceOptions(paths=(str(store),)), {"HERMES_TUI_HOME": str(own), "HOME": str(own)})


def seen(library: Library) -> list[SessionRow]:
    """The rows of the list."""
    return rows(listing(library, ListQuery()).entries)


@contextmanager
def watching(store: Path, own: Path, query: str) -> Iterator[list[str]]:
    """Watch as a browser on the screen does; gives what went wrong, complete once it ends."""
    live = Live(opened(store, own))
    library = live.start()
    over, troubles = threading.Event(), list[str]()

    def look() -> None:
        for row in seen(library)[:1]:
            transcript = library.stores[0].transcript([row.id])
            for batch in transcript.heads():
                transcript.load(batch)
        list(search(library, SearchRequest(query)))

    def watch() -> None:
        while not over.wait(0.05):
            try:
                look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the test tells of it
                troubles.append(repr(error))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield troubles
    finally:
        over.set()
        watcher.join()
        live.stop()
