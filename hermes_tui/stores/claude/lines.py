"""One line of a Claude Code transcript as the rest of the package sees it: who follows whom, without the texts.

Line types and their fields: facts/claude-code.md section 3. What is not a message line only changes the session's
header (titles, folder, leaf marks) and stands in no chain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from hermes_tui.storage.jsonl import Record

MESSAGE_TYPES: Final = frozenset({"user", "assistant", "attachment", "system"})
"""Types that make up the conversation; the leaf is chosen among them."""
TURNS: Final = frozenset({"user", "assistant"})
"""Types a leaf steps up to."""
BRIDGED_TYPE: Final = "progress"
"""Older builds put these into the chain; a child takes over the parent (facts/claude-code.md section 3)."""
CHAIN_TYPES: Final = MESSAGE_TYPES | {BRIDGED_TYPE}
HEADER_TYPES: Final = frozenset(
    {
        "summary", "custom-title", "ai-title", "agent-name", "tag", "last-prompt", "mode", "permission-mode",
        "queue-operation", "file-history-snapshot", "agent-color", "agent-setting", "pr-link", "frame-link",
        "bridge-session", "relocated", "worktree-state", "isolation-latch", "attribution-snapshot",
        "content-replacement", "fork-context-ref", "speculation-accept", "ended-by-model",
        "marble-origami-commit", "marble-origami-snapshot", "marble-origami-reset",
    }
)  # fmt: skip
"""Types the facts name that are no messages."""
SYNTHETIC_MODEL: Final = "<synthetic>"
"""A reply made locally; never billed (facts/claude-code.md section 5)."""
LOCAL_COMMAND: Final = "local_command"
"""System lines of commands the interactive screen ran itself (facts/claude-code.md section 6)."""
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
EARLIEST: Final = 946_684_800.0
"""2000-01-01: a time before it is absurd (contract.md, Common forms)."""
LATEST: Final = 4_102_444_800.0
"""2100-01-01: a time after it is absurd."""

ABSURD_TIME: Final = "absurd time"
"""How the problem begins of a message line whose time is shown as unknown."""
MOST: Final = 1 << 62
"""So many are no count of anything."""

Fields = Mapping[str, object]


class Entry(NamedTuple):
    """One message line: its place in the file and in the chain. A tuple, because a session has thousands."""

    uuid: str
    parent: str | None
    logical_parent: str | None
    """Of a compaction boundary: the last line before it."""
    type: str
    subtype: str
    sidechain: bool
    at: float | None
    line: int
    offset: int
    length: int
    message_id: str | None = None
    """Of an assistant line: the reply it is a block of."""
    has_result: bool = False
    """A user line with a tool_result block."""
    meta: bool = False
    """isMeta: not typed by anybody."""
    summary: bool = False
    """isCompactSummary."""
    agent_id: str | None = None
    error: bool = False
    """isApiErrorMessage: a failure told as if it were a reply; never sent."""
    detached: bool = False
    """It had no uuid of its own, so nothing can follow it and it can't be the leaf."""

    @property
    def boundary(self) -> bool:
        """Whether a compaction begins a new context here."""
        return self.type == "system" and self.subtype == "compact_boundary"

    @property
    def turn(self) -> bool:
        """Whether it is a user or assistant line: what a leaf steps up to."""
        return self.type in TURNS


class UsualEntry(Entry):
    """An entry whose time is worked out when it is asked for: of most lines nobody asks."""

    __slots__ = ()

    @property
    def at(self) -> float:
        """Unix seconds."""
        when: datetime = self[6]  # type: ignore[assignment]
        return when.timestamp()


def plain_entry(entry: Entry) -> tuple[object, ...]:
    """The values of an entry, its time as a number."""
    return (*entry[:6], entry.at, *entry[7:]) if type(entry) is UsualEntry else tuple(entry)


def fields_of(value: object) -> Fields | None:
    """The line as an object, or ``None`` for arrays, strings, numbers and ``null``."""
    return value if isinstance(value, dict) else None


def text_of(value: object) -> str | None:
    """A non-empty string, or ``None`` for anything else."""
    return value if isinstance(value, str) and value else None


def number_of(value: object) -> int:
    """A count as a non-negative ``int``; anything else counts as 0."""
    if type(value) is int:
        return value if 0 <= value < MOST else 0
    if not isinstance(value, float) or value != value:
        return 0
    return int(value) if 0 <= value < MOST else 0


def time_of(value: object) -> float | None:
    """Unix seconds of an ISO time as Claude Code writes it; ``None`` when missing, unreadable or absurd."""
    if not isinstance(value, str) or len(value) < 19:
        return None
    try:
        at = datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return at if EARLIEST <= at < LATEST else None


def odd_time(fields: Fields) -> str:
    """Why the time of a message line is shown as unknown."""
    stamp = fields.get("timestamp")
    told = "there is none" if stamp is None else repr(stamp)[:40]
    return f"{ABSURD_TIME}: {told}; shown as unknown"


def blocks_of(fields: Fields) -> list[Fields]:
    """The content blocks of a message line; a plain string is one text block, bad ones are passed over."""
    message = fields.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return []
    return [{"type": "text", "text": block} if isinstance(block, str) else block
            for block in content if isinstance(block, (dict, str))]  # fmt: skip


def message_of(fields: Fields) -> Fields:
    """The ``message`` object of a line, empty when it has none."""
    message = fields.get("message")
    return message if isinstance(message, dict) else {}


_ENTRY: Final = tuple.__new__
"""Makes an entry without the detour of its own constructor, which takes as long as everything else."""


def entry_of(fields: Fields, record: Record, previous: str | None) -> Entry | None:
    """The message line in a record, or ``None`` when it is none.

    ``previous`` is the uuid of the message line before it in the file: a line that has no uuid of its own hangs there.
    """
    get = fields.get
    kind = get("type")
    if not isinstance(kind, str) or kind not in CHAIN_TYPES:
        return None
    uuid, parent, logical = get("uuid"), get("parentUuid"), get("logicalParentUuid")
    detached = not isinstance(uuid, str) or not uuid
    message_id = None
    has_result = False
    message = get("message")
    if isinstance(message, dict):
        if kind == "assistant":
            message_id = text_of(message.get("id"))
        elif kind == "user":
            content = message.get("content")
            has_result = isinstance(content, list) and any(
                isinstance(block, dict) and block.get("type") == "tool_result" for block in content
            )
    # By place, not by name: this is done for every line of every transcript.
    return _ENTRY(
        Entry,
        (
            f"line-{record.line}" if detached else str(uuid),
            previous if detached else parent if isinstance(parent, str) and parent else None,
            logical if isinstance(logical, str) and logical else None,
            kind,
            text_of(get("subtype")) or "" if kind == "system" else "",
            get("isSidechain") is True,
            time_of(get("timestamp")),
            record.line,
            record.offset,
            record.length,
            message_id,
            has_result,
            get("isMeta") is True,
            get("isCompactSummary") is True,
            text_of(get("agentId")),
            get("isApiErrorMessage") is True,
            detached,
        ),
    )


def values_of(record: Record) -> tuple[object, ...]:
    """What a record holds: its value, or the whole values cut out of a damaged line (pitfall 14 of the facts)."""
    return (record.value,) if record.problem is None or record.value is not None else record.rescued


def first_value(record: Record) -> object:
    """What the real program reads of a line: its first JSON value, whatever stands behind it (tests/beside).

    NUL bytes, a byte-order mark inside the file, NaN and infinities before its end make it unreadable.
    """
    if record.problem is None and b"NaN" not in record.raw and b"Infinity" not in record.raw:
        return None if record.offset and record.raw.startswith(BYTE_ORDER_MARK) else record.value
    text = record.raw.decode("utf-8", "replace").lstrip(" \t\r")
    try:
        value, _ = _STRICT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value


def _not_json(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_not_json)
