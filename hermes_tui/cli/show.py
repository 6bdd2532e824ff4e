"""``show``: the messages of a session or a conversation."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers, positive
from hermes_tui.library import shapes
from hermes_tui.library.catalog import row_of
from hermes_tui.library.failures import UnknownId
from hermes_tui.library.json_output import ObjectWriter, dumps, with_long_text
from hermes_tui.library.sources import Found
from hermes_tui.library.transcript import open_transcript, pieces, shown, until_broken
from hermes_tui.model import Message, MessageHead, Problem
from hermes_tui.stores.protocol import Transcript

DEFAULT_LIMIT = 50
BATCH = 200
"""Messages loaded at once: a few megabytes at most, as longer texts are cut."""
PIECE = 1 << 18
"""Characters of a long text written at once."""


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("show", "Show the messages of a session")
    parser.add_argument("id", metavar="ID", help=ID_HELP)
    parser.add_argument("--conversation", action="store_true", help="its whole chain, repeated messages once")
    parser.add_argument("--all-states", action="store_true", help="rewound and dead-branch messages too")
    parser.add_argument("--sent", action="store_true", help="what went to the model, where it differs")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--tail", type=positive, metavar="N", help="the last N messages")
    place.add_argument("--after", metavar="MESSAGE_ID", help="what follows this message")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--limit", type=positive, metavar="N", help=f"at most N messages (default {DEFAULT_LIMIT})")
    size.add_argument("--all", action="store_true", help="every message")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    found = context.library.find(args.id)
    row = row_of(found, conversation=args.conversation)
    if row is None:
        raise UnknownId(f"{found.session_id} is no longer there")
    transcript = open_transcript(found, conversation=args.conversation)
    page = Page(transcript, args, found)
    if context.json:
        _write(page, shapes.session(row), row.problems, context)
    else:
        _print(page, context)
    return context.ended


class Page:
    """The messages that were asked for, read as they are written out."""

    def __init__(self, transcript: Transcript, args: argparse.Namespace, found: Found) -> None:
        self.transcript = transcript
        self.sent: bool = args.sent
        self.more = False
        """Whether there are messages beyond the page; known once it is read."""
        self._heads = shown((head for batch in transcript.heads() for head in batch), args.all_states)
        self._tail: int | None = args.tail
        self._after: str | None = args.after
        self._limit: int | None = None if args.all else (DEFAULT_LIMIT if args.limit is None else args.limit)
        self._found = found

    def messages(self) -> Iterator[Message]:
        """The messages, loaded batch by batch."""
        heads = self._page()
        while batch := list(islice(heads, BATCH)):
            yield from self.transcript.load(batch, sent=self.sent)

    def read_on(self) -> None:
        """Read the rest of the log for its problems alone."""
        deque(self._heads, maxlen=0)

    def _page(self) -> Iterator[MessageHead]:
        if self._tail is not None:
            return iter(self._last(self._tail if self._limit is None else min(self._tail, self._wanted(self._tail))))
        return self._first(self._behind() if self._after is not None else self._heads)

    def _wanted(self, tail: int) -> int:
        """A limit given beside --tail narrows it; the default limit does not."""
        return tail if self._limit == DEFAULT_LIMIT else min(tail, self._limit or 0)

    def _last(self, count: int) -> Sequence[MessageHead]:
        kept: deque[MessageHead] = deque(maxlen=count + 1)
        kept.extend(self._heads)
        if len(kept) > count:
            self.more = True
            kept.popleft()
        return kept

    def _behind(self) -> Iterator[MessageHead]:
        """What follows the message named by --after.

        Raises:
            UnknownId: there is no such message in it.
        """
        seen = False
        for head in self._heads:
            if head.id == self._after:
                seen = True
            elif seen:
                yield head
        if not seen:
            raise UnknownId(f"{self._found.session_id} has no message {self._after!r} that is shown", candidates=())

    def _first(self, heads: Iterable[MessageHead]) -> Iterator[MessageHead]:
        """As many as the limit allows; a page never ends inside a message, for --after goes on behind all its parts."""
        if self._limit is None:
            yield from heads
            return
        given = 0
        for _, parts in groupby(heads, key=lambda head: (head.session_id, head.id)):
            whole = list(parts)
            if given + len(whole) > self._limit and (given or not self._limit):
                self.more = True
                return
            yield from whole
            given += len(whole)


def _write(page: Page, session: shapes.Shape, problems_known: int, context: Context) -> None:
    """Write the document as the messages come: memory stays flat however long the transcript is."""
    messages = page.messages()
    # The first one before anything is written: a wrong --after is an error document, not half a document.
    first = list(islice(messages, 1))
    writer = ObjectWriter(context.out.write)
    writer.key("session", session)
    broken: list[Problem] = []
    writer.items("messages", _items(page, until_broken(_chained(first, messages), broken), broken))
    if not broken and len(page.transcript.problems) < problems_known:
        for _ in until_broken(_rest(page), broken):
            pass
    writer.key("more", page.more)
    writer.key("problems", [shapes.problem(one) for one in (*page.transcript.problems, *broken)])
    writer.close()
    if broken:
        context.unreadable = True
        context.say(f"hermes-tui: the transcript broke off: {broken[0].reason}")


def _chained(first: Sequence[Message], rest: Iterator[Message]) -> Iterator[Message]:
    yield from first
    yield from rest


def _rest(page: Page) -> Iterator[Message]:
    """No messages: only the log read to its end."""
    page.read_on()
    yield from ()


def _items(page: Page, messages: Iterator[Message], broken: list[Problem]) -> Iterator[Iterator[str]]:
    for message in messages:
        shape = shapes.message(message, sent=page.sent)
        if message.cut:
            text = until_broken(pieces(page.transcript, message, PIECE), broken)
            yield with_long_text(shape, "text", text)
        else:
            yield iter((dumps(shape),))


def _print(page: Page, context: Context) -> None:
    from hermes_tui.cli.page import print_messages

    print_messages(page.messages(), page.transcript, context, sent=page.sent)
    if page.more:
        context.say("There is more: --all, --limit N, --tail N or --after MESSAGE_ID.")
    for one in page.transcript.problems:
        where = ":".join(str(part) for part in (one.path, one.line) if part is not None)
        context.say(f"not read: {where} {one.reason}")
