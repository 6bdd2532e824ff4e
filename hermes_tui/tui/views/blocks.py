"""One message of a transcript made ready to draw: its text broken into lines at a width, with its colours.

Making a block may take milliseconds and happens in a thread; drawing a line of one takes microseconds. The lines
counted and the lines drawn are the same list, so none is lost (facts/textual.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Final

from hermes_tui.model import Message, MessageHead, MessageKind
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean, clean_line
from hermes_tui.tui.cells import Range, fit, width_of, wrap
from hermes_tui.tui.formats import Moment, count, rate, size, tokens
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, line_width
from hermes_tui.tui.views.spans import Span, json_spans, markdown_spans, output_spans, runs

Finder = Callable[[str], Sequence[Range]]
"""Where a text matches: start and end of each place."""
OPENING: Final = 100
"""Messages among which the first answer is looked for."""
INDENT: Final = 3
PIECE: Final = 200_000
"""Characters of a long text that are here at once; never the whole of it (issue 2)."""
FOLDED: Final[frozenset[MessageKind]] = frozenset(
    {"reasoning", "tool-call", "tool-result", "context", "notice", "unknown"}
)
"""Kinds that begin folded."""
PEEKED: Final[frozenset[MessageKind]] = frozenset({"tool-call", "context", "notice", "unknown"})
"""Kinds whose folded line says how their text begins."""
MOST_MARKS: Final = 2_000
KIND_INKS: Final[dict[MessageKind, str]] = {
    "prompt": "prompt", "reply": "reply", "reasoning": "reasoning", "tool-call": "tool", "tool-result": "tool",
    "summary": "summary", "context": "context", "notice": "notice", "unknown": "muted",
}  # fmt: skip
_STATE_WORDS: Final = {
    "compacted": "compacted away",
    "rewound": "rewound",
    "inherited": "inherited",
    "dead-branch": "dead branch",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A message at a width."""

    message: Message
    width: int
    text: CleanText
    """What is drawn: the shown or the sent text, or a piece of a long one."""
    ranges: tuple[Range, ...]
    spans: tuple[Span, ...]
    marks: tuple[Span, ...] = ()
    sent: bool = False
    """Whether ``text`` is what was sent."""
    differs: int = 0
    """Characters by which the sent text is longer (or shorter) than the shown one; 0: it is the same text."""
    sent_differs: bool = False
    piece: int = 0
    pieces: int = 1
    """About how many pieces the text has."""

    @property
    def notes(self) -> int:
        """Lines below the text."""
        return int(self.sent_differs) + int(self.pieces > 1) + len(self.message.attachments)

    @property
    def height(self) -> int:
        """Lines of text and notes."""
        return (len(self.ranges) if self.text or not self.notes else 0) + self.notes


def make_block(
    message: Message,
    width: int,
    *,
    sent: bool = False,
    find: Finder | None = None,
    piece: int = 0,
    piece_text: str | None = None,
) -> Block:
    """Break and colour a message; ``piece_text`` is the piece of a long text to show instead of its beginning."""
    shown = message.text or ""
    differs = message.sent_text is not None and message.sent_text != shown
    use_sent = sent and differs
    raw = piece_text if piece_text is not None else (message.sent_text or "") if use_sent else shown
    if len(raw) > PIECE:
        raw = raw[:PIECE]
    long = message.cut or message.head.size > 4 * PIECE or len(shown) > PIECE
    text = clean(raw.strip("\n") if not long else raw)
    spans = _spans(message, text)
    marks: list[Span] = []
    if use_sent:
        marks += _difference(text, clean(shown.strip("\n")))
    if find is not None:
        marks = [(start, end, "mark") for start, end in list(find(text))[:MOST_MARKS]] or marks
    body = max(8, width - INDENT - 1)
    return Block(
        message=message,
        width=width,
        text=text,
        ranges=tuple(wrap(text, body)),
        spans=tuple(spans),
        marks=tuple(marks),
        sent=use_sent,
        differs=len(message.sent_text or "") - len(shown) if differs else 0,
        sent_differs=differs,
        piece=piece,
        pieces=max(piece + 1, -(-max(message.head.size, len(shown)) // PIECE)) if long else 1,
    )


def _spans(message: Message, text: str) -> list[Span]:
    kind = message.head.kind
    if kind in {"prompt", "reply", "summary"}:
        return markdown_spans(text)
    if kind == "tool-call":
        return json_spans(text)
    if kind == "tool-result":
        return json_spans(text) if text[:1] in "{[" else output_spans(text)
    return []


def _difference(sent: str, shown: str) -> list[Span]:
    """The part of the sent text that the shown one does not have: what lies between common beginning and end."""
    limit = min(len(sent), len(shown))
    start = 0
    while start < limit and sent[start] == shown[start]:
        start += 1
    end = 0
    while end < limit - start and sent[-1 - end] == shown[-1 - end]:
        end += 1
    return [(start, len(sent) - end, "mark")] if start < len(sent) - end else []


# ------------------------------------------------------------------------------------------------------ lines


@dataclass(frozen=True, slots=True)
class Frame:
    """What the lines of a message need beside the message."""

    glyphs: Glyphs
    moment: Moment
    folded: bool
    current: bool
    """Under the cursor."""
    number: int
    """1-based place in the transcript."""
    result: MessageHead | None = None
    """The result of this tool call, folded into its line."""
    opening: bool = False
    """Whether it belongs to the first request, which finds nothing cached and is no reason to worry."""


def in_first_answer(heads: Sequence[MessageHead], item: int) -> bool:
    """Whether nothing but the model spoke between its first words and this one: one request answered with them."""
    before = heads[: item + 1] if item < OPENING else ()
    first = next((place for place, head in enumerate(before) if head.role == "assistant"), None)
    return first is not None and all(head.role == "assistant" for head in before[first:])


def estimated_height(head: MessageHead, width: int) -> int:
    """Lines of text to expect before it was read; exact once it was."""
    body = max(8, width - INDENT - 1)
    return max(1, min(-(-head.size // body), 4_000))


def title_line(head: MessageHead, block: Block | None, frame: Frame, width: int) -> Line:
    """The line that names a message: kind, state, tool, tokens, time; as wide as the screen."""
    glyphs = frame.glyphs
    message = block.message if block is not None else None
    compaction = message.compaction if message is not None else None
    rule = glyphs.heavy if head.kind == "summary" or compaction is not None else glyphs.rule
    edge: Run = (glyphs.bar if frame.current else " ", "accent")
    left: list[Run] = [edge, (rule * 2 + " ", "rule"), *_name(head, message, frame)]
    right = _right(head, message, frame)
    room = width - line_width(tuple(left)) - line_width(tuple(right)) - 1
    if room < 2:
        right, room = [], width - line_width(tuple(left)) - 1
    if room < 0:
        return _cut(tuple(left), width, glyphs.ellipsis)
    # A folded message is one quiet line among others: no rule leads to its right end.
    line = " " if frame.folded else rule
    fill = " " + line * max(0, room - (1 if right else 0)) + (" " if right else "")
    return (*left, (fill[: room + 1], "rule"), *right)


def _name(head: MessageHead, message: Message | None, frame: Frame) -> list[Run]:
    ink = KIND_INKS[head.kind]
    glyphs = frame.glyphs
    dot = f" {glyphs.middot} "
    runs_: list[Run] = []
    if message is not None and message.compaction is not None:
        runs_.append(("compaction", "summary"))
        runs_.append((dot + _compaction_words(message, glyphs), "muted"))
    else:
        runs_.append((head.kind, ink))
    if head.tool_name:
        runs_.append((f" {clean_line(head.tool_name)}", "strong"))
    if head.state in _STATE_WORDS:
        runs_.append(
            (f" ({_STATE_WORDS[head.state]})", "warn" if head.state in {"rewound", "dead-branch"} else "muted")
        )
    if frame.folded:
        runs_ += _folded_words(head, message, frame)
    return runs_


def _compaction_words(message: Message, glyphs: Glyphs) -> str:
    compaction = message.compaction
    assert compaction is not None
    words: list[str] = []
    if compaction.trigger:
        words.append(clean_line(compaction.trigger))
    if compaction.before_tokens is not None and compaction.after_tokens is not None:
        words.append(f"{tokens(compaction.before_tokens)} {glyphs.right} {tokens(compaction.after_tokens)} tokens")
    elif compaction.before_tokens is not None:
        words.append(f"from {tokens(compaction.before_tokens)} tokens")
    if compaction.dropped is not None:
        kept = f", {count(compaction.kept)} kept" if compaction.kept is not None else ""
        words.append(f"{count(compaction.dropped)} messages dropped{kept}")
    return f" {glyphs.middot} ".join(words) or "the context was made shorter"


def _folded_words(head: MessageHead, message: Message | None, frame: Frame) -> list[Run]:
    if head.kind in PEEKED:
        said = clean_line((message.text or "")[:160]) if message is not None else ""
        runs_: list[Run] = (
            [("  " + fit(said, min(width_of(said), 60), ellipsis=frame.glyphs.ellipsis), "muted")] if said else []
        )
        if frame.result is not None:
            runs_.append((f"  {frame.glyphs.right} {size(frame.result.size)}", "tool"))
        return runs_
    return [(f" (folded, {size(head.size)})", "muted")]


def _right(head: MessageHead, message: Message | None, frame: Frame) -> list[Run]:
    out: list[Run] = []
    usage = message.usage if message is not None else None
    if usage is not None and usage.total:
        hit = usage.hit_rate
        read, write = count(usage.cache_read), count(usage.cache_write)
        out.append((f"in {count(usage.input)} read {read} write {write} out {count(usage.output)}  ", "muted"))
        bad = not frame.opening and hit is not None and hit < 0.5 and usage.prompt_size > 4_096
        out.append((f"hit {rate(hit)}{frame.glyphs.bad if bad else ''}  ", "bad" if bad else "muted"))
    if head.at is not None and not frame.folded:
        out.append((f"{frame.moment.full(head.at)}  ", "muted"))
    if frame.number:
        out.append((f"#{frame.number:,} ", "faint"))
    return out


def body_line(block: Block, line: int, frame: Frame) -> Line:
    """One line of the text of a message, or a note under it."""
    edge: Run = (frame.glyphs.bar if frame.current else " ", "accent")
    has_text = len(block.ranges) if block.text or not block.notes else 0
    if line < has_text:
        start, end = block.ranges[line]
        kind = block.message.head.kind
        ink = (
            "muted"
            if kind in {"reasoning", "context"} or block.message.head.state in {"rewound", "dead-branch"}
            else ""
        )
        return (edge, ("  ", ""), *runs(block.text, start, end, block.spans, block.marks, ink))
    return (edge, ("  ", ""), *_note(block, line - has_text, frame))


def _note(block: Block, note: int, frame: Frame) -> list[Run]:
    if note < len(block.message.attachments):
        return [("attached: ", "muted"), (clean_line(block.message.attachments[note]), "accent")]
    note -= len(block.message.attachments)
    rule = frame.glyphs.rule * 2
    if block.sent_differs and note == 0:
        if block.sent:
            return [
                (f"{rule} as it was sent; the marked part is not shown to people  ", "notice"),
                ("x", "key"),
                (" back", "muted"),
            ]
        by = (
            f"{abs(block.differs):,} characters {'more' if block.differs > 0 else 'fewer'}"
            if block.differs
            else "same length"
        )
        return [(f"{rule} sent differs from shown ({by})  ", "notice"), ("x", "key"), (" compare", "muted")]
    total = size(block.message.head.size)
    return [
        (f"{rule} piece {block.piece + 1} of about {block.pieces} of {total}  ", "notice"),
        ("m", "key"),
        (" next piece  ", "muted"),
        ("M", "key"),
        (" piece before", "muted"),
    ]


def waiting_line(frame: Frame, width: int) -> Line:
    """Stands for a text that is not read yet."""
    edge: Run = (frame.glyphs.bar if frame.current else " ", "accent")
    return (edge, ("  ", ""), (frame.glyphs.unseen * min(18, max(1, width - 6)), "faint"))


def part_line(part: int, parts: int, kind: str, width: int, glyphs: Glyphs) -> Line:
    """Where the next session of a conversation begins."""
    text = f" part {part} of {parts}" + (f" {glyphs.middot} {kind} " if kind else " ")
    return (
        (" " + glyphs.heavy * 2, "rule"),
        (text, "summary"),
        (glyphs.heavy * max(0, width - width_of(text) - 4), "rule"),
    )


def _cut(line: Line, width: int, ellipsis: str) -> Line:
    out: list[Run] = []
    room = width
    for text, ink in line:
        cells = width_of(text)
        if cells > room:
            out.append((fit(text, room, ellipsis=ellipsis), ink))
            break
        out.append((text, ink))
        room -= cells
    return tuple(out)


@dataclass(slots=True)
class Places:
    """The matches of a find, message by message, as far as the transcript was read."""

    query: str
    items: list[int] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    """Matches in each of these messages."""
    done: bool = False

    @property
    def total(self) -> int:
        """Matches in all."""
        return sum(self.counts.values())
