"""A Hermes store for people who script: everything that may be written to one, through the retrying writer."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import apsw

from hermes_tui.storage.writing import JournalMode, RetryingWriter, Written
from hermes_tui.stores.hermes.appending import (
    Content,
    NewMessage,
    NewSession,
    NewUsage,
    add_usage,
    insert_message,
    insert_session,
)
from hermes_tui.stores.hermes.creation import create_store
from hermes_tui.stores.hermes.titles import ask_writer, next_title

T = TypeVar("T")


class SessionDB:
    """One state.db. It is opened with the first write and closed with :meth:`close`; not shared between threads."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        journal: JournalMode = "wal",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Name a store.

        Args:
            path: the state.db.
            create: make a schema-23 store when there is none.
            journal: the journal mode of a store that is made here.
            clock: Unix seconds now.

        Raises:
            WriteFailed: the store cannot be made.
        """
        self.path = Path(path)
        self._clock = clock
        self._writer: RetryingWriter | None = None
        if create and not self.path.exists():
            create_store(self.path, journal=journal)

    def __enter__(self) -> SessionDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def write(self, callback: Callable[[apsw.Connection], T]) -> Written[T]:
        """Run several changes as one; see :meth:`hermes_tui.storage.writing.RetryingWriter.write`."""
        if self._writer is None:
            self._writer = RetryingWriter(self.path)
        return self._writer.write(callback)

    def new_id(self) -> str:
        """An id as the product's own surfaces make them: local time and six hex digits."""
        stamp = datetime.fromtimestamp(self._clock()).strftime("%Y%m%d_%H%M%S")
        return f"{stamp}_{secrets.token_hex(3)}"

    def create_session(self, source: str, session_id: str | None = None, **columns: Any) -> str:
        """Begin a session; ``columns`` are the fields of :class:`NewSession`. One that exists is left as it is."""
        started_at = columns.pop("started_at", None)
        session = NewSession(
            id=session_id or self.new_id(),
            source=source,
            started_at=self._clock() if started_at is None else started_at,
            **columns,
        )
        self.write(lambda raw: insert_session(raw, session))
        return session.id

    def append_message(self, session_id: str, role: str, content: Content = None, **columns: Any) -> int:
        """Append a message; ``columns`` are the fields of :class:`NewMessage`.

        Raises:
            NoSuchSession: the session is not there.
        """
        timestamp = columns.pop("timestamp", None)
        message = NewMessage(role, content, self._clock() if timestamp is None else timestamp, **columns)
        return self.write(lambda raw: insert_message(raw, session_id, message)).value

    def record_usage(self, session_id: str, spent: NewUsage) -> None:
        """Add model calls to a session's ledger.

        Raises:
            NoSuchSession: the session is not there.
        """
        self.write(lambda raw: add_usage(raw, session_id, spent))

    def end_session(self, session_id: str, reason: str) -> bool:
        """End a session that has not ended; the first reason stays. False when nothing was done."""

        def end(raw: apsw.Connection) -> bool:
            raw.execute(
                "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
                (self._clock(), reason, session_id),
            )
            return raw.changes() > 0

        return self.write(end).value

    def get_next_title_in_lineage(self, title: str) -> str:
        """The next free title: "Fix it" when unused, else "Fix it #2" and so on."""
        return self.write(lambda raw: next_title(ask_writer(raw), title)).value
