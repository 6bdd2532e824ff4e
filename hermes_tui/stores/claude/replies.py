"""Replies and what they cost: a request is several lines with one message id (facts/claude-code.md section 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter, le, lt
from typing import Any, Final, NamedTuple

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


UsualReply = tuple[str, str, int, float, str, int, int, int, int, int]
"""The first fields of a :class:`Reply`, up to what was written for an hour; the key is the message id."""


class ReplyBook:
    """Collects the replies of one file, each once."""

    def __init__(self, replies: dict[str, Reply] | None = None, keys: dict[str, str] | None = None) -> None:
        self._replies = {} if replies is None else replies
        self._behind: dict[str, UsualReply] = {}
        """What follows them: a list needs columns only, so that most are never made."""
        self.keys = {} if keys is None else keys
        """By message id: the key of its reply, for lines that lack the request id others have."""
        self._taken: tuple[str, object, object] | None = None
        """What was taken in last."""

    @property
    def replies(self) -> dict[str, Reply]:
        """By key."""
        if self._behind:
            self._replies.update({key: Reply(*told) for key, told in self._behind.items()})
            self._behind.clear()
        return self._replies

    def columns(self) -> ReplyColumns | None:
        """All replies in order; ``None`` where one tells its cost."""
        told = list(self._behind.values())
        times = [reply[3] for reply in told]
        # Asking for objects makes them of all, so the tuples are asked first.
        if not self._replies and all(map(le, times, times[1:])):
            return columns_of(told)
        replies = self.in_order()
        return None if any(reply.cost is not None for reply in replies) else columns_of(replies)

    def bill_usual(
        self, message_id: str, uuid: str, at: float, place: int, request_id: object, model: object, usage: Fields
    ) -> None:
        """Take in the usage of a usual line: mostly the first of its reply, and with plain numbers."""
        given, output = usage.get("input_tokens"), usage.get("output_tokens")
        read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
        lifetimes = usage.get("cache_creation")
        hour = lifetimes.get("ephemeral_1h_input_tokens") if type(lifetimes) is dict else None
        if (
            type(given) is type(output) is type(read) is type(write) is type(hour) is int
            # None of them is negative or too much to be a count.
            and 0 <= given | output | read | write | hour < MOST
            and type(request_id) is type(model) is str
            and request_id
            and model
            and message_id not in self._behind
            and message_id not in self._replies
            and self.keys.setdefault(message_id, request_id) == request_id
        ):
            self._behind[message_id] = (message_id, uuid, place, at, model, given, output, read, write, hour)
        else:
            self.bill(message_id, uuid, at, place, text_of(request_id), text_of(model), usage)

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


class ReplyColumns(NamedTuple):
    """The fields of replies, a column for each."""

    keys: list[str]
    uuids: list[str]
    places: list[int]
    times: list[float | None]
    models: list[str | None]
    input: list[int]
    output: list[int]
    cache_read: list[int]
    cache_write: list[int]
    write_1h: list[int]


def columns_of(replies: Sequence[UsualReply] | Sequence[Reply]) -> ReplyColumns:
    """The same replies in columns."""
    rows = [reply if isinstance(reply, tuple) else _USUAL_REPLY(reply) for reply in replies]
    return (
        ReplyColumns(*map(list, zip(*rows, strict=True))) if rows else ReplyColumns(*([] for _ in ReplyColumns._fields))
    )


def request_rows(
    replies: ReplyColumns,
    session_id: SessionId,
    events: Mapping[str, tuple[CacheEvent, ...]],
    *,
    source: str | None,
    cwd: str | None,
) -> RequestRows:
    """What :func:`requests_of` gives where session and chain are the same and no reply tells its cost."""
    count = len(replies.keys)
    marks: list[object] = [()] * count
    if events:
        marks = [[(event.cause, event.evidence) for event in events.get(key, ())] for key in replies.keys]
    columns: tuple[list[Any], ...] = (
        [session_id] * count,
        replies.keys,
        replies.uuids,
        replies.times,
        [model or None for model in replies.models],
        [PROVIDER] * count,
        marks,
        [source or None] * count,
        [cwd or None] * count,
        replies.input,
        replies.output,
        replies.cache_read,
        replies.cache_write,
        [0] * count,
        list(map(min, replies.write_1h, replies.cache_write)),
    )
    return RequestRows(columns, tells_writes=True)


_USUAL_REPLY: Final = attrgetter(
    "key", "uuid", "place", "at", "model", "input", "output", "cache_read", "cache_write", "write_1h"
)
"""Makes a :data:`UsualReply` of a :class:`Reply`."""


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
