"""The log of annotations: read whole (it is small), written through a gate, shared by several browsers.

What :meth:`AnnotationBook.add` returned from is on disk; only then may anything else learn of it (issue 6).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hermes_tui.annotations.facts import NO_ANNOTATION, Annotation, Fact, SessionKey
from hermes_tui.records import dataclass
from hermes_tui.storage.append_log import AppendLog

Checkpoint = tuple[int, int, int]
"""inode, bytes and time of change of the log: what a projection was made from."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Everything the log says."""

    annotations: Mapping[SessionKey, Annotation]
    checkpoint: Checkpoint | None
    """``None``: there is no log yet."""
    damaged: int
    """Lines that were broken off or are none of ours: kept, counted, not understood."""


class AnnotationBook:
    """Pins, tags and notes of every session, from the log that is their truth."""

    def __init__(self, path: Path) -> None:
        self._log = AppendLog(path)
        self._lock = threading.Lock()
        self._pages: Pages | None = None

    @property
    def path(self) -> Path:
        """The log."""
        return self._log.path

    def add(self, facts: Sequence[Fact]) -> None:
        """Write facts; they are on disk when this returns.

        Raises:
            WriteFailed: nothing of it counts.
        """
        self._log.append_all([fact.to_json() for fact in facts])

    def checkpoint(self) -> Checkpoint | None:
        """What the log looks like now, by stat."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return None
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def pages(self) -> Pages:
        """What the log says now; read again only when it changed.

        Raises:
            OSError: the log cannot be read.
        """
        now = self.checkpoint()
        with self._lock:
            if self._pages is not None and self._pages.checkpoint == now:
                return self._pages
        pages = self._read(now)
        with self._lock:
            self._pages = pages
        return pages

    def remember(self, pages: Pages) -> None:
        """Take what a projection knows, if it was made from the log as it is now."""
        with self._lock:
            if pages.checkpoint is not None and pages.checkpoint == self.checkpoint():
                self._pages = pages

    def of(self, key: SessionKey) -> Annotation:
        """What is known of one session."""
        return self.pages().annotations.get(key, NO_ANNOTATION)

    def _read(self, now: Checkpoint | None) -> Pages:
        facts: list[Fact] = []
        damaged = 0
        for record in self._log.read():
            fact = Fact.from_json(record.value)
            if fact is None:
                damaged += 1
            else:
                facts.append(fact)
        return Pages(added_up(facts), now, damaged)


def added_up(facts: Iterable[Fact]) -> dict[SessionKey, Annotation]:
    """What facts add up to, in the order of the log; sessions nothing is left of are not in it."""
    found: dict[SessionKey, Annotation] = {}
    for fact in facts:
        found[fact.key] = found.get(fact.key, NO_ANNOTATION).with_fact(fact)
    return {key: annotation for key, annotation in found.items() if annotation}
