"""The usual list of a large store: every conversation, newest activity first, without reading every session.

Three questions run side by side, for SQLite lets Python's lock go while it works: the newest message of each session,
in two halves of the ids, one seek in an index each; and how many conversations there are and why some are left out.
Only sessions near the top are then put together to conversations, by the same rules as anywhere (``links.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge
from itertools import islice
from threading import Thread
from typing import Final, Generic, NamedTuple, TypeVar

from hermes_tui.model import ListEntry, Listing, ListQuery, SessionId
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST
from hermes_tui.stores.hermes.links import (
    Link,
    Links,
    batches,
    kind_expression,
    link_of,
    link_query,
    links_around,
    newest_expression,
)
from hermes_tui.stores.hermes.schema import Schema

WORTH_IT: Final = 3_000
"""Sessions from which three connections pay."""
UNKNOWN: Final = float("-inf")
MOST_SUSPECTS: Final = 500
"""Parents that were written after their child; more of them are looked at the general way."""
SPARE: Final = 30
"""Candidates beyond the limit that are looked at first."""
Answer = TypeVar("Answer")
_NEEDED: Final = ("id", "parent_session_id", "end_reason", "source", "started_at")


class Newest(NamedTuple):
    """A session and its last activity."""

    at: float
    id: str


class Counts(NamedTuple):
    """Conversations of a store by why they are not listed."""

    listed: int
    left_out: dict[str, int]


class _Aside(Thread, Generic[Answer]):
    """A question asked in a thread of its own. Not a pool: importing one costs as much as the question."""

    def __init__(self, question: Callable[[], Answer]) -> None:
        super().__init__(daemon=True)
        self._question = question
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._answer.append(self._question())
        except BaseException as error:  # noqa: BLE001  raised again where the answer is wanted
            self._error = error

    def answer(self) -> Answer:
        """Wait for the answer; raises what the question raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._answer[0]


def answers(query: ListQuery) -> bool:
    """Whether this is the usual list."""
    usual = ListQuery(archived=query.archived, children=query.children)
    return query == usual


def read_newest_first(asking: Asking, query: ListQuery, limit: int) -> Listing | None:
    """The first rows and the counts; ``None``: the store is small or odd, ask the general way."""
    middle = asking.ask(_middle)
    if middle is None:
        return None
    most = limit + limit // 2 + SPARE
    counting = _Aside(lambda: asking.ask(_counts, query))
    upper = _Aside(lambda: asking.ask(_newest, "id >= ?", middle, most))
    try:
        lower = asking.ask(_newest, "id < ?", middle, most)
    finally:
        # Nothing goes on reading after the question is over.
        counting.join()
        upper.join()
    counts = counting.answer()
    candidates = list(islice(merge(lower, upper.answer(), reverse=True), most))
    if counts is None:
        return None
    entries = asking.ask(_listed, query, candidates, limit)
    if len(entries) < min(limit, counts.listed):
        return None
    return Listing(tuple(entries), counts.listed, counts.left_out)


def _middle(connection: ReadConnection, schema: Schema) -> str | None:
    """An id about half way; ``None`` where the general way is as quick."""
    if not (schema.has("sessions", *_NEEDED) and schema.has("messages", "session_id", "timestamp")):
        return None
    row = connection.one("SELECT count(*), max(rowid) FROM sessions")
    if row is None or row[0] < WORTH_IT:
        return None
    found = connection.one("SELECT id FROM sessions WHERE rowid >= ? AND typeof(id) = 'text' LIMIT 1", (row[1] // 2,))
    return found[0] if found else None


def _newest(connection: ReadConnection, schema: Schema, where: str, middle: str, most: int) -> list[Newest]:
    """The sessions of one half with the newest activity, the newest first."""
    sql = _activity_query(schema, f"WHERE {where} AND typeof(id) = 'text'")
    return [Newest(*row) for row in connection.rows(f"{sql} LIMIT ?", (middle, most))]


def by_activity(connection: ReadConnection, schema: Schema) -> list[tuple[float, str]]:
    """Every session with its last activity, the newest first."""
    return connection.rows(_activity_query(schema, "WHERE typeof(id) = 'text'"))


def _activity_query(schema: Schema, where: str) -> str:
    newest = newest_expression(schema, "s.id")
    # Ids in order keep the seeks close together, the newest first keep the sorter idle. The start is read only where
    # there is no message.
    return (
        f"SELECT coalesce(iif(newest >= {EARLIEST:.0f}, newest, NULL), (SELECT o.started_at FROM sessions o WHERE"
        f" o.id = found.id AND o.started_at >= {EARLIEST:.0f} AND o.started_at < {LATEST:.0f}), -9e999) AS active, id"
        f" FROM (SELECT s.id AS id, {newest} AS newest FROM (SELECT id FROM sessions {where}"
        " ORDER BY id DESC) s LIMIT -1) found ORDER BY active DESC, id DESC"
    )


def _counts(connection: ReadConnection, schema: Schema, query: ListQuery) -> Counts | None:
    """How many conversations are listed and left out; ``None`` where sessions form a ring."""
    archived, hidden = (schema.column("sessions", name, "s") for name in ("archived", "hidden"))
    config = schema.column("sessions", "model_config", "s")
    # Most sessions are roots that nothing leaves out: an index counts them, the others alone are looked at.
    sql = f"""SELECT count(*), sum(reason IS 0), sum(reason = 1), sum(reason = 2), sum(reason = 3), sum(reason = 4),
            sum(odd)
        FROM (SELECT CASE
                WHEN kind = 'compaction' AND source IS NOT 'tool' THEN -1
                WHEN ifnull(archived, 0) <> 0 AND NOT ? THEN 1
                WHEN kind = 'delegation' AND NOT ? THEN 2
                WHEN source = 'tool' THEN 3
                WHEN ifnull(hidden, 0) <> 0 THEN 4 ELSE 0 END AS reason, odd
            FROM (SELECT {kind_expression(schema)} AS kind, s.source AS source, {archived} AS archived,
                    {hidden} AS hidden, p.rowid >= s.rowid AS odd
                FROM sessions s LEFT JOIN sessions p ON p.id = s.parent_session_id
                WHERE typeof(s.id) = 'text' AND (s.parent_session_id IS NOT NULL OR s.source = 'tool'
                    OR instr({config}, '_from') OR ifnull({archived}, 0) <> 0 OR ifnull({hidden}, 0) <> 0)
                LIMIT -1) LIMIT -1)"""
    row = connection.one(sql, (query.archived, query.children))
    looked_at, listed, *reasons, odd = [number or 0 for number in row] if row else [0] * 7
    # In an index NULL and numbers lie before texts, BLOBs behind them.
    everyone = connection.one("SELECT count(*) FROM sessions WHERE id >= '' AND id < x''")
    listed += (everyone[0] if everyone else 0) - looked_at
    if odd and _may_ring(connection, schema, odd):
        return None
    names = ("archived", "delegated", "tool", "hidden")
    return Counts(listed, {name: number for name, number in zip(names, reasons, strict=True) if number})


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
    """The candidates that are tips of listed conversations."""
    found: list[ListEntry] = []
    for some in batches([candidate.id for candidate in candidates]):
        links = links_around(connection, schema, some)
        times = {candidate.id: candidate.at for candidate in candidates}
        for identity in some:
            link = links.by_id.get(identity)
            if link is not None and _is_row(links, link, query):
                found.append(ListEntry(SessionId(identity), times[identity]))
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
