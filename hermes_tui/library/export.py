"""Writes conversations to a file: streamed, under a temporary name, never over a file that is there.

One writer for each format; each gets sessions one after another and messages as they are read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TextIO

from hermes_tui.library import shapes
from hermes_tui.library.catalog import row_of
from hermes_tui.library.failures import Refused, UnknownId
from hermes_tui.library.json_output import dumps, with_long_text
from hermes_tui.library.redaction import redact, redact_pieces, redact_values
from hermes_tui.library.sources import Found
from hermes_tui.library.transcript import batches, open_transcript, pieces
from hermes_tui.locations import FILE_MODE
from hermes_tui.model import Message, SessionRow
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

    def __init__(self, found: Found, options: ExportOptions) -> None:
        row = row_of(found, conversation=options.conversation)
        if row is None:
            raise UnknownId(f"{found.session_id} is no longer there")
        self.row: SessionRow = row
        self.options = options
        self.transcript: Transcript = open_transcript(found, conversation=options.conversation)

    def messages(self) -> Iterator[Message]:
        """Every shown message in order."""
        heads = (head for batch in batches(self.transcript, self.options.all_states) for head in batch)
        while batch := list(islice(heads, BATCH)):
            yield from self.transcript.load(batch)

    def text(self, message: Message) -> Iterator[str]:
        """The text of a message in pieces, redacted if that was asked for."""
        parts: Iterable[str] = (message.text or "",)
        if message.cut:
            parts = pieces(self.transcript, message, PIECE)
        yield from redact_pieces(parts) if self.options.redact else parts

    def word(self, text: str | None) -> str | None:
        """A short text (a title, a folder), redacted if that was asked for."""
        return redact(text) if text is not None and self.options.redact else text

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


def export(founds: Sequence[Found], options: ExportOptions, write: Write) -> None:
    """Write these sessions in one format; memory stays flat however long they are."""
    # Imported late: only the writer that is used.
    if options.format == "md":
        from hermes_tui.library.export_markdown import write_markdown as writer
    elif options.format == "html":
        from hermes_tui.library.export_html import write_html as writer
    elif options.format == "json":
        from hermes_tui.library.export_json import write_json as writer
    else:
        from hermes_tui.library.export_json import write_jsonl as writer
    writer([partial(Exported, found, options) for found in founds], write)


def export_to(path: Path, founds: Sequence[Found], options: ExportOptions, *, replace: bool = False) -> Path:
    """Write them to a file of the user: under a temporary name beside it, then renamed.

    Raises:
        Refused: the file is there already and ``replace`` is not given, or it can't be written.
    """
    if path.exists() and not replace:
        raise Refused(f"{path} is there already", "Add --yes to write over it, or name another file.")
    try:
        with _temporary(path) as file:
            export(founds, options, file.write)
        return path
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}", "Name another file.") from error


@contextmanager
def _temporary(path: Path) -> Iterator[TextIO]:
    """A file beside ``path`` that takes its name when all is written, and vanishes when something fails."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        # Lone surrogates of a store cannot be UTF-8: they are written as their escape.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(FILE_MODE)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def file_name(found: Found, options: ExportOptions) -> str:
    """A file name for one session, safe in every file system: its id has any characters its agent likes."""
    safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in found.session_id).lstrip(".")
    return f"{safe[:120] or 'session'}.{options.format}"
