"""How the stores are, what was found, how the mirror is: as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hermes_tui.library.health import Health, MirrorHealth
from hermes_tui.model import Finding, StoreStatus
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean, clean_line, literal
from hermes_tui.tui.cells import fit, fit_end, width_of, wrap
from hermes_tui.tui.formats import count, counted, size
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run

STATE_INKS: Final = {"ok": "good", "degraded": "warn", "unreadable": "bad", "empty": "muted"}
SEVERITY: Final = {"info": ("i", "muted"), "warn": ("!", "warn"), "error": ("X", "bad")}
NAME: Final = 22


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One line; the cursor may stand on those that say something to copy."""

    line: Line
    finding: Finding | None = None
    stands: bool = False
    store: str | None = None
    """Name of the store it is about."""


def health_lines(health: Health, width: int, glyphs: Glyphs) -> list[HealthLine]:
    """The whole report at a width."""
    out: list[HealthLine] = []
    for status in health.stores:
        out.append(HealthLine(()))
        out += [replace(line, store=status.ref.name) for line in _store(status, width, glyphs)]
    for path in health.missing:
        out.append(
            HealthLine(
                (("  ", ""), (fit(clean_line(path), NAME), "strong"), ("nothing there that is known as a store", "bad"))
            )
        )
    out.append(HealthLine(()))
    out += _mirror(health.mirror, width, glyphs)
    if health.trash.path is not None:
        words = f"{counted(health.trash.sessions, 'deleted session')} can come back, {size(health.trash.bytes)}"
        if health.trash.strangers:
            words += f"; {counted(len(health.trash.strangers), 'file')} there cannot be read"
        out += [replace(line, stands=False) for line in _named("trash", ("", ""), literal(words), width)]
    if health.settings:
        out += [HealthLine(()), HealthLine((("  settings", "title"),))]
        for finding in health.settings:
            out += _finding(finding, width, glyphs)
    return out


def _store(status: StoreStatus, width: int, glyphs: Glyphs) -> list[HealthLine]:
    dot = f" {glyphs.middot} "
    words: list[str] = []
    if status.sessions is not None:
        words.append(counted(status.sessions, "session"))
    if status.origin:
        words.append(f"from {status.origin}")
    if status.lag:
        words.append(f"mirror lags by {count(status.lag)}")
    if status.active_profile:
        words.append("active profile")
    state: Run = (fit(status.state, 12), STATE_INKS[status.state])
    out = [
        *_named(clean_line(status.ref.name), state, literal(dot.join(words)), width),
        HealthLine(
            (("  ", ""), (" " * NAME, ""), (_end_of(status.ref.path, max(8, width - NAME - 4), glyphs), "rule"))
        ),
        *_read_instead(status.fallbacks, width, glyphs),
    ]
    for finding in sorted(status.findings, key=lambda one: ("error", "warn", "info").index(one.severity)):
        out += _finding(finding, width, glyphs)
    return out


def _named(name: str, state: Run, words: CleanText, width: int) -> list[HealthLine]:
    """A store or the mirror with its state, and what there is to say of it in as many lines as that takes."""
    room = max(8, width - NAME - width_of(state[0]) - 3)
    first, *more = [words[start:end] for start, end in wrap(words, room)]
    aside: Run = (" " * (NAME + width_of(state[0])), "")
    return [
        HealthLine((("  ", ""), (fit(name, NAME), "strong"), state, (first, "muted")), stands=True),
        *(HealthLine((("  ", ""), aside, (text, "muted"))) for text in more),
    ]


def _finding(finding: Finding, width: int, glyphs: Glyphs) -> list[HealthLine]:
    sign, ink = SEVERITY[finding.severity]
    number = f" ({count(finding.count)})" if finding.count > 1 else ""
    body = max(20, width - 10)
    out = [
        HealthLine(
            (("      ", ""), (f"{sign} ", ink), (clean_line(finding.code), f"{ink} strong"), (number, "muted")),
            finding,
            stands=True,
        )
    ]
    out += [HealthLine((("        ", ""), (text, "")), finding) for text in _lines(_sentence(finding.detail), body)]
    if finding.advice:
        out += [
            HealthLine((("        ", ""), (text, "good")), finding)
            for text in _lines(f"{glyphs.right} {finding.advice}", body)
        ]
    out += [
        HealthLine((("        ", ""), (_end_of(path, body, glyphs), "rule")), finding) for path in finding.paths[:4]
    ]
    if len(finding.paths) > 4:
        more = f"and {counted(len(finding.paths) - 4, 'more place')}"
        out.append(HealthLine((("        ", ""), (more, "muted")), finding))
    return out


def _lines(text: str, width: int) -> list[str]:
    cleaned = clean(text)
    return [cleaned[start:end] for start, end in wrap(cleaned, width)]


_INSTEAD: Final = {
    "missing": "there is no mirror yet",
    "not-in-mirror": "not in the mirror yet",
    "behind": "grew since it was put into the mirror",
    "changed": "changed since it was put into the mirror",
    "locked": "the mirror was locked",
    "unreadable": "the mirror could not be read",
    "interrupted": "the mirror was interrupted",
}
"""Why logs were read instead of an index, as people say it."""


def _read_instead(fallbacks: Sequence[tuple[str, int]], width: int, glyphs: Glyphs) -> list[HealthLine]:
    """``read from the logs 3 times: not in the mirror yet``."""
    room = max(8, width - NAME - 4)
    words = [
        f"read from the logs {'once' if number == 1 else f'{count(number)} times'}: "
        f"{_INSTEAD.get(reason, clean_line(reason))}"
        for reason, number in fallbacks
        # What is wrong with an agent's own mirror is among the findings below.
        if not reason.startswith("agent-mirror-")
    ]
    return [
        HealthLine((("  ", ""), (" " * NAME, ""), (fit(text, room, ellipsis=glyphs.ellipsis), "muted")))
        for text in words
    ]


def _sentence(text: str) -> str:
    """With a capital letter in front: the reason of a failure stands alone here."""
    return text[:1].upper() + text[1:] if text[:1].islower() and "/" not in text.split(" ", 1)[0] else text


def _end_of(path: str, width: int, glyphs: Glyphs) -> str:
    return fit_end(clean_line(path), width, glyphs.ellipsis)


def _mirror(mirror: MirrorHealth, width: int, glyphs: Glyphs) -> list[HealthLine]:
    if mirror.path is None:
        words = "not built: lists come from the stores"
        return [
            HealthLine(
                (("  ", ""), (fit("mirror", NAME), "strong"), (fit(words, max(8, width - NAME - 4)), "muted")),
                stands=True,
            )
        ]
    dot = f" {glyphs.middot} "
    parts = [
        f"{count(mirror.sessions)} logs in it",
        f"{count(mirror.lag)} not in it yet",
        f"{count(mirror.lead)} gone from disk",
    ]
    if mirror.bytes is not None:
        parts.append(size(mirror.bytes))
    state: Run = ("ok          ", "good") if not mirror.lead else ("leads       ", "bad")
    return [
        *_named("mirror", state, literal(dot.join(parts)), width),
        HealthLine((("  ", ""), (" " * NAME, ""), (_end_of(mirror.path, max(8, width - NAME - 4), glyphs), "rule"))),
        *_read_instead(mirror.fallbacks, width, glyphs),
    ]


def summary(health: Health) -> tuple[Run, ...]:
    """How many stores are well, and how many findings there are."""
    well = sum(status.state in {"ok", "empty"} for status in health.stores)
    findings = [finding for status in health.stores for finding in status.findings]
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = sum(finding.severity == "warn" for finding in findings)
    runs: list[Run] = [
        (f"{well} of {len(health.stores)} stores are well  ", "good" if well == len(health.stores) else "warn")
    ]
    if errors:
        runs.append((f"X {counted(errors, 'error')}  ", "bad"))
    if warnings:
        runs.append((f"! {counted(warnings, 'warning')}  ", "warn"))
    if not findings:
        runs.append(("nothing was found", "muted"))
    return tuple(runs)
