"""What the health check has to say about a Codex home (facts/codex.md sections 7, 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hermes_tui.model import Finding, SessionId, SessionRow, Severity
from hermes_tui.stores.codex.agent_mirror import KNOWN_GENERATION, AgentMirror
from hermes_tui.stores.codex.entries import TITLE_LENGTH
from hermes_tui.stores.codex.picture import Picture
from hermes_tui.stores.log_findings import NAMED_PATHS
from hermes_tui.stores.log_source import LogFile
from hermes_tui.stores.logs import LogIndex

_FALLBACKS: Final[dict[str, tuple[Severity, str]]] = {
    "missing": ("info", "The list comes from the rollouts. Codex writes a new mirror when it starts."),
    "mid-backfill": ("info", "The list comes from the rollouts until Codex has finished its backfill."),
    "broken": (
        "warn",
        "The list comes from the rollouts. Codex rebuilds a broken mirror when it starts; names are lost.",
    ),
    "locked": ("warn", "The list comes from the rollouts. Try again when Codex is less busy."),
    "unknown-schema": ("warn", "The list comes from the rollouts. A newer hermes-tui may know this mirror."),
}


def agent_findings(picture: Picture) -> tuple[Finding, ...]:
    """What one look at mirror and folders shows."""
    return (*_mirror_findings(picture), *_odd_findings(picture), *_folder_findings(picture))


def _odd_findings(picture: Picture) -> Iterator[Finding]:
    """What was passed over because it names no thread."""
    mirror, indexed = picture.mirror, picture.indexed
    if mirror.odd:
        yield Finding(
            "agent-mirror-odd-rows", "warn", "rows of the mirror without an id or a path; passed over", mirror.odd,
            "Their threads are listed from the rollouts, where these are there.", (mirror.path or "",),
        )  # fmt: skip
    if indexed.unreadable:
        yield Finding(
            "unreadable-names", "warn", "places in the list of names that cannot be read", indexed.unreadable,
            "Threads named there show their first prompt instead.", (indexed.path or "",),
        )  # fmt: skip


def _mirror_findings(picture: Picture) -> Iterator[Finding]:
    mirror = picture.mirror
    paths = () if mirror.path is None else (mirror.path,)
    if mirror.fallback is not None:
        severity, advice = _FALLBACKS[mirror.fallback]
        detail = f"Codex' own mirror is not used: {mirror.fallback} ({mirror.detail})"
        yield Finding(f"agent-mirror-{mirror.fallback}", severity, detail, advice=advice, paths=paths)
        return
    if mirror.passed is not None:
        newer = mirror.passed
        detail = f"generation {newer.generation} of the mirror is not used: {newer.fallback} ({newer.detail})"
        yield Finding(
            f"agent-mirror-{newer.fallback}", "warn", f"{detail}; the list is by generation {mirror.generation}",
            advice="Codex may not write to the older one any more; what it lacks is read from the rollouts.",
            paths=(newer.path or "",),
        )  # fmt: skip
    if mirror.generation is not None and mirror.generation > KNOWN_GENERATION:
        detail = (
            f"the mirror is of generation {mirror.generation}; {KNOWN_GENERATION} is the newest we were checked with"
        )
        yield Finding("agent-mirror-newer", "info", detail, paths=paths)
    if picture.missing:
        detail = _named("{} in the mirror without a rollout: shown as missing", picture.missing)
        yield Finding(
            "rollout-missing", "warn", detail, len(picture.missing),
            "The conversation itself is gone unless the file can be restored from a backup.", paths,
        )  # fmt: skip
    if picture.unlisted:
        detail = _named("{} with a rollout and without a row in the mirror: shown from the rollout", picture.unlisted)
        yield Finding(
            "agent-mirror-lag", "info", detail, len(picture.unlisted), "`codex doctor` reports them too.", paths
        )
    if picture.behind:
        detail = _named("{} whose rollout is newer than the row in the mirror", picture.behind)
        yield Finding("agent-mirror-behind", "info", detail, len(picture.behind), paths=paths)
    if picture.moved:
        detail = f"{picture.moved} rows of the mirror name another place: the home was copied; matched by file name"
        yield Finding("home-moved", "info", detail, picture.moved, paths=paths)


def _folder_findings(picture: Picture) -> Iterator[Finding]:
    found = picture.found
    if found.unreadable:
        place, reason = next(iter(found.unreadable.items()))
        yield Finding(
            "unreadable-folder", "warn", f"cannot be looked into: {place} ({reason})", len(found.unreadable),
            "Check that you may read them; threads in them are not listed.", tuple(found.unreadable)[:NAMED_PATHS],
        )  # fmt: skip
    if picture.copies:
        detail = (
            f"{len(picture.copies)} more files of threads that another file holds: the one Codex would take is shown"
        )
        yield Finding("thread-in-two-files", "warn", detail, len(picture.copies), paths=picture.copies[:NAMED_PATHS])
    if found.shadowed:
        detail = f"{len(found.shadowed)} compressed rollouts beside their plain form, which is the one in use"
        yield Finding(
            "shadowed-rollouts", "info", detail, len(found.shadowed), paths=tuple(found.shadowed[:NAMED_PATHS])
        )
    if found.again:
        detail = f"{len(found.again)} paths lead to a rollout met before, by a link"
        yield Finding("linked-rollouts", "info", detail, len(found.again), paths=tuple(found.again[:NAMED_PATHS]))


def stale_findings(mirror: AgentMirror, index: LogIndex, peeked: Callable[[LogFile], SessionRow]) -> Iterator[Finding]:
    """Titles and folders in the mirror that the rollouts deny: Codex never corrects them (facts/codex.md section 8)."""
    wrong: list[str] = []
    paths: list[str] = []
    for thread, row in mirror.rows.items():
        logs = index.logs_of.get(thread, ())
        if not logs:
            continue
        truth = peeked(logs[0])
        if _differs(row.title, truth.title) or _differs(row.cwd, truth.cwd):
            wrong.append(thread)
            paths.append(logs[-1].path)
    if wrong:
        detail = _named("{} whose title or folder in the mirror is not what the rollout says", wrong)
        yield Finding(
            "agent-mirror-stale",
            "warn",
            detail,
            len(wrong),
            "We show what the rollout says.",
            tuple(paths[:NAMED_PATHS]),
        )


def _differs(told: str | None, true: str | None) -> bool:
    return told is not None and true is not None and told[:TITLE_LENGTH].strip() != true[:TITLE_LENGTH].strip()


def _named(what: str, ids: Sequence[SessionId] | Sequence[str]) -> str:
    count = "1 thread" if len(ids) == 1 else f"{len(ids)} threads"
    return what.format(count) + f" ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''})"
