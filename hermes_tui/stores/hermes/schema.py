"""Which tables and columns a store really has: looked up, never concluded from its version.

Columns come and go between versions and the version number may disagree (facts/hermes.md section 2). Queries are
written against what is there; what is missing is a NULL of the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StoreDamaged, StoreUnreadable

if TYPE_CHECKING:
    from hermes_tui.storage.reading import ReadConnection

NEWEST_KNOWN: Final = 30
"""Schema of the newest sources read (facts/hermes.md, head); a higher one is from the future."""
NEEDED: Final = ("id",)
"""Columns without which nothing can be said of a session."""
READ_TABLES: Final = (
    "sessions",
    "messages",
    "session_model_usage",
    "session_daily_usage",
    "system_prompts",
    "compression_locks",
    "session_turn_leases",
    "gateway_routing",
    "gateway_heartbeats",
    "async_delegations",
    "state_meta",
    "schema_version",
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables we may read and their columns."""

    columns: dict[str, frozenset[str]]
    """By table; only real tables, for a view may say anything."""
    objects: dict[str, str]
    """Every table and view with the SQL that made it."""
    version: int | None

    def has(self, table: str, *names: str) -> bool:
        """Whether the table is there with all these columns."""
        found = self.columns.get(table)
        return found is not None and found.issuperset(names)

    def column(self, table: str, name: str, alias: str = "") -> str:
        """The column as an expression; NULL where it is missing."""
        if not self.has(table, name):
            return "NULL"
        return f"{alias}.{name}" if alias else f"{table}.{name}"

    def select(self, table: str, names: tuple[str, ...], alias: str = "") -> str:
        """A result list of these columns in this order, the missing ones as NULL."""
        return ", ".join(f"{self.column(table, name, alias)} AS {name}" for name in names)

    def row(self, table: str, alias: str) -> str:
        """What tells a row of this table from the others the quickest: its rowid, or the id where it has none."""
        return f"{alias}.id" if "WITHOUT ROWID" in self.objects[table].upper() else f"{alias}.rowid"

    @property
    def from_the_future(self) -> bool:
        """A version newer than any we know; read all the same."""
        return self.version is not None and self.version > NEWEST_KNOWN


def read_schema(connection: ReadConnection) -> Schema:
    """Look up what the store has.

    Raises:
        StoreUnreadable: there is no ``sessions`` table, or not one that names its sessions.
    """
    objects = connection.rows("SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view')")
    tables = {name for name, kind, _ in objects if kind == "table"}
    wanted = [name for name in READ_TABLES if name in tables]
    marks = ",".join("?" * len(wanted))
    columns: dict[str, set[str]] = {name: set() for name in wanted}
    found = connection.rows(
        f"SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c WHERE s.name IN ({marks})", wanted
    )
    for table, name in found:
        columns[table].add(name)
    if not columns.get("sessions", set()).issuperset(NEEDED):
        raise StoreUnreadable(
            connection.path,
            "it has no table of sessions" if "sessions" not in tables else "its table of sessions has no ids",
            "Is it the state.db of a Hermes home? An empty file here means the agent never got to write.",
        )
    frozen = {name: frozenset(found) for name, found in columns.items()}
    return Schema(frozen, {name: sql or "" for name, _, sql in objects}, _version(connection, frozen))


def _version(connection: ReadConnection, columns: dict[str, frozenset[str]]) -> int | None:
    """The highest number in ``schema_version``."""
    if "version" not in columns.get("schema_version", frozenset()):
        return None
    try:
        row = connection.one("SELECT max(version) FROM schema_version")
    except StoreDamaged:
        # Nothing hangs on it: the health check says that the page is damaged.
        return None
    return row[0] if row and isinstance(row[0], int) else None
