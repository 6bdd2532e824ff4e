"""What a line and a file name of a rollout say, whichever format it has (facts/codex.md sections 1, 2, 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.text import RawText

UUID: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NAME: Final = re.compile(rf"^rollout-(?P<stamp>.*?)-?(?P<thread>{UUID})(?:_(?P<segment>{UUID}))?\.jsonl?(?:\.zst)?$")
_USUAL_NAME: Final = re.compile(
    rf"rollout-[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}-[0-9]{{2}}-[0-9]{{2}}-({UUID})\.jsonl$"
)
"""Most names, without going back and forth in them."""
_STAMP: Final = re.compile(r"^(\d{4})-(\d\d)-(\d\d)T(\d\d)-(\d\d)-(\d\d)$")
USUAL_STAMP: Final = (
    "20[0-9]{2}-(?!02-(?:29|3)|(?:0[469]|11)-31)(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][.][0-9]{3}Z"
)
"""A time of this century as the program writes it; a leap day is left to :func:`seconds`, which knows the years."""
_USUAL_STAMP: Final = re.compile(USUAL_STAMP)
ABSURD_TIME: Final = "absurd time"
"""How the problem begins of a line whose time is shown as unknown."""
EARLIEST: Final = 946_684_800.0
"""2000-01-01: a time before it, or after :data:`LATEST`, is absurd and counts as unknown."""
LATEST: Final = 4_102_444_800.0
"""2100-01-01."""
RESPONSE_ITEMS: Final = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
        "custom_tool_call_output", "local_shell_call", "web_search_call", "image_generation_call",
        "tool_search_call", "tool_search_output", "agent_message", "compaction", "context_compaction",
        "ghost_snapshot", "compaction_summary", "mcp_tool_call", "mcp_tool_call_output",
    }
)  # fmt: skip
"""Types of ``response_item`` payloads; bare lines of these types are the format before envelopes."""
SETTINGS_TYPES: Final = frozenset({"session_meta", "turn_context", "world_state", "token_usage_record", "state"})
"""Line types that hold no entry of a transcript."""


class FileName(NamedTuple):
    """What a rollout's file name says."""

    thread_id: SessionId
    segment: str | None
    """The segment's own uuid, when a revert made this file."""


def read_name(name: str) -> FileName:
    """Read a file name; a name that is no rollout's stands for itself, without its endings."""
    usual = _USUAL_NAME.match(name)
    if usual is not None:
        return FileName(SessionId(usual[1].lower()), None)
    found = _NAME.match(name)
    if found is None:
        bare = name.removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
        return FileName(SessionId(bare.removeprefix("rollout-") or name), None)
    segment = found["segment"]
    return FileName(SessionId(found["thread"].lower()), None if segment is None else segment.lower())


def looks_like_rollout(name: str) -> bool:
    """Whether a file of this name may hold a thread."""
    return name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst", ".json"))


def seconds(stamp: object) -> float | None:
    """An RFC 3339 time as Unix seconds; ``None`` when it is unknown or absurd."""
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    at = moment.timestamp()
    return at if EARLIEST <= at <= LATEST else None


def usual_seconds(stamp: str) -> float:
    """The same of a time that is known to stand as the program writes it."""
    return datetime.fromisoformat(stamp).timestamp()


def is_usual_stamp(stamp: object) -> bool:
    """Whether a time stands as the program writes it: of such strings the later time is the greater one."""
    return type(stamp) is str and _USUAL_STAMP.fullmatch(stamp) is not None


def sane(at: object) -> float | None:
    """A number of Unix seconds, or ``None`` where it cannot be a time of a session."""
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    return float(at) if EARLIEST <= at <= LATEST else None


def id_time(thread_id: str) -> float | None:
    """When a UUIDv7 was made, Unix seconds (facts/codex.md section 1); ``None`` for other ids."""
    if len(thread_id) != 36 or thread_id[14] != "7":
        return None
    try:
        return sane(int(thread_id[:8] + thread_id[9:13], 16) / 1000)
    except ValueError:
        return None


class Line(NamedTuple):
    """One line in the shape of an envelope, whichever format it was written in. A tuple, for there are many."""

    type: str
    payload: Mapping[str, object]
    stamp: str | None
    ordinal: int | None
    enveloped: bool = True

    @property
    def at(self) -> float | None:
        """When the line was written, Unix seconds."""
        return seconds(self.stamp)

    @property
    def kind(self) -> str:
        """The payload's own type, '' where it has none."""
        kind = self.payload.get("type")
        return kind if isinstance(kind, str) else ""


_EMPTY: Final[Mapping[str, object]] = {}


def line_of(value: object) -> Line | None:
    """A parsed line as an envelope; ``None`` when it is no object."""
    if not isinstance(value, dict):
        return None
    kind, payload, stamp, ordinal = (
        value.get("type"),
        value.get("payload"),
        value.get("timestamp"),
        value.get("ordinal"),
    )
    if type(kind) is str and type(payload) is dict and type(stamp) is str:
        return Line(kind, payload, stamp, ordinal if type(ordinal) is int else None)
    stamp = stamp if isinstance(stamp, str) else None
    if isinstance(kind, str) and "payload" in value:
        return Line(kind, payload if isinstance(payload, dict) else _EMPTY, stamp, None)
    return _bare_line(value, kind, stamp)


def _bare_line(value: Mapping[str, object], kind: object, stamp: str | None) -> Line:
    """The format before envelopes: bare response items, ``record_type`` lines, and the bare meta (section 7, b)."""
    if "record_type" in value:
        return Line("state", value, stamp, None, enveloped=False)
    if isinstance(kind, str) and kind in RESPONSE_ITEMS:
        return Line("response_item", value, stamp, None, enveloped=False)
    if kind is None and isinstance(value.get("id"), str) and stamp is not None:
        return Line("session_meta", value, stamp, None, enveloped=False)
    return Line(kind if isinstance(kind, str) else "", value, stamp, None, enveloped=False)


def odd_time(line: Line) -> str | None:
    """Why a line's time is shown as unknown; ``None`` where it is known, or where its format has none."""
    if not line.enveloped or is_usual_stamp(line.stamp) or seconds(line.stamp) is not None:
        return None
    told = "there is none" if line.stamp is None else repr(line.stamp[:40])
    return f"{ABSURD_TIME}: {told}; shown as unknown"


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else _EMPTY


def string(value: object) -> str | None:
    """A JSON string that says something, or ``None``."""
    return value if isinstance(value, str) and value else None


def raw(value: object) -> RawText | None:
    """The same as text of the store."""
    text = string(value)
    return None if text is None else RawText(text)


def whole(value: object) -> int:
    """A count of tokens or bytes; 0 in place of anything that is none."""
    if type(value) is int:
        return value if 0 <= value < 1 << 62 else 0
    if not isinstance(value, float):
        return 0
    return max(0, int(value)) if value == value and abs(value) < 1 << 62 else 0


@dataclass(frozen=True, slots=True)
class HistoryBase:
    """Where a paginated fork or reverted thread takes its inherited history from (section 4)."""

    thread_id: SessionId
    end_ordinal: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class Meta:
    """The first ``session_meta`` of a file: it names the thread."""

    id: SessionId | None
    at: float | None
    cwd: RawText | None
    source: RawText | None
    provider: RawText | None
    git_branch: RawText | None
    paginated: bool
    base: HistoryBase | None
    forked_from: SessionId | None
    parent: SessionId | None
    nickname: RawText | None
    delegated: bool

    @property
    def is_revert(self) -> bool:
        """Whether this file is a later segment of its own thread."""
        return self.base is not None and self.base.thread_id == self.id

    @property
    def may_hold_copies(self) -> bool:
        """Whether lines of another thread may stand at the beginning of this file."""
        return self.base is None and (self.forked_from is not None or self.delegated)


def read_meta(line: Line) -> Meta:
    """Read a ``session_meta`` line."""
    meta = line.payload
    source, spawn, delegated = _source(meta.get("source"), line.enveloped)
    base = mapping(meta.get("history_base"))
    base_thread = string(base.get("thread_id"))
    parent = string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id"))
    delegated = delegated or parent is not None or meta.get("thread_source") == "subagent"
    session = string(meta.get("session_id"))
    own = string(meta.get("id")) or (session if line.enveloped else None)
    if delegated and parent is None and session != own:
        parent = session
    forked = string(meta.get("forked_from_id"))
    if forked is None and base_thread is not None and base_thread != own:
        forked = base_thread
    return Meta(
        id=None if own is None else SessionId(own),
        at=seconds(meta.get("timestamp")) or line.at,
        cwd=raw(meta.get("cwd")),
        source=source,
        provider=raw(meta.get("model_provider")),
        git_branch=raw(mapping(meta.get("git")).get("branch")),
        paginated=meta.get("history_mode") == "paginated",
        base=None
        if base_thread is None
        else HistoryBase(
            SessionId(base_thread), _number(base.get("end_ordinal_exclusive")), _number(base.get("end_byte_offset"))
        ),
        forked_from=None if forked is None else SessionId(forked),
        parent=None if parent is None else SessionId(parent),
        nickname=raw(meta.get("agent_nickname")) or raw(spawn.get("agent_nickname")),
        delegated=delegated,
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _source(source: object, enveloped: bool) -> tuple[RawText | None, Mapping[str, object], bool]:
    """The source as one word, what a spawned sub-agent says of its parent, and whether it is one (section 4)."""
    if isinstance(source, dict):
        if "subagent" in source:
            return RawText("subagent"), mapping(mapping(source["subagent"]).get("thread_spawn")), True
        word = next(iter(source), None)
        inner = source.get(word) if word is not None else None
        return raw(inner) if word == "custom" and string(inner) else raw(word), _EMPTY, False
    if isinstance(source, str) and source:
        return RawText(source), _EMPTY, False
    # An envelope without it is an old file, which the program treats as the editor's (section 4).
    return (RawText("vscode") if enveloped else None), _EMPTY, False


def source_word(source: str | None) -> tuple[RawText | None, bool]:
    """The mirror's ``source`` column, which holds objects as JSON text, as a word; and whether it is a sub-agent."""
    if source is None:
        return None, False
    if source.startswith("{"):
        import json

        try:
            word, _, delegated = _source(json.loads(source), True)
        except ValueError:
            return RawText(source), False
        return word, delegated
    return raw(source), False
