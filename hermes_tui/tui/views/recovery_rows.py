"""The record beside the recovery: what survives, what a compaction dropped, what is sent again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from hermes_tui.library.transcript import is_shown
from hermes_tui.model import Message, MessageHead, PowerCut, Recovery, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line, literal
from hermes_tui.tui.cells import fit
from hermes_tui.tui.formats import Moment, count, counted, tokens
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run, clip
from hermes_tui.tui.views.blocks import KIND_INKS

Shown = Literal["both", "record", "recovery"]
KIND: Final = 11
LABEL: Final = 8
NO_TEXTS: Final[Mapping[tuple[str, int], str]] = {}
CHARACTERS_A_TOKEN: Final = 4
"""A rule of thumb, said as "about"."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One row: an entry of the record, a message of the recovery, or both where they are the same."""

    number: int
    """1-based place in the record; 0 for what only the recovery has."""
    head: MessageHead | None
    message: Message | None


def pairs(
    heads: Sequence[MessageHead],
    recovery: Recovery,
    cut: PowerCut | None,
    prompts: Mapping[tuple[str, int], str] = NO_TEXTS,
) -> list[Pair]:
    """Both lists in one order: the record's, with what only the recovery has where it stands there.

    A compaction stores the prompts it keeps once more, under ids of its own: they are told by their text.
    """
    record = [(number, head) for number, head in enumerate(heads, 1) if is_shown(head, True)]
    places = {(head.id, head.part): at for at, (_, head) in enumerate(record)}
    out: list[Pair] = []
    at = 0
    for message in recovery.messages:
        place = places.get((message.head.id, message.head.part))
        if place is None and message.head.kind == "prompt":
            same = (
                n for n in range(at, len(record)) if prompts.get((record[n][1].id, record[n][1].part)) == message.text
            )
            place = next(same, None)
        if place is not None and place >= at:
            out += [Pair(number, head, None) for number, head in record[at:place]]
            number, head = record[place]
            out.append(Pair(number, head, message))
            at = place + 1
        else:
            out.append(Pair(0, None, message))
    out += [Pair(number, head, None) for number, head in record[at:]]
    return [pair for pair in out if not _cut_away(pair, cut)]


def _cut_away(pair: Pair, cut: PowerCut | None) -> bool:
    head = pair.head
    return (
        cut is not None and pair.message is None and head is not None and head.line is not None and head.line > cut.line
    )


def filtered(rows: Sequence[Pair], shown: Shown) -> list[Pair]:
    """The rows of one side, or all."""
    if shown == "record":
        return [row for row in rows if row.head is not None]
    if shown == "recovery":
        return [row for row in rows if row.message is not None]
    return list(rows)


def headings(record: int, recovery: Recovery, shown: Shown, width: int, glyphs: Glyphs) -> Line:
    """How many messages each side has."""
    characters = sum(len(message.sent_text or message.text or "") for message in recovery.messages)
    size = tokens(characters // CHARACTERS_A_TOKEN)
    left = f" record {counted(record, 'message')}"
    right = f" recovery {counted(len(recovery.messages), 'message')}, about {size} tokens"
    if shown == "record":
        return ((fit(left, width), "head"),)
    if shown == "recovery":
        return ((fit(right, width), "head"),)
    half = (width - 1) // 2
    return ((fit(left, half), "head"), (glyphs.column, "rule"), (fit(right, width - half - 1), "head"))


def pair_line(pair: Pair, peek: CleanText | None, shown: Shown, width: int, glyphs: Glyphs, cursor: bool) -> Line:
    """One row."""
    edge: Run = (glyphs.cursor if cursor else " ", "accent")
    if shown == "record":
        return clip((edge, *_record(pair, peek)), width, glyphs.ellipsis)
    if shown == "recovery":
        return clip((edge, *_recovered(pair)), width, glyphs.ellipsis)
    half = (width - 1) // 2
    dropped = pair.head is not None and pair.message is None
    label: tuple[Run, ...] = ((fit("dropped", LABEL, "right") + " ", "warn"),) if dropped else ()
    room = max(0, half - (LABEL + 1 if dropped else 0))
    left = (*clip((edge, *_record(pair, peek)), room, glyphs.ellipsis), *label)
    right = clip(_recovered(pair), width - half - 1, glyphs.ellipsis)
    return (*left, (glyphs.column, "rule"), *right)


def _record(pair: Pair, peek: CleanText | None) -> tuple[Run, ...]:
    if pair.head is None:
        return ()
    head = pair.head
    dropped = pair.message is None
    name = clean_line(head.tool_name) + "  " if head.tool_name else ""
    return (
        (f"{f'#{pair.number:,}':<7}", "faint"),
        (f"{head.kind:<{KIND}} ", "muted" if dropped else KIND_INKS[head.kind]),
        (name, "tool"),
        (peek if peek is not None else literal(""), "muted" if dropped else ""),
    )


def _recovered(pair: Pair) -> tuple[Run, ...]:
    message = pair.message
    if message is None:
        return ()
    kind = message.head.kind
    label = "kept" if pair.head is not None else kind
    name = clean_line(message.head.tool_name) + "  " if message.head.tool_name else ""
    ink = "good" if pair.head is not None else KIND_INKS[kind]
    return ((f" {label:<{KIND}} ", ink), (name, "tool"), (clean_line((message.text or "")[:300]), ""))


def facts(recovery: Recovery, cut: PowerCut | None) -> tuple[Run, ...]:
    """Where the log ends, what the recovery starts from, what the next request is compared with."""
    at = "end of log" if cut is None else f"line {count(cut.line)}"
    if recovery.base_kind == "start":
        base = "the start"
    else:
        base = "a compaction" + (f", line {count(recovery.base_line)}" if recovery.base_line is not None else "")
    baseline = (
        "none, the context is sent again" if recovery.baseline is None else f"kept ({len(recovery.baseline)} settings)"
    )
    runs: list[Run] = [("cut: ", "muted"), (at, "warn" if cut is not None else "")]
    runs += [("   base: ", "muted"), (base, ""), ("   baseline: ", "muted"), (baseline, "")]
    if recovery.window is not None:
        runs += [("   window ", "muted"), (count(recovery.window), "")]
    if recovery.ignored:
        runs += [
            ("   ", ""),
            (f"{len(recovery.ignored):,} records passed over", "warn"),
            ("  i", "key"),
            (" shows", "muted"),
        ]
    return tuple(runs)


def list_words(row: SessionRow, moment: Moment, glyphs: Glyphs) -> Line:
    """The list row as it would be after this cut."""
    dot = f" {glyphs.middot} "
    title = clean_line(row.title) if row.title else literal(f"(untitled) {clean_line(row.preview or '')}")
    words = [
        clean_line(row.model) if row.model else "",
        counted(row.message_count, "message") if row.message_count is not None else "",
        f"last {moment.full(row.last_active_at)}",
    ]
    return ((" in the list: ", "muted"), (title, "title"), (dot + dot.join(word for word in words if word), "muted"))
