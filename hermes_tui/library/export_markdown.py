"""Markdown of conversations: readable as text, every message under a heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from hermes_tui.library.exported import Exported, Write, heading
from hermes_tui.model import Message

FENCED: Final = frozenset({"tool-call", "tool-result", "context", "unknown"})
"""Kinds whose text is no prose: put in a code block as it is."""
FENCE: Final = "`" * 12
"""Longer than any run of backticks an agent writes; a text in pieces cannot be looked through first."""
_HEADING: Final = re.compile(r"^(#{1,6} |={3,}$|-{3,}$)", re.MULTILINE)


def write_markdown(sources: Sequence[Callable[[], Exported]], write: Write) -> None:
    """A document with a section for each message."""
    for place, source in enumerate(sources):
        exported = source()
        write("\n\n" if place else "")
        write(_head(exported))
        for message in exported.messages():
            write(_heading(message))
            for piece in _body(exported, message):
                write(piece)
            write("\n")
        for unread in exported.unread():
            write(f"\n> not read: {_one_line(unread)}\n")


def _head(exported: Exported) -> str:
    lines = [f"# {_one_line(exported.name())}", ""]
    lines += [f"- {name}: {_one_line(value)}" for name, value in exported.facts()]
    return "\n".join(lines) + "\n"


def _heading(message: Message) -> str:
    return f"\n## {_one_line(heading(message.head))}\n\n"


def _body(exported: Exported, message: Message) -> Iterator[str]:
    if message.head.kind in FENCED:
        yield FENCE + "\n"
        yield from _ended(exported.text(message))
        yield FENCE + "\n"
    else:
        # A heading inside a message would look like a message: it goes two steps down.
        yield from (_HEADING.sub(r"\\\1", piece) for piece in _ended(exported.text(message)))
    for name in message.attachments:
        yield f"\n[attached: {_one_line(exported.word(name) or '')}]\n"


def _ended(parts: Iterable[str]) -> Iterator[str]:
    """The pieces, with a line break after the last."""
    last = "\n"
    for part in parts:
        yield part
        last = part or last
    if not last.endswith("\n"):
        yield "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())
