"""What the health check has to say of a Hermes store (facts/hermes.md sections 1, 10 and 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hermes_tui.model import Finding, Origin, StoreRef, StoreState, StoreStatus
from hermes_tui.storage.errors import Interrupted, StorageError, StoreDamaged
from hermes_tui.stores.hermes.cells import EARLIEST, LATEST
from hermes_tui.stores.hermes.discovery import Home, setting
from hermes_tui.stores.hermes.schema import NEWEST_KNOWN, Schema

if TYPE_CHECKING:
    from hermes_tui.storage.reading import ReadConnection

LARGE_WAL: Final = 64 << 20
"""Bytes; new builds limit the -wal to this (facts/hermes.md section 4)."""


QuickLook = tuple[int | None, list[Finding]]
"""The number of sessions, ``None`` where a damaged page hides it, and what a few look-ups in indexes tell."""


def quick_status(ref: StoreRef, home: Home, look: Callable[[], QuickLook], logs_only: int) -> StoreStatus:
    """The status by what can be told without a pass over the store; ``look`` gives :func:`quick_look`."""
    findings = list(_home_findings(home, logs_only))
    if not home.store.exists():
        findings.append(_no_store(home))
        state: StoreState = "degraded" if logs_only else "empty"
        origin: Origin | None = "scan" if logs_only else None
        return StoreStatus(ref, state, origin, logs_only, findings=tuple(findings), active_profile=home.active)
    try:
        sessions, found = look()
    except Interrupted:
        raise
    except StorageError as error:
        findings.append(
            Finding("store-unreadable", "error", error.detail, advice=error.advice, paths=(str(home.store),))
        )
        origin = "scan" if logs_only else None
        only_logs = logs_only or None
        return StoreStatus(ref, "unreadable", origin, only_logs, findings=tuple(findings), active_profile=home.active)
    findings += found
    worst = any(finding.severity != "info" for finding in findings)
    state = "degraded" if worst else "ok" if sessions or logs_only else "empty"
    known = None if sessions is None else sessions + logs_only
    return StoreStatus(ref, state, "store", known, findings=tuple(findings), active_profile=home.active)


def _no_store(home: Home) -> Finding:
    return Finding("no-store", "info", f"Profile {home.profile} has no state.db yet.", paths=(str(home.folder),))


def _home_findings(home: Home, logs_only: int) -> Iterator[Finding]:
    """What the folder says before the store is opened."""
    backend = setting(home.config, "database", "backend")
    if backend is not None and backend.casefold().startswith("postgres"):
        yield Finding(
            "postgres-backend",
            "warn",
            "config.yaml keeps conversations in PostgreSQL: they live elsewhere, and state.db may be absent or old.",
            advice="Read them with the agent itself.",
            paths=(str(home.config),),
        )
    if logs_only:
        yield Finding(
            "legacy-logs",
            "info",
            f"{logs_only} session{' is' if logs_only == 1 else 's are'} only in logs beside the store,"
            " and listed from a scan.",
            logs_only,
            paths=tuple(str(folder) for folder in (home.legacy_sessions, home.pending) if folder.is_dir()),
        )
    backups = _repair_backups(home.store)
    if backups:
        yield Finding(
            "malformed-backup",
            "info",
            "The agent once found this store damaged and kept a copy before it repaired it.",
            len(backups),
            "The copies can be opened with --store; delete them when nothing is missing.",
            tuple(map(str, backups)),
        )


def _repair_backups(store: Path) -> list[Path]:
    """Copies made by automatic repair; each may have a -wal and a -shm."""
    try:
        found = sorted(store.parent.glob(f"{store.name}.malformed-backup-*"))
    except OSError:
        return []
    return [path for path in found if not path.name.endswith(("-wal", "-shm"))]


def quick_look(connection: ReadConnection, schema: Schema) -> QuickLook:
    """What a store tells of itself without a pass over it."""
    found = [*connection.findings, *_about_schema(connection, schema)]
    sessions: int | None = None
    try:
        row = connection.one("SELECT count(id) FROM sessions")
        sessions = row[0] if row else 0
        absurd = _absurd_starts(connection, schema)
    except StoreDamaged as error:
        # What lies on other pages is listed all the same.
        found.append(Finding("damaged", "error", error.reason, advice=error.advice, paths=(connection.path,)))
        return sessions, found
    if absurd:
        detail = f"{absurd} sessions have a start that is no time; it is shown as unknown."
        found.append(Finding("absurd-time", "warn", detail, absurd, paths=(connection.path,)))
    return sessions, found


def _about_schema(connection: ReadConnection, schema: Schema) -> Iterator[Finding]:
    if schema.from_the_future:
        yield Finding(
            "future-schema",
            "info",
            f"The store has schema {schema.version}, newer than {NEWEST_KNOWN}; what is known of it is read.",
            paths=(connection.path,),
        )
    if not schema.has("messages", "id", "session_id", "content"):
        yield Finding(
            "no-messages",
            "warn",
            "The store has no table of messages that can be read; sessions are shown without theirs.",
            paths=(connection.path,),
        )


def _absurd_starts(connection: ReadConnection, schema: Schema) -> int:
    """Sessions whose start is no time; the index on it answers."""
    if not schema.has("sessions", "started_at"):
        return 0
    sql = (
        "SELECT (SELECT count(*) FROM sessions WHERE started_at < ?) + (SELECT count(*) FROM sessions WHERE"
        " started_at >= ?) + (SELECT count(*) FROM sessions WHERE started_at IS NULL)"
    )
    row = connection.one(sql, (EARLIEST, LATEST))
    return row[0] if row else 0
