"""One process at a time fills the mirror; whoever dies gives way when his lease runs out."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Final

import apsw

from hermes_tui.storage.writing import RetryingWriter

LEASE_SECONDS: Final = 15.0
"""Longer than any batch takes; short enough that a crash is not noticed for long."""
_NAME: Final = "projector"


class Lease:
    """The right to write projections, renewed with every batch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.holder = f"pid={os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._clock = clock

    def take(self, writer: RetryingWriter) -> bool:
        """Take or renew it; ``False`` while another process holds it."""
        return writer.write(self.renew).value

    def renew(self, connection: apsw.Connection) -> bool:
        """The same inside a transaction that writes a batch, so that a batch never outlives its lease."""
        now = self._clock()
        connection.execute(
            "INSERT INTO lease VALUES (?1, ?2, ?3) ON CONFLICT(name) DO UPDATE SET holder = ?2, expires_at = ?3"
            " WHERE holder = ?2 OR expires_at < ?4 OR expires_at > ?5",
            # A time far ahead was written under a wrong clock: it must not lock everybody out.
            (_NAME, self.holder, now + LEASE_SECONDS, now, now + 4 * LEASE_SECONDS),
        )
        return connection.changes() == 1

    def give_back(self, writer: RetryingWriter) -> None:
        """Let another process go on at once."""
        writer.write(lambda connection: connection.execute("DELETE FROM lease WHERE holder = ?", (self.holder,)))
