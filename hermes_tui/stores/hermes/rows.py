"""Full rows of the list: a session by itself, or a conversation folded to its tip (contract.md, list)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from hermes_tui.model import NO_USAGE, SessionId, SessionRow, StoreRef, Usage
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.conversation import RUNNING_SECONDS, SPARKLINE_POINTS
from hermes_tui.stores.hermes.cells import count, filled_text, flag, text_or_none, time_or_none
from hermes_tui.stores.hermes.content import HASHED_BYTES, TYPED, opens_summary, read_content
from hermes_tui.stores.hermes.links import Link, Links, batches, children_counts, json_ids, links_around
from hermes_tui.stores.hermes.salvage import salvaged
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import (
    SESSION_COLUMNS,
    UsageRow,
    read_usage_rows,
    rows_of_session,
    session_usage,
)
from hermes_tui.stores.kept_answers import DatedRows
from hermes_tui.text import RawText

PREVIEW_CHARACTERS: Final = 60
"""As the product cuts it (facts/hermes.md section 7)."""
FIRST_ROWS: Final = (2, 40)
"""Rows looked at for the first prompt: of all sessions, then of those that did not begin with one."""
PREVIEW_BYTES: Final = 1024
"""Enough for 60 characters behind some white space."""
SESSIONS_AT_ONCE: Final = 2_000
"""So many sessions are looked through for their prompts in one statement."""
NOT_UTF8: Final = "\ufffd"
_DETAILS: Final = (
    "id",
    "title",
    "display_name",
    "model",
    "billing_provider",
    "cwd",
    "git_branch",
    "ended_at",
    "message_count",
    "tool_call_count",
    "pinned",
    "last_activity_at",
)


class Details(NamedTuple):
    """What a row shows of one session, beside its place among the others."""

    title: RawText | None
    display_name: RawText | None
    model: RawText | None
    provider: RawText | None
    cwd: RawText | None
    git_branch: RawText | None
    ended_at: float | None
    message_count: int | None
    tool_call_count: int
    pinned: bool
    heartbeat: float | None
    usage: list[UsageRow]

    @property
    def tokens(self) -> Usage:
        """Everything the session used, auxiliary tasks included."""
        return sum((row.usage for row in self.usage), NO_USAGE)


NO_DETAILS: Final = Details(None, None, None, None, None, None, None, None, 0, False, None, [])
"""Of a session that went away between two statements, or whose id is not UTF-8."""


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Builds rows from one look into the store."""

    ref: StoreRef
    links: Links
    details: dict[str, Details]
    held: frozenset[str]
    """Sessions with an unexpired lock or lease."""
    previews: dict[str, RawText]
    compactions: dict[str, int]
    lost: Mapping[str, int]
    """Of a damaged store: how many of these could not be read of a session."""
    now: float

    def conversation(self, link: Link) -> SessionRow:
        """The row of the conversation a session is in."""
        parts = self.links.conversation(link)
        return self._row(parts[0], parts[-1], parts, parts)

    def session(self, link: Link) -> SessionRow:
        """The row of one session by itself."""
        parts = self.links.conversation(link)
        return self._row(link, link, [link], parts)

    def _row(self, root: Link, tip: Link, parts: Sequence[Link], whole: Sequence[Link]) -> SessionRow:
        details = [self.details.get(part.id, NO_DETAILS) for part in parts]
        newest = details[-1]
        spent = [row for detail in details for row in detail.usage]
        branches, delegated = children_counts(self.links, parts)
        return SessionRow(
            store=self.ref,
            id=SessionId(tip.id),
            root_id=SessionId(whole[0].id),
            tip_id=SessionId(whole[-1].id),
            parent_id=None if root.parent is None else SessionId(root.parent),
            lineage_kind=self.links.kind(root),
            parts=len(parts),
            title=_nearest(detail.title for detail in details),
            preview=self._preview(parts),
            source=text_or_none(root.source),
            session_key=_nearest(text_or_none(part.session_key) for part in parts),
            display_name=_nearest(detail.display_name for detail in details),
            model=newest.model,
            models=_models(details),
            provider=_nearest(detail.provider for detail in details),
            cwd=_nearest(detail.cwd for detail in details),
            git_branch=_nearest(detail.git_branch for detail in details),
            started_at=root.started,
            ended_at=newest.ended_at,
            end_reason=text_or_none(tip.end_reason),
            last_active_at=last_active(tip),
            message_count=_sum_known(detail.message_count for detail in details),
            tool_call_count=sum(detail.tool_call_count for detail in details),
            request_count=sum(row.requests for row in spent),
            usage=sum((row.usage for row in spent), NO_USAGE),
            spend=tuple(row.spend() for row in spent),
            archived=root.archived,
            running=self._running(tip, newest, parts),
            resumable=not tip.unread,
            gone=tip.gone,
            problems=sum(self._problems(part) for part in parts),
            compactions=len(parts) - 1 + sum(self.compactions.get(part.id, 0) for part in parts),
            branches=branches,
            delegated=delegated,
            pinned=any(detail.pinned for detail in details),
            hit_rates=tuple(rate for detail in details for rate in _hit_rates(detail))[-SPARKLINE_POINTS:],
        )

    def _preview(self, parts: Sequence[Link]) -> RawText | None:
        """The tip's first prompt, else that of the nearest older part that has one."""
        return _nearest(self.previews.get(part.id) for part in parts)

    def _running(self, tip: Link, newest: Details, parts: Sequence[Link]) -> bool:
        if any(part.id in self.held for part in parts):
            return True
        return not tip.has_end and any(abs(self.now - sign) <= RUNNING_SECONDS for sign in _signs(tip, newest))

    @property
    def lasting(self) -> bool:
        """Whether no row changes by the clock alone: nothing is held, and every sign of life is long past."""
        latest = self.now - RUNNING_SECONDS
        tips = ((link, self.details.get(link.id, NO_DETAILS)) for link in self.links.by_id.values())
        return not self.held and all(link.has_end or max(_signs(link, own), default=0) < latest for link, own in tips)

    def _problems(self, link: Link) -> int:
        in_ring = any(link.id in ring for ring in self.links.rings)
        odd = link.bad_config + link.bad_time + link.unread + self.links.orphan(link) + in_ring
        return odd + self.lost.get(link.id, 0)


def _signs(tip: Link, newest: Details) -> list[float]:
    """When a session was seen alive."""
    return [sign for sign in (tip.newest, newest.heartbeat, tip.started) if sign is not None]


def last_active(link: Link) -> float | None:
    """The newest message's time, else the start (facts/hermes.md section 7)."""
    return link.started if link.newest is None else link.newest


def _nearest(values: Iterable[RawText | None]) -> RawText | None:
    """The newest part's value, else that of the nearest older one."""
    found: RawText | None = None
    for value in values:
        found = value or found
    return found


def _sum_known(counts: Iterable[int | None]) -> int | None:
    known = [number for number in counts if number is not None]
    return sum(known) if known else None


def _models(details: Sequence[Details]) -> tuple[RawText, ...]:
    """Models of the main loop, in the order they came in."""
    found: dict[RawText, None] = {}
    for detail in details:
        for model in (*(row.model for row in detail.usage if not row.task), detail.model):
            if model:
                found[model] = None
    return tuple(found)


def _hit_rates(detail: Details) -> list[float | None]:
    return [row.usage.hit_rate for row in detail.usage if not row.task]


def read_rows(
    connection: ReadConnection,
    schema: Schema,
    ref: StoreRef,
    ids: Sequence[str],
    *,
    conversation: bool,
    now: float,
) -> DatedRows:
    """Rows by the id that was asked for; those that are not there are left out.

    Of a damaged store, a session that cannot be read is a row with its id and a problem.
    """
    lasting = True

    def read(some: Sequence[str]) -> dict[str, SessionRow]:
        nonlocal lasting
        links = links_around(connection, schema, some)
        present = [links.by_id[identity] for identity in some if identity in links.by_id]
        maker = row_maker(connection, schema, ref, links, present, conversation=conversation, now=now)
        lasting = lasting and maker.lasting
        return {link.id: maker.conversation(link) if conversation else maker.session(link) for link in present}

    found, lost = salvaged(read, ids)
    # An id that is not UTF-8 comes with U+FFFD in it, by which it cannot be asked for.
    unnamed = [identity for identity in ids if NOT_UTF8 in identity and identity not in found]
    bare = {identity: _bare_row(ref, SessionId(identity)) for identity in (*lost, *unnamed)}
    return DatedRows(found | bare, lasting)


def _bare_row(ref: StoreRef, identity: SessionId) -> SessionRow:
    return SessionRow(ref, identity, identity, identity, resumable=False, problems=1)


def row_maker(
    connection: ReadConnection,
    schema: Schema,
    ref: StoreRef,
    links: Links,
    wanted: Sequence[Link],
    *,
    conversation: bool,
    now: float,
) -> RowMaker:
    """Read what the rows of these sessions need."""
    parts = [part.id for link in wanted for part in (links.conversation(link) if conversation else [link])]
    ids = list(dict.fromkeys(parts))
    usage, no_usage = salvaged(partial(read_usage_rows, connection, schema), ids)
    details, no_details = salvaged(partial(read_details, connection, schema, usage), ids)
    previews, no_previews = salvaged(partial(read_previews, connection, schema), ids)
    compactions, no_compactions = salvaged(partial(count_compactions, connection, schema), ids)
    lost = Counter(identity for some in (no_usage, no_details, no_previews, no_compactions) for identity in some)
    gone = {
        identity: NO_DETAILS._replace(usage=usage.get(identity, [])) for identity in ids if links.by_id[identity].gone
    }
    if gone:
        _count_where_missing(connection, schema, gone)
    held = held_sessions(connection, schema, now)
    return RowMaker(ref, links, details | gone, held, previews, compactions, lost, now)


def read_details(
    connection: ReadConnection, schema: Schema, usage: Mapping[str, list[UsageRow]], ids: Sequence[str]
) -> dict[str, Details]:
    """Details of these sessions by id, with their usage rows."""
    columns = f"{schema.select('sessions', _DETAILS, 's')}, {schema.select('sessions', SESSION_COLUMNS, 's')}"
    found: dict[str, Details] = {}
    for some in batches(ids):
        sql = f"SELECT {columns} FROM sessions s WHERE s.id IN ({','.join('?' * len(some))})"
        for row in connection.rows(sql, some):
            identity = text_or_none(row[0]) or ""
            own = session_usage(row[len(_DETAILS) :])
            found[identity] = _details(row, rows_of_session(own, usage.get(identity, ())))
    _count_where_missing(connection, schema, found)
    return found


def _details(row: Sequence[Any], usage: list[UsageRow]) -> Details:
    (_, title, display, model, provider, cwd, branch, ended, messages, calls, pinned, heartbeat) = row[: len(_DETAILS)]
    return Details(
        filled_text(title),
        filled_text(display),
        filled_text(model),
        filled_text(provider) or next((used.provider for used in usage if not used.task and used.provider), None),
        filled_text(cwd),
        filled_text(branch),
        time_or_none(ended),
        None if messages is None else count(messages),
        count(calls),
        flag(pinned),
        time_or_none(heartbeat),
        usage,
    )


def _count_where_missing(connection: ReadConnection, schema: Schema, found: dict[str, Details]) -> None:
    """Count live messages where the store has no count of its own."""
    missing = [identity for identity, details in found.items() if details.message_count is None]
    if not missing or not schema.has("messages", "session_id"):
        return
    active = schema.column("messages", "active", "m")
    for some in batches(missing):
        sql = (
            f"SELECT m.session_id, count(*) FROM messages m WHERE m.session_id IN ({','.join('?' * len(some))})"
            f" AND ({active} IS NULL OR {active} <> 0) GROUP BY m.session_id"
        )
        counted: dict[str, int] = dict(connection.rows(sql, some))
        for identity in some:
            found[identity] = found[identity]._replace(message_count=counted.get(identity, 0))


def held_sessions(connection: ReadConnection, schema: Schema, now: float) -> frozenset[str]:
    """Sessions that an unexpired compression lock or turn lease names."""
    found: set[str] = set()
    for table, column in (("compression_locks", "session_id"), ("session_turn_leases", "conversation_id")):
        if schema.has(table, column, "expires_at"):
            sql = f"SELECT {column} FROM {table} WHERE typeof(expires_at) IN ('integer', 'real') AND expires_at > ?"
            # A damaged table of locks hides who is working, not what was said.
            with suppress(StoreDamaged):
                found.update(str(row[0]) for row in connection.rows(sql, (now,)))
    return frozenset(found)


def read_previews(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, RawText]:
    """The first prompt of these sessions, cut as the product cuts it."""
    found: dict[str, RawText] = {}
    if not schema.has("messages", "id", "session_id", "role", "content"):
        return found
    for first_rows in FIRST_ROWS:
        # Nearly every session begins with its prompt; only the others are looked at further.
        missing = [identity for identity in ids if identity not in found]
        for some in batches(missing):
            rows = connection.rows(_preview_query(schema, first_rows), (json_ids(some),))
            for identity, content, flagged, display in rows:
                if identity not in found and (preview := _preview_of(content, flagged, display)):
                    found[identity] = preview
    return found


_EVERY_SO_MANY: Final = (
    "SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM sessions WHERE typeof(id) = 'text')"
    " WHERE place % ?1 = 1 OR ?1 = 1 ORDER BY id"
)
"""Ids that begin pieces of the store. Sorted by SQLite: Python holds up the keys while it sorts 70,000 of them."""


def first_prompts(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, RawText]:
    """The same for every session of a store: one pass finds those that begin with their prompt."""
    found: dict[str, RawText] = {}
    if schema.has("messages", "id", "session_id", "role", "content"):
        # In pieces: a kilobyte of each of 70,000 prompts is more than everything else the program holds.
        begins = [row[0] for row in connection.rows(_EVERY_SO_MANY, (SESSIONS_AT_ONCE,))]
        for begin, end in zip_longest(begins, begins[1:]):
            within = f"session_id >= ?{'' if end is None else ' AND session_id < ?'}"
            where = f"m.id IN (SELECT min(id) FROM messages WHERE {within} GROUP BY session_id)"
            bounds = (begin,) if end is None else (begin, end)
            rows = connection.rows(_prompt_query(schema, "messages m", where), bounds)
            for identity, content, flagged, display in rows:
                if preview := _preview_of(content, flagged, display):
                    found[identity] = preview
    asked = set(ids)
    found = {identity: preview for identity, preview in found.items() if identity in asked}
    return read_previews(connection, schema, [identity for identity in ids if identity not in found]) | found


def _preview_query(schema: Schema, first_rows: int) -> str:
    """What people wrote among the first rows of sessions, in the order of the rows, and was not taken back."""
    # The inner query is answered by the session's index alone.
    where = f"m.id IN (SELECT id FROM messages WHERE session_id = s.value ORDER BY id LIMIT {first_rows})"
    return _prompt_query(schema, "json_each(?) s CROSS JOIN messages m", where) + " ORDER BY m.id"


def _prompt_query(schema: Schema, tables: str, where: str) -> str:
    """Prompts among some rows, with what tells whether a person typed them."""
    column = partial(schema.column, "messages", alias="m")
    return (
        f"SELECT m.session_id, CASE WHEN octet_length(m.content) <= {HASHED_BYTES}"
        " THEN CASE WHEN substr(CAST(m.content AS BLOB), 1, 1) = x'00' THEN CAST(m.content AS BLOB)"
        f" ELSE substr(CAST(m.content AS BLOB), 1, {PREVIEW_BYTES}) END END,"
        f" {column('_compressed_summary')}, {column('display_kind')} FROM {tables}"
        f" WHERE {where} AND m.role = 'user'"
        f" AND NOT (ifnull({column('active')}, 1) = 0 AND ifnull({column('compacted')}, 0) = 0)"
    )


def _preview_of(content: Any, flagged: Any, display: Any) -> RawText | None:
    """The preview a row gives, unless nobody typed it."""
    if flag(flagged) or (display or "") not in TYPED or not isinstance(content, bytes) or opens_summary(content):
        return None
    text = read_content(content).text[:PREVIEW_CHARACTERS].replace("\r", " ").replace("\n", " ").strip()
    return RawText(text) if text else None


def count_compactions(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, int]:
    """Compactions made inside these sessions; a session can hold none without rows that were compacted away."""
    found: dict[str, int] = {}
    if not schema.has("messages", "session_id", "active", "compacted", "content", "role"):
        return found
    marks = (
        "substr(CAST(content AS BLOB), 1, 19) = CAST('[CONTEXT COMPACTION' AS BLOB)"
        " OR substr(CAST(content AS BLOB), 1, 18) = CAST('[CONTEXT SUMMARY]:' AS BLOB)"
        " OR substr(CAST(content AS BLOB), 1, 14) = CAST('[PRIOR CONTEXT' AS BLOB)"
    )
    if schema.has("messages", "_compressed_summary"):
        marks += " OR _compressed_summary = 1"
    for some in batches(ids):
        sql = (
            "SELECT s.value FROM json_each(?) s WHERE EXISTS (SELECT 1 FROM messages WHERE session_id = s.value"
            " AND active = 0 AND compacted = 1)"
        )
        compacted = [row[0] for row in connection.rows(sql, (json_ids(some),))]
        for identity in compacted:
            counting = (
                "SELECT count(*) FROM messages WHERE session_id = ? AND role IN ('user', 'assistant')"
                f" AND octet_length(content) <= {HASHED_BYTES} AND ({marks})"
            )
            row = connection.one(counting, (identity,))
            found[identity] = max(row[0] if row else 0, 1)
    return found
