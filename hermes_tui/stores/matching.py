r"""What of a message is compared with a query, for every store.

A tool call counts with its name and its arguments; a tool result with the tool's name. Escapes of JSON inside them
(``\n``, ``\uac00``) are read as what they stand for, and as they are written, so that both can be found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hermes_tui.model import Message, MessageKind
from hermes_tui.records import dataclass
from hermes_tui.storage.fulltext import Matcher, Span

_ESCAPES: Final = re.compile(r"((?:\\+u[0-9a-fA-F]{4})+)|\\+([ntrbf])|(\\+[\"/])")
_UNIT: Final = re.compile(r"\\+u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Match:
    """A text that answers the query, and where."""

    text: str
    marks: tuple[Span, ...]


def compared(message: Message) -> Iterator[str]:
    """The texts of a message that may answer a query, the one people see first."""
    return compared_texts(message.head.kind, message.head.tool_name, message.text or "")


def compared_texts(kind: MessageKind, tool_name: str | None, text: str) -> Iterator[str]:
    """The same for an entry that is not a message yet: what an index takes of it."""
    tools = kind in ("tool-call", "tool-result")
    shown = f"{tool_name}\n{text}" if tool_name and tools else text
    if shown:
        yield shown
    wanted = "\\" if kind == "tool-call" else "\\u"
    if tools and wanted in shown:
        yield without_escapes(shown)


def match_message(matcher: Matcher, message: Message) -> Match | None:
    """Where a message answers a query; ``None``: it does not."""
    for text in compared(message):
        marks = matcher.find(text)
        if marks:
            return Match(text, marks)
    return None


def match_together(matcher: Matcher, messages: Sequence[Message]) -> tuple[Message, Match] | None:
    """The entries of one stored message that answer a query only together: the first that has some of it."""
    texts = [(message, text) for message in messages for text in compared(message)]
    if len(messages) < 2 or not matcher.holds_together([text for _, text in texts]):
        return None
    for message, text in texts:
        marks = matcher.touches(text)
        if marks:
            return message, Match(text, marks)
    return None


def without_escapes(text: str) -> str:
    """JSON escapes read, at whatever depth JSON was put into JSON."""
    return _ESCAPES.sub(_read_escape, text)


def _read_escape(hit: re.Match[str]) -> str:
    if hit[1]:
        raw = b"".join(bytes.fromhex(unit) for unit in _UNIT.findall(hit[1]))
        return raw.decode("utf-16-be", "replace")
    if hit[2]:
        return "\n" if hit[2] in "nr" else " "
    return hit[3][-1]
