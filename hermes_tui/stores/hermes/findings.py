"""What the health check has to say of a Hermes store (facts/hermes.md sections 1, 10 and 11)."""

from __future__ import annotations

from collections.abc import Mapping

from hermes_tui.model import Finding, Origin, StoreRef, StoreState, StoreStatus
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.discovery import Home, setting
from hermes_tui.stores.hermes.legacy_logs import LegacyLog
from hermes_tui.stores.hermes.schema import NEWEST_KNOWN, Schema


def quick_status(ref: StoreRef, home: Home, asking: Asking, only_in_logs: int) -> StoreStatus:
    """The status by what can be told without a pass over the store."""
    findings = list(_home_findings(home))
    if not home.store.exists():
        state: StoreState = "degraded" if only_in_logs else "empty"
        findings.append(
            Finding("no-store", "info", f"Profile {home.profile} has no state.db yet.", paths=(str(home.folder),))
        )
        return StoreStatus(
            ref,
            state,
            "scan" if only_in_logs else None,
            only_in_logs,
            findings=tuple(findings),
            active_profile=home.active,
        )
    try:
        sessions, found = asking.ask(_quick)
    except Interrupted:
        raise
    except StorageError as error:
        findings.append(Finding("unreadable", "error", error.detail, advice=error.advice, paths=(str(home.store),)))
        origin: Origin | None = "scan" if only_in_logs else None
        return StoreStatus(
            ref, "unreadable", origin, only_in_logs or None, findings=tuple(findings), active_profile=home.active
        )
    findings += found
    worst = any(finding.severity != "info" for finding in findings)
    state = "degraded" if worst else "ok" if sessions or only_in_logs else "empty"
    return StoreStatus(
        ref, state, "store", sessions + only_in_logs, findings=tuple(findings), active_profile=home.active
    )


def _home_findings(home: Home) -> list[Finding]:
    """What the folder says before the store is opened."""
    backend = setting(home.config, "database", "backend")
    if backend is None or not backend.casefold().startswith("postgres"):
        return []
    return [
        Finding(
            "postgres-backend",
            "warn",
            "config.yaml keeps conversations in PostgreSQL: they live elsewhere, and state.db may be absent or old.",
            advice="Read them with the agent itself.",
            paths=(str(home.config),),
        )
    ]


def _quick(connection: ReadConnection, schema: Schema) -> tuple[int, list[Finding]]:
    row = connection.one("SELECT count(*) FROM sessions")
    found = list(connection.findings)
    if schema.from_the_future:
        found.append(
            Finding(
                "future-schema",
                "info",
                f"The store has schema {schema.version}, newer than {NEWEST_KNOWN}; what is known of it is read.",
                paths=(connection.path,),
            )
        )
    return (row[0] if row else 0), found


def full_findings(ref: StoreRef, home: Home, asking: Asking, logs: Mapping[str, LegacyLog]) -> list[Finding]:
    """Everything there is to say."""
    del logs
    return list(quick_status(ref, home, asking, 0).findings)
