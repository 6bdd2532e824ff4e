"""What goes on while the screen is open: file events for the stores of logs, and a mirror that follows them."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Final

from hermes_tui.library.mirroring import Progress, log_stores, update_mirror, use_mirror, with_mirror
from hermes_tui.library.sources import Library
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError
from hermes_tui.storage.events import FileEvents
from hermes_tui.stores.logs import LogStore

LOOK_AGAIN_SECONDS: Final = 1.0
"""How often logs are looked at that no event tells of."""
QUIET_SECONDS: Final = 10.0
"""How often they are looked at where events tell: in case one was lost."""
RETRY_SECONDS: Final = 30.0
"""After the mirror could not be written, or while another browser fills it."""
JOIN_SECONDS: Final = 0.4
"""Quitting takes under half a second (design.md, Threads)."""


@dataclass(slots=True)
class Live:
    """Watches the log stores of a library and keeps its mirror up; one thread, ended by :meth:`stop`."""

    library: Library
    on_progress: Callable[[Progress], None] | None = None
    """Called from the thread with every batch."""
    on_trouble: Callable[[str], None] | None = None
    """Called from the thread when the mirror cannot be written; the list works without it."""
    fill: bool = True
    """Whether the mirror is filled, or only used as it is."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _events: list[FileEvents] = field(default_factory=list)
    _wake: threading.Condition = field(default_factory=threading.Condition)
    """Notified by every watcher, and when it is time to stop."""

    def start(self) -> Library:
        """Begin; the library to ask from now on."""
        self.library = with_mirror(self.library)
        for store in log_stores(self.library.stores):
            events = FileEvents(store.watched_folders(), self._wake)
            events.start()
            store.events = events
            self._events.append(events)
        if self.fill and self._events:
            self._thread = threading.Thread(target=self._follow, name="mirror", daemon=True)
            self._thread.start()
        return self.library

    def stop(self) -> None:
        """End what runs; a batch in hand is given up, nothing of it is half written."""
        self._stop.set()
        for events in self._events:
            events.stop()
        for store in log_stores(self.library.stores):
            store.events = None
        if self.library.mirror is not None:
            self.library.mirror.interrupt()
        # They only read, and a log in hand would hold up the exit for seconds.
        for reader in multiprocessing.active_children():
            reader.terminate()
        if self._thread is not None:
            self._thread.join(JOIN_SECONDS)

    def _follow(self) -> None:
        seen: dict[str, object] = {}
        while not self._stop.is_set():
            told = self._told()
            changed = [store for store in log_stores(self.library.stores) if self._changed(store, seen)]
            if changed and not self._update():
                seen.clear()
                self._stop.wait(RETRY_SECONDS)
            self._wait(told)

    def _told(self) -> int:
        return sum(one.count for one in self._events)

    def _wait(self, told: int) -> None:
        """Until a watcher tells of something; not for long where one cannot."""
        seconds = QUIET_SECONDS if all(one.working for one in self._events) else LOOK_AGAIN_SECONDS
        with self._wake:
            self._wake.wait_for(lambda: self._stop.is_set() or self._told() != told, seconds)

    def _changed(self, store: LogStore, seen: dict[str, object]) -> bool:
        stamp = store.stamp()
        if seen.get(store.ref.path) == stamp:
            return False
        seen[store.ref.path] = stamp
        return True

    def _update(self) -> bool:
        """Whether the mirror is up to what was seen."""
        try:
            done = update_mirror(self.library, self.on_progress, self._stop)
        except (StorageError, OSError) as error:
            if self.on_trouble is not None and not self._stop.is_set():
                self.on_trouble(f"the mirror cannot be written: {error}")
            use_mirror(self.library)
            return False
        except Exception as error:
            # The thread ends with it: the screen must not say that the mirror is on its way.
            if self.on_trouble is not None:
                self.on_trouble(f"the mirror is not filled, an unexpected fault: {type(error).__name__}: {error}")
            raise
        return done.progress.phase != "waiting"
