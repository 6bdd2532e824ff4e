"""Signs that an agent works on a session: then it is left alone (facts/hermes.md section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.links import Link, Links
from hermes_tui.stores.hermes.schema import Schema

LIFE_S: Final = 300.0
"""A session that has not ended and was active within so many seconds is taken for running (contract.md, list)."""


@dataclass(frozen=True, slots=True)
class Held:
    """Sessions that unexpired rows name, and when sessions last gave a sign of life."""

    leased: frozenset[str]
    compressing: frozenset[str]
    heartbeats: Mapping[str, float]

    def reason(self, links: Links, link: Link) -> str | None:
        """Why the session must be left alone: it, or another part of its conversation, is in somebody's hands."""
        parts = {part.id for part in links.conversation(link)} | {link.id}
        if parts & self.compressing:
            return "compressing"
        return "leased" if parts & self.leased else None

    def last_active(self, link: Link) -> float | None:
        """The newest message, heartbeat or start."""
        signs = (link.newest, self.heartbeats.get(link.id), link.started)
        return max((sign for sign in signs if sign is not None), default=None)

    def alive(self, link: Link, now: float) -> bool:
        """Whether it has not ended and was active a moment ago."""
        last = self.last_active(link)
        return not link.has_end and last is not None and now - last <= LIFE_S


def read_held(connection: ReadConnection, schema: Schema, now: float) -> Held:
    """Look at leases, locks and heartbeats."""

    def named(table: str, column: str) -> frozenset[str]:
        if not schema.has(table, column, "expires_at"):
            return frozenset()
        sql = f"SELECT {column} FROM {table} WHERE typeof(expires_at) IN ('integer', 'real') AND expires_at > ?"
        return frozenset(str(row[0]) for row in connection.rows(sql, (now,)))

    heartbeats: dict[str, float] = {}
    if schema.has("sessions", "last_activity_at"):
        sql = (
            "SELECT id, last_activity_at FROM sessions WHERE typeof(last_activity_at) IN ('integer', 'real')"
            " AND last_activity_at BETWEEN 946684800 AND 4102444800"
        )
        heartbeats = dict(connection.rows(sql))
    leases = named("session_turn_leases", "conversation_id")
    return Held(leases, named("compression_locks", "session_id"), heartbeats)
