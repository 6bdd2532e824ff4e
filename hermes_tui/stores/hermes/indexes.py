"""Which full-text indexes a store has, what each covers, and whether it can be believed.

Layouts and markers: facts/hermes.md section 3; damage that no SQLite check shows: section 11. Everything is looked up
in the schema and in the index itself, for a file's version says nothing about its indexes (section 2).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, Literal

from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, QueryFailed, SchemaDrift, StoreDamaged
from hermes_tui.storage.letters import canonical
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.storage.stamps import file_stamp
from hermes_tui.stores.hermes.content import STRUCTURED
from hermes_tui.stores.hermes.schema import Schema

IndexName = Literal["fts", "trigram", "cjk"]
TABLES: Final[dict[IndexName, str]] = {
    "fts": "messages_fts",
    "trigram": "messages_fts_trigram",
    "cjk": "messages_fts_cjk",
}
PROBES: Final = 8
"""Messages from the newest to the oldest whose words must be found."""
PROBE_CHARACTERS: Final = 2_000
"""Shorter than what the newest layout keeps of tool output (8,192 characters)."""
MOST_SURVEYS: Final = 64
"""Stores whose last survey is remembered."""
SHORTEST_PROBE: Final = 3
"""Characters of a trigram."""


@dataclass(frozen=True, slots=True)
class Index:
    """One full-text index over ``messages``."""

    name: IndexName
    table: str
    inline: bool
    """One column with content, tool name and tool calls, a space behind each; over every row."""
    has_calls: bool
    """Tool names and tool calls are in it."""
    problem: str | None = None
    """Why it is not used."""
    gap: tuple[int, int] | None = None
    """Rows behind the first id up to the second are not in it yet: it is being rebuilt."""

    @property
    def usable(self) -> bool:
        """Whether its answers can be believed."""
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one store as they are now."""

    by_name: dict[IndexName, Index]

    def usable(self, name: IndexName) -> Index | None:
        """The index, if it is there and sound."""
        index = self.by_name.get(name)
        return index if index is not None and index.usable else None

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, one sentence an index."""
        return tuple(f"{index.table}: {index.problem}" for index in self.by_name.values() if index.problem)


class Surveys:
    """The last survey of each store, as good as its files are unchanged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[object, Indexes]] = OrderedDict()

    def of(self, path: str, connection: ReadConnection, schema: Schema) -> Indexes:
        """The indexes of the store at this path, surveyed again when anything was written."""
        stamp = file_stamp(path)
        with self._lock:
            known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        found = survey(connection, schema)
        with self._lock:
            self._known[path] = (stamp, found)
            self._known.move_to_end(path)
            while len(self._known) > MOST_SURVEYS:
                self._known.popitem(last=False)
        return found


SURVEYS: Final = Surveys()


def survey(connection: ReadConnection, schema: Schema) -> Indexes:
    """Look at every index; the connection must have our tokenizers."""
    marks = _markers(connection, schema)
    triggers = {
        row[0]: row[1] or "" for row in connection.rows("SELECT name, sql FROM sqlite_schema WHERE type='trigger'")
    }
    samples = list(_samples(connection, schema))
    found: dict[IndexName, Index] = {}
    for name, table in TABLES.items():
        sql = schema.objects.get(table)
        if sql is None:
            continue
        index = _described(name, table, sql, triggers, marks)
        if index.usable:
            index = _probed(connection, index, samples)
        found[name] = index
    return Indexes(found)


def _markers(connection: ReadConnection, schema: Schema) -> dict[str, Any] | None:
    """What the agent notes of its indexes; ``None`` where a damaged page hides it."""
    if not schema.has("state_meta", "key", "value"):
        return {}
    try:
        return dict(connection.rows("SELECT key, value FROM state_meta WHERE key LIKE 'fts%'"))
    except StoreDamaged:
        return None


def _described(name: IndexName, table: str, sql: str, triggers: dict[str, str], marks: dict[str, Any] | None) -> Index:
    """What the schema and the markers say."""
    trigger = triggers.get(f"{table}_insert")
    inline = "content=" not in sql.replace(" ", "")
    has_calls = "tool_calls" in sql or (inline and trigger is not None and "tool_calls" in trigger)
    prefix = "fts_cjk" if name == "cjk" else "fts"
    problem = None
    if marks is None:
        return Index(name, table, inline, has_calls, "what its agent notes of it cannot be read", None)
    if _is_set(marks.get(f"{prefix}_stale")) or (name == "cjk" and _is_set(marks.get("fts_stale"))):
        problem = f"its agent marked it as out of date ({prefix}_stale)"
    elif trigger is None:
        problem = "nothing keeps it up to date: its triggers are gone"
    return Index(name, table, inline, has_calls, problem, _gap(marks, prefix))


def _is_set(value: Any) -> bool:
    return value is not None and str(value).strip().lower() not in ("", "0", "false")


def _gap(marks: dict[str, Any], prefix: str) -> tuple[int, int] | None:
    """The ids a rebuild has still to do (facts/hermes.md section 3, gated triggers)."""
    high = _number(marks.get(f"{prefix}_rebuild_high_water"))
    if high is None:
        return None
    progress = _number(marks.get(f"{prefix}_rebuild_progress"))
    done = -1 if progress is None else progress
    return (done, high) if done < high else None


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def id_bounds(connection: ReadConnection) -> tuple[int, int]:
    """The lowest and highest row id of ``messages``; (1, 0) where there is none."""
    # Two selects: one with both walks the whole table.
    try:
        row = connection.one("SELECT (SELECT min(id) FROM messages), (SELECT max(id) FROM messages)")
    except StoreDamaged:
        # The first or the last page of rows is gone: the highest id that was ever given is kept apart from them.
        row = connection.one("SELECT 1, seq FROM sqlite_sequence WHERE name = 'messages'")
    if row is None or not isinstance(row[0], int) or not isinstance(row[1], int):
        return 1, 0
    return row[0], row[1]


@dataclass(frozen=True, slots=True)
class _Sample:
    """A message and a word of it."""

    id: int
    word: str


def _samples(connection: ReadConnection, schema: Schema) -> Iterator[_Sample]:
    """Words of messages from the newest to the oldest."""
    if not schema.has("messages", "id", "content"):
        return
    low, high = id_bounds(connection)
    if high < low:
        return
    sql = (
        f"SELECT id, CAST(substr(content, 1, {PROBE_CHARACTERS}) AS BLOB) FROM messages"
        " WHERE id <= ? AND typeof(content) = 'text' AND length(content) > 3 ORDER BY id DESC LIMIT 1"
    )
    seen: set[int] = set()
    for step in range(PROBES):
        try:
            found = connection.one(sql, (high - (high - low) * step // (PROBES - 1),))
        except StoreDamaged:
            continue  # a page of messages is gone: what the indexes hold is proved by the others
        if found is None or found[0] in seen:
            continue
        seen.add(found[0])
        text = bytes(found[1]).decode("utf-8", "replace")
        # The last word may be cut.
        words = [word for word in canonical(text).split()[:-1] if len(word) >= SHORTEST_PROBE and word.isalnum()]
        if words and not text.startswith(STRUCTURED.decode()):
            yield _Sample(found[0], max(words[:40], key=len))


def _probed(connection: ReadConnection, index: Index, samples: list[_Sample]) -> Index:
    """The index, with what asking it for known words brought to light."""
    problem = None
    try:
        connection.rows(f"SELECT rowid FROM {index.table} WHERE {index.table} MATCH '\"a\"' AND rowid = 0")
        for sample in samples:
            if _misses(connection, index, sample):
                problem = f"it is damaged: a word of message {sample.id} is not found by it"
                break
    except Interrupted:
        raise
    except (StoreDamaged, QueryFailed, SchemaDrift) as error:
        problem = f"it cannot be read: {error.detail}"
    return index if problem is None else _with_problem(index, problem)


def _with_problem(index: Index, problem: str) -> Index:
    return Index(index.name, index.table, index.inline, index.has_calls, problem, index.gap)


def _misses(connection: ReadConnection, index: Index, sample: _Sample) -> bool:
    """Whether the index lacks a word it must have."""
    if index.gap is not None and index.gap[0] < sample.id <= index.gap[1]:
        return False
    held = connection.one(f"SELECT 1 FROM {index.table}_docsize WHERE id = ?", (sample.id,)) is not None
    if not held:
        # Other layouts leave rows out on purpose; those are scanned.
        return index.inline
    word = sample.word if index.name != "trigram" else sample.word[:SHORTEST_PROBE]
    if index.name == "trigram" and not word.isascii():
        # Folding of accents differs between the indexes; plain letters are enough of a proof.
        return False
    sql = f"SELECT 1 FROM {index.table} WHERE {index.table} MATCH ? AND rowid = ?"
    return connection.one(sql, (f'"{word}"', sample.id)) is None
