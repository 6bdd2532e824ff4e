"""The usual list of a large store: every conversation, newest activity first, without reading every session.

How new the newest sessions are at least is known from some of them. With that bound every session is asked, by one seek
in an index, whether it has a newer message; few have. Beside that the store is asked how many conversations there are
and why some are left out. Both are done in two halves side by side, for SQLite lets Python's lock go while it works.
Only sessions near the top are then put together to conversations, by the same rules as anywhere (``links.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from hermes_tui.model import ListEntry, Listing, ListQuery, SessionId
from hermes_tui.storage.aside import Aside
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST, set_flag
from hermes_tui.stores.hermes.links import (
    Link,
    Links,
    batches,
    kind_expression,
    link_of,
    link_query,
    links_around,
    newest_expression,
    parentless_kind,
)
from hermes_tui.stores.hermes.schema import Schema

Answer = TypeVar("Answer")
OwnAnswer = TypeVar("OwnAnswer")

WORTH_IT: Final = 3_000
"""Sessions from which two connections pay."""
UNKNOWN: Final = float("-inf")
MOST_SUSPECTS: Final = 500
"""Parents that were written after their child; more of them are looked at the general way."""
LOWER: Final = 0.48
"""The part of the sessions that is looked through in the thread that asks, which puts the first page together too."""
SPARE: Final = 30
"""Candidates beyond the limit that are looked at first."""
REASONS: Final = ("archived", "delegated", "tool", "hidden")
"""Why a conversation is left out, in the order in which they count (:func:`left_out`)."""
_NEEDED: Final = ("id", "parent_session_id", "end_reason", "source", "started_at")


class Newest(NamedTuple):
    """A session and its last activity."""

    at: float
    id: str


class Halves(NamedTuple):
    """Where a large store is cut in two, and what its newest sessions have in common."""

    sessions: int
    """Of the whole store."""
    middle: str
    """The id of the row in the middle."""
    row: int
    """The first row of what is looked through beside; the lower part is less, for it is done with the first page."""
    id: str
    """Its id."""
    unnamed: int
    """Sessions whose id is no text."""
    since: float | None
    """So many sessions as are looked for were active since then; ``None``: not that many have a time."""


class _Looked(NamedTuple):
    """Sessions by what they count as."""

    looked_at: int
    """Those that may be no roots, or may be left out."""
    listed: int
    """Of these, the conversations that are listed."""
    left_out: tuple[int, ...]
    """The others by reason, in the order of :data:`REASONS`."""
    odd: int
    """Sessions whose parent was written after them."""

    def with_(self, other: _Looked) -> _Looked:
        """The sum of both."""
        sums = tuple(map(sum, zip(self.left_out, other.left_out, strict=True)))
        return _Looked(self.looked_at + other.looked_at, self.listed + other.listed, sums, self.odd + other.odd)


def answers(query: ListQuery) -> bool:
    """Whether this is the usual list."""
    usual = ListQuery(archived=query.archived, children=query.children)
    return query == usual


def read_newest_first(asking: Asking, query: ListQuery, limit: int) -> Listing | None:
    """The first rows and the counts; ``None``: the store is small or odd, ask the general way."""
    most = limit + limit // 2 + SPARE
    halves = asking.ask(halves_of, most)
    if halves is None:
        return None
    candidates = in_order(asking, halves, most)

    def listed_and_looked(connection: ReadConnection, schema: Schema) -> tuple[list[ListEntry], _Looked]:
        entries = _listed(connection, schema, query, candidates, limit)
        return entries, _looked_at(connection, schema, query, halves, upper=False)

    upper, (entries, lower) = _beside(
        lambda: asking.ask(_looked_at, query, halves, upper=True), lambda: asking.ask(listed_and_looked)
    )
    looked = lower.with_(upper)
    listed = halves.sessions - looked.looked_at + looked.listed
    if len(entries) < min(limit, listed) or (looked.odd and asking.ask(_may_ring, looked.odd)):
        return None
    left = {name: number for name, number in zip(REASONS, looked.left_out, strict=True) if number}
    return Listing(tuple(entries), listed, left)


def in_order(asking: Asking, halves: Halves, most: int) -> list[Newest]:
    """The sessions with the newest activity, the newest first."""
    # Neither waits for the other while it is connected: two ways of reading may keep each other out.
    newest = _beside(
        lambda: asking.ask(_newest, halves, most, upper=True),
        lambda: asking.ask(_newest, halves, most, upper=False),
    )
    return list(islice(merge(*newest, reverse=True), most))


def _beside(other: Callable[[], Answer], own: Callable[[], OwnAnswer]) -> tuple[Answer, OwnAnswer]:
    """The answers to two questions, the first one asked in a thread of its own."""
    aside = Aside(other)
    try:
        answer = own()
    finally:
        # Nothing goes on reading after the question is over.
        aside.join()
    return aside.answer(), answer


def halves_of(connection: ReadConnection, schema: Schema, most: int) -> Halves | None:
    """How a store is cut in two.

    Returns:
        ``None`` where the general way is as quick, rows have no rowid, or parents no names.
    """
    if not (schema.has("sessions", *_NEEDED) and schema.has("messages", "session_id", "timestamp")):
        return None
    if schema.row("sessions", "s") != "s.rowid":
        # Halves and the order of writing are told by rowids.
        return None
    many = connection.one("SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT ?)", (WORTH_IT,))
    if many is None or many[0] < WORTH_IT:
        return None
    middle, cut = (
        connection.one(
            f"SELECT rowid, id FROM sessions WHERE rowid >= (SELECT max(rowid) FROM sessions) * {share}"
            " AND typeof(id) = 'text' LIMIT 1"
        )
        for share in (0.5, LOWER)
    )
    # In an index NULL and numbers lie before texts, BLOBs behind them.
    found = connection.one(
        "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM sessions WHERE id IS NULL) +"
        " (SELECT count(*) FROM sessions WHERE id < '') + (SELECT count(*) FROM sessions WHERE id >= x''),"
        " EXISTS (SELECT 1 FROM sessions WHERE parent_session_id < '' OR parent_session_id >= x'')"
    )
    if middle is None or cut is None or found is None or found[2]:
        return None
    return Halves(found[0] - found[1], middle[1], cut[0], cut[1], found[1], _active_since(connection, schema, most))


def _active_since(connection: ReadConnection, schema: Schema, most: int) -> float | None:
    """A time since which at least ``most`` sessions were active: those written last are mostly the newest."""
    last = "WHERE typeof(id) = 'text' AND rowid IN (SELECT rowid FROM sessions ORDER BY rowid DESC LIMIT ?)"
    found = connection.rows(f"{_activity_query(schema, last)} LIMIT ?", (2 * most, most))
    return found[-1][0] if len(found) == most and found[-1][0] >= EARLIEST else None


def _looked_at(connection: ReadConnection, schema: Schema, query: ListQuery, halves: Halves, *, upper: bool) -> _Looked:
    roots = _roots(connection, schema, query, halves, upper=upper)
    return roots.with_(_children(connection, schema, query, halves, upper=upper))


def _newest(connection: ReadConnection, schema: Schema, halves: Halves, most: int, *, upper: bool) -> list[Newest]:
    """The sessions of one half with the newest activity, the newest first."""
    # In an index texts lie between numbers and BLOBs; asking each for its type takes longer than a range.
    half = "s.id >= :middle AND s.id < x''" if upper else "s.id >= '' AND s.id < :middle"
    bound = {"middle": halves.middle, "since": halves.since, "most": most}
    if halves.since is None:
        sql = f"{_activity_query(schema, f'WHERE {half}')} LIMIT :most"
        return [Newest(*row) for row in connection.rows(sql, bound)]
    # A join keeps its place in the index from one session to the next; a sub-select would open it anew. Few sessions
    # are left to be grouped.
    spoken = f"""SELECT max(said) AS active, id FROM (
            SELECT m.timestamp AS said, s.id AS id FROM sessions s
            CROSS JOIN messages m ON m.session_id = s.id AND m.timestamp >= :since AND m.timestamp < {LATEST:.0f}
            WHERE {half} LIMIT -1)
        GROUP BY id ORDER BY active DESC, id DESC LIMIT :most"""
    silent = f"""SELECT s.started_at, s.id FROM sessions s
        WHERE s.started_at >= :since AND s.started_at < {LATEST:.0f} AND {half} AND NOT EXISTS
            (SELECT 1 FROM messages m WHERE m.session_id = s.id
                AND m.timestamp >= {EARLIEST:.0f} AND m.timestamp < {LATEST:.0f})
        ORDER BY 1 DESC, 2 DESC LIMIT :most"""
    found = [Newest(*row) for sql in (spoken, silent) for row in connection.rows(sql, bound)]
    return sorted(found, reverse=True)


def by_activity(connection: ReadConnection, schema: Schema) -> list[tuple[float, str]]:
    """Every session with its last activity, the newest first."""
    return connection.rows(_activity_query(schema, "WHERE typeof(s.id) = 'text'"))


def _activity_query(schema: Schema, where: str) -> str:
    newest = newest_expression(schema, "s.id")
    # Ids in order keep the seeks close together, the newest first keep the sorter idle. The start is read only where
    # there is no message.
    return (
        f"SELECT coalesce(iif(newest >= {EARLIEST:.0f}, newest, NULL), (SELECT o.started_at FROM sessions o WHERE"
        f" o.id = found.id AND o.started_at >= {EARLIEST:.0f} AND o.started_at < {LATEST:.0f}), -9e999) AS active, id"
        f" FROM (SELECT s.id AS id, {newest} AS newest FROM (SELECT s.id FROM sessions s {where}"
        " ORDER BY s.id DESC) s LIMIT -1) found ORDER BY active DESC, id DESC"
    )


def _roots(connection: ReadConnection, schema: Schema, query: ListQuery, halves: Halves, *, upper: bool) -> _Looked:
    """Sessions of one half that name no parent; most nothing leaves out, and the beginning of their row says so."""
    archived, hidden = (schema.column("sessions", name, "s") for name in ("archived", "hidden"))
    config = schema.column("sessions", "model_config", "s")
    # octet_length, because it does not read the parent: that lies behind a long prompt.
    found = f"""SELECT {parentless_kind(schema)} AS kind, s.source AS source, {archived} AS archived,
            {hidden} AS hidden, 0 AS odd
        FROM sessions s
        WHERE s.rowid {">=" if upper else "<"} :middle
            AND ifnull(octet_length(s.parent_session_id), 0) = 0
            AND (s.source = 'tool' OR {archived} <> 0 OR {hidden} <> 0 OR instr({config}, '_from')){_named(halves)}"""
    return _looked(connection, query, found, {"middle": halves.row})


def _named(halves: Halves) -> str:
    """The condition that an id is text, where one is not: 70,000 times asked, it is felt."""
    return " AND typeof(s.id) = 'text'" if halves.unnamed else ""


def _children(connection: ReadConnection, schema: Schema, query: ListQuery, halves: Halves, *, upper: bool) -> _Looked:
    """Sessions of one half of the parents, in the order of the index on them."""
    archived, hidden = (schema.column("sessions", name, "s") for name in ("archived", "hidden"))
    found = f"""SELECT {kind_expression(schema)} AS kind, s.source AS source, {archived} AS archived,
            {hidden} AS hidden, p.rowid >= s.rowid AS odd
        FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id
        WHERE {"s.parent_session_id >= :middle" if upper else "s.parent_session_id < :middle"}
            AND s.parent_session_id > ''{_named(halves)}"""
    return _looked(connection, query, found, {"middle": halves.id})


def _looked(connection: ReadConnection, query: ListQuery, found: str, bound: dict[str, Any]) -> _Looked:
    """Count what was found by why it is not listed."""
    # Without its limit each inner question would be asked again for every column.
    sql = f"""SELECT count(*), sum(reason IS 0), sum(reason = 1), sum(reason = 2), sum(reason = 3), sum(reason = 4),
            sum(odd)
        FROM (SELECT CASE
                WHEN kind = 'compaction' AND source IS NOT 'tool' THEN -1
                WHEN {set_flag("archived")} AND NOT :archived THEN 1
                WHEN kind = 'delegation' AND NOT :children THEN 2
                WHEN source = 'tool' THEN 3
                WHEN {set_flag("hidden")} THEN 4 ELSE 0 END AS reason, odd
            FROM ({found} LIMIT -1) LIMIT -1)"""
    row = connection.one(sql, {**bound, "archived": query.archived, "children": query.children})
    looked_at, listed, *reasons, odd = [number or 0 for number in row or (0,) * (len(REASONS) + 3)]
    return _Looked(looked_at, listed, tuple(reasons), odd)


def _may_ring(connection: ReadConnection, schema: Schema, odd: int) -> bool:
    """Whether sessions are their own ancestors; in every ring some parent is not older, by row, than its child."""
    if odd > MOST_SUSPECTS:
        return True
    where = """WHERE s.id IN (WITH RECURSIVE up(id) AS (
        SELECT c.id FROM sessions c JOIN sessions p ON p.id = c.parent_session_id WHERE p.rowid >= c.rowid
        UNION SELECT o.parent_session_id FROM up JOIN sessions o ON o.id = up.id WHERE o.parent_session_id IS NOT NULL)
        SELECT id FROM up)"""
    return bool(Links(map(link_of, connection.rows(link_query(schema, where)))).rings)


def _listed(
    connection: ReadConnection, schema: Schema, query: ListQuery, candidates: list[Newest], limit: int
) -> list[ListEntry]:
    """The candidates that are tips of listed conversations, unless sessions form a ring."""
    found: list[ListEntry] = []
    times = {candidate.id: candidate.at for candidate in candidates}
    for some in batches(list(times), limit + limit // 2 or 1):
        links = links_around(connection, schema, some)
        for identity in some:
            link = links.by_id.get(identity)
            if link is not None and _is_row(links, link, query):
                found.append(ListEntry(SessionId(identity), times[identity]))
        if len(found) >= limit:
            break
    return found[:limit]


def _is_row(links: Links, link: Link, query: ListQuery) -> bool:
    """Whether a session is the tip of a conversation that no default filter leaves out."""
    root = links.root(link)
    if links.down(root)[-1].id != link.id:
        return False
    return left_out(links, root, query) is None


def left_out(links: Links, root: Link, query: ListQuery) -> str | None:
    """Why a default filter leaves a conversation out; the first reason counts (contract.md, list)."""
    if root.archived and not query.archived:
        return "archived"
    if links.kind(root) == "delegation" and not query.children:
        return "delegated"
    if root.source == "tool" and query.source != "tool":
        return "tool"
    return "hidden" if root.hidden else None
