"""Replies and what they cost: a request is several lines with one message id (facts/claude-code.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import le, lt
from typing import Any

from hermes_tui.model import CacheEvent, Request, SessionId, Usage
from hermes_tui.records import dataclass
from hermes_tui.stores.claude.lines import MOST, SYNTHETIC_MODEL, Entry, Fields, message_of, number_of, text_of
from hermes_tui.stores.request_rows import RequestRows
from hermes_tui.text import RawText

PROVIDER = RawText("anthropic")


@dataclass(slots=True)
class Reply:
    """One billed reply as far as its lines were read: the largest value of every field."""

    key: str
    uuid: str
    """Its first line."""
    place: int
    """Which message line of the file that was."""
    at: float | None
    model: str | None
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    write_1h: int = 0
    cost: float | None = None

    @property
    def hit_rate(self) -> float | None:
        """See :attr:`Usage.hit_rate`."""
        size = self.input + self.cache_read + self.cache_write
        return self.cache_read / size if size else None

    def take(self, usage: Fields, cost: object) -> None:
        """Take in the usage of one line."""
        get = usage.get
        given, output = get("input_tokens"), get("output_tokens")
        read, write = get("cache_read_input_tokens"), get("cache_creation_input_tokens")
        if not (type(given) is type(output) is type(read) is type(write) is int):
            given, output, read, write = map(number_of, (given, output, read, write))
        # More than any count is no count: number_of.
        if self.input < given < MOST:
            self.input = given
        if self.output < output < MOST:
            self.output = output
        if self.cache_read < read < MOST:
            self.cache_read = read
        if self.cache_write < write < MOST:
            self.cache_write = write
        written = get("cache_creation")
        if isinstance(written, dict) and (hour := written.get("ephemeral_1h_input_tokens")):
            self.write_1h = max(self.write_1h, number_of(hour))
        if cost is not None and isinstance(cost, (int, float)) and not isinstance(cost, bool) and 0 <= cost < 1e9:
            self.cost = max(self.cost or 0.0, float(cost))


@dataclass(slots=True)
class ReplyBook:
    """Collects the replies of one file, each once."""

    replies: dict[str, Reply] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """By message id: the key of its reply, for lines that lack the request id others have."""
    _taken: tuple[str, object, object] | None = None
    """What was taken in last."""

    def take(self, fields: Fields, entry: Entry, place: int) -> None:
        """Take in an assistant line; synthetic ones and those without usage are not billed."""
        message = message_of(fields)
        usage = message.get("usage")
        model = text_of(message.get("model"))
        if not isinstance(usage, dict) or model == SYNTHETIC_MODEL or fields.get("isApiErrorMessage") is True:
            return
        request_id, cost = text_of(fields.get("requestId")), fields.get("costUSD")
        self.bill(entry.message_id, entry.uuid, entry.at, place, request_id, model, usage, cost)

    def bill(
        self,
        message_id: str | None,
        uuid: str,
        at: float | None,
        place: int,
        request_id: str | None,
        model: str | None,
        usage: Fields,
        cost: object = None,
    ) -> None:
        """Take in the usage of a line that is billed."""
        key = self._key(message_id, uuid, request_id)
        reply = self.replies.get(key)
        if reply is None:
            reply = self.replies[key] = Reply(key, uuid, place, at, model)
        elif at is not None and (reply.at is None or at < reply.at):
            reply.at, reply.uuid, reply.place = at, uuid, place
        # The blocks of one reply mostly repeat its usage word for word.
        taken = (key, usage, cost)
        if taken != self._taken:
            reply.take(usage, cost)
            self._taken = taken

    def _key(self, message_id: str | None, uuid: str, request_id: str | None) -> str:
        """The message id; with the request id where one message id came with several of them."""
        if message_id is None:
            return request_id or uuid
        if request_id is None:
            return message_id
        known = self.keys.setdefault(message_id, request_id)
        return message_id if known == request_id else f"{message_id}:{request_id}"

    def in_order(self) -> list[Reply]:
        """By the time of their first lines; those without a time stay where the file has them."""
        listed = list(self.replies.values())
        times = [reply.at for reply in listed if reply.at is not None]
        places = [reply.place for reply in listed]
        if len(times) == len(listed) and all(map(le, times, times[1:])) and all(map(lt, places, places[1:])):
            return listed
        known = 0.0
        timed: list[tuple[float, int, Reply]] = []
        for reply in sorted(self.replies.values(), key=lambda reply: reply.place):
            known = reply.at if reply.at is not None else known
            timed.append((known, reply.place, reply))
        return [reply for _, _, reply in sorted(timed, key=lambda item: item[:2])]


def request_rows(
    replies: Sequence[Reply],
    session_id: SessionId,
    events: Mapping[str, tuple[CacheEvent, ...]],
    *,
    source: str | None,
    cwd: str | None,
) -> RequestRows | None:
    """What :func:`requests_of` gives where session and chain are the same; ``None`` where a reply tells its cost."""
    if any(reply.cost is not None for reply in replies):
        return None
    count = len(replies)
    marks: list[object] = [()] * count
    if events:
        marks = [[(event.cause, event.evidence) for event in events.get(reply.key, ())] for reply in replies]
    columns: tuple[list[Any], ...] = (
        [session_id] * count,
        [reply.key for reply in replies],
        [reply.uuid for reply in replies],
        [reply.at for reply in replies],
        [reply.model or None for reply in replies],
        [PROVIDER] * count,
        marks,
        [source or None] * count,
        [cwd or None] * count,
        [reply.input for reply in replies],
        [reply.output for reply in replies],
        [reply.cache_read for reply in replies],
        [reply.cache_write for reply in replies],
        [0] * count,
        [min(reply.write_1h, reply.cache_write) if reply.write_1h else 0 for reply in replies],
    )
    return RequestRows(columns, tells_writes=True)


def requests_of(
    replies: Sequence[Reply],
    session_id: SessionId,
    chain: str,
    events: Mapping[str, tuple[CacheEvent, ...]],
    *,
    source: str | None,
    cwd: str | None,
) -> list[Request]:
    """The replies as requests of one chain; ``events`` by the key of the reply.

    The split by lifetime is never added: zeroed copies keep it (section 5, second trap).
    """
    told, folder = RawText(source) if source else None, RawText(cwd) if cwd else None
    find = events.get
    return [
        Request(
            session_id,
            chain,
            reply.key,
            reply.uuid,
            reply.at,
            RawText(reply.model) if reply.model else None,
            PROVIDER,
            Usage(reply.input, reply.output, reply.cache_read, reply.cache_write),
            min(reply.write_1h, reply.cache_write) if reply.write_1h else 0,
            True,
            "",
            find(reply.key, ()),
            told,
            folder,
            None,
            reply.cost,
            None if reply.cost is None else "estimated",
        )
        for reply in replies
    ]
