"""What a change would do and what it did, as lines: who goes, who stays and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from hermes_tui.library.cleanup import ChangePlan, ChangeResult
from hermes_tui.stores.changing import REASONS, Going, Kept
from hermes_tui.text import clean, clean_line
from hermes_tui.tui.cells import fit, wrap
from hermes_tui.tui.formats import Moment, count, counted, size
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line

VERBS: Final[dict[str, tuple[str, str]]] = {
    "rename": ("Rename", "renamed"),
    "archive": ("Archive", "archived"),
    "unarchive": ("Take out of the archive", "taken out of the archive"),
    "end": ("End", "ended"),
    "delete": ("Delete", "deleted"),
    "clear": ("Clear", "cleared"),
    "prune": ("Prune", "deleted"),
    "restore": ("Restore", "restored"),
}
CAUSES: Final = {
    "asked": "",
    "conversation": "part of the conversation",
    "delegated": "delegated run",
    "old": "",
}
MOST_NAMED: Final = 8
"""Sessions named one by one; the others are counted."""
LOSING: Final = frozenset({"delete", "clear", "prune"})
"""Changes that take something away."""


def plan_lines(plan: ChangePlan, width: int, moment: Moment, glyphs: Glyphs) -> list[Line]:
    """What would happen."""
    _verb, done = VERBS[plan.verb]
    going = plan.going
    lines: list[Line] = []
    if going:
        sessions = counted(len(going), "session")
        loses = f" with {counted(plan.messages, 'message')}" if plan.verb in LOSING else ""
        lines.append(((f"{sessions}{loses} would be {done}", "strong"),))
        if plan.bytes_reclaimable:
            lines.append(((f"about {size(plan.bytes_reclaimable)} become free in the store", "muted"),))
        lines.append(())
        lines += [_going(one, width, glyphs, losing=plan.verb in LOSING) for one in going[:MOST_NAMED]]
        if len(going) > MOST_NAMED:
            lines.append(((f"  and {len(going) - MOST_NAMED:,} more", "muted"),))
    else:
        lines.append((("Nothing would change.", "strong"),))
    if plan.ending:
        lines += [(), ((f"{counted(len(plan.ending), 'idle session')} would be ended and stay", ""),)]
    lines += _kept(plan.kept, plan.summary, width, moment, glyphs)
    for note in plan.notes:
        lines += [(), *_text(note, width, "notice")]
    for warning in plan.warnings:
        lines += [(), *_text(f"{glyphs.bad} {warning}", width, "warn")]
    if going and plan.verb in LOSING:
        lines += [(), *_text("It goes into the trash first and can be brought back for 30 days: U.", width, "good")]
    return lines


def _going(one: Going, width: int, glyphs: Glyphs, *, losing: bool) -> Line:
    cause = CAUSES[one.cause]
    more: list[str] = [counted(one.messages, "message")] if losing else []
    if cause:
        more.append(cause)
    if one.orphaned:
        more.append(counted(len(one.orphaned), "child becomes a root", "children become roots"))
    tail = f"  {', '.join(more)}" if more else ""
    name = clean_line(one.title) if one.title else clean_line(one.id)
    return (
        ("  ", ""),
        (fit(name, max(8, width - len(tail) - 3), ellipsis=glyphs.ellipsis), ""),
        (tail, "muted"),
    )


def _kept(kept: Sequence[Kept], summary: dict[str, int], width: int, moment: Moment, glyphs: Glyphs) -> list[Line]:
    if not kept:
        return []
    lines: list[Line] = [(), ((counted(len(kept), "stays as it is", "stay as they are"), "strong"),), ()]
    for reason, number in summary.items():
        text = REASONS.get(reason, reason)
        ranges = wrap(text, max(16, width - 12))
        for at, (start, end) in enumerate(ranges):
            lines.append((("  ", ""), (f"{number:>6,}   " if at == 0 else " " * 9, "muted"), (text[start:end], "")))
    if len(kept) <= 3:
        for one in kept:
            name = clean_line(one.title) if one.title else clean_line(one.id)
            lines.append(
                (
                    (" " * 11, ""),
                    (
                        fit(
                            f"{name}, last {moment.full(one.last_active)}", max(8, width - 12), ellipsis=glyphs.ellipsis
                        ),
                        "muted",
                    ),
                )
            )
    return lines


def result_lines(result: ChangeResult, verb: str, width: int, glyphs: Glyphs) -> list[Line]:
    """What happened."""
    done = VERBS[verb][1]
    number = len(result.done)
    sessions = f"{counted(number, 'session')} {done}"
    lines: list[Line] = [((sessions, "good strong" if number else "warn strong"),)]
    if result.ended:
        lines.append(((f"{count(len(result.ended))} ended and kept", ""),))
    if result.retries:
        lines.append(
            ((f"the store was busy: {count(result.retries)} tries more, {result.waited_s:.1f} s waited", "muted"),)
        )
    reasons = Counter(one.reason for one in result.kept)
    for reason, kept in reasons.most_common():
        lines += _text(f"{kept:,} kept, each because: {REASONS.get(reason, reason)}", width, "warn")
    for failure in result.failures:
        lines += _text(f"{glyphs.bad} {failure}", width, "bad")
    return lines


def result_words(result: ChangeResult, verb: str) -> str:
    """The same in a sentence, for a toast."""
    number = len(result.done)
    words = f"{counted(number, 'session')} {VERBS[verb][1]}."
    if verb in LOSING and number:
        words += f" U brings {'it' if number == 1 else 'them'} back."
    return words


def _text(text: str, width: int, ink: str) -> list[Line]:
    cleaned = clean(text)
    return [((cleaned[start:end], ink),) for start, end in wrap(cleaned, width)]
