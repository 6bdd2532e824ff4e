"""A database of DSH sessions, as a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from hermes_tui.model import Finding, Origin, SessionId, SessionRow, StoreRef
from hermes_tui.storage.reading import Interrupts
from hermes_tui.stores.dsh.backend import Backend
from hermes_tui.stores.dsh.database import USER_VERSION, DatabaseBackend, DatabaseSource
from hermes_tui.stores.dsh.discovery import Walk
from hermes_tui.stores.dsh.store import DshStore
from hermes_tui.stores.logs import LogFile, LogIndex
from hermes_tui.stores.protocol import ChangeVerb


class DshDatabaseStore(DshStore):
    """Sessions in one SQLite file; everything above the events is as for log files."""

    files = False
    origin: Origin = "store"

    def __init__(self, ref: StoreRef, clock: Callable[[], float] = time.time) -> None:
        self._interrupts = Interrupts()
        self._database = DatabaseBackend(ref, self._interrupts)
        self._summaries = DatabaseSource(self._database)
        super().__init__(ref, self._summaries, clock)

    @property
    def backend(self) -> Backend:
        """Where events come from."""
        return self._database

    def walk(self) -> Walk:
        """A database has no folders."""
        return Walk()

    def logs(self) -> Sequence[LogFile]:
        """Each session of the database as a log that is no file."""
        return [log for log, _ in self._database.sessions()]

    def peek(self, log: LogFile) -> SessionRow:
        """The whole row: a database gives it at once."""
        return self._summaries.summary(log).row

    def fold(self, log: LogFile, state: bytes | None = None) -> NoReturn:
        """Rows have no lines to be folded by.

        Raises:
            TypeError: always.
        """
        del state
        raise TypeError(f"{log.path} is no file")

    def complete(self, peeked: SessionRow, folded: SessionRow) -> SessionRow:
        """See :meth:`LogStore.complete`."""
        return replace(super().complete(peeked, folded), resumable=False)

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """No shipped build reads such a file."""
        del verb, session_id, title
        return None

    def own_findings(self, index: LogIndex) -> Sequence[Finding]:
        """Whether the schema is the one that is known."""
        del index
        version = self._database.user_version()
        if version == USER_VERSION:
            return ()
        detail = f"schema {version} is not the known one ({USER_VERSION}); what fits is read"
        return (Finding("unknown-schema", "warn", detail, paths=(self.ref.path,)),)

    def findings(self) -> Sequence[Finding]:
        """See :meth:`Store.findings`; also the events whose session is gone."""
        found = super().findings()
        if self.status().state == "unreadable" or not (strays := self._database.stray_events()):
            return found
        detail = f"{strays} events of sessions that are not in the database; they are not shown"
        return (*found, Finding("stray-events", "warn", detail, strays, paths=(self.ref.path,)))

    def extra_stamp(self) -> object:
        """See :meth:`LogStore.extra_stamp`."""
        return self._database.stamp()

    def stamp(self) -> object:
        """The file and its log, by stat alone."""
        return self._database.stamp()

    def interrupt(self) -> None:
        """See :meth:`LogStore.interrupt`."""
        super().interrupt()
        self._interrupts.interrupt()
