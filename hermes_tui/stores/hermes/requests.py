"""Usage rows as points of the cache screen: Hermes keeps no single requests (facts/hermes.md section 8).

A point is one usage row: one session, one model, one task. The main loop of a conversation is one chain through all
its parts; auxiliary tasks have prompts of their own and so chains of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from hermes_tui.model import CacheEvent, Request, SessionId
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import filled_text, text_or_none
from hermes_tui.stores.hermes.links import Link, Links, all_links, batches, families_of, links_around
from hermes_tui.stores.hermes.prefixes import changed_contexts
from hermes_tui.stores.hermes.salvage import salvaged
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import (
    MAIN_TASK,
    SESSION_COLUMNS,
    UsageRow,
    read_usage_rows,
    rows_of_session,
    session_usage,
)
from hermes_tui.text import RawText

BATCH: Final = 500
"""Sessions asked for at once."""


def read_requests(asking: Asking, ids: Sequence[str] | None, since: float | None) -> Iterator[Request]:
    """The points of these sessions, or of all, chain after chain; chains with none since then may be left out."""
    wanted = None if ids is None else frozenset(ids)
    chains = _recent_chains(asking, since) if ids is None and since is not None else None
    if chains is None:
        chains = _chains(asking.ask(all_links) if ids is None else asking.ask(links_around, ids), wanted)
    for start in range(0, len(chains), BATCH):
        some = chains[start : start + BATCH]
        for request in _points(asking, some):
            if wanted is None or request.session_id in wanted:
                yield request


def _recent_chains(asking: Asking, since: float) -> list[list[Link]] | None:
    """The chains with a usage row or a session since then; ``None`` where a damaged page hides some of them."""
    try:
        recent = asking.ask(_used_since, since)
        links = asking.ask(families_of, tuple(recent))
    except StoreDamaged:
        return None
    return [chain for chain in _chains(links, None) if not recent.isdisjoint(part.id for part in chain)]


def _used_since(connection: ReadConnection, schema: Schema, since: float) -> frozenset[str]:
    """Sessions that may have a point since then; a point has the time of its usage row, else its session's start."""
    asked = [
        f"SELECT {identity} FROM {table} WHERE {column} >= ?1"
        for table, identity, column in (
            ("session_model_usage", "session_id", "last_seen"),
            ("sessions", "id", "started_at"),
        )
        if schema.has(table, identity, column)
    ]
    rows = connection.rows(" UNION ".join(asked), (since,)) if asked else []
    return frozenset(row[0] for row in rows if isinstance(row[0], str))


def _points(asking: Asking, chains: Sequence[Sequence[Link]]) -> list[Request]:
    """The points of some chains; a damaged page loses the chain that lies on it, as it does from the list."""
    try:
        return asking.ask(_of_chains, chains)
    except StoreDamaged:
        if len(chains) <= 1:
            return []
    middle = len(chains) // 2
    return [*_points(asking, chains[:middle]), *_points(asking, chains[middle:])]


def _chains(links: Links, wanted: frozenset[str] | None) -> list[list[Link]]:
    """Each conversation once, oldest first; a continuation that lost is a chain of its own."""
    if wanted is None:
        starts = [*links.listed(), *links.lost()]
    else:
        starts = [links.root(links.by_id[identity]) for identity in wanted if identity in links.by_id]
        starts += [link for link in links.lost() if link.id in wanted]
    once = {link.id: link for link in starts}
    chains = [links.down(link) for link in once.values()]
    return sorted(chains, key=lambda chain: (chain[0].started or 0.0, chain[0].id))


def _of_chains(connection: ReadConnection, schema: Schema, chains: Sequence[Sequence[Link]]) -> list[Request]:
    ids = [part.id for chain in chains for part in chain]
    # Where a page of usage rows is damaged the sessions rows stand in, as they do in the list.
    usage, _ = salvaged(partial(read_usage_rows, connection, schema), ids)
    facts, _ = salvaged(partial(_session_facts, connection, schema), ids)
    spent = {
        identity: sorted(
            rows_of_session(own, usage.get(identity, ())), key=lambda row: (row.first_at or 0.0, row.last_at or 0.0)
        )
        for identity, (own, _) in facts.items()
    }
    moves = {(chain[0].id, move.after): move for chain in chains for move in _moves(chain, spent)}
    # Contexts are read only where less came from the cache than could have.
    pairs = list(dict.fromkeys((move.before, move.after) for move in moves.values() if move.may_have_lost))
    changed = changed_contexts(connection, schema, pairs) if pairs else {}
    found: list[Request] = []
    for chain in chains:
        for part in chain:
            if part.id not in facts:
                continue
            own, cwd = facts[part.id]
            move = moves.get((chain[0].id, part.id))
            for row in spent[part.id]:
                first = move is not None and row is move.row
                events = _between(move, changed) if move is not None and first else ()
                found.append(_request(chain[0], part, row, own, cwd, events))
    return found


class _Move(NamedTuple):
    """From the last calls of one part of a chain to the first of the next part that made any."""

    before: str
    last: UsageRow
    after: str
    row: UsageRow

    @property
    def may_have_lost(self) -> bool:
        """Whether less was read from the cache than could have been, by any measure of a drop."""
        size, size_before = self.row.usage.prompt_size, self.last.usage.prompt_size
        if self.last.requests > 1 or self.row.requests > 1:
            return self.row.usage.cache_read * size_before < self.last.usage.cache_read * size
        return self.row.usage.cache_read < min(size, size_before)


def _moves(chain: Sequence[Link], spent: Mapping[str, Sequence[UsageRow]]) -> Iterator[_Move]:
    """Every step of a chain's main loop to another part; what sent nothing is passed over."""
    before: tuple[str, UsageRow] | None = None
    for part in chain:
        main = [row for row in spent.get(part.id, ()) if row.task == MAIN_TASK and row.usage.prompt_size]
        if main:
            if before is not None:
                yield _Move(*before, part.id, main[0])
            before = (part.id, main[-1])


def _request(
    root: Link, part: Link, row: UsageRow, own: UsageRow, cwd: RawText | None, events: tuple[CacheEvent, ...]
) -> Request:
    return Request(
        session_id=SessionId(part.id),
        chain=f"{root.id} {row.task}" if row.task else root.id,
        request_id=None,
        message_id=None,
        at=row.last_at if row.last_at is not None else own.first_at,
        model=row.model,
        provider=row.provider,
        usage=row.usage,
        reports_writes=row.usage.cache_write > 0,
        task=row.task,
        events=events,
        source=text_or_none(part.source),
        cwd=cwd,
        session_key=text_or_none(part.session_key),
        cost_usd=row.cost_usd,
        cost_status=row.cost_status,
        calls=max(row.requests, 1),
    )


def _between(move: _Move, changed: Mapping[tuple[str, str], RawText]) -> tuple[CacheEvent, ...]:
    """What happened between two parts of a chain."""
    compacted = CacheEvent("compaction", RawText(f"{move.before} was compacted into {move.after}"))
    difference = changed.get((move.before, move.after))
    return (compacted,) if difference is None else (compacted, CacheEvent("context-change", difference))


def _session_facts(
    connection: ReadConnection, schema: Schema, ids: Sequence[str]
) -> dict[str, tuple[UsageRow, RawText | None]]:
    """The sessions row as usage, and the folder."""
    columns = f"{schema.select('sessions', SESSION_COLUMNS, 's')}, {schema.column('sessions', 'cwd', 's')}"
    found: dict[str, tuple[UsageRow, RawText | None]] = {}
    for some in batches(ids):
        sql = f"SELECT {columns} FROM sessions s WHERE s.id IN ({','.join('?' * len(some))})"
        for row in connection.rows(sql, some):
            own = session_usage(row[:-1])
            found[own.session_id] = (own, filled_text(row[-1]))
    return found
