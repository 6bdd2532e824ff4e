"""A session or conversation on its way to a file, and what every format says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, Literal

from hermes_tui.library import shapes
from hermes_tui.library.catalog import row_of
from hermes_tui.library.failures import UnknownId
from hermes_tui.library.json_output import dumps, with_long_text
from hermes_tui.library.redaction import redact, redact_pieces, redact_values
from hermes_tui.library.sources import Found
from hermes_tui.library.transcript import T, batches, open_transcript, pieces, until_broken
from hermes_tui.model import Message, MessageHead, Problem, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.stores.protocol import Transcript

Format = Literal["md", "html", "json", "jsonl"]
FORMATS: Final[tuple[Format, ...]] = ("md", "html", "json", "jsonl")
BATCH: Final = 200
"""Messages loaded at once."""
PIECE: Final = 1 << 18
"""Characters of a long text written at once."""
Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What is written and how."""

    format: Format = "md"
    redact: bool = False
    conversation: bool = False
    """The whole chain, repeated messages once."""
    all_states: bool = False


class Exported:
    """One session or conversation on its way to a file: its row, and its messages as they are read."""

    def __init__(self, found: Found, options: ExportOptions, broken: list[Problem] | None) -> None:
        """Look up its row.

        Args:
            found: the session.
            options: what is written and how.
            broken: gets the places where the store fails while it is read, which then ends there; ``None``: it raises.

        Raises:
            UnknownId: it is gone.
            StorageError: the store cannot be read.
        """
        row = row_of(found, conversation=options.conversation)
        if row is None:
            raise UnknownId(f"{found.session_id} is no longer there")
        self.row: SessionRow = row
        self.options = options
        self.transcript: Transcript = open_transcript(found, conversation=options.conversation)
        self._broken = broken
        self._whole = len(broken or ())

    def messages(self) -> Iterator[Message]:
        """Every shown message in order, up to where the store fails."""
        yield from self._kept(self._messages())

    def _messages(self) -> Iterator[Message]:
        heads = (head for batch in batches(self.transcript, self.options.all_states) for head in batch)
        while batch := list(islice(heads, BATCH)):
            yield from self.transcript.load(batch)

    def _kept(self, parts: Iterable[T]) -> Iterable[T]:
        return parts if self._broken is None else until_broken(parts, self._broken)

    def text(self, message: Message) -> Iterator[str]:
        """The text of a message in pieces, redacted if that was asked for."""
        parts: Iterable[str] = (message.text or "",)
        if message.cut:
            parts = self._kept(pieces(self.transcript, message, PIECE))
        yield from redact_pieces(parts) if self.options.redact else parts

    def word(self, text: str | None) -> str | None:
        """A short text (a title, a folder), redacted if that was asked for."""
        return redact(text) if text is not None and self.options.redact else text

    def name(self) -> str:
        """What a reader knows it by: title, else preview, else id."""
        return self.word(self.row.title) or self.word(self.row.preview) or self.word(self.row.id) or ""

    def facts(self) -> list[tuple[str, str]]:
        """What stands above its messages, for people."""
        row = self.row
        known = (
            ("agent", row.store.agent),
            ("id", row.id),
            ("started", shapes.moment(row.started_at)),
            ("last active", shapes.moment(row.last_active_at)),
            ("model", ", ".join(row.models) or row.model),
            ("folder", row.cwd),
            ("messages", None if row.message_count is None else f"{row.message_count:,}"),
            ("tokens", None if row.usage is None else f"{row.usage.total:,}"),
        )
        return [(name, self.word(value) or "") for name, value in known if value]

    @property
    def problems(self) -> list[Problem]:
        """What could not be read; complete when the messages are written."""
        return [*self.transcript.problems, *(self._broken or ())[self._whole :]]

    def unread(self) -> list[str]:
        """The same for people, a line each."""
        lines = [f"{one.path or ''} line {one.line or '?'}: {one.reason}" for one in self.problems]
        return [self.word(line) or "" for line in lines]

    def heading(self, head: MessageHead) -> str:
        """What stands above a message, for people: kind, tool, state where it is not live, time."""
        words: list[str] = [head.kind, *([self.word(head.tool_name) or ""] if head.tool_name else [])]
        words += [f"({head.state})"] if head.state != "live" else []
        words += [moment] if (moment := shapes.moment(head.at)) else []
        return " · ".join(words)

    def session_shape(self) -> shapes.Shape:
        """The row as JSON."""
        shape = shapes.session(self.row)
        return dict(redact_values(shape)) if self.options.redact else shape

    def message_pieces(self, message: Message) -> Iterator[str]:
        """A message as JSON, in pieces."""
        shape = shapes.message(message)
        if message.cut:
            del shape["text"]
            shape = dict(redact_values(shape)) if self.options.redact else shape
            yield from with_long_text(shape, "text", self.text(message))
        else:
            yield dumps(redact_values(shape) if self.options.redact else shape)
