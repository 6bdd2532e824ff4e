"""A store in memory, for tests of what lies above the stores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from hermes_tui.model import (
    CostGrouping,
    Finding,
    Lineage,
    LineageNode,
    ListEntry,
    Listing,
    ListQuery,
    Message,
    MessageHead,
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
    UsageReport,
    UsageSum,
)
from hermes_tui.storage.errors import StoreUnreadable
from hermes_tui.text import RawText


class MemoryTranscript:
    """Messages in memory, in batches of three, with texts over ``piece_over`` characters cut."""

    def __init__(
        self, messages: Sequence[Message], problems: Sequence[Problem] = (), piece_over: int = 1 << 20
    ) -> None:
        self._messages = list(messages)
        self._at_the_end = list(problems)
        self._piece_over = piece_over
        self.problems: list[Problem] = []
        self.loaded = 0

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        for start in range(0, len(self._messages), 3):
            yield [message.head for message in self._messages[start : start + 3]]
        self.problems = list(self._at_the_end)

    def tail(self, count: int) -> Sequence[MessageHead]:
        return [message.head for message in self._messages[-count:]]

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        del sent
        self.loaded += len(heads)
        return [self._cut(self._of(head)) for head in heads]

    def _cut(self, message: Message) -> Message:
        if message.text is not None and len(message.text) > self._piece_over:
            return replace(message, text=RawText(message.text[: self._piece_over]), cut=True)
        return message

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        return RawText((self._of(head).text or "")[start : start + length])

    def _of(self, head: MessageHead) -> Message:
        return next(one for one in self._messages if one.head.id == head.id and one.head.part == head.part)


@dataclass
class MemoryStore:
    """Sessions in memory; ``broken`` makes every question fail."""

    ref: StoreRef
    sessions: list[SessionRow] = field(default_factory=list)
    messages: dict[str, list[Message]] = field(default_factory=dict)
    all_requests: list[Request] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    broken: bool = False
    piece_over: int = 1 << 20

    def _whole(self) -> None:
        if self.broken:
            raise StoreUnreadable(self.ref.path, "file is not a database", "Restore it.")

    def status(self) -> StoreStatus:
        findings = (Finding("store-unreadable", "error", "file is not a database"),) if self.broken else ()
        state = "unreadable" if self.broken else "ok"
        return StoreStatus(self.ref, state, "store", None if self.broken else len(self.sessions), findings=findings)

    def listing(self, query: ListQuery, limit: int | None = None) -> Listing:
        self._whole()
        rows = [row for row in self.sessions if query.cwd is None or row.cwd == query.cwd]
        key = {"activity": lambda row: row.last_active_at, "messages": lambda row: row.message_count}.get(
            query.order, lambda row: row.started_at
        )
        entries = [ListEntry(row.id, -math.inf if key(row) is None else key(row)) for row in rows]
        entries.sort(key=lambda entry: -entry.order)
        return Listing(tuple(entries[:limit]), len(entries), {"archived": 1})

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        self._whole()
        del conversation
        by_id = {row.id: row for row in self.sessions}
        return [by_id[one] for one in ids if one in by_id]

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        self._whole()
        ids = [row.id for row in self.sessions]
        return [SessionId(prefix)] if prefix in ids else [one for one in ids if one.startswith(prefix)]

    def chain(self, session_id: SessionId) -> tuple[SessionId, ...]:
        return (session_id,)

    def transcript(self, ids: Sequence[SessionId]) -> MemoryTranscript:
        found = [message for one in ids for message in self.messages.get(one, [])]
        return MemoryTranscript(found, self.problems, self.piece_over)

    def lineage(self, session_id: SessionId) -> Lineage:
        row = self.rows([session_id])[0]
        return Lineage(session_id, session_id, (session_id,), (LineageNode(session_id, None, "root", row),))

    def usage(self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo) -> UsageReport:
        self._whole()
        del since, until
        sums: list[UsageSum] = []
        sessions: dict[RawText | None, int] = {}
        for row in self.sessions:
            keys = set()
            for spend in row.spend:
                key = self._key(row, spend, grouping, zone)
                keys.add(key)
                sums.append(UsageSum(key, spend))
            for key in keys:
                sessions[key] = sessions.get(key, 0) + 1
        return UsageReport(tuple(sums), sessions)

    def _key(self, row: SessionRow, spend: Spend, grouping: CostGrouping, zone: tzinfo) -> RawText | None:
        if grouping == "day":
            return None if spend.last_at is None else RawText(str(datetime.fromtimestamp(spend.last_at, zone).date()))
        found = {
            "model": spend.model, "provider": spend.provider, "task": spend.task, "session": row.id,
            "cwd": row.cwd, "channel": row.session_key, "source": row.source,
        }  # fmt: skip
        value = found[grouping]
        return None if value is None else RawText(value)

    def requests(self, ids: Sequence[SessionId] | None, since: float | None = None) -> Iterator[Request]:
        self._whole()
        del since
        yield from (one for one in self.all_requests if ids is None or one.session_id in ids)

    def propose(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        del cut
        row = self.rows([session_id])[0]
        messages = tuple(self.messages.get(session_id, ()))
        return Recovery(session_id, "start", None, None, None, messages, None, None, True, (), row)

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        return ResumeCommand(("agent", "--resume", row.id), row.cwd, (("AGENT_HOME", "/a b"),))

    def change_command(self, *args: object, **kwargs: object) -> None:
        return None

    def stamp(self) -> object:
        return 0

    def findings(self) -> Sequence[Finding]:
        self._whole()
        return ()

    def interrupt(self) -> None:
        return None


def store_named(name: str, **more: object) -> MemoryStore:
    """A store by its short name."""
    agent = name.partition("/")[0].partition("#")[0]
    return MemoryStore(StoreRef(agent, name, f"/stores/{name}"), **more)  # type: ignore[arg-type]


def session(store: MemoryStore, id: str, **more: object) -> SessionRow:
    """Add a session to a store."""
    identity = SessionId(id)
    row = SessionRow(store=store.ref, id=identity, root_id=identity, tip_id=identity, **more)  # type: ignore[arg-type]
    store.sessions.append(row)
    return row


def message(id: str, text: str | None, **more: object) -> Message:
    """A live prompt unless said otherwise."""
    usage = more.pop("usage", None)
    sent = more.pop("sent_text", None)
    fields = {"part": 0, "session_id": "s", "role": "user", "kind": "prompt", "state": "live", "at": 1.0} | more
    head = MessageHead(id=id, size=len(text or ""), **fields)  # type: ignore[arg-type]
    return Message(head, None if text is None else RawText(text), sent_text=sent, usage=usage)  # type: ignore[arg-type]
