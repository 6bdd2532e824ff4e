"""The preview pane: what a conversation is, how it began, how it went on last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hermes_tui.model import Message, MessageKind, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit, wrap
from hermes_tui.tui.formats import Moment, count
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, clip

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation
    from hermes_tui.library.sources import Found

PEEK: Final = 12
"""Entries read from the end; among them is nearly always the last prompt and reply."""
LONGEST: Final = 2_000
"""Characters kept of a text: more never fits the pane."""
WHO: Final[dict[MessageKind, tuple[str, str]]] = {
    "prompt": ("you", "prompt"),
    "reply": ("it", "reply"),
    "summary": ("sum", "summary"),
    "tool-call": ("call", "tool"),
    "tool-result": ("tool", "tool"),
}


@dataclass(frozen=True, slots=True)
class Preview:
    """What is known of the conversation under the cursor."""

    found: Found
    said: tuple[tuple[MessageKind, CleanText], ...]
    """The newest entries, oldest first."""


def read_preview(found: Found) -> Preview:
    """Read the end of a conversation; blocks."""
    from hermes_tui.library.transcript import open_transcript

    transcript = open_transcript(found, conversation=True)
    heads = [head for head in transcript.tail(PEEK) if head.kind in WHO and head.state == "live"]
    # Prompts and replies say more than tools; a pane of tools is better than an empty one.
    talk = [head for head in heads if head.kind in {"prompt", "reply"}] or heads
    messages = transcript.load(talk[-4:])
    return Preview(found, tuple(_said(message) for message in messages if message.text))


def _said(message: Message) -> tuple[MessageKind, CleanText]:
    return message.head.kind, clean_line((message.text or "")[:LONGEST])


def preview_lines(
    row: SessionRow | None,
    preview: Preview | None,
    width: int,
    height: int,
    moment: Moment,
    glyphs: Glyphs,
    annotation: Annotation | None = None,
) -> list[Line]:
    """The pane, at most ``height`` lines."""
    lines: list[Line] = [((glyphs.rule * width, "rule"),)]
    if row is None:
        return lines
    lines.append(clip((("  ", ""), *_about(row, moment, glyphs)), width, glyphs.ellipsis))
    if annotation is not None and annotation.note:
        lines.append(clip((("  ", ""), ("note ", "accent"), (clean_line(annotation.note), "")), width, glyphs.ellipsis))
    room = height - len(lines)
    said = preview.said if preview is not None and preview.found.session_id == row.id else ()
    if not said and row.preview:
        said = (("prompt", clean_line(row.preview[:LONGEST])),)
    lines += _talk(said, width, room)
    return lines[:height]


def _about(row: SessionRow, moment: Moment, glyphs: Glyphs) -> tuple[Run, ...]:
    dot = f" {glyphs.middot} "
    title = clean_line(row.title) if row.title else literal("(untitled)")
    facts = [clean_line(row.store.name)]
    if row.source:
        facts.append(clean_line(row.source))
    facts.append(literal(f"started {moment.full(row.started_at)}"))
    if row.running:
        facts.append(literal("running"))
    elif row.end_reason:
        facts.append(literal(f"ended: {clean_line(row.end_reason)}"))
    if row.git_branch:
        facts.append(literal(f"git {clean_line(row.git_branch)}"))
    if row.archived:
        facts.append(literal("archived"))
    if row.problems:
        facts.append(literal(f"{count(row.problems)} unreadable"))
    return ((title, "title"), (dot + dot.join(facts), "muted"))


def _talk(said: Sequence[tuple[MessageKind, CleanText]], width: int, room: int) -> list[Line]:
    """The newest texts, each cut so that all have a share of the room."""
    shown = said[-max(1, room // 2) :]
    lines: list[Line] = []
    for at, (kind, text) in enumerate(shown):
        who, ink = WHO[kind]
        share = max(1, (room - len(lines)) // (len(shown) - at))
        body = max(8, width - 10)
        ranges = wrap(text, body)
        for row, (start, end) in enumerate(ranges[:share]):
            cut = row == share - 1 and len(ranges) > share
            piece = text[start:end] + (" …" if cut else "")
            lines.append((("  ", ""), (f"{who:<5}" if row == 0 else "     ", ink), (fit(piece, body), "")))
    return lines
