"""Which conversations a list shows, in which order, and how many a default filter leaves out (contract.md, list)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from hermes_tui.model import ListEntry, Listing, ListQuery, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.conversation import AUTOMATED_SOURCES, below, within
from hermes_tui.stores.hermes.cells import count, counter, filled_text, text_or_none
from hermes_tui.stores.hermes.links import Link, Links, all_links, json_ids
from hermes_tui.stores.hermes.newest_first import UNKNOWN, left_out
from hermes_tui.stores.hermes.rows import last_active, read_previews
from hermes_tui.stores.hermes.salvage import salvaged, whole_or_salvaged
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import MAIN_TASK, TOKENS

_COUNTED: Final = TOKENS[:4]
"""Reasoning is part of output."""


class Facts(NamedTuple):
    """Cells that filters and orders ask of one session."""

    model: str | None
    cwd: str | None
    title: str | None
    messages: int
    tokens: int


class Tokens(NamedTuple):
    """Tokens of the main loop and of the other tasks."""

    main: int
    other: int


NO_TOKENS: Final = Tokens(0, 0)
NO_FACTS: Final = Facts(None, None, None, 0, 0)


def _of(link: Link, facts: dict[str, Facts]) -> Facts:
    """The facts of a session; it may have gone away between two statements."""
    return facts.get(link.id, NO_FACTS)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A conversation, or a session by itself, that may become a row."""

    parts: Sequence[Link]

    @property
    def root(self) -> Link:
        return self.parts[0]

    @property
    def tip(self) -> Link:
        return self.parts[-1]


def read_listing(connection: ReadConnection, schema: Schema, query: ListQuery, limit: int | None) -> Listing:
    """The ids of matching rows in order."""
    links = all_links(connection, schema)
    facts = _read_facts(connection, schema, query, tuple(links.by_id))
    found = [Candidate([link]) for link in _in_channel(links, query.channel)]
    if query.sessions:
        # A key is followed through compaction: its sessions are those of its conversations.
        query = replace(query, channel=None)
    else:
        found = [Candidate(links.down(link)) for link in links.listed()]
    users = read_users(connection, schema, query, tuple(links.by_id))
    matching = [one for one in found if matches(one, query, facts, users)]
    reasons: Counter[str] = Counter()
    if not query.sessions:
        why = [why_left_out(one, query, links) for one in matching]
        reasons.update(reason for reason in why if reason)
        matching = [one for one, reason in zip(matching, why, strict=True) if not reason]
    if query.text:
        matching = _with_text(connection, schema, matching, query.text, facts)
    order = _order(query, facts)
    ordered = sorted(((order(one), one.tip.id) for one in matching), reverse=True)
    parts: dict[str, tuple[SessionId, ...]] = {}
    if query.order == "cost":
        parts = {one.tip.id: tuple(SessionId(part.id) for part in one.parts) for one in matching if len(one.parts) > 1}
    entries = tuple(
        ListEntry(SessionId(identity), value, parts.get(identity, ())) for value, identity in ordered[:limit]
    )
    return Listing(entries, len(ordered), dict(reasons))


def _in_channel(links: Links, key: str | None) -> Iterable[Link]:
    """The sessions of the conversations that have this key; of all where none is asked for."""
    if key is None:
        return links.by_id.values()
    keyed = [link for link in links.by_id.values() if link.session_key == key]
    found = {part.id for link in keyed for part in links.conversation(link)}
    return [link for link in links.by_id.values() if link.id in found]


def why_left_out(one: Candidate, query: ListQuery, links: Links) -> str | None:
    """Why a default filter leaves a row out; the first reason counts."""
    reason = left_out(links, one.root, query)
    if reason is None and not query.automated and one.root.source in AUTOMATED_SOURCES:
        return "automated"
    return reason


def matches(one: Candidate, query: ListQuery, facts: dict[str, Facts], users: Container[str]) -> bool:
    """Whether a row passes the filters that were asked for, the free text aside; ``users`` from :func:`read_users`."""
    if query.source is not None and one.root.source != query.source:
        return False
    if query.channel is not None and all(part.session_key != query.channel for part in one.parts):
        return False
    if query.model is not None and not any(part.id in users for part in one.parts):
        return False
    if query.cwd is not None and not below(_folder(one, facts), query.cwd):
        return False
    return within(last_active(one.tip), query.since, query.until)


def _folder(one: Candidate, facts: dict[str, Facts]) -> str | None:
    """The tip's folder, else that of the nearest older part."""
    return next((cwd for part in reversed(one.parts) if (cwd := _of(part, facts).cwd)), None)


def _with_text(
    connection: ReadConnection, schema: Schema, found: Iterable[Candidate], text: str, facts: dict[str, Facts]
) -> list[Candidate]:
    """Rows with the text in title, id, source, model, folder or preview; previews are read last, for they cost most."""
    wanted = text.casefold()
    kept: list[Candidate] = []
    unsure: list[Candidate] = []
    for one in found:
        (kept if wanted in filter_text(one, facts) else unsure).append(one)
    ids = [part.id for one in unsure for part in one.parts]
    previews, _ = salvaged(partial(read_previews, connection, schema), ids)
    for one in unsure:
        preview = next((previews[part.id] for part in reversed(one.parts) if part.id in previews), "")
        if wanted in preview.casefold():
            kept.append(one)
    return kept


def filter_text(one: Candidate, facts: dict[str, Facts]) -> str:
    title = next((title for part in reversed(one.parts) if (title := _of(part, facts).title)), None)
    shown = (title, one.tip.id, one.root.source, _of(one.tip, facts).model, _folder(one, facts))
    return "\n".join(word for word in shown if word).casefold()


def _order(query: ListQuery, facts: dict[str, Facts]) -> Callable[[Candidate], float]:
    """The value rows are ordered by; larger comes first."""
    if query.order == "started":
        return lambda one: UNKNOWN if one.root.started is None else one.root.started
    if query.order == "messages":
        return lambda one: float(sum(_of(part, facts).messages for part in one.parts))
    if query.order in ("tokens", "cost"):
        # What it costs is the library's to say: it knows the prices.
        return lambda one: float(sum(_of(part, facts).tokens for part in one.parts))
    return _activity


def _activity(one: Candidate) -> float:
    active = last_active(one.tip)
    return UNKNOWN if active is None else active


def _read_facts(connection: ReadConnection, schema: Schema, query: ListQuery, ids: Sequence[str]) -> dict[str, Facts]:
    """Cells of every session, where a filter or the order asks for them."""
    totals = query.order in ("tokens", "messages", "cost")
    if not (totals or query.cwd is not None or query.text):
        return {}
    usage = whole_or_salvaged(partial(_usage_totals, connection, schema), ids) if totals else {}
    return whole_or_salvaged(partial(_facts, connection, schema, usage), ids)


def _facts(
    connection: ReadConnection, schema: Schema, usage: Mapping[str, Tokens], ids: Sequence[str] | None
) -> dict[str, Facts]:
    columns = schema.select("sessions", ("id", "model", "cwd", "title", "message_count", *_COUNTED), "s")
    where, bindings = _among("s.id", ids)
    found: dict[str, Facts] = {}
    for row in connection.rows(f"SELECT {columns} FROM sessions s {where}", bindings):
        identity, model, cwd, title, messages, *tokens = row
        key = text_or_none(identity) or ""
        own = sum(map(count, tokens))
        used = usage.get(key, NO_TOKENS)
        found[key] = Facts(
            filled_text(model), filled_text(cwd), filled_text(title), count(messages), max(own, used.main) + used.other
        )
    return found


def _usage_totals(connection: ReadConnection, schema: Schema, ids: Sequence[str] | None) -> dict[str, Tokens]:
    """Tokens by session, from the usage rows."""
    if not schema.has("session_model_usage", "session_id", *_COUNTED):
        return {}
    total = " + ".join(counter(f"u.{name}") for name in _COUNTED)
    task = schema.column("session_model_usage", "task", "u")
    where, bindings = _among("u.session_id", ids)
    sql = (
        f"SELECT u.session_id, ifnull({task}, '') = '{MAIN_TASK}' AS main, sum({total})"
        f" FROM session_model_usage u {where} GROUP BY u.session_id, main"
    )
    found: dict[str, Tokens] = {}
    for identity, main, tokens in connection.rows(sql, bindings):
        before = found.get(str(identity), NO_TOKENS)
        more = Tokens(tokens, 0) if main else Tokens(0, tokens)
        found[str(identity)] = Tokens(before.main + more.main, before.other + more.other)
    return found


def read_users(connection: ReadConnection, schema: Schema, query: ListQuery, ids: Sequence[str]) -> dict[str, str]:
    """:func:`users_of` for the model that is asked for; none where none is."""
    return {} if query.model is None else whole_or_salvaged(partial(users_of, connection, schema, query.model), ids)


def users_of(
    connection: ReadConnection, schema: Schema, model: str, ids: Sequence[str] | None = None
) -> dict[str, str]:
    """The sessions, of these or of all, whose main loop used a model at some time."""
    found: dict[str, str] = {}
    if schema.has("sessions", "model"):
        where, bindings = _among("s.id", ids)
        sql = f"SELECT s.id FROM sessions s {where} {'AND' if where else 'WHERE'} s.model = ?"
        found.update((str(row[0]), model) for row in connection.rows(sql, (*bindings, model)))
    if schema.has("session_model_usage", "session_id", "model"):
        task = schema.column("session_model_usage", "task", "u")
        where, bindings = _among("u.session_id", ids)
        sql = (
            f"SELECT u.session_id FROM session_model_usage u {where} {'AND' if where else 'WHERE'} u.model = ?"
            f" AND ifnull({task}, '') = '{MAIN_TASK}'"
        )
        found.update((str(row[0]), model) for row in connection.rows(sql, (*bindings, model)))
    return found


def _among(column: str, ids: Sequence[str] | None) -> tuple[str, tuple[str, ...]]:
    """A condition for some sessions; nothing for all of them."""
    return ("", ()) if ids is None else (f"WHERE {column} IN (SELECT value FROM json_each(?))", (json_ids(ids),))
