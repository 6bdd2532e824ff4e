"""Which rows store the same message: kept by a compaction or copied by a branch (contract.md, search: one hit).

Two rows are one message because of their place, not their text alone: people repeat themselves. Where a row with the
same content stands in the family of its session, the whole family is laid out as the transcript lays it out, and every
copy is traced to the row it was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Final

from hermes_tui.records import dataclass
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.content import Stored, stored_of, stored_query
from hermes_tui.stores.hermes.generations import Generations, same_message
from hermes_tui.stores.hermes.links import Link, Links, connected_links
from hermes_tui.stores.hermes.schema import Schema

MOST_SESSIONS: Final = 400
"""Sessions of one family that are laid out."""
COPYING: Final = frozenset({"branch", "compaction"})
"""What makes a session that begins with copies."""


@dataclass(slots=True)
class Family:
    """The sessions that may hold copies of each other's rows."""

    sessions: tuple[str, ...]
    links: Links
    origin: dict[int, int] | None = None
    """Row to the row it was copied from in the first place; ``None``: not laid out yet."""
    groups: dict[int, list[int]] = field(default_factory=dict)
    """The first row to all rows of its message, itself included, in order."""
    inherited: set[int] = field(default_factory=set)
    """Rows a branch copied."""


class Copies:
    """Answers for one search; families are laid out once."""

    def __init__(self) -> None:
        self._families: dict[str, Family | None] = {}

    def group(self, connection: ReadConnection, schema: Schema, row: Stored) -> Sequence[int]:
        """The ids of every row that stores this message, in order."""
        if not schema.has("messages", "session_id", "role", "content"):
            return (row.id,)
        family = self._family(connection, schema, row.session_id)
        if family is None or (family.origin is None and not _has_equal(connection, schema, row, family.sessions)):
            return (row.id,)
        if family.origin is None:
            _lay_out(connection, schema, family)
        origin = (family.origin or {}).get(row.id, row.id)
        return family.groups.get(origin) or (row.id,)

    def inherited(self, row: Stored) -> bool:
        """Whether a branch copied this row; known after :meth:`group`."""
        family = self._families.get(row.session_id)
        return family is not None and row.id in family.inherited

    def _family(self, connection: ReadConnection, schema: Schema, session_id: str) -> Family | None:
        if session_id not in self._families:
            family = _family_of(connection, schema, session_id)
            self._families[session_id] = family
            for other in family.sessions if family else ():
                self._families[other] = family
        return self._families[session_id]


def _family_of(connection: ReadConnection, schema: Schema, session_id: str) -> Family | None:
    """``None`` where nothing can have been copied: no parent, no child, nothing compacted in place."""
    if not _may_copy(connection, schema, session_id):
        return None
    links = connected_links(connection, schema, session_id)
    start = links.by_id.get(session_id)
    sessions = (session_id,) if start is None else tuple(link.id for link in _reached(links, start))
    return Family(sessions, links)


def _may_copy(connection: ReadConnection, schema: Schema, session_id: str) -> bool:
    asked: list[str] = []
    if schema.has("sessions", "parent_session_id"):
        asked.append("EXISTS (SELECT 1 FROM sessions WHERE id = :id AND parent_session_id IS NOT NULL)")
        asked.append("EXISTS (SELECT 1 FROM sessions WHERE parent_session_id = :id)")
    if schema.has("messages", "active"):
        asked.append("EXISTS (SELECT 1 FROM messages WHERE session_id = :id AND active = 0)")
    row = connection.one(f"SELECT {' OR '.join(asked) or '0'}", {"id": session_id})
    return bool(row and row[0])


def _reached(links: Links, start: Link) -> Iterator[Link]:
    """The sessions reached over branches and compactions, either way."""
    seen, waiting = {start.id}, [start]
    while waiting and len(seen) <= MOST_SESSIONS:
        link = waiting.pop()
        yield link
        near = [child for child in links.children.get(link.id, ()) if links.kind(child) in COPYING]
        parent = links.parent(link)
        if parent is not None and links.kind(link) in COPYING:
            near.append(parent)
        for other in near:
            if other.id not in seen:
                seen.add(other.id)
                waiting.append(other)


def _has_equal(connection: ReadConnection, schema: Schema, row: Stored, sessions: Sequence[str]) -> bool:
    """Whether another row of the family has the same content; lengths are compared first, they cost nothing."""
    marks = ",".join("?" * len(sessions))
    call = schema.has("messages", "tool_call_id")
    sql = (
        f"SELECT 1 FROM messages m JOIN messages own ON own.id = ? WHERE m.session_id IN ({marks}) AND m.id <> own.id"
        " AND ((octet_length(m.content) IS octet_length(own.content) AND m.role IS own.role"
        " AND m.content IS own.content)"
        + (" OR (m.role = 'tool' AND m.tool_call_id <> '' AND m.tool_call_id = own.tool_call_id)" if call else "")
        + ") LIMIT 1"
    )
    return connection.one(sql, (row.id, *sessions)) is not None


def _lay_out(connection: ReadConnection, schema: Schema, family: Family) -> None:
    """Trace every row of the family to the one it was copied from."""
    origin: dict[int, int] = {}
    rows: dict[str, list[Stored]] = {}
    for session in family.sessions:
        # Sorted here: with ORDER BY SQLite may walk the whole table by row id instead of the session's index.
        sql = stored_query(schema, "WHERE m.session_id = ?", prints=True)
        rows[session] = sorted(map(stored_of, connection.rows(sql, (session,))), key=lambda row: row.id)
    for path in _conversations(family):
        _trace_branch(family, path[0], rows, origin)
        _trace_chain(path, rows, origin, family)
    family.origin = origin
    for number in sorted(origin):
        family.groups.setdefault(origin[number], []).append(number)


def _conversations(family: Family) -> list[list[Link]]:
    """Root to tip, parents before the branches made from them; a continuation that lost has a path of its own."""
    members = [family.links.by_id[one] for one in family.sessions if one in family.links.by_id]
    paths: dict[tuple[str, ...], list[Link]] = {}
    for link in members:
        path = [part for part in family.links.conversation(link) if part.id in family.sessions]
        paths.setdefault(tuple(part.id for part in path), path)
    return sorted(paths.values(), key=lambda path: (_depth(family.links, path[0]), path[0].id, len(path)))


def _depth(links: Links, link: Link) -> int:
    depth, seen = 0, {link.id}
    while (parent := links.parent(link)) is not None and parent.id not in seen:
        seen.add(parent.id)
        link, depth = parent, depth + 1
    return depth


def _trace_branch(family: Family, first: Link, rows: dict[str, list[Stored]], origin: dict[int, int]) -> None:
    """The beginning of a branch, as long as it follows its parent's rows."""
    parent = family.links.parent(first)
    if parent is None or family.links.kind(first) != "branch":
        return
    theirs = iter(rows.get(parent.id, ()))
    for row in rows[first.id]:
        match = next((other for other in theirs if same_message(row, other)), None)
        if match is None:
            break
        origin[row.id] = origin.get(match.id, match.id)
        origin.setdefault(match.id, match.id)
        family.inherited.add(row.id)


def _trace_chain(path: Sequence[Link], rows: dict[str, list[Stored]], origin: dict[int, int], family: Family) -> None:
    """The rows of a conversation, generation by generation."""
    generations = Generations()
    spoken: list[Stored] = []
    used: set[int] = set()
    for number, link in enumerate(path):
        used.clear()
        continues = number > 0 and family.links.continues(link)
        for placed in generations.session(iter(rows.get(link.id, ())), continues=continues):
            row = placed.row
            if row.summary:
                used.clear()
            if placed.copy and (source := _source(row, spoken, used)) is not None:
                used.add(source.id)
                origin.setdefault(row.id, origin.get(source.id, source.id))
                continue
            spoken.append(row)
            origin.setdefault(row.id, row.id)


def _source(copy: Stored, spoken: Iterable[Stored], used: set[int]) -> Stored | None:
    """The row a copy was made from: the one of the same time, else the newest that no other copy took."""
    same = [row for row in spoken if row.id not in used and same_message(row, copy)]
    return next((row for row in same if row.at == copy.at), same[-1] if same else None)
