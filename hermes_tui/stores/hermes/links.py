"""How sessions hang together: what made each child, where conversations begin and which session is their tip.

``parent_session_id`` has five causes (facts/hermes.md section 7). They are told apart in this order: branch, reset,
delegation, compression. A marker counts only when it names the actual parent, because a continuation inherits the
markers of what it continues.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from hermes_tui.model import LineageKind
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST, filled_text, flag, json_or_none, text_or_none, time_or_none
from hermes_tui.stores.hermes.salvage import salvaged
from hermes_tui.stores.hermes.schema import Schema

IN_BATCH: Final = 900
"""Ids in one IN list."""
RESET_REASONS: Final = frozenset(
    {"session_reset", "session_switch", "idle", "daily", "suspended", "resume_pending_expired"}
)
COMPRESSED: Final = "compression"
TOOL_SOURCE: Final = "tool"
SUBAGENT_SOURCE: Final = "subagent"
DELEGATED: Final = "_delegate_from"
"""The marker of a delegated run."""


class Link(NamedTuple):
    """What one session says about its place among the others. A tuple, because a store has 70,000 of them."""

    id: str
    parent: str | None
    source: str | None
    session_key: str | None
    started: float | None
    ended: float | None
    has_end: bool
    """``ended_at`` is not NULL, absurd or not."""
    end_reason: str | None
    archived: bool
    hidden: bool
    branched_from: str | None
    reset_from: str | None
    delegated_from: str | None
    bad_config: bool
    """``model_config`` is there and is no JSON."""
    newest: float | None
    """Time of the newest message."""
    bad_time: bool
    unread: bool = False
    """Its row lies on a damaged page, or is gone: nothing but its id is known."""
    gone: bool = False
    """It has no row: what is left of it are messages that name it."""


_COLUMNS: Final = (
    "id",
    "parent_session_id",
    "source",
    "session_key",
    "started_at",
    "ended_at",
    "end_reason",
    "archived",
    "hidden",
    "model_config",
)


def link_query(schema: Schema, where: str = "") -> str:
    """SQL for :func:`link_of`; the newest message comes from the (session_id, timestamp) index."""
    newest = newest_expression(schema, "s.id")
    # A NULL or BLOB as id, which salvage leaves behind, names nothing; the health check counts them.
    where = f"{where} AND typeof(s.id) = 'text'" if where else "WHERE typeof(s.id) = 'text'"
    return f"SELECT {schema.select('sessions', _COLUMNS, 's')}, {newest} FROM sessions s {where}"


def newest_expression(schema: Schema, session: str) -> str:
    """The largest possible time among a session's messages, as an expression."""
    if not schema.has("messages", "session_id", "timestamp"):
        return "NULL"
    # One seek a session in the (session_id, timestamp) index. The bound leaves out what salvage put there: numbers no
    # clock shows, and text, which sorts after every number. What lies before the first agent, link_of leaves out.
    return (
        f"(SELECT m.timestamp FROM messages m WHERE m.session_id = {session} AND m.timestamp < {LATEST:.0f}"
        " ORDER BY m.timestamp DESC LIMIT 1)"
    )


def link_of(row: Sequence[Any]) -> Link:
    """One row of :func:`link_query`."""
    identity, parent, source, key, started, ended, reason, archived, hidden, config, newest = row
    marks = json_or_none(config) if config else None
    marked = marks if isinstance(marks, dict) else {}
    return Link(
        identity if isinstance(identity, str) else text_or_none(identity) or "",
        filled_text(parent),
        text_or_none(source),
        filled_text(key),
        time_or_none(started),
        time_or_none(ended),
        ended is not None,
        text_or_none(reason),
        flag(archived),
        flag(hidden),
        _mark(marked.get("_branched_from")),
        _mark(marked.get("_reset_from")),
        _mark(marked.get(DELEGATED)),
        bool(config) and marks is None,
        time_or_none(newest),
        (time_or_none(started) is None) or (ended is not None and time_or_none(ended) is None),
    )


def _mark(value: object) -> str | None:
    """A marker as it is compared with ids; JSON null is no marker."""
    return None if value is None else str(value)


class Links:
    """Some sessions, or all of them, with the answers about how they hang together."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.by_id: dict[str, Link] = {link.id: link for link in links}
        self.children: dict[str, list[Link]] = {}
        for link in self.by_id.values():
            if link.parent is not None and link.parent in self.by_id:
                self.children.setdefault(link.parent, []).append(link)
        self._kinds: dict[str, LineageKind] = {}
        self.rings = self._find_rings()
        """Sessions that are their own ancestors; the earliest of each ring counts as its root."""
        self._ring_roots = {ring[0] for ring in self.rings}

    def orphan(self, link: Link) -> bool:
        """Whether its parent is named and not there."""
        above = None if link.parent is None else self.by_id.get(link.parent)
        return link.parent is not None and (above is None or above.gone)

    def parent(self, link: Link) -> Link | None:
        """The parent, unless it is missing or the way up would go round in a ring."""
        if link.parent is None or link.id in self._ring_roots:
            return None
        return self.by_id.get(link.parent)

    def kind(self, link: Link) -> LineageKind:
        """What made this session."""
        found = self._kinds.get(link.id)
        if found is None:
            found = self._kinds[link.id] = kind_of(link, self.parent(link))
        return found

    def continues(self, link: Link) -> bool:
        """Whether it is a part of its parent's conversation, or tries to be."""
        return self.kind(link) == "compaction" and self.parent(link) is not None and link.source != TOOL_SOURCE

    def next_part(self, link: Link) -> Link | None:
        """The session that goes on where a compression ended this one (facts/hermes.md section 7, tip rule)."""
        if link.end_reason != COMPRESSED:
            return None
        candidates = [child for child in self.children.get(link.id, ()) if self.continues(child)]
        return max(candidates, key=_continuation_order, default=None)

    def root(self, link: Link) -> Link:
        """Where its conversation begins."""
        seen = {link.id}
        while self.continues(link):
            above = self.parent(link)
            if above is None or above.id in seen:
                break
            seen.add(above.id)
            link = above
        return link

    def down(self, link: Link) -> list[Link]:
        """From this session to its tip, however far: the product gives up after 100 parts, and so loses the rest."""
        chain, seen = [link], {link.id}
        while (link_next := self.next_part(chain[-1])) is not None:
            if link_next.id in seen:
                break
            seen.add(link_next.id)
            chain.append(link_next)
        return chain

    def conversation(self, link: Link) -> list[Link]:
        """Root to tip. A continuation that lost to another one has a conversation of its own, up to the same root."""
        above: list[Link] = []
        seen = {link.id}
        current = link
        while self.continues(current):
            parent = self.parent(current)
            if parent is None or parent.id in seen:
                break
            seen.add(parent.id)
            above.append(parent)
            current = parent
        return [*reversed(above), *(part for part in self.down(link) if part.id == link.id or part.id not in seen)]

    def listed(self) -> list[Link]:
        """One session a conversation, its root; continuations that lost are not listed."""
        return [link for link in self.by_id.values() if not self.continues(link)]

    def lost(self) -> list[Link]:
        """Continuations of a compacted session beside the one that won."""
        tried = (link for link in self.by_id.values() if self.continues(link))
        return [link for link in tried if self._winner(link) is not link]

    def _winner(self, link: Link) -> Link | None:
        above = self.parent(link)
        return None if above is None else self.next_part(above)

    def _find_rings(self) -> list[list[str]]:
        """Every ring once, its earliest session first."""
        rings: list[list[str]] = []
        state: dict[str, int] = {}
        for start, link in self.by_id.items():
            if link.parent is None or start in state:
                continue
            path: list[str] = []
            current: str | None = start
            while current is not None and current in self.by_id and current not in state:
                state[current] = 1
                path.append(current)
                current = self.by_id[current].parent
            if current is not None and state.get(current) == 1:
                rings.append(self._earliest_first(path[path.index(current) :]))
            for passed in path:
                state[passed] = 2
        return rings

    def _earliest_first(self, ring: list[str]) -> list[str]:
        def age(identity: str) -> tuple[float, str]:
            started = self.by_id[identity].started
            return (float("inf") if started is None else started, identity)

        first = ring.index(min(ring, key=age))
        return ring[first:] + ring[:first]


def kind_of(link: Link, parent: Link | None) -> LineageKind:
    """What made a session, by its markers and its parent (``None``: no parent, or not there)."""
    if link.parent is None or parent is None:
        return _kind_without_parent(link)
    if link.branched_from == parent.id:
        return "branch"
    if link.reset_from == parent.id:
        return "reset"
    if link.delegated_from == parent.id:
        return "delegation"
    if link.source == SUBAGENT_SOURCE != parent.source:
        # Without a marker, as before schema 16: no compaction and no branch makes a conversation a delegated run.
        return "delegation"
    if _old_branch(link, parent):
        return "branch"
    if _reset_by_channel(link, parent):
        return "reset"
    # Before the marker existed, a child of a session that no compression ended was a delegated run.
    return "compaction" if parent.end_reason == COMPRESSED else "delegation"


def _kind_without_parent(link: Link) -> LineageKind:
    """Deleting a parent leaves the marker: a delegated run stays one, anything else has become a root."""
    if link.delegated_from is not None or (link.parent is not None and link.source == SUBAGENT_SOURCE):
        return "delegation"
    if link.parent is not None and link.parent == link.branched_from:
        return "branch"
    if link.parent is not None and link.parent == link.reset_from:
        return "reset"
    return "root"


def _old_branch(link: Link, parent: Link) -> bool:
    """A branch from before the marker: the parent ended for it, and the child began after that."""
    if parent.end_reason != "branched":
        return False
    return link.started is not None and parent.ended is not None and link.started >= parent.ended


def _reset_by_channel(link: Link, parent: Link) -> bool:
    return (
        parent.end_reason in RESET_REASONS and link.session_key is not None and link.session_key == parent.session_key
    )


def _continuation_order(link: Link) -> tuple[int, float, float, str]:
    """Larger wins: compressed itself, then open, then ended; then the newest message, start and id."""
    rank = 2 if link.end_reason == COMPRESSED else 0 if link.has_end else 1
    lowest = float("-inf")
    return (
        rank,
        lowest if link.newest is None else link.newest,
        lowest if link.started is None else link.started,
        link.id,
    )


def kind_expression(schema: Schema) -> str:
    """:func:`kind_of` as SQL over ``s`` and its parent ``p``, for questions about every session of a large store."""
    marked = _marked(schema)
    branch, reset, delegate = (_mark_in_json(schema, name) for name in ("_branched_from", "_reset_from", DELEGATED))
    reasons = ", ".join(f"'{reason}'" for reason in sorted(RESET_REASONS))
    key, above_key = (schema.column("sessions", "session_key", alias) for alias in ("s", "p"))
    started, ended = schema.column("sessions", "started_at", "s"), schema.column("sessions", "ended_at", "p")
    sane = " AND ".join(f"{time} >= {EARLIEST:.0f} AND {time} < {LATEST:.0f}" for time in (started, ended))
    unmarked = f"""CASE
            WHEN p.id IS NULL THEN iif(s.source = 'subagent', 'delegation', 'root')
            WHEN s.source = 'subagent' AND p.source IS NOT 'subagent' THEN 'delegation'
            WHEN p.end_reason = 'compression' THEN 'compaction'
            WHEN p.end_reason = 'branched' AND {sane} AND {started} >= {ended} THEN 'branch'
            WHEN p.end_reason IN ({reasons}) AND {key} <> '' AND {key} = {above_key} THEN 'reset'
            ELSE 'delegation' END"""
    return f"""CASE
        WHEN s.parent_session_id IS NULL OR s.parent_session_id = '' THEN {parentless_kind(schema)}
        WHEN {marked} THEN CASE
            WHEN p.id IS NULL AND {delegate} IS NOT NULL THEN 'delegation'
            WHEN p.id IS NULL AND s.source = 'subagent' THEN 'delegation'
            WHEN {branch} = s.parent_session_id THEN 'branch'
            WHEN {reset} = s.parent_session_id THEN 'reset'
            WHEN {delegate} = s.parent_session_id THEN 'delegation'
            ELSE {unmarked} END
        ELSE {unmarked} END"""


def parentless_kind(schema: Schema) -> str:
    """The same of sessions ``s`` that name no parent."""
    delegate = _mark_in_json(schema, DELEGATED)
    return f"CASE WHEN {_marked(schema)} THEN iif({delegate} IS NULL, 'root', 'delegation') ELSE 'root' END"


def _marked(schema: Schema) -> str:
    """Whether a session may have markers: a look for the word is cheaper than reading JSON, and most have none."""
    config = schema.column("sessions", "model_config", "s")
    return f"instr({config}, '_from') AND json_valid({config})"


def _mark_in_json(schema: Schema, name: str) -> str:
    return f"json_extract({schema.column('sessions', 'model_config', 's')}, '$.{name}')"


def all_links(connection: ReadConnection, schema: Schema) -> Links:
    """Every session of the store; one on a damaged page is there with nothing but its id."""
    try:
        return Links(link_of(row) for row in connection.rows(link_query(schema)))
    except StoreDamaged:
        # The ids stand in an index of their own, so that most often all of them can be read.
        ids = [row[0] for row in connection.rows("SELECT id FROM sessions WHERE typeof(id) = 'text'")]
        found, lost = salvaged(lambda some: {link.id: link for link in _links_of(connection, schema, some)}, ids)
        return Links([*found.values(), *map(_unread, sorted(lost))])


def _unread(identity: str) -> Link:
    return link_of((identity, *[None] * (len(_COLUMNS) - 1), None))._replace(bad_time=False, unread=True)


def _links_of(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> Iterable[Link]:
    """The links of these sessions alone."""
    for part in batches(ids):
        marks = ",".join("?" * len(part))
        yield from map(link_of, connection.rows(link_query(schema, f"WHERE s.id IN ({marks})"), part))


def links_around(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> Links:
    """The conversations these sessions are in, with every child of their parts: enough to name parts and tips."""
    return _walked(connection, schema, ids, _UP_COMPRESSED, _DOWN_COMPRESSED)


def families_of(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> Links:
    """As :func:`links_around` with every ancestor, so that rings are whole: chains are as among all links.

    Raises:
        StoreDamaged: some of it cannot be read.
    """
    if not schema.has("sessions", "parent_session_id", "end_reason"):
        return Links(_links_of(connection, schema, ids))
    walk = f"WITH RECURSIVE {_UP}, above(id) AS (SELECT id FROM up), {_DOWN_COMPRESSED}"
    sql = f"{walk} {link_query(schema, 'WHERE s.id IN (SELECT id FROM down)')}"
    return Links(map(link_of, connection.rows(sql, {"ids": json_ids(ids)})))


def connected_links(connection: ReadConnection, schema: Schema, session_id: str) -> Links:
    """The whole tree one session is in."""
    return _walked(connection, schema, (session_id,), _UP, _DOWN)


# UNION drops what was seen before, so that rings end. CROSS JOIN keeps the order of the tables: without statistics,
# which these stores do not have, SQLite would walk all sessions instead.
_UP: Final = """
    up(id) AS (
        SELECT value FROM json_each(:ids)
        UNION
        SELECT s.parent_session_id FROM up CROSS JOIN sessions s ON s.id = up.id
         WHERE s.parent_session_id IS NOT NULL)"""
_DOWN: Final = """
    down(id) AS (
        SELECT id FROM up
        UNION
        SELECT c.id FROM down CROSS JOIN sessions c ON c.parent_session_id = down.id)"""
_UP_COMPRESSED: Final = """
    up(id) AS (
        SELECT value FROM json_each(:ids)
        UNION
        SELECT p.id FROM up CROSS JOIN sessions s ON s.id = up.id CROSS JOIN sessions p ON p.id = s.parent_session_id
         WHERE p.end_reason = 'compression'),
    above(id) AS (
        SELECT id FROM up
        UNION
        SELECT s.parent_session_id FROM up CROSS JOIN sessions s ON s.id = up.id
         WHERE s.parent_session_id IS NOT NULL)"""
_DOWN_COMPRESSED: Final = """
    compressed(id) AS (
        SELECT up.id FROM up CROSS JOIN sessions s ON s.id = up.id WHERE s.end_reason = 'compression'
        UNION
        SELECT c.id FROM compressed CROSS JOIN sessions c ON c.parent_session_id = compressed.id
         WHERE c.end_reason = 'compression'),
    down(id) AS (
        SELECT id FROM above
        UNION SELECT c.id FROM up CROSS JOIN sessions c ON c.parent_session_id = up.id
        UNION SELECT id FROM compressed
        UNION SELECT c.id FROM compressed CROSS JOIN sessions c ON c.parent_session_id = compressed.id)"""


def _walked(connection: ReadConnection, schema: Schema, ids: Sequence[str], up: str, down: str) -> Links:
    """The links that two recursive walks find."""
    if not schema.has("sessions", "parent_session_id", "end_reason"):
        return Links(_links_of(connection, schema, ids))
    sql = f"WITH RECURSIVE {up}, {down} " + link_query(schema, "WHERE s.id IN (SELECT id FROM down)")

    def walk(some: Sequence[str]) -> dict[str, Link]:
        return {link.id: link for link in map(link_of, connection.rows(sql, {"ids": json_ids(some)}))}

    found, cut_off = salvaged(walk, ids)
    if cut_off:
        # A damaged page lies on their way: each by itself, as far as it can be read.
        alone, lost = salvaged(lambda some: {link.id: link for link in _links_of(connection, schema, some)}, [*cut_off])
        found = {**{identity: _unread(identity) for identity in lost}, **alone, **found}
    missing = [identity for identity in ids if identity not in found]
    return Links([*found.values(), *(_gone(connection, schema, missing) if missing else ())])


def _gone(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> Iterable[Link]:
    """Those of these sessions without a row that messages are left of."""
    if not schema.has("messages", "session_id"):
        return
    sql = (
        f"SELECT i.value, {newest_expression(schema, 'i.value')} FROM json_each(:ids) i"
        " WHERE EXISTS (SELECT 1 FROM messages o WHERE o.session_id = i.value)"
    )
    for identity, newest in connection.rows(sql, {"ids": json_ids(ids)}):
        yield _unread(identity)._replace(newest=time_or_none(newest), gone=True)


def json_ids(ids: Sequence[str]) -> str:
    """Ids as one bound parameter for json_each."""
    return json.dumps(list(ids))


def batches(ids: Sequence[str], size: int = IN_BATCH) -> Iterable[Sequence[str]]:
    """Ids in pieces that fit an IN list."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def children_counts(links: Links, parts: Sequence[Link]) -> tuple[int, int]:
    """How many branches and how many delegated runs start from these sessions."""
    kinds: list[LineageKind] = [
        links.kind(child) for part in parts for child in links.children.get(part.id, ()) if child.id != part.id
    ]
    return kinds.count("branch"), kinds.count("delegation")
