"""A store in memory: small, deterministic, with every kind of row and message a screen can show."""

# ruff: noqa: E501
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hermes_tui.library.prices import DEFAULT_PRICES
from hermes_tui.library.sources import Library
from hermes_tui.locations import own_locations
from hermes_tui.model import (
    CacheEvent,
    Compaction,
    Finding,
    Lineage,
    LineageNode,
    ListEntry,
    Listing,
    ListQuery,
    Message,
    MessageHead,
    MessageKind,
    MessageState,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    Spend,
    StoreRef,
    StoreStatus,
    Usage,
    UsageReport,
    UsageSum,
)
from hermes_tui.settings import NO_SETTINGS
from hermes_tui.stores.protocol import Proposal, Proposed
from hermes_tui.text import RawText

NOW = 1_772_330_400.0
"""2026-03-01 02:00 UTC."""
MINUTE = 60.0
HOUR = 3600.0


@dataclass
class Said:
    """One message to be told."""

    kind: MessageKind
    text: str
    state: MessageState = "live"
    tool: str | None = None
    call: str | None = None
    usage: Usage | None = None
    sent: str | None = None
    compaction: Compaction | None = None


class MemoryTranscript:
    def __init__(self, said: Sequence[tuple[SessionId, int, Said]]) -> None:
        self._said = {str(number): entry for _, number, entry in said}
        self._heads = [
            MessageHead(
                id=str(number),
                part=0,
                session_id=session,
                role=RawText("user" if entry.kind == "prompt" else "assistant"),
                kind=entry.kind,
                state=entry.state,
                at=NOW - 86_400 + number * 40,
                size=len(entry.text.encode("utf-8", "replace")),
                tool_name=RawText(entry.tool) if entry.tool else None,
                tool_call_id=RawText(entry.call) if entry.call else None,
            )
            for session, number, entry in said
        ]
        self.loads = 0

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        for start in range(0, len(self._heads), 300):
            yield self._heads[start : start + 300]

    def tail(self, count: int) -> Sequence[MessageHead]:
        return self._heads[-count:]

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        self.loads += len(heads)
        return [self._message(head) for head in heads]

    def _message(self, head: MessageHead) -> Message:
        entry = self._said[head.id]
        cut = len(entry.text) > 1 << 20
        return Message(
            head,
            RawText(entry.text[: 1 << 20]),
            sent_text=RawText(entry.sent) if entry.sent is not None else None,
            model=RawText("nimbus-4-large"),
            usage=entry.usage,
            compaction=entry.compaction,
            cut=cut,
        )

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        return RawText(self._said[head.id].text[start : start + length])

    @property
    def problems(self) -> Sequence[Problem]:
        return ()


@dataclass
class MemoryStore:
    """Answers what a store answers, from lists."""

    ref: StoreRef
    sessions: list[SessionRow] = field(default_factory=list)
    said: dict[str, list[Said]] = field(default_factory=dict)
    version: int = 0
    trouble: BaseException | None = None
    left_out: dict[str, int] = field(default_factory=lambda: {"archived": 3, "delegated": 12})
    interrupted: int = 0

    def status(self) -> StoreStatus:
        findings = (
            Finding(
                "torn-line", "warn", "The last line of 1 log is not complete.", advice="Nothing: it is written now."
            ),
        )
        state = "degraded" if self.ref.agent == "codex" else "ok"
        return StoreStatus(self.ref, state, "store", len(self.sessions), findings=findings if state != "ok" else ())

    def listing(self, query: ListQuery, limit: int | None = None) -> Listing:
        if self.trouble is not None:
            raise self.trouble
        text = query.text.casefold()
        rows = [
            row
            for row in self.sessions
            if (query.archived or not row.archived)
            and (query.source is None or row.source == query.source)
            and (query.model is None or row.model == query.model)
            and (
                not text
                or text in " ".join(filter(None, (row.title, row.preview, row.id, row.model, row.cwd))).casefold()
            )
        ]
        values = {
            "activity": lambda row: row.last_active_at or 0.0,
            "started": lambda row: row.started_at or 0.0,
            "tokens": lambda row: float(row.usage.total) if row.usage else 0.0,
            "cost": lambda row: 0.0,
            "messages": lambda row: float(row.message_count or 0),
        }
        rows.sort(key=values[query.order], reverse=True)
        entries = tuple(ListEntry(row.id, values[query.order](row)) for row in rows)
        return Listing(entries[:limit], len(entries), dict(self.left_out))

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        known = {row.id: row for row in self.sessions}
        return [known[id_] for id_ in ids if id_ in known]

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        return [row.id for row in self.sessions if row.id.startswith(prefix)]

    def chain(self, session_id: SessionId) -> tuple[SessionId, ...]:
        return (session_id,)

    def transcript(self, ids: Sequence[SessionId]) -> MemoryTranscript:
        if self.trouble is not None:
            raise self.trouble
        entries = [(id_, entry) for id_ in ids for entry in self.said.get(id_, [])]
        return MemoryTranscript([(id_, number, entry) for number, (id_, entry) in enumerate(entries, 1)])

    def lineage(self, session_id: SessionId) -> Lineage:
        row = self.rows([session_id])[0]
        base = replace(row, parts=1, compactions=0)
        kinds = [("root", None, "a1"), ("compaction", "a1", "a2"), ("delegation", "a2", "k1"), ("compaction", "a2", "a3"),
                 ("branch", "a3", "b1"), ("compaction", "a3", str(session_id))]  # fmt: skip
        nodes = tuple(
            LineageNode(
                SessionId(name),
                SessionId(parent) if parent else None,
                kind,  # type: ignore[arg-type]
                replace(
                    base,
                    id=SessionId(name),
                    title=row.title
                    if name not in {"k1", "b1"}
                    else RawText({"k1": "Read the unit file", "b1": "What if we use copytruncate"}[name]),
                    started_at=NOW - 80_000 + at * 9_000,
                    running=name == session_id,
                    worst_drop_lost=90_000 if name == "a3" else 0,
                ),
                compactions=(Compaction(NOW - 70_000, "automatic", 118_000, 21_000, 12, 96),) if name == "a2" else (),
            )
            for at, (kind, parent, name) in enumerate(kinds)
        )
        path = tuple(SessionId(name) for name in ("a1", "a2", "a3", str(session_id)))
        return Lineage(path[0], path[0], path, nodes)

    def usage(self, grouping: str, since: float | None, until: float | None, zone: Any) -> UsageReport:
        keys = {"model": "model", "source": "source", "cwd": "cwd", "session": "id", "channel": "session_key"}
        sums = []
        counts: dict[RawText | None, int] = {}
        for row in self.sessions:
            key = (
                getattr(row, keys[grouping]) if grouping in keys else RawText("2026-02-28" if grouping == "day" else "")
            )
            counts[key] = counts.get(key, 0) + 1
            sums += [UsageSum(key, spend) for spend in row.spend]
        return UsageReport(tuple(sums), counts)

    def requests(self, ids: Sequence[SessionId] | None, since: float | None = None) -> Iterator[Request]:
        session = self.sessions[0].id
        if ids and session not in ids:
            return
        for number in range(74):
            size = 40_000 + number * 900
            bad = number in {41, 66}
            read = 0 if number == 0 else int(size * (0.08 if bad else 0.9))
            yield Request(
                session, str(session), f"r{number}", str(number + 1), NOW - 30_000 + number * 60 + (500 if number >= 41 else 0),
                RawText("nimbus-4-large"), RawText("openrouter"), Usage(size - read, 400, read),
                events=(CacheEvent("context-change", RawText('system prompt differs at character 1,204: "14:02" / "14:03"')),) if number == 66 else (),
            )  # fmt: skip

    def propose(self, matcher: Any, filters: Any, order: str, after: Any = None) -> Proposal:
        def found() -> Iterator[Proposed]:
            for row in self.sessions:
                transcript = self.transcript([row.id])
                heads = list(transcript.tail(10_000))
                for message in reversed(transcript.load(heads)):
                    yield Proposed(message, (row.last_active_at or 0.0, float(message.head.id)))

        return Proposal("scan", found())

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        transcript = self.transcript([session_id])
        messages = tuple(transcript.load(list(transcript.tail(8))))
        row = self.rows([session_id])[0]
        return Recovery(
            session_id, "compaction", NOW - 9_000, "/logs/rollout.jsonl", 2214, messages, None, 5, True, (), row
        )

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        return ResumeCommand(("hermes", "--resume", row.id), row.cwd)

    def change_command(self, verb: str, session_id: SessionId, title: str | None = None) -> str | None:
        return None

    def stamp(self) -> object:
        return self.version

    def findings(self) -> Sequence[Finding]:
        return self.status().findings

    def interrupt(self) -> None:
        self.interrupted += 1


def row_of(
    ref: StoreRef, id_: str, title: str | None, *, at: float, model: str = "nimbus-4-large", messages: int = 12,
    usage: Usage | None = None, usd: float | None = None, status: str | None = "actual", **more: Any,
) -> SessionRow:  # fmt: skip
    used = usage if usage is not None else Usage(2_000, 900, 9_000)
    session = SessionId(id_)
    return SessionRow(
        store=ref,
        id=session,
        root_id=session,
        tip_id=session,
        title=RawText(title) if title is not None else None,
        preview=RawText(more.pop("preview", "look at the unit first")),
        source=RawText(more.pop("source", "cli")),
        model=RawText(model),
        models=(RawText(model),),
        cwd=RawText(more.pop("cwd", "/home/ana/srv/gateway")),
        started_at=at - 5 * HOUR,
        last_active_at=at,
        message_count=messages,
        usage=used,
        spend=(Spend(RawText(model), RawText("openrouter"), used, 4, cost_usd=usd, cost_status=status),),  # type: ignore[arg-type]
        **more,
    )


def small_talk(count: int, seed: int = 7) -> list[Said]:
    """A conversation of ``count`` messages with every kind in it."""
    rng = random.Random(seed)
    words = "the unit rotates files as root and keeps what the gateway wrote before it was told to stop".split()

    def prose(length: int) -> str:
        return " ".join(rng.choice(words) for _ in range(length)).capitalize() + "."

    said: list[Said] = []
    while len(said) < count:
        number = len(said)
        said.append(Said("prompt", prose(rng.randrange(6, 30))))
        said.append(Said("reasoning", prose(60)))
        said.append(
            Said("tool-call", '{"path": "/etc/logrotate.d/gateway", "offset": 1}', tool="read_file", call=f"c{number}")
        )
        said.append(
            Said(
                "tool-result",
                "\n".join(prose(9) for _ in range(rng.randrange(5, 60))),
                tool="read_file",
                call=f"c{number}",
            )
        )
        said.append(
            Said(
                "reply",
                f"## What it does\n\n{prose(40)}\n\n- {prose(8)}\n- **{prose(3)}** and `copytruncate`\n\n```python\ndef rotate(path: str) -> int:\n    # keep the mode\n    return os.chmod(path, 0o640)\n```\n\n{prose(25)}",
                usage=Usage(1_204, 412, 9_870),
            )
        )
        if number and number % 50 == 0:
            said.append(
                Said(
                    "summary",
                    "Compaction: the unit, both hosts, " + prose(20),
                    compaction=Compaction(NOW, "automatic", 118_000, 21_000, 12, 96),
                )
            )
    return said[:count]


def demo_library(extra: int = 0) -> tuple[Library, MemoryStore, MemoryStore]:
    """Two stores with the rows of a good week."""
    hermes = StoreRef("hermes", "hermes/default", "/home/ana/.hermes/state.db", "default")
    codex = StoreRef("codex", "codex", "/home/ana/.codex")
    first = MemoryStore(hermes)
    second = MemoryStore(codex)
    rates = (0.9, 0.92, 0.95, 0.08, 0.7, 0.9, 0.93, 0.94)
    first.sessions = [
        row_of(hermes, "20260227_110126_3031d0", "Gateway log rotation", at=NOW - 2 * MINUTE, messages=148, parts=4,
               usage=Usage(300_000, 60_000, 1_700_000), usd=1.42, running=True, compactions=4, branches=1,
               worst_drop_lost=96_400, hit_rates=rates, source="telegram"),
        row_of(hermes, "20260226_090000_aaaaaa", "게이트웨이 내부 구조 정리", at=NOW - HOUR, model="claude-opus-4-6", messages=96,
               usage=Usage(90_000, 20_000, 990_000), usd=0.88, status="estimated", compactions=1, cwd="/home/ana/code/gw",
               hit_rates=(0.5, 0.8, 0.9, 0.91)),
        row_of(hermes, "20260225_090000_bbbbbb", None, at=NOW - 3 * 86_400, model="local-7b", preview="Count the files in the depot",
               usage=Usage(18_000, 500), usd=None, status="unknown", cwd="/home/ana/notes"),
        row_of(hermes, "20260224_090000_cccccc", "旧い順序の一覧を直す、そして長い題名はどこまで入るのかを確かめる", at=NOW - 9 * 86_400, messages=31),
        row_of(hermes, "cron_job03_20260223_061320", "Nightly report", at=NOW - 8 * HOUR, source="cron", messages=4, cwd=None),
    ]  # fmt: skip
    second.sessions = [
        row_of(codex, "019c-1111", "Fix the rounding bug in cart.py", at=NOW - 18 * MINUTE, model="gpt-5.5", messages=41,
               usage=Usage(60_000, 20_000, 230_000), usd=0.21, status="estimated", branches=2, cwd="/home/ana/src/webshop",
               hit_rates=(0.6, 0.7, 0.9)),
    ]  # fmt: skip
    first.sessions += [
        row_of(hermes, f"x{number:06}", f"Older conversation {number}", at=NOW - 20 * 86_400 - number * 60)
        for number in range(extra)
    ]
    for store in (first, second):
        for at, row in enumerate(store.sessions[:8]):
            store.said[row.id] = small_talk(120 if at == 0 else 24, seed=at)
    library = Library(
        stores=(first, second),
        looked_at=(),
        locations=own_locations(),
        settings=NO_SETTINGS,
        prices=DEFAULT_PRICES,
    )
    return library, first, second
