"""What runs in other threads and may be ended; known before there is anything to open a database with."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_tui.storage.reading import ReadConnection


class Interrupts:
    """The connections of one store that are alive, so that another thread can end what they do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alive: set[ReadConnection] = set()

    def interrupt(self) -> None:
        """End every question now being asked; later ones are not touched."""
        with self._lock:
            alive = list(self._alive)
        for connection in alive:
            connection.stop()

    def add(self, connection: ReadConnection) -> None:
        with self._lock:
            self._alive.add(connection)

    def remove(self, connection: ReadConnection) -> None:
        with self._lock:
            self._alive.discard(connection)
