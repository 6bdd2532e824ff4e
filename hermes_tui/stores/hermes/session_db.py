"""A Hermes store for people who script: everything that may be written to one, through the retrying writer."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import apsw

from hermes_tui.model import SHOWN_STATES, ListQuery, SessionId
from hermes_tui.storage.fulltext import parse_query
from hermes_tui.storage.writing import JournalMode, RetryingWriter, Written
from hermes_tui.stores.changing import REASONS, ChangeRefused, Keep, Kept, Outcome, PruneRule, Taken
from hermes_tui.stores.hermes.appending import (
    Content,
    NewMessage,
    NewSession,
    NewUsage,
    add_usage,
    insert_message,
    insert_session,
)
from hermes_tui.stores.hermes.creation import add_missing_columns, create_store
from hermes_tui.stores.hermes.dialects import cjk_way, register_cjk
from hermes_tui.stores.hermes.discovery import homes_at
from hermes_tui.stores.hermes.exporting import exported, exported_messages, newest_first
from hermes_tui.stores.hermes.store import HermesStore
from hermes_tui.stores.hermes.titles import clean_title, next_title, set_title
from hermes_tui.stores.protocol import ChangeVerb, Proposed, SearchFilters

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
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Name a store.

        Args:
            path: the state.db.
            create: make a schema-23 store when there is none.
            journal: the journal mode of a store that is made here.
            clock: Unix seconds now.
            environ: where the agent's own tokenizer may be named; default: this process's.

        Raises:
            WriteFailed: the store cannot be made.
        """
        self.path = Path(path)
        self._clock = clock
        self._environ = os.environ if environ is None else environ
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
            self._writer = RetryingWriter(self.path, prepare=self._prepare)
        return self._writer.write(callback)

    def _prepare(self, raw: apsw.Connection) -> None:
        """Give the connection the tokenizer of a CJK index, where it may be written through."""
        if raw.execute(
            "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'messages_fts_cjk%' LIMIT 1"
        ).fetchall():
            path = str(self.path)
            register_cjk(raw, cjk_way(path, self._environ), path, self._environ)

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
        return self._store().asking.ask(lambda connection, _: next_title(connection.rows, title))

    def set_title(self, session_id: str, title: str | None) -> bool:
        """Set a title by the product's rules; False when the session is not there.

        Raises:
            TitleRefused: it is too long, or another conversation has it.
        """
        cleaned = clean_title(title)
        return self.write(lambda raw: set_title(raw, session_id, cleaned)).value

    def archive(self, session_id: str, archived: bool = True) -> list[SessionId]:
        """Archive a whole conversation, or take it out; the sessions that changed.

        Raises:
            StorageError: the store cannot be read or written.
        """
        return self._change("archive" if archived else "unarchive", session_id, None).done

    def delete_session(self, session_id: str, *, keep: Keep | None = None, drop_cjk: bool = False) -> bool:
        """Delete a session with the runs it delegated; children that stay become roots. False when it is not there.

        Args:
            session_id: the session.
            keep: takes what goes, before it goes; without it nothing can be restored.
            drop_cjk: give up the store's CJK index where rows cannot be deleted otherwise.

        Raises:
            ChangeRefused: an agent works on it, or its indexes cannot be written safely.
        """
        return SessionId(session_id) in self._change("delete", session_id, keep, drop_cjk=drop_cjk).done

    def clear_messages(self, session_id: str, *, keep: Keep | None = None, drop_cjk: bool = False) -> int:
        """Delete the messages of a session; its tokens stay. How many there were; arguments as above.

        Raises:
            ChangeRefused: an agent works on it, or its indexes cannot be written safely.
        """
        return self._change("clear", session_id, keep, drop_cjk=drop_cjk).messages

    def prune_sessions(
        self, older_than_days: float = 90, *, query: ListQuery | None = None, keep: Keep | None = None
    ) -> tuple[list[SessionId], tuple[Kept, ...]]:
        """Delete ended sessions without activity for so long: those that went, and the others with their reasons.

        Raises:
            StorageError: the store cannot be read.
        """
        changes, now = self._store().changes(), self._clock()
        planned = changes.plan_prune(PruneRule(older_than_days * 86_400, query or ListQuery()), now=now)
        outcome = changes.apply(planned, now=now, keep=keep or _forget)
        return outcome.done, (*planned.kept, *outcome.kept)

    def search_messages(self, text: str, *, limit: int = 20, filters: SearchFilters | None = None) -> list[Proposed]:
        """Messages that match, newest first (contract.md, search); each once, however often it is stored.

        Raises:
            StorageError: the store cannot be read.
        """
        matcher = parse_query(text)
        proposal = self._store().propose(matcher, filters or SearchFilters(), "newest")
        return list(islice(proposal.messages, limit))

    def export_session(self, session_id: str) -> dict[str, Any] | None:
        """A session's row with its live messages under ``messages``; ``None`` when it is not there.

        Raises:
            StorageError: the store cannot be read.
        """
        return self._store().asking.ask(exported, session_id)

    def export_all(self) -> Iterator[dict[str, Any]]:
        """Every session with its live messages, newest first, one at a time.

        Raises:
            StorageError: the store cannot be read.
        """
        asking = self._store().asking
        for session_id in asking.ask(newest_first):
            session = asking.ask(exported, session_id)
            if session is not None:
                yield session

    def export_lineage(self, session_id: str) -> dict[str, Any] | None:
        """A whole conversation: the tip's row, its parts, and every message once, at its first place.

        Raises:
            StorageError: the store cannot be read.
        """
        store = self._store()
        parts = store.chain(SessionId(session_id))
        row = store.asking.ask(exported, parts[-1]) if parts else None
        if row is None:
            return None
        heads = (head for batch in store.transcript(parts).heads() for head in batch)
        numbers = list(dict.fromkeys(int(head.id) for head in heads if head.state in SHOWN_STATES))
        return {**row, "parts": list(parts), "messages": store.asking.ask(exported_messages, numbers)}

    def add_missing_columns(self) -> list[str]:
        """Give a store made by an older version the columns of schema 23; only ever called by name.

        Returns:
            ``table.column`` of each one added.
        """
        return self.write(add_missing_columns).value

    def _store(self) -> HermesStore:
        return HermesStore(homes_at(self.path)[0], self._environ)

    def _change(self, verb: ChangeVerb, session_id: str, keep: Keep | None, *, drop_cjk: bool = False) -> Outcome:
        changes, now = self._store().changes(), self._clock()
        planned = changes.plan(verb, [SessionId(session_id)], now=now, drop_cjk=drop_cjk)
        outcome = changes.apply(planned, now=now, keep=keep or _forget)
        for one in (*planned.kept, *outcome.kept):
            if one.reason not in HARMLESS:
                raise ChangeRefused(f"Session {one.id} was left as it is", REASONS[one.reason])
        return outcome


HARMLESS: Final = frozenset({"unknown", "no-messages", "already-archived", "not-archived"})
"""Reasons that only mean there was nothing to do."""


def _forget(taken: Taken) -> None:
    """Where nobody keeps what goes."""
    del taken
