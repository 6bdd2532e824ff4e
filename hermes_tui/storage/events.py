"""File events: a number that grows when something below some folders changed, where the system tells.

Without events (a network file system, no room for more watches) the number stays and ``working`` is false: whoever asks
looks at the folders himself then.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

DEBOUNCE_MS: Final = 100
"""Events of one burst count once; an appended line is told of this much later at most."""
STEP_MS: Final = 100
"""How often the watcher looks for events: each look takes the interpreter's lock, 50 a second were felt as idle CPU."""
WAKE_MS: Final = 500
"""How often the thread looks whether it is to stop."""


class FileEvents:
    """Watches folders in a thread of its own until :meth:`stop`."""

    def __init__(self, folders: Sequence[Path], changed: threading.Condition | None = None) -> None:
        """Nothing is watched before :meth:`start`; ``changed`` is notified too, where several are waited for."""
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._stop = threading.Event()
        self._count = 0
        self._working = False
        self._changed = threading.Condition() if changed is None else changed
        self._thread = threading.Thread(target=self._watch, name="file-events", daemon=True)

    def start(self) -> None:
        """Begin to watch; nothing to watch is no error."""
        if self._folders:
            self._thread.start()

    def stop(self) -> None:
        """End the thread, at the latest after half a second."""
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def working(self) -> bool:
        """Whether events come at all."""
        return self._working and not self._stop.is_set()

    @property
    def count(self) -> int:
        """Grows with every burst of changes."""
        return self._count

    def wait(self, seen: int, seconds: float) -> int:
        """Wait until the count is another than ``seen`` or the time is over; the count now."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen or self._stop.is_set(), seconds)
        return self._count

    def _watch(self) -> None:
        # Imported here: only the screen watches, and the command line must start at once.
        from watchfiles import watch

        try:
            for changes in watch(
                *self._folders,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                rust_timeout=WAKE_MS,
                yield_on_timeout=True,
                stop_event=self._stop,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                self._working = True
                if changes:
                    self._tell()
        except (OSError, RuntimeError):
            # No more watches, a folder that went away: the count stands still and is said not to work.
            pass
        finally:
            self._working = False
            self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
