"""The vocabulary: what every layer above storage means by session, message, request, usage, drop.

Times are Unix seconds (UTC) as ``float``; ``None`` means unknown or absurd. Text that came from a store is
``RawText``: only :mod:`hermes_tui.text` turns it into something a screen may show.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final, Literal, NamedTuple, NewType

from hermes_tui.records import dataclass
from hermes_tui.text import RawText

SessionId = NewType("SessionId", str)
"""The id of one session as its store writes it; unique in a store, not across stores."""

Agent = Literal["hermes", "codex", "claude", "dsh"]
AGENTS: Final[tuple[Agent, ...]] = ("hermes", "codex", "claude", "dsh")

LineageKind = Literal["root", "compaction", "branch", "fork", "delegation", "reset", "revert"]
MessageKind = Literal[
    "prompt", "reply", "reasoning", "tool-call", "tool-result", "summary", "context", "notice", "unknown"
]
MessageState = Literal["live", "compacted", "rewound", "inherited", "dead-branch"]
CostStatus = Literal["actual", "estimated", "included", "unknown", "mixed"]
Origin = Literal["store", "mirror", "agent-mirror", "scan"]
StoreState = Literal["ok", "degraded", "unreadable", "empty"]
Severity = Literal["info", "warn", "error"]
Route = Literal["fts", "trigram", "cjk", "mirror", "scan"]
ListOrder = Literal["activity", "started", "tokens", "cost", "messages"]
CostGrouping = Literal["model", "task", "day", "source", "cwd", "store", "profile", "channel", "provider", "session"]
DropCause = Literal[
    "first-request",
    "compaction",
    "model-change",
    "expired",
    "rewind",
    "fork",
    "context-change",
    "logged-reason",
    "unknown",
]
EXPECTED_CAUSES: Final[frozenset[DropCause]] = frozenset({"first-request", "compaction", "fork"})
SHOWN_STATES: Final[frozenset[MessageState]] = frozenset({"live", "compacted", "inherited"})
"""States a transcript shows unless all are asked for (contract.md, show)."""
COUNTED_KINDS: Final[frozenset[MessageKind]] = frozenset({"prompt", "reply", "tool-call", "tool-result"})
"""Kinds that count as messages where the store has no count of its own (contract.md, list)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more requests; ``input`` is the uncached part for every agent."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    """Part of ``output``; never added to it."""

    @property
    def prompt_size(self) -> int:
        """Everything that was sent: input + cache read + cache write."""
        return self.input + self.cache_read + self.cache_write

    @property
    def hit_rate(self) -> float | None:
        """Cache read / prompt size, 0..1; ``None`` for an empty prompt."""
        size = self.prompt_size
        return self.cache_read / size if size else None

    @property
    def total(self) -> int:
        """Prompt size + output."""
        return self.prompt_size + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


NO_USAGE: Final = Usage()


@dataclass(frozen=True, slots=True)
class Cost:
    """Money of one row: the sum of the known parts and how it is known."""

    usd: float | None
    """``None`` only where no part is known; never 0 for unknown."""
    status: CostStatus | None
    """``mixed`` when more than one status is inside; ``None`` when nothing was used."""


NO_COST: Final = Cost(None, None)

PROMPT_BANDS: Final[tuple[int, ...]] = (0, 128_000, 200_000, 256_000, 272_000)
"""Lower edges of the prompt sizes at which providers change their price."""


def prompt_band(prompt_size: int) -> int:
    """The lower edge of the price band a request of this prompt size falls in."""
    return max(edge for edge in PROMPT_BANDS if prompt_size > edge or edge == 0)


@dataclass(frozen=True, slots=True)
class Spend:
    """Usage that is priced alike: one model, provider, task and price band, with what the store says of money."""

    model: RawText | None
    provider: RawText | None
    usage: Usage
    requests: int | None
    task: str = ""
    """'' is the main loop; others are auxiliary calls (title_generation, compression, …)."""
    write_1h: int = 0
    """The part of ``usage.cache_write`` that lives for an hour; the rest lives five minutes."""
    band: int = 0
    """See :func:`prompt_band`; 0 where the store keeps no single requests."""
    cost_usd: float | None = None
    """What the store itself says, in USD."""
    cost_status: CostStatus | None = None
    """``None``: the store says nothing, so a price table may. ``unknown``: the store says it does not know."""
    last_at: float | None = None


@dataclass(frozen=True, slots=True)
class StoreRef:
    """Which store: the agent, its short name and where it lies."""

    agent: Agent
    name: str
    """Short and unique in this run: ``hermes/default``, ``codex``, ``claude#2``."""
    path: str
    """Absolute path of the file or folder."""
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the health check has to say."""

    code: str
    """Hyphenated lower case, stable: scripts test it."""
    severity: Severity
    detail: str
    """What was found, in a sentence. May quote store text: raw."""
    count: int = 1
    advice: str | None = None
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """How a store is right now and where its list comes from."""

    ref: StoreRef
    state: StoreState
    origin: Origin | None
    sessions: int | None
    lag: int | None = None
    """Sessions that are not in the mirror yet; ``None`` where there is no mirror."""
    findings: tuple[Finding, ...] = ()
    fallbacks: tuple[tuple[str, int], ...] = ()
    """Why a mirror was not used: (reason, how often)."""
    active_profile: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A place in a log or a row in a table that could not be read."""

    path: str | None
    line: int | None
    """1-based."""
    offset: int | None
    """Bytes from the start of the decompressed log."""
    reason: str


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One row of the list: a session, or a conversation folded to its tip (contract.md, list)."""

    store: StoreRef
    id: SessionId
    root_id: SessionId
    tip_id: SessionId
    parent_id: SessionId | None = None
    lineage_kind: LineageKind = "root"
    parts: int = 1
    title: RawText | None = None
    preview: RawText | None = None
    source: RawText | None = None
    session_key: RawText | None = None
    display_name: RawText | None = None
    model: RawText | None = None
    models: tuple[RawText, ...] = ()
    provider: RawText | None = None
    cwd: RawText | None = None
    git_branch: RawText | None = None
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: RawText | None = None
    last_active_at: float | None = None
    message_count: int | None = None
    tool_call_count: int | None = None
    request_count: int | None = None
    usage: Usage | None = None
    """``None`` where it was not read; the sum of ``spend`` otherwise."""
    spend: tuple[Spend, ...] = ()
    archived: bool = False
    running: bool = False
    resumable: bool = True
    origin: Origin = "store"
    problems: int = 0
    compactions: int = 0
    branches: int = 0
    delegated: int = 0
    pinned: bool = False
    """Pinned in the agent's own store; ours are in annotations."""
    worst_drop_lost: int = 0
    """Tokens lost by the worst unexpected cache drop; 0 for none or not known."""
    hit_rates: tuple[float | None, ...] = ()
    """At most the last twelve hit rates, oldest first, for the sparkline."""
    cost: Cost = NO_COST
    """Filled by the library (prices); stores leave it."""
    gone: bool = False
    """The store has no row of it, only messages that name it."""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What the list shows and in which order. Filters are AND."""

    order: ListOrder = "activity"
    source: str | None = None
    model: str | None = None
    cwd: str | None = None
    """This folder and below."""
    channel: str | None = None
    """A session_key, followed through compaction."""
    since: float | None = None
    """Tested on last activity."""
    until: float | None = None
    archived: bool = False
    """Archived ones too."""
    children: bool = False
    """Delegated runs too."""
    sessions: bool = False
    """One row a session, nothing left out."""
    text: str = ""
    """Substring of title, preview, id, source, model or folder, case folded: the filter line of the screen."""
    automated: bool = True
    """False folds automated runs (cron, webhook, tool) away."""


class ListEntry(NamedTuple):
    """One row of a list before its details are read. A tuple, because a store has 70,000 of them."""

    id: SessionId
    """The tip's id; with ``ListQuery.sessions`` the session's."""
    order: float
    """The value it is ordered by; larger comes first. Unknown is ``-inf``."""
    parts: tuple[SessionId, ...] = ()
    """Its sessions where it has several; by cost only, for the library adds up what each cost."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to a :class:`ListQuery`: every id in order, details not yet read."""

    entries: tuple[ListEntry, ...]
    total: int
    """Rows that match, which may be more than ``entries`` holds when a limit was given."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows a default filter left out, by reason: archived, delegated, tool, hidden; automated where they are folded."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """One compaction: when, why, and what it did to the context."""

    at: float | None
    trigger: str | None
    """manual, automatic or ``None``."""
    before_tokens: int | None = None
    after_tokens: int | None = None
    kept: int | None = None
    """Messages kept word for word."""
    dropped: int | None = None
    """Messages the model no longer sees."""
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class MessageHead:
    """Where one entry of a transcript is and what it is, without its text: what a virtual list keeps."""

    id: str
    """The store's own: Hermes row id, Claude uuid, otherwise what the store package derives; stable."""
    part: int
    """0-based: one stored entry may give reasoning, reply and tool-calls."""
    session_id: SessionId
    role: RawText | None
    kind: MessageKind
    state: MessageState
    at: float | None
    size: int
    """Bytes of text, about."""
    tool_name: RawText | None = None
    tool_call_id: RawText | None = None
    path: str | None = None
    line: int | None = None
    offset: int | None = None
    length: int | None = None
    """Bytes of the stored line."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a transcript with its text."""

    head: MessageHead
    text: RawText | None
    sent_text: RawText | None = None
    """Exactly what went to the model, where that differs from ``text``."""
    model: RawText | None = None
    usage: Usage | None = None
    """The request that produced it; on the first entry of the reply only."""
    compaction: Compaction | None = None
    """On the summary or notice that marks a compaction."""
    cut: bool = False
    """``text`` is only the beginning; the whole is ``head.size`` bytes and read in pieces."""
    attachments: tuple[RawText, ...] = ()
    """Images and files by name or type, never their content."""


@dataclass(frozen=True, slots=True)
class LineageNode:
    """One session in the tree of sessions that hang together."""

    id: SessionId
    parent_id: SessionId | None
    kind: LineageKind
    row: SessionRow
    """That one session's own row (not folded)."""
    compactions: tuple[Compaction, ...] = ()
    findings: tuple[str, ...] = ()
    """``orphan``, ``cycle`` and what else is odd about it."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The whole connected tree around one session."""

    root_id: SessionId
    """Of the conversation."""
    tree_root_id: SessionId
    conversation: tuple[SessionId, ...]
    """Root to tip."""
    nodes: tuple[LineageNode, ...]


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """Something between two requests that can explain a miss."""

    cause: DropCause
    evidence: RawText
    """What was seen, with its numbers, for people."""


@dataclass(frozen=True, slots=True)
class Request:
    """One model call with its usage, counted once; or, for Hermes, a usage row or a part of a chain."""

    session_id: SessionId
    chain: str
    """Requests of one chain follow each other in one cache: a session, or one sub-agent or branch of it."""
    request_id: str | None
    message_id: str | None
    """The transcript entry it produced."""
    at: float | None
    model: RawText | None
    provider: RawText | None
    usage: Usage
    write_1h: int = 0
    reports_writes: bool = False
    """The provider says how much it wrote to the cache."""
    task: str = ""
    events: tuple[CacheEvent, ...] = ()
    """What happened since the chain's request before this one."""
    source: RawText | None = None
    cwd: RawText | None = None
    session_key: RawText | None = None
    cost_usd: float | None = None
    cost_status: CostStatus | None = None
    calls: int = 1
    """Model calls this stands for: more than one where the store keeps sums only."""


@dataclass(frozen=True, slots=True)
class UsageSum:
    """One part of a cost report: what is priced alike under one key."""

    key: RawText | None
    spend: Spend


@dataclass(frozen=True, slots=True)
class UsageReport:
    """A store's share of a cost report."""

    sums: tuple[UsageSum, ...]
    sessions: dict[RawText | None, int]
    """Distinct sessions by key."""
    distinct: int | None = None
    """Distinct sessions in all; ``None`` where the store did not count them (keys may share sessions)."""
    apart: tuple[UsageSum, ...] = ()
    """Billed calls that the agent's own totals leave out (DSH's compactions), by key; in no sum above."""


@dataclass(frozen=True, slots=True)
class IgnoredRecord:
    """A record a recovery passes over, with the reason."""

    path: str | None
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class PowerCut:
    """As if the log ended at this line, or after so many bytes of it."""

    line: int
    byte: int | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the model would be sent if this session were resumed now."""

    session_id: SessionId
    base_kind: Literal["start", "compaction"]
    base_at: float | None
    base_path: str | None
    base_line: int | None
    messages: tuple[Message, ...]
    baseline: dict[str, object] | None
    """Settings the next request is compared with; ``None``: the context is sent again."""
    window: int | None
    reinjects_context: bool
    ignored: tuple[IgnoredRecord, ...]
    row: SessionRow
    """The list row as it would be."""


@dataclass(frozen=True, slots=True)
class ResumeCommand:
    """The agent's own command that continues a session."""

    argv: tuple[str, ...]
    cwd: str | None
    environment: tuple[tuple[str, str], ...] = ()
    """Variables the command needs when the store is not in its default place."""
