"""What a DSH session log may say: versions, header, vocabulary (facts/dsh.md sections 2 and 3).

A reader that accepts one version only reads nothing new; one that accepts any reads nonsense. So versions 0 to 4 are
accepted and everything else is refused for that one session, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes_tui.model import LineageKind, SessionId
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError

NEWEST_VERSION: Final = 4
SEED_LENGTH_VERSIONS: Final = (0, 1)
"""Versions whose header counts the inherited events; later ones mark the cut in the log."""
PACKED_VERSIONS: Final = (0, 1)
"""Versions that pack runs of chunks into rows of the log itself."""
EARLIEST_MOMENT: Final = 946_684_800.0
"""2000-01-01: a time before it, or after :data:`LATEST_MOMENT`, is absurd and counts as unknown."""
LATEST_MOMENT: Final = 4_102_444_800.0
"""2100-01-01."""
ABSURD_TIME: Final = "absurd time"
"""How the problem begins of a row whose time is shown as unknown."""

_HEADER_KEYS: Final = frozenset(
    {"type", "version", "id", "createdAt", "cwd", "parentSession", "origin", "delegationDepth", "agentPreset"}
)
_OLD_KEYS: Final = _HEADER_KEYS | {"seedLength"}
_NEW_KEYS: Final = _HEADER_KEYS | {"isSeeded"}

PACKED_TYPES: Final = frozenset({"text-chunks", "reasoning-chunks", "tool-call-chunks"})
MESSAGE_TYPES: Final = frozenset(
    {"system/message", "developer/message", "user/message", "assistant/message", "tool/result"}
)
"""Events that stand on the surface: what the model sees."""
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "agent-preset": ("selected",),
    "agent": ("inbox/spliced",),
    "approval": (
        "asked",
        "decided",
        "policy",
    ),
    "assistant": (
        "attempt",
        "message",
    ),
    "command": (
        "run",
        "done",
    ),
    "compaction": (
        "start",
        "summary",
        "end",
        "prune",
    ),
    "deliverables": ("presented",),
    "developer": ("message",),
    "feedback": (
        "message-put",
        "message-delete",
        "record",
    ),
    "goal": ("change",),
    "hook": (
        "invoked",
        "result",
    ),
    "image": ("offload",),
    "job": (
        "registered",
        "settled",
    ),
    "llm": (
        "retry",
        "retry-started",
    ),
    "model": ("selection",),
    "permission": ("preset",),
    "plan": ("mode",),
    "request": (
        "header",
        "context",
    ),
    "sandbox": ("mode",),
    "schedule": ("change",),
    "session-log-deepseek": ("delivery-accepted",),
    "session": (
        "end-seed",
        "title",
        "title-llm-request",
    ),
    "step": (
        "start",
        "end",
    ),
    "subagent": (
        "catalog",
        "descriptor",
        "model-selection-policy",
    ),
    "system": ("message",),
    "team": (
        "member",
        "task",
        "message/queued",
        "message/delivered",
    ),
    "todo": ("write",),
    "tool-workflow": (
        "run-start",
        "run-end",
        "agent-start",
        "agent-end",
    ),
    "tool": (
        "call",
        "result",
        "ptc-dispatch",
        "ptc-dispatch-start",
    ),
    "turn": (
        "start",
        "end",
    ),
    "user": ("message",),
    "web": ("deepseek-search-llm-request",),
    "working-directory": ("change",),
    "workspace": ("changes",),
}
KNOWN_TYPES: Final = frozenset(f"{family}/{name}" for family, names in _FAMILIES.items() for name in names)
"""The 62 event types of version 4 (facts/dsh.md section 2)."""
_OLD_TYPES: Final = frozenset({"assistant/chunk"})
_OLD_PREFIXES: Final = ("tool/code-dispatch", "steering/", "agent/steering")
"""Event families that only the first versions had."""


class SessionFormatUnsupportedError(StorageError):
    """One session's log is of a format that must not be guessed at."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"SessionFormatUnsupportedError: {path} is not read",
            reason,
            "What its header says is shown; open it with a DSH that knows the format.",
        )


class SessionCorruptError(StorageError):
    """One session's log is damaged in a place its own program does not read past."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path} cannot be resumed", reason, "`recover --cut LINE` shows what was there before the damage."
        )


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a log, or the row of a session in a database."""

    id: SessionId
    version: int
    created_at: float | None
    """Unix seconds."""
    cwd: str | None = None
    parent: SessionId | None = None
    origin: str | None = None
    depth: int = 0
    seeded: bool = False
    """The parent's events stand in front of the session's own."""
    seed_length: int | None = None
    """How many, in versions 0 and 1."""
    preset: str | None = None

    @property
    def delegated(self) -> bool:
        """Started by another session's agent."""
        return self.origin == "subagent" or self.depth > 0

    @property
    def kind(self) -> LineageKind:
        """How it came from its parent."""
        if self.delegated:
            return "delegation"
        return "root" if self.parent is None else "fork"


def moment(milliseconds: object) -> float | None:
    """Unix seconds of a stored time; ``None`` when it is no number or absurd."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    seconds = milliseconds / 1000
    return seconds if EARLIEST_MOMENT <= seconds <= LATEST_MOMENT else None


def text_or_none(value: object) -> str | None:
    """A text that says something."""
    return value if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """A whole number; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def version_refusal(version: object) -> str | None:
    """Why a version is not read, or ``None``."""
    number = whole(version)
    if number is None or number < 0:
        return f"the header's version is {version!r}, no whole number from 0 to {NEWEST_VERSION}"
    if number > NEWEST_VERSION:
        return f"session format version {number} is newer than {NEWEST_VERSION}, the newest one known here"
    return None


def parse_header(value: object) -> Header | None:
    """What a first line says of its session, however little of it can be trusted; ``None``: it is no header."""
    if not isinstance(value, dict) or value.get("type") != "session" or not isinstance(value.get("id"), str):
        return None
    parent = text_or_none(value.get("parentSession"))
    seed_length = whole(value.get("seedLength"))
    return Header(
        id=SessionId(value["id"]),
        version=-1 if (version := whole(value.get("version"))) is None else version,
        created_at=moment(value.get("createdAt")),
        cwd=text_or_none(value.get("cwd")),
        parent=None if parent is None else SessionId(parent),
        origin=text_or_none(value.get("origin")),
        depth=whole(value.get("delegationDepth")) or 0,
        seeded=value.get("isSeeded") is True or (parent is not None and bool(seed_length)),
        seed_length=seed_length if parent is not None else None,
        preset=text_or_none(value.get("agentPreset")),
    )


def header_refusal(value: Mapping[str, object], generation: int, folder_id: str) -> str | None:
    """Why a log is not read for what its header says, or ``None`` (facts/dsh.md section 3).

    Args:
        value: the header line.
        generation: the version its file name stands for.
        folder_id: the session its folder stands for.
    """
    refusal = version_refusal(value.get("version"))
    if refusal is not None:
        return refusal
    if value["version"] != generation:
        return f"the file name says version {generation}, the header says version {value['version']}"
    if value["id"] != folder_id:
        return f"the folder is of session {folder_id!r}, the header is of session {value['id']!r}"
    odd = sorted(set(value) - (_OLD_KEYS if generation in SEED_LENGTH_VERSIONS else _NEW_KEYS))
    if odd:
        return f"the header of version {generation} has unknown keys: {', '.join(odd)}"
    return None


def is_known(event_type: str, version: int) -> bool:
    """Whether this version has such events; chunk rows are told apart before."""
    if event_type in KNOWN_TYPES:
        return True
    return version < NEWEST_VERSION and (event_type in _OLD_TYPES or event_type.startswith(_OLD_PREFIXES))
