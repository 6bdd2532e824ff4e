"""Keep connections with and without file locks apart within this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from hermes_tui.storage.errors import StoreBusy
from hermes_tui.storage.stamps import stat_of


class _Sharing:
    """Keeps connections that take POSIX locks and those of ``unix-none`` apart within this process.

    Closing a file of ``unix-none`` is a bare close(), which drops the locks every other connection of this process has
    on the same file (facts/hermes.md section 4, "must NOT").
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._locking: dict[tuple[int, int], int] = {}
        self._lockless: dict[tuple[int, int], int] = {}

    @contextlib.contextmanager
    def locking(self, path: str, wait_s: float) -> Iterator[None]:
        """Hold a place for a connection with locks.

        Raises:
            StoreBusy: a lockless one does not end.
        """
        with self._place(path, self._locking, self._lockless, wait_s):
            yield

    @contextlib.contextmanager
    def lockless(self, path: str) -> Iterator[None]:
        """Hold a place for a connection without locks.

        Raises:
            StoreBusy: one with locks is open in this process.
        """
        with self._place(path, self._lockless, self._locking, 0.0):
            yield

    @contextlib.contextmanager
    def _place(
        self, path: str, mine: dict[tuple[int, int], int], others: dict[tuple[int, int], int], wait_s: float
    ) -> Iterator[None]:
        found = stat_of(path)
        key = (0, 0) if found is None else found[:2]
        with self._changed:
            if not self._changed.wait_for(lambda: not others.get(key), wait_s):
                raise StoreBusy(path, "this program is reading it in another way")
            mine[key] = mine.get(key, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                mine[key] -= 1
                if not mine[key]:
                    del mine[key]
                self._changed.notify_all()


SHARING: Final = _Sharing()
"""One for the process: the retrying writer takes part."""
