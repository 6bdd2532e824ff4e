"""Markdown of conversations: readable as text, every message under a heading, whatever the messages say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from hermes_tui.library.exported import Exported, Write
from hermes_tui.model import Message

FENCED: Final = frozenset({"tool-call", "tool-result", "context", "unknown"})
"""Kinds whose text is no prose: put in a code block as it is."""
FENCE: Final = "`" * 12
"""Longer than any run of backticks an agent writes; a text in pieces cannot be looked through first."""
LONGEST_HELD: Final = 1 << 16
"""Characters of a line that wait for its end."""
_BEGIN: Final = r"(?:^|(?<=\r)(?!\n))"
_END: Final = r"(?=[\r\n]|\Z)"
_STRUCTURE: Final = re.compile(
    rf"{_BEGIN}( {{0,3}})(?:(?P<fence>`{{3,}}(?=[^`\r\n]*{_END})|~{{3,}})(?P<info>[^\r\n]*)"
    rf"|(?P<mark>#{{1,6}}(?=[ \t\r\n]|\Z)|=+[ \t]*{_END}|-+[ \t]*{_END}|<(?=[A-Za-z/!?])))",
    re.MULTILINE,
)
"""Lines that would make a heading, hide what follows, or open or close a code block."""
_CLOSING: Final = re.compile(rf"{_BEGIN} {{0,3}}(?=`{{{len(FENCE)},}}[ \t]*{_END})", re.MULTILINE)
_LINE_BREAK: Final = re.compile(r"[\r\n]")


def write_markdown(sources: Sequence[Callable[[], Exported]], write: Write) -> None:
    """A document with a section for each message."""
    for place, source in enumerate(sources):
        exported = source()
        write("\n\n" if place else "")
        write(_head(exported))
        for message in exported.messages():
            write(f"\n## {_one_line(exported.heading(message.head))}\n\n")
            for piece in _body(exported, message):
                write(piece)
            write("\n")
        for unread in exported.unread():
            write(f"\n> not read: {_one_line(unread)}\n")


def _head(exported: Exported) -> str:
    lines = [f"# {_one_line(exported.name())}", ""]
    lines += [f"- {name}: {_one_line(value)}" for name, value in exported.facts()]
    return "\n".join(lines) + "\n"


def _body(exported: Exported, message: Message) -> Iterator[str]:
    if message.head.kind in FENCED:
        yield FENCE + "\n"
        yield from _ended(_in_lines(exported.text(message), lambda text: _CLOSING.sub("    ", text)))
        yield FENCE + "\n"
    else:
        prose = _Prose()
        yield from _ended(_in_lines(exported.text(message), prose.block))
        yield prose.end()
    for name in message.attachments:
        yield f"\n[attached: {_one_line(exported.word(name) or '')}]\n"


class _Prose:
    """Text of a message between other messages: its code blocks are closed, and nothing in it looks like a message."""

    def __init__(self) -> None:
        self._fence = ""
        """What closes the code block that is open."""

    def block(self, text: str) -> str:
        """Some whole lines of it."""
        return _STRUCTURE.sub(self._line, text)

    def end(self) -> str:
        """What closes a code block that was left open: the messages that follow would stand in it."""
        return f"{self._fence}\n" if self._fence else ""

    def _line(self, found: re.Match[str]) -> str:
        fence = found["fence"]
        if fence is None:
            # A heading, or HTML that hides what follows; in a code block it is neither.
            return found[0] if self._fence else f"{found[1]}\\{found['mark']}"
        if not self._fence:
            self._fence = fence
        elif fence.startswith(self._fence) and not found["info"].strip():
            self._fence = ""
        return found[0]


def _in_lines(parts: Iterable[str], change: Callable[[str], str]) -> Iterator[str]:
    """The pieces with every line changed as a whole, but for the rest of a very long one."""
    held, inside = "", False
    for part in parts:
        held += part
        last = max(held.rfind("\n"), held.rfind("\r", 0, len(held) - 1))
        if last < 0 and len(held) <= LONGEST_HELD:
            continue
        ready, held = (held[: last + 1], held[last + 1 :]) if last >= 0 else (held, "")
        yield _changed(ready, inside, change)
        inside = (inside or bool(ready)) if last < 0 else False
    yield _changed(held, inside, change)


def _changed(text: str, inside: bool, change: Callable[[str], str]) -> str:
    """The text, changed; where it begins inside a line, from its next line on."""
    if not inside:
        return change(text)
    found = _LINE_BREAK.search(text)
    return text if found is None else text[: found.end()] + change(text[found.end() :])


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
