"""Messages for people: a rule with who and when, then the text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.rule import Rule
from rich.text import Text

from hermes_tui.cli import tables
from hermes_tui.cli.context import Context
from hermes_tui.library.transcript import pieces
from hermes_tui.model import Message
from hermes_tui.stores.protocol import Transcript
from hermes_tui.text import clean, clean_line

PIECE = 1 << 18
"""Characters of a long text printed at once."""


def print_messages(
    messages: Iterable[Message], transcript: Transcript | None, context: Context, *, sent: bool = False
) -> None:
    """Print each message under a line that says what it is."""
    for message in messages:
        context.print(Rule(Text(_headline(message, context)), characters="-", align="left", style=""))
        if message.cut and transcript is not None:
            for piece in pieces(transcript, message, PIECE):
                context.out.write(clean(piece))
            context.out.write("\n")
        elif message.text:
            context.out.write(clean(message.text) + "\n")
        if sent and message.sent_text is not None and message.sent_text != message.text:
            context.print(Rule(Text("sent to the model instead"), characters=".", align="left", style=""))
            context.out.write(clean(message.sent_text) + "\n")
        for name in message.attachments:
            context.out.write(f"[attached: {clean_line(name)}]\n")


def _headline(message: Message, context: Context) -> str:
    head = message.head
    words = [head.kind if head.kind != "unknown" else f"unknown ({clean_line(head.role or '?')})"]
    if head.tool_name:
        words.append(clean_line(head.tool_name))
    if head.state != "live":
        words.append(f"({head.state})")
    words.append(str(tables.stamp(head.at, context.zone)))
    if message.usage is not None:
        usage = message.usage
        words.append(
            f"in {usage.input:,} read {usage.cache_read:,} write {usage.cache_write:,} out {usage.output:,} "
            f"hit {tables.rate(usage.hit_rate)}"
        )
    words.append(f"#{clean_line(head.id)}")
    return "  ".join(words)
