"""Asking a store one question: open late, look up the schema, answer, close (design.md, rule 3)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from hermes_tui.storage.errors import SchemaDrift
from hermes_tui.storage.interrupts import Interrupts

if TYPE_CHECKING:
    from hermes_tui.storage.reading import ReadConnection
    from hermes_tui.stores.hermes.detours import Detours
    from hermes_tui.stores.hermes.schema import Schema

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Asking:
    """Opens one Hermes store for one question after another; may be used from any thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.interrupts = Interrupts()
        self._lock = threading.Lock()
        self._known: tuple[object, Schema] | None = None
        self._detours: Detours | None = None

    def ask(
        self,
        question: Callable[Concatenate[ReadConnection, Schema, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Open the store, answer the question with these arguments, close the store.

        Raises:
            StoreUnreadable: it cannot be opened or read, or holds no sessions.
            StorageError: the question was interrupted or took too long.
        """
        # Imported late, SQLite with it: what is kept from the last run is answered without.
        from hermes_tui.storage.reading import read_only

        with read_only(self.path, interrupts=self.interrupts) as connection:
            connection.detour = self._detour
            try:
                return question(connection, self._schema(connection), *args, **kwargs)
            except SchemaDrift:
                # Another process added or moved columns between two statements (facts/hermes.md section 5).
                with self._lock:
                    self._known = None
                return question(connection, self._schema(connection), *args, **kwargs)

    def _schema(self, connection: ReadConnection) -> Schema:
        """The schema, read again when SQLite's own counter of schema changes moved."""
        row = connection.one("PRAGMA schema_version")
        cookie = row[0] if row else None
        with self._lock:
            known = self._known
        if known is not None and known[0] == cookie:
            return known[1]
        from hermes_tui.stores.hermes.schema import read_schema

        schema = read_schema(connection)
        with self._lock:
            self._known = (cookie, schema)
        return schema

    def _detour(self, connection: ReadConnection) -> bool:
        # Imported late: only for a damaged store.
        from hermes_tui.stores.hermes.detours import Detours

        with self._lock:
            detours = self._detours = self._detours or Detours()
        return detours.take(connection)
