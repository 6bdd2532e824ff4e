"""Usage rows as points of the cache screen: Hermes keeps no single requests (facts/hermes.md section 8).

A point is one usage row: one session, one model, one task. The main loop of a conversation is one chain through all
its parts; auxiliary tasks have prompts of their own and so chains of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hermes_tui.model import CacheEvent, Request, SessionId
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import filled_text, text_or_none
from hermes_tui.stores.hermes.links import Link, Links, all_links, batches, links_around
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import (
    SESSION_COLUMNS,
    UsageRow,
    read_usage_rows,
    rows_of_session,
    session_usage,
)
from hermes_tui.text import RawText

BATCH: Final = 500
"""Sessions asked for at once."""
SHOWN: Final = 40
"""Characters of evidence on each side of a difference."""


def read_requests(asking: Asking, ids: Sequence[str] | None, since: float | None) -> Iterator[Request]:
    """The points of these sessions, or of all, chain after chain."""
    links = asking.ask(all_links) if ids is None else asking.ask(links_around, ids)
    wanted = None if ids is None else frozenset(ids)
    chains = _chains(links, wanted)
    for start in range(0, len(chains), BATCH):
        some = chains[start : start + BATCH]
        for request in _points(asking, some):
            outside = wanted is not None and request.session_id not in wanted
            if outside or (since is not None and (request.at is None or request.at < since)):
                continue
            yield request


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
    usage = read_usage_rows(connection, schema, ids)
    facts = _session_facts(connection, schema, ids)
    prompts = _prompts(connection, schema, [part.id for chain in chains if len(chain) > 1 for part in chain])
    found: list[Request] = []
    for chain in chains:
        before: Link | None = None
        for part in chain:
            if part.id not in facts:
                continue
            own, cwd = facts[part.id]
            events = _between(before, part, prompts)
            rows = rows_of_session(own, usage.get(part.id, ()))
            for row in sorted(rows, key=lambda row: (row.first_at or 0.0, row.last_at or 0.0)):
                found.append(_request(chain[0], part, row, own, cwd, () if row.task else events))
                if not row.task:
                    events = ()
            if any(not row.task for row in rows):
                before = part
    return found


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


def _between(before: Link | None, part: Link, prompts: dict[str, str]) -> tuple[CacheEvent, ...]:
    """What happened between two parts of a chain."""
    if before is None:
        return ()
    events = [CacheEvent("compaction", RawText(f"{before.id} was compacted into {part.id}"))]
    one, other = prompts.get(before.id), prompts.get(part.id)
    if one and other and one != other:
        events.append(CacheEvent("context-change", RawText(f"system prompt {difference(one, other)}")))
    return tuple(events)


def difference(one: str, other: str) -> str:
    """Where two texts begin to differ, with a piece of each."""
    # Halving with whole slices: prompts have tens of thousands of characters and mostly differ late.
    place, after = 0, min(len(one), len(other)) + 1
    while after - place > 1:
        middle = (place + after) // 2
        place, after = (middle, after) if one[place:middle] == other[place:middle] else (place, middle)
    return f"differs at character {place:,}: {one[place : place + SHOWN]!r} / {other[place : place + SHOWN]!r}"


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


def _prompts(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, str]:
    """The system prompts of these sessions, from the row or by hash (facts/hermes.md section 2)."""
    prompt = schema.column("sessions", "system_prompt", "s")
    join = ""
    if schema.has("system_prompts", "hash", "prompt") and schema.has("sessions", "system_prompt_hash"):
        join = "LEFT JOIN system_prompts p ON p.hash = s.system_prompt_hash"
        prompt = f"coalesce({prompt}, p.prompt)"
    found: dict[str, str] = {}
    for some in batches(ids):
        sql = f"SELECT s.id, {prompt} FROM sessions s {join} WHERE s.id IN ({','.join('?' * len(some))})"
        found.update({str(row[0]): text for row in connection.rows(sql, some) if (text := filled_text(row[1]))})
    return found
