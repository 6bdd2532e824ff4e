"""Prune, explained: every session with why it goes or stays.

The product prunes only sessions that ended, and says nothing of the others; where sessions are never ended nothing is
ever pruned (facts/hermes.md section 10). Age is last activity here; Hermes 0.19 itself goes by the start.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Final

from hermes_tui.model import ListQuery, SessionId
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.changing import Going, Kept, PruneRule
from hermes_tui.stores.conversation import below, within
from hermes_tui.stores.hermes.guards import Held
from hermes_tui.stores.hermes.links import Link, Links
from hermes_tui.stores.hermes.removal import SideFiles, orphaned, read_sizes, read_titles
from hermes_tui.stores.hermes.schema import Schema

OLD_BUT: Final = ("never-ended", "archived", "pinned", "living-chain", "running", "leased", "compressing")
"""Reasons that keep a session although it is old enough."""


def verdicts(
    connection: ReadConnection, schema: Schema, links: Links, held: Held, rule: PruneRule, now: float, store: str
) -> tuple[tuple[Going, ...], tuple[Kept, ...]]:
    """Those that go and those that stay, among the sessions the filters let through."""
    chosen = _matching(connection, schema, links, held, rule.query)
    pinned = _flagged(connection, schema, "pinned")
    reasons = {link.id: _reason(links, held, rule, pinned, link, now) for link in chosen}
    files = SideFiles(store)
    going = {link.id for link in chosen if reasons[link.id] is None}
    unreadable = {identity for identity in going if SideFiles.unreadable(files.of(identity))}
    reasons.update(dict.fromkeys(unreadable, "unreadable-file"))
    going -= unreadable
    for link in chosen:
        # A conversation goes whole or not at all: its newest parts decide for the older ones.
        if link.id in going and not all(part.id in going for part in links.down(link)):
            reasons[link.id] = "living-chain"
    going = {identity for identity in going if reasons[identity] is None}
    titles = read_titles(connection, schema, [link.id for link in chosen])
    sizes = read_sizes(connection, schema, sorted(going))
    goes: list[Going] = []
    stays: list[Kept] = []
    for link in sorted(chosen, key=lambda link: (held.last_active(link) or 0.0, link.id)):
        identity, last = SessionId(link.id), held.last_active(link)
        reason = reasons[link.id]
        if reason is not None:
            stays.append(Kept(identity, reason, titles.get(link.id), last))
            continue
        size = sizes.get(link.id)
        goes.append(
            Going(
                identity,
                "old",
                titles.get(link.id),
                size.messages if size else 0,
                size.bytes if size else 0,
                orphaned(links, going, link),
                files.of(link.id),
                last_active=last,
            )
        )
    return tuple(goes), tuple(stays)


def summing_up(going: tuple[Going, ...], kept: tuple[Kept, ...]) -> tuple[str, ...]:
    """Says in a sentence why what is old does not go."""
    counts = Counter(one.reason for one in kept if one.reason in OLD_BUT)
    old = len(going) + counts.total()
    if not counts:
        return ()
    never = counts["never-ended"]
    notes = [f"{len(going)} of {old} old sessions can go."]
    if never:
        notes.append(
            f"{never} never ended and so cannot; ending idle ones first (--end-idle AGE, on the screen e) lets them go."
        )
    return tuple(notes)


def idle_ones(links: Links, held: Held, rule: PruneRule, kept: tuple[Kept, ...], now: float) -> tuple[SessionId, ...]:
    """Sessions prune keeps although ``--end-idle`` ends them: idle long enough, and too young to go."""
    if rule.end_idle is None:
        return ()
    found: list[SessionId] = []
    for one in kept:
        link = links.by_id[one.id]
        idle = one.last_active is not None and now - one.last_active >= rule.end_idle
        if idle and not link.has_end and not held.alive(link, now) and held.reason(links, link) is None:
            found.append(one.id)
    return tuple(found)


def _reason(links: Links, held: Held, rule: PruneRule, pinned: frozenset[str], link: Link, now: float) -> str | None:
    """Why a session stays; ``None``: it goes."""
    last = held.last_active(link)
    if last is None or now - last < rule.older_than:
        return "too-young"
    in_hands = held.reason(links, link)
    if in_hands is not None:
        return in_hands
    if held.alive(link, now):
        return "running"
    if not link.has_end and (rule.end_idle is None or now - last < rule.end_idle):
        return "never-ended"
    # A mark on a part speaks for what was said after it too; what was said before, its newer parts decide on.
    older = list(takewhile(lambda part: part.id != link.id, links.conversation(link)))
    if any(part.id in pinned for part in (*older, link)):
        return "pinned"
    if any(part.archived for part in (*older, link)) and not rule.query.archived:
        return "archived"
    return None


def _matching(connection: ReadConnection, schema: Schema, links: Links, held: Held, query: ListQuery) -> list[Link]:
    """Sessions the filters let through; each is tested by its own columns, a channel by its conversation's."""
    facts = {
        row[0]: row[1:]
        for row in connection.rows(f"SELECT {schema.select('sessions', ('id', 'model', 'cwd'), 's')} FROM sessions s")
    }

    def matches(link: Link) -> bool:
        model, cwd = facts.get(link.id, (None, None))
        last = held.last_active(link)
        return (
            (query.source is None or link.source == query.source)
            and (query.model is None or model == query.model)
            and (query.cwd is None or below(cwd if isinstance(cwd, str) else None, query.cwd))
            and (query.channel is None or any(p.session_key == query.channel for p in links.conversation(link)))
            and within(last, query.since, query.until)
        )

    return [link for link in links.by_id.values() if matches(link)]


def _flagged(connection: ReadConnection, schema: Schema, column: str) -> frozenset[str]:
    if not schema.has("sessions", column):
        return frozenset()
    return frozenset(row[0] for row in connection.rows(f"SELECT id FROM sessions WHERE {column} = 1"))
