"""Whether what is shown is true: the findings of every store, of the settings, and how the mirror is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace

from hermes_tui.library.sources import Library, store_failure
from hermes_tui.library.trash import Trash
from hermes_tui.model import Finding, StoreStatus
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError
from hermes_tui.stores.protocol import Store


@dataclass(frozen=True, slots=True)
class MirrorHealth:
    """How our index is; everything ``None`` where there is none."""

    path: str | None = None
    bytes: int | None = None
    sessions: int | None = None
    lag: int | None = None
    """Sessions not in the mirror yet."""
    lead: int | None = None
    """Sessions the mirror knows and no log does: must be 0."""
    fallbacks: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TrashHealth:
    """What was deleted and can be brought back."""

    path: str | None = None
    """``None`` where nothing was ever deleted."""
    bytes: int = 0
    sessions: int = 0
    strangers: tuple[str, ...] = ()
    """Files in the trash that cannot be read."""


@dataclass(frozen=True, slots=True)
class Health:
    """The whole report."""

    stores: tuple[StoreStatus, ...]
    """With the findings of the long check."""
    mirror: MirrorHealth
    settings: tuple[Finding, ...]
    """What is wrong in the settings file."""
    missing: tuple[str, ...]
    """Places given by hand where no store is."""
    trash: TrashHealth = field(default_factory=TrashHealth)


MirrorCheck = Callable[[Library], MirrorHealth]


def doctor(library: Library, mirror: MirrorCheck | None = None) -> Health:
    """Check every store the long way: what needs a pass over it too."""
    return Health(
        stores=tuple(_checked(store) for store in library.stores),
        mirror=MirrorHealth(fallbacks=tuple(mirror_fallbacks(library).items())) if mirror is None else mirror(library),
        settings=tuple(
            Finding("settings-ignored", "warn", problem, advice="Mend the settings file.", paths=_paths(library))
            for problem in library.settings.problems
        ),
        missing=library.missing,
        trash=_trash(library),
    )


def _trash(library: Library) -> TrashHealth:
    trash = Trash(library.locations.trash)
    try:
        entries, strangers = trash.entries(), tuple(map(str, trash.strangers()))
    except OSError:
        # Of our own folder, where it is shut, only that is told; the stores' health is asked for.
        return TrashHealth(str(trash.folder), strangers=(str(trash.folder),))
    if not entries and not strangers:
        return TrashHealth()
    return TrashHealth(str(trash.folder), trash.size(), sum(len(entry.holds) for entry in entries), strangers)


def _checked(store: Store) -> StoreStatus:
    """The status with the findings of the long check; one that breaks off is a finding itself."""
    status = store.status()
    if status.state == "unreadable":
        return status
    try:
        findings = tuple(store.findings())
    except Interrupted:
        raise
    except (StorageError, OSError) as error:
        failure = store_failure(store.ref, error)
        broken = Finding("check-failed", "error", failure.reason, advice=failure.advice, paths=(store.ref.path,))
        return replace(status, state="degraded", findings=(*status.findings, broken))
    worse = status.state == "ok" and any(finding.severity != "info" for finding in findings)
    return replace(status, state="degraded" if worse else status.state, findings=findings)


def mirror_fallbacks(library: Library) -> Counter[str]:
    """Why logs were read past our mirror; an agent's own mirror is a finding of its store."""
    counts: Counter[str] = Counter()
    for store in library.stores:
        counts.update({why: times for why, times in store.status().fallbacks if not why.startswith("agent-mirror-")})
    return counts


def _paths(library: Library) -> tuple[str, ...]:
    return (library.settings.path,) if library.settings.path else ()
