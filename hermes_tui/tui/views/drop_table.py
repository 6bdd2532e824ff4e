"""Drops of the cache as a table, and the curve above it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hermes_tui.library.cache import CachePoint, CacheReport, Drop
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line
from hermes_tui.tui.cells import fit
from hermes_tui.tui.formats import Moment, count, rate, usd
from hermes_tui.tui.glyphs import Glyphs
from hermes_tui.tui.inks import Line, Run
from hermes_tui.tui.views.plot import Curve


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    width: int
    right: bool
    keep: int


_FIELDS: Final = (
    _Field("at", 13, False, 0),
    _Field("session", 12, False, 4),
    _Field("request", 9, True, 4),
    _Field("from", 5, True, 1),
    _Field("to", 5, True, 1),
    _Field("lost", 9, True, 0),
    _Field("cost", 9, True, 2),
    _Field("cause", 16, False, 0),
)
_LEAST_EVIDENCE: Final = 24


def fields_for(width: int, everything: bool) -> tuple[_Field, ...]:
    """The columns that leave the evidence enough room; of one conversation the request, of all the session."""
    known = [one for one in _FIELDS if one.name != ("request" if everything else "session")]
    for most in (4, 3, 2, 1, 0):
        fields = tuple(one for one in known if one.keep <= most)
        if width - 3 - sum(one.width + 1 for one in fields) >= _LEAST_EVIDENCE:
            return fields
    return tuple(one for one in known if not one.keep)


def heading(width: int, everything: bool) -> Line:
    """Names of the columns."""
    fields = fields_for(width, everything)
    names = "".join(_cell(one.name, one) for one in fields)
    return ((fit("  " + names + "evidence", width), "head"),)


def _cell(text: str, field: _Field, ellipsis: str = "…") -> str:
    if field.name == "cause":
        return "  " + fit(text, field.width - 2, ellipsis=ellipsis) + " "
    return fit(text, field.width, "right" if field.right else "left", ellipsis) + " "


def drop_line(drop: Drop, number: int | None, width: int, moment: Moment, glyphs: Glyphs, cursor: bool) -> Line:
    """One drop; ``number`` is the request's place in its conversation, ``None`` where all are shown."""
    fields = fields_for(width, number is None)
    bad = not drop.expected
    values: dict[str, Run] = {
        "at": (moment.full(drop.request.at), "muted"),
        "session": (clean_line(drop.request.session_id), "muted"),
        "request": (f"#{number:,}" if number is not None else "-", "muted"),
        "from": (rate(drop.from_rate), ""),
        "to": (rate(drop.to_rate), "bad" if bad else "muted"),
        "lost": (count(drop.lost_tokens), "strong" if bad else "muted"),
        "cost": (usd(drop.cost_usd) if drop.cost_usd is not None else "?" if bad else "-", "" if bad else "muted"),
        "cause": (drop.cause, "warn" if bad else "muted"),
    }
    runs: list[Run] = [(glyphs.cursor + " " if cursor else "  ", "accent")]
    runs += [(_cell(values[one.name][0], one, glyphs.ellipsis), values[one.name][1]) for one in fields]
    room = max(0, width - 3 - sum(one.width + 1 for one in fields))
    said = clean_line(drop.evidence) or ("expected" if drop.expected else "nothing tells why")
    runs.append((fit(said, room, ellipsis=glyphs.ellipsis), "muted"))
    return tuple(runs)


def curve_of(report: CacheReport, moment: Moment, by_day: bool) -> Curve:
    """Hit rates request by request, or day by day where it is about everything."""
    return _daily(report.points, moment) if by_day else _single(report.points, moment)


def _single(points: Sequence[CachePoint], moment: Moment) -> Curve:
    # They come chain by chain, and calls beside the talk (titles, compactions) are chains of their own.
    points = sorted(points, key=lambda point: point.request.at or 0.0) if all(p.request.at for p in points) else points
    return Curve(
        values=tuple(point.hit_rate for point in points),
        marks=tuple((at, not point.drop.expected) for at, point in enumerate(points) if point.drop is not None),
        first=f"{moment.full(points[0].request.at)}" if points else "",
        last=f"{moment.full(points[-1].request.at)}" if points else "",
    )


def _daily(points: Sequence[CachePoint], moment: Moment) -> Curve:
    read: defaultdict[int, int] = defaultdict(int)
    sent: defaultdict[int, int] = defaultdict(int)
    bad: set[int] = set()
    for point in points:
        if point.request.at is None:
            continue
        day = moment.local(point.request.at).toordinal()
        read[day] += point.request.usage.cache_read
        sent[day] += point.request.usage.prompt_size
        if point.drop is not None and not point.drop.expected:
            bad.add(day)
    if not sent:
        return Curve((), (), "", "")
    first, last = min(sent), max(sent)
    values = tuple(read[day] / sent[day] if sent.get(day) else None for day in range(first, last + 1))
    ats = sorted(point.request.at for point in points if point.request.at is not None)
    return Curve(values, tuple((day - first, True) for day in sorted(bad)), moment.day(ats[0]), moment.day(ats[-1]))
