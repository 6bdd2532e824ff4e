"""The long health check of a Hermes store: what needs a pass over its rows (facts/hermes.md sections 10 and 11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from hermes_tui.model import Finding, StoreRef
from hermes_tui.storage.errors import DeadlineExceeded, Interrupted, SchemaDrift, StorageError, StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.storage.statement import Row
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST, MOST, json_or_none
from hermes_tui.stores.hermes.discovery import Home, setting
from hermes_tui.stores.hermes.findings import LARGE_WAL, quick_look, quick_status
from hermes_tui.stores.hermes.indexes import survey
from hermes_tui.stores.hermes.legacy_logs import LegacyLog, message_print, unsaved_prints
from hermes_tui.stores.hermes.links import all_links, batches
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.spend import TOKENS
from hermes_tui.stores.hermes.tokenizer import register_tokenizers

OLD_S: Final = 90 * 86_400.0
"""Age from which prune removes ended sessions (facts/hermes.md section 10)."""
NAMED: Final = 5
"""Ids a finding names."""
ROWS_AT_ONCE: Final = 5_000
CHECKED_BYTES: Final = 512 << 20
"""Larger files are not walked page by page: it takes longer than somebody waits."""

Check = Callable[[ReadConnection, Schema, float], Iterator[Finding]]


def full_findings(
    ref: StoreRef, home: Home, asking: Asking, logs: Mapping[str, LegacyLog], logs_only: int, now: float
) -> tuple[Finding, ...]:
    """Everything there is to say; a check that breaks off is a finding itself."""
    status = quick_status(ref, home, lambda: asking.ask(quick_look), logs_only)
    found: list[Finding] = list(_wal(home))
    if not home.store.exists() or status.state == "unreadable":
        return (*status.findings, *found)
    for check in CHECKS:
        found += asking.ask(_checked, check, now)
    found += asking.ask(_unsaved, logs)
    found += _prune_setting(home)
    # The long check counts what the quick one only noticed.
    counted = {finding.code for finding in found}
    found = [*(finding for finding in status.findings if finding.code not in counted), *found]
    # Several checks may meet the same damaged page.
    return tuple({(finding.code, finding.detail): finding for finding in found}.values())


def _checked(connection: ReadConnection, schema: Schema, check: Check, now: float) -> list[Finding]:
    try:
        return list(check(connection, schema, now))
    except (Interrupted, SchemaDrift):
        raise
    except DeadlineExceeded as error:
        name = check.__name__.strip("_").replace("_", "-")
        return [Finding("not-checked", "info", f"The check of {name} was given up: {error.detail}.")]
    except StoreDamaged as error:
        return [Finding("damaged", "error", error.reason, advice=error.advice, paths=(connection.path,))]
    except StorageError as error:
        return [Finding("check-failed", "error", f"{error.title}: {error.detail}", advice=error.advice)]


def _named(ids: list[str]) -> str:
    """The first few ids, for a sentence."""
    more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
    return ", ".join(ids[:NAMED]) + more


def _odd_ids(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Sessions without an id that can be named."""
    del schema, now
    row = connection.one("SELECT count(*) FROM sessions WHERE typeof(id) <> 'text'")
    if row and row[0]:
        detail = f"{row[0]} sessions have no id, or one that is no text; nothing can be asked about them."
        yield Finding("bad-id", "warn", detail, row[0], paths=(connection.path,))

    row = connection.one("SELECT count(*) - count(DISTINCT id) FROM sessions WHERE typeof(id) = 'text'")
    if row and row[0]:
        detail = f"{row[0]} sessions have the id of another one; each id is shown once."
        yield Finding("duplicate-id", "warn", detail, row[0], paths=(connection.path,))
    bad = [row[0] for row in connection.rows("SELECT CAST(id AS BLOB) FROM sessions WHERE typeof(id) = 'text'")]
    bad = [identity for identity in bad if not _is_text(identity)]
    if bad:
        detail = (
            f"{len(bad)} sessions have an id that is not UTF-8; they are listed, and nothing can be asked about them."
        )
        yield Finding("bad-id", "warn", detail, len(bad), paths=(connection.path,))


def _counters(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Numbers no agent counts: they are read as 0."""
    del now
    for table, names in (("sessions", ("message_count", *TOKENS)), ("session_model_usage", TOKENS)):
        columns = [schema.column(table, name) for name in names if schema.has(table, name)]
        tests = [f"{one} < 0 OR {one} >= {MOST} OR typeof({one}) IN ('text', 'blob')" for one in columns]
        if not tests:
            continue
        row = connection.one(f"SELECT count(*) FROM {table} WHERE {' OR '.join(tests)}")
        if row and row[0]:
            detail = f"{row[0]} rows of {table} hold a count that is none (negative, text, far too large), read as 0."
            yield Finding("absurd-count", "warn", detail, row[0], paths=(connection.path,))


def _places(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Sessions whose place among the others is odd."""
    del now
    links = all_links(connection, schema)
    every = links.by_id.values()
    orphans = [link.id for link in every if links.orphan(link)]
    if orphans:
        detail = f"Sessions whose parent is not there; they are listed as roots: {_named(orphans)}."
        yield Finding("orphan", "warn", detail, len(orphans), paths=(connection.path,))
    if links.rings:
        detail = f"Sessions that are their own ancestors; the ring is cut at the earliest: {_named(links.rings[0])}."
        yield Finding("cycle", "warn", detail, len(links.rings), paths=(connection.path,))
    lost = [link.id for link in links.lost()]
    if lost:
        detail = f"Sessions that continue a compacted one beside another that won; see its lineage: {_named(lost)}."
        yield Finding("lost-continuation", "info", detail, len(lost), paths=(connection.path,))
    broken = [link.id for link in every if link.bad_config]
    if broken:
        detail = f"Sessions whose model_config is no JSON; the agent's own list may fail on it: {_named(broken)}."
        yield Finding("bad-model-config", "warn", detail, len(broken), paths=(connection.path,))
    unread = [link.id for link in every if link.unread]
    if unread:
        detail = f"Sessions on damaged pages, of which little but the id is known: {_named(unread)}."
        advice = "Make a copy now; the agent can try hermes sessions repair."
        yield Finding("unreadable-sessions", "error", detail, len(unread), advice, (connection.path,))
    absurd = [link.id for link in every if link.bad_time]
    if absurd:
        detail = f"Sessions with a start or end that is no time; it is shown as unknown: {_named(absurd)}."
        yield Finding("absurd-time", "warn", detail, len(absurd), paths=(connection.path,))


def _message_cells(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Messages with cells that no agent writes."""
    del now
    if not schema.has("messages", "id", "content"):
        return
    at = schema.column("messages", "timestamp")
    active = schema.column("messages", "active")
    known = schema.has("messages", "active")
    row = connection.one(
        "SELECT sum(typeof(content) = 'blob'),"
        f" sum(NOT (typeof({at}) IN ('real', 'integer') AND {at} >= {EARLIEST} AND {at} < {LATEST})),"
        f" sum({active} IS NULL) FROM messages"
    )
    blobs, absurd, unmarked = row if row else (0, 0, 0)
    if blobs:
        detail = f"{blobs} messages are stored as BLOBs; they are read as text, the agent's own list may fail on them."
        yield Finding("blob-content", "warn", detail, blobs, paths=(connection.path,))
    if absurd and schema.has("messages", "timestamp"):
        detail = f"{absurd} messages have a time that is none; it is shown as unknown."
        yield Finding("absurd-message-time", "warn", detail, absurd, paths=(connection.path,))
    if unmarked and known:
        detail = f"{unmarked} messages are neither active nor inactive (NULL); they are read as active."
        yield Finding("null-active", "info", detail, unmarked, paths=(connection.path,))


_TEXTS: Final = {
    "messages": ("content", "tool_calls", "tool_name"),
    "sessions": ("source", "model", "title", "cwd", "display_name", "session_key"),
}
"""Cells whose text is shown."""


def _bad_text(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Text that is not UTF-8."""
    del now
    encoding = connection.one("PRAGMA encoding")
    for table, names in _TEXTS.items():
        shown = [name for name in names if schema.has(table, "id", name)]
        if not shown or encoding != ("UTF-8",):
            continue
        bad = list(_not_utf8(connection, table, shown))
        if bad:
            detail = f"{table.capitalize()} whose text is not UTF-8, shown with U+FFFD in it: {_named(bad)}."
            yield Finding("bad-utf8", "warn", detail, len(bad), paths=(connection.path,))


def _not_utf8(connection: ReadConnection, table: str, names: list[str]) -> Iterator[str]:
    """The ids of rows with such a cell; a long text is not looked through."""
    cells = ", ".join(
        f"CASE WHEN octet_length({name}) < 65536 AND typeof({name}) = 'text' THEN CAST({name} AS BLOB) END"
        for name in names
    )
    for rows in _batches_of(connection, table, cells):
        # One decode for thousands of rows; row by row only where that fails.
        if not _is_text(b"\n".join(cell for row in rows for cell in row[1:] if cell)):
            yield from (str(row[0]) for row in rows if not _is_text(b"\n".join(cell for cell in row[1:] if cell)))


def _batches_of(connection: ReadConnection, table: str, cells: str) -> Iterator[Sequence[Row]]:
    """Messages in batches, so that nothing is held for long; sessions are few."""
    if table != "messages":
        yield connection.rows(f"SELECT id, {cells} FROM {table}")
        return
    last = -(1 << 63)
    while rows := connection.rows(
        f"SELECT id, {cells} FROM {table} WHERE id > ? AND typeof(id) = 'integer' ORDER BY id LIMIT ?",
        (last, ROWS_AT_ONCE),
    ):
        last = rows[-1][0]
        yield rows


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _without_session(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Rows of sessions that are not there: no list has them, so they are counted here."""
    del now
    for table, code, what in (
        ("messages", "orphan-messages", "messages"),
        ("session_model_usage", "orphan-usage", "usage rows"),
    ):
        if not schema.has(table, "session_id"):
            continue
        rows = connection.rows(
            f"SELECT session_id, n FROM (SELECT session_id, count(*) AS n FROM {table} GROUP BY session_id)"
            " WHERE session_id IS NULL OR session_id NOT IN (SELECT id FROM sessions WHERE id IS NOT NULL)"
        )
        if rows:
            count = sum(row[1] for row in rows)
            detail = f"{count} {what} belong to sessions that are not there: {_named([str(row[0]) for row in rows])}."
            yield Finding(
                code, "warn", detail, count, "They stay until the agent's store is repaired.", (connection.path,)
            )


def _text_indexes(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Whether the full-text indexes find what they must (facts/hermes.md section 11)."""
    del now
    connection.prepare(register_tokenizers)
    for index in survey(connection, schema).by_name.values():
        if index.problem is not None:
            marked = "marked" in index.problem
            yield Finding(
                f"{index.table.replace('_', '-')}-{'stale' if marked else 'damaged'}",
                "info" if marked else "warn",
                f"The text index {index.table} is not used: {index.problem}. Searches read the messages instead.",
                advice="The agent rebuilds it: hermes sessions optimize, or optimize-storage in newer versions.",
                paths=(connection.path,),
            )
        elif index.gap is not None:
            low, high = index.gap
            detail = f"The text index {index.table} is being rebuilt: messages {low + 1} to {high} are not in it yet."
            yield Finding(f"{index.table.replace('_', '-')}-rebuilding", "info", detail, paths=(connection.path,))
        elif index.inline:
            yield from _missing_rows(connection, schema, index.table)


def _missing_rows(connection: ReadConnection, schema: Schema, table: str) -> Iterator[Finding]:
    """An inline index holds every message; a difference in number means some are not found."""
    del schema
    row = connection.one(f"SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM {table}_docsize)")
    if row is not None and row[0] != row[1]:
        detail = f"The text index {table} holds {row[1]} rows, the store {row[0]} messages."
        code = f"{table.replace('_', '-')}-differs"
        yield Finding(code, "warn", detail, abs(row[0] - row[1]), paths=(connection.path,))


def _pages(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """SQLite's own check of the tables we read.

    Text indexes are left out: another library's trigrams look malformed to this one (facts/hermes.md section 3).
    """
    del now
    size = connection.one("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
    if size is None or size[0] > CHECKED_BYTES:
        detail = f"The file is larger than {CHECKED_BYTES >> 20} MiB: its pages were not checked one by one."
        yield Finding("pages-not-checked", "info", detail, advice="sqlite3 can do it on a copy: PRAGMA quick_check.")
        return
    for table in schema.columns:
        rows = connection.rows(f"PRAGMA quick_check('{table}')")
        bad = [str(row[0]) for row in rows if row[0] != "ok"]
        if bad:
            yield Finding(
                "damaged-pages",
                "error",
                f"Table {table}: {bad[0]}",
                len(bad),
                "Make a copy now; the agent can try hermes sessions repair.",
                (connection.path,),
            )


def _prune(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """What prune never removes: sessions that did not end (facts/hermes.md section 10)."""
    if not schema.has("sessions", "started_at", "ended_at"):
        return
    row = connection.one(
        "SELECT count(*), sum(ended_at IS NULL) FROM sessions WHERE started_at < ? AND started_at >= ?",
        (now - OLD_S, EARLIEST),
    )
    old, open_ended = (row[0], row[1] or 0) if row else (0, 0)
    if open_ended:
        detail = f"{open_ended} of {old} sessions older than 90 days never ended: prune keeps them for ever."
        advice = "hermes-tui prune --end-idle 30d ends those that are idle, then prunes."
        yield Finding("prune-never-ended", "info", detail, open_ended, advice, (connection.path,))


def _prune_setting(home: Home) -> Iterator[Finding]:
    if (setting(home.config, "sessions", "auto_prune") or "").casefold() in ("true", "yes", "on"):
        days = setting(home.config, "sessions", "retention_days") or "90"
        detail = f"The agent prunes by itself: ended sessions older than {days} days go, with their usage."
        yield Finding("auto-prune", "info", detail, paths=(str(home.config),))


def _wal(home: Home) -> Iterator[Finding]:
    """How large the write-ahead log is."""
    wal = Path(f"{home.store}-wal")
    try:
        size = wal.stat().st_size
    except OSError:
        return
    if size:
        large = size > LARGE_WAL
        detail = f"The write-ahead log holds {size / 1e6:.1f} MB" + (
            ": a reader may be holding it up." if large else "."
        )
        yield Finding("wal-size", "warn" if large else "info", detail, paths=(str(wal),))


def _locks(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Hermes' own locks and leases."""
    for table, column, code, doing, what in (
        ("compression_locks", "session_id", "compression-lock", "compacting", "compression lock"),
        ("session_turn_leases", "conversation_id", "turn-lease", "working on", "turn lease"),
    ):
        if not schema.has(table, column, "holder", "expires_at"):
            continue
        rows = connection.rows(f"SELECT {column}, holder, expires_at FROM {table} ORDER BY expires_at DESC")
        held = [row for row in rows if isinstance(row[2], int | float) and row[2] > now]
        if rows:
            names = _named([f"{row[0]} by {row[1]}" for row in held or rows])
            old = f"{len(rows)} {what}{'' if len(rows) == 1 else 's'} left behind, none is held now: {names}."
            detail = f"An agent is {doing} this now: {names}." if held else old
            yield Finding(code, "info", detail, len(rows), paths=(connection.path,))


def _routing(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Which session each channel writes to."""
    del now
    if not schema.has("gateway_routing", "session_key", "entry_json"):
        return
    rows = connection.rows("SELECT session_key, entry_json FROM gateway_routing ORDER BY session_key")
    if not rows:
        return
    targets = {str(key): entry.get("session_id") for key, cell in rows if isinstance(entry := json_or_none(cell), dict)}
    written = [f"{key} to {targets.get(str(key)) or 'no session'}" for key, _ in rows]
    channels = "1 channel writes" if len(rows) == 1 else f"{len(rows)} channels write"
    yield Finding("routing", "info", f"{channels} to sessions here: {_named(written)}.", len(rows))
    known: set[str] = set()
    for some in batches([str(target) for target in targets.values() if target]):
        sql = "SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        known.update(str(row[0]) for row in connection.rows(sql, (json.dumps(list(some)),)))
    gone = [key for key, target in targets.items() if target and target not in known]
    broken = [str(key) for key, _ in rows if str(key) not in targets]
    if gone or broken:
        detail = f"Channels routed to a session that is not there: {_named(gone + broken)}."
        advice = "The agent mends it: hermes sessions repair-routing."
        yield Finding("routing-broken", "warn", detail, len(gone + broken), advice, (connection.path,))


def _delegations(connection: ReadConnection, schema: Schema, now: float) -> Iterator[Finding]:
    """Delegated runs whose result was not handed back."""
    del now
    if not schema.has("async_delegations", "delegation_id", "state", "delivery_state"):
        return
    rows = connection.rows(
        "SELECT state, delivery_state, count(*) FROM async_delegations GROUP BY state, delivery_state ORDER BY 3 DESC"
    )
    if rows:
        counts = "; ".join(f"{row[2]} {row[0]}, result {row[1] or 'not delivered'}" for row in rows)
        detail = f"Delegated runs in the background: {counts}."
        yield Finding("delegations", "info", detail, sum(row[2] for row in rows), paths=(connection.path,))


def _unsaved(connection: ReadConnection, schema: Schema, logs: Mapping[str, LegacyLog]) -> list[Finding]:
    """Messages in logs of sessions the store has, which it lacks: it would not take them once."""
    if not schema.has("messages", "session_id", "role", "content"):
        return []
    missing = 0
    paths: list[str] = []
    sql = (
        "SELECT role, CAST(content AS BLOB) FROM messages WHERE session_id = ? AND"
        f" (content IS NULL OR octet_length(content) < {1 << 20})"
    )
    for identity, log in logs.items():
        if connection.one("SELECT 1 FROM sessions WHERE id = ?", (identity,)) is None:
            continue
        stored = {
            message_print(str(role), (content or b"").decode("utf-8", "replace"))
            for role, content in connection.rows(sql, (identity,))
        }
        lacking = sum(print_ not in stored for print_ in unsaved_prints(log))
        if lacking:
            missing += lacking
            paths += log.paths
    if not missing:
        return []
    detail = (
        f"{missing} message{' in a log' if missing == 1 else 's in logs'} beside the store not in it: the store was"
        " replaced or would not take them."
    )
    # What waits in pending_messages was refused for certain; an old log may simply be from before the store.
    refused = any("pending_messages" in path for path in paths)
    return [Finding("unsaved-messages", "warn" if refused else "info", detail, missing, paths=tuple(paths))]


CHECKS: Final[tuple[Check, ...]] = (
    _odd_ids,
    _counters,
    _places,
    _message_cells,
    _bad_text,
    _without_session,
    _text_indexes,
    _pages,
    _prune,
    _locks,
    _routing,
    _delegations,
)
