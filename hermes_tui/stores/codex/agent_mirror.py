"""The mirror Codex keeps of its rollouts: ``state_N.sqlite``, ``session_index.jsonl`` (facts/codex.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import Interrupted, StorageError, StoreBusy
from hermes_tui.storage.jsonl import read_records
from hermes_tui.storage.reading import Interrupts, ReadConnection, read_only
from hermes_tui.stores.codex.discovery import NAMES, STATE_NAME
from hermes_tui.stores.codex.rollout import mapping, sane, string
from hermes_tui.stores.log_source import LogFile

KNOWN_GENERATION: Final = 5
"""The generation these columns were checked against (codex-cli 0.171.0)."""
BEHIND_SECONDS: Final = 2.0
"""A rollout written to so long after its mirror row counts as newer: the row is written right after the line."""
_COLUMNS: Final = (
    "id", "rollout_path", "title", "name", "preview", "first_user_message", "source", "model_provider", "cwd", "model",
    "git_branch", "created_at_ms", "created_at", "updated_at_ms", "updated_at", "archived", "agent_nickname",
    "is_pinned",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """One thread as the mirror tells it."""

    id: SessionId
    path: str
    title: str | None
    name: str | None
    preview: str | None
    source: str | None
    provider: str | None
    cwd: str | None
    model: str | None
    branch: str | None
    created: float | None
    updated: float | None
    archived: bool
    nickname: str | None
    pinned: bool


@dataclass(frozen=True, slots=True)
class AgentMirror:
    """What could be read of the mirror, and why it is not used as the list where it is not."""

    path: str | None = None
    generation: int | None = None
    rows: Mapping[SessionId, MirrorRow] = field(default_factory=dict)
    parents: Mapping[SessionId, SessionId] = field(default_factory=dict)
    """A sub-agent's parent."""
    fallback: str | None = None
    """Why the list comes from a scan: missing, mid-backfill, broken, locked, unknown-schema."""
    detail: str | None = None
    odd: int = 0
    """Rows without an id or a path, which name no thread."""
    passed: AgentMirror | None = None
    """A newer generation that could not be used in place of this one."""

    @property
    def usable(self) -> bool:
        """Whether the list may come from it."""
        return self.fallback is None


def mirror_files(folders: Sequence[str]) -> list[tuple[int, str]]:
    """Every ``state_N.sqlite``, highest generation first."""
    found: dict[str, int] = {}
    for folder in folders:
        try:
            names = [path.name for path in Path(folder).iterdir()]
        except OSError:
            continue  # the folder of the databases need not exist: the mirror is missing then
        for name in names:
            match = STATE_NAME.match(name)
            if match is not None:
                found.setdefault(f"{folder}/{name}", int(match[1]))
    return sorted(((number, path) for path, number in found.items()), reverse=True)


def read_mirror(folders: Sequence[str], interrupts: Interrupts) -> AgentMirror:
    """Read the highest generation that can be read; never raises for a damaged one.

    Raises:
        Interrupted: somebody asked to stop.
    """
    first: AgentMirror | None = None
    for generation, path in mirror_files(folders):
        mirror = _read(path, generation, interrupts)
        if mirror.usable:
            return replace(mirror, passed=first)
        first = first or mirror
    return first or AgentMirror(fallback="missing", detail="there is no state_N.sqlite")


def _read(path: str, generation: int, interrupts: Interrupts) -> AgentMirror:
    try:
        with read_only(path, busy_ms=1000, interrupts=interrupts) as database:
            columns = database.columns("threads")
            if database.way == "empty":
                # Codex takes it for a broken one and makes it anew (facts/codex.md section 8).
                return AgentMirror(path, generation, fallback="broken", detail="it is empty")
            if not {"id", "rollout_path"} <= columns:
                return AgentMirror(path, generation, fallback="unknown-schema", detail="it has no table of threads")
            wanted = [column for column in _COLUMNS if column in columns]
            rows = database.rows(f"SELECT {', '.join(wanted)} FROM threads")
            parents = _parents(database)
            status = _backfill(database)
    except Interrupted:
        raise
    except StoreBusy as error:
        return AgentMirror(path, generation, fallback="locked", detail=error.detail)
    except StorageError as error:
        return AgentMirror(path, generation, fallback="broken", detail=error.detail)
    told = [_row(dict(zip(wanted, values, strict=True))) for values in rows]
    threads = {row.id: row for row in told if row is not None}
    fallback = None if status in (None, "complete") else "mid-backfill"
    detail = None if fallback is None else f"its backfill is {status}"
    return AgentMirror(path, generation, threads, parents, fallback, detail, odd=told.count(None))


def _parents(database: ReadConnection) -> dict[SessionId, SessionId]:
    if not {"parent_thread_id", "child_thread_id"} <= database.columns("thread_spawn_edges"):
        return {}
    found = database.rows("SELECT child_thread_id, parent_thread_id FROM thread_spawn_edges")
    return {SessionId(child): SessionId(parent) for child, parent in found if child and parent}


def _backfill(database: ReadConnection) -> str | None:
    if "status" not in database.columns("backfill_state"):
        return None
    found = database.rows("SELECT status FROM backfill_state LIMIT 1")
    return str(found[0][0]) if found else None


def _row(values: Mapping[str, object]) -> MirrorRow | None:
    thread, path = string(values.get("id")), string(values.get("rollout_path"))
    if thread is None or path is None:
        return None
    return MirrorRow(
        id=SessionId(thread),
        path=path,
        title=string(values.get("title")),
        name=string(values.get("name")),
        preview=string(values.get("preview")) or string(values.get("first_user_message")),
        source=string(values.get("source")),
        provider=string(values.get("model_provider")),
        cwd=string(values.get("cwd")),
        model=string(values.get("model")),
        branch=string(values.get("git_branch")),
        created=_time(values, "created_at"),
        updated=_time(values, "updated_at"),
        archived=bool(values.get("archived")),
        nickname=string(values.get("agent_nickname")),
        pinned=bool(values.get("is_pinned")),
    )


def _time(values: Mapping[str, object], column: str) -> float | None:
    milliseconds = values.get(f"{column}_ms")
    if isinstance(milliseconds, int | float) and milliseconds:
        return sane(milliseconds / 1000)
    return sane(values.get(column))


def is_behind(row: MirrorRow, at: float | None) -> bool:
    """Whether a rollout that was written to then, Unix seconds, holds lines that are newer than its row."""
    return at is not None and row.updated is not None and at - row.updated > BEHIND_SECONDS


def preference(log: LogFile, row: MirrorRow | None) -> tuple[bool, str, bool, int]:
    """Of two files of one thread the program takes the mirror's, else the newest by name (facts/codex.md section 7)."""
    name = log.path.rpartition("/")[2]
    known = row is not None and row.path.rpartition("/")[2] == name and row.archived == log.archived
    return (known, name.removesuffix(".zst"), not log.archived, log.size)


@dataclass(frozen=True, slots=True)
class IndexedNames:
    """What ``session_index.jsonl`` says."""

    names: Mapping[SessionId, str] = field(default_factory=dict)
    unreadable: int = 0
    """Lines that cannot be read; 1 where the whole file cannot."""
    path: str | None = None


def indexed_names(home: str) -> IndexedNames:
    """Names of threads in ``session_index.jsonl``: the last line for an id wins."""
    names: dict[SessionId, str] = {}
    path = Path(home) / NAMES
    if not path.is_file():
        return IndexedNames()
    unreadable = 0
    try:
        for record in read_records(path):
            unreadable += record.value is None
            for value in (record.value,) if record.value is not None else record.rescued:
                line = mapping(value)
                thread = string(line.get("id"))
                if thread is not None and "thread_name" in line:
                    names[SessionId(thread)] = string(line.get("thread_name")) or ""
    except OSError:
        # Names are a convenience: without them titles come from the first prompts.
        unreadable += 1
    return IndexedNames(names, unreadable, str(path))


def matched_rows(logs: Sequence[LogFile], rows: Mapping[SessionId, MirrorRow]) -> tuple[dict[str, MirrorRow], int]:
    """The mirror's row of each rollout: by path, else by file name, for a home may have been copied elsewhere."""
    by_path = {row.path: row for row in rows.values()}
    by_name = {row.path.replace("\\", "/").rpartition("/")[2]: row for row in rows.values()}
    found: dict[str, MirrorRow] = {}
    moved = 0
    for log in logs:
        plain = log.path.removesuffix(".zst")
        row = by_path.get(log.path) or by_path.get(plain)
        if row is None:
            row = by_name.get(plain.rpartition("/")[2])
            moved += row is not None
        if row is not None:
            found[log.path] = row
    return found, moved
