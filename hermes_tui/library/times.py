"""Times as people write them, and the local time zone."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from hermes_tui.library.failures import WrongUse

UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*([smhdw])")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
LOCALTIME: Final = "/etc/localtime"


class SystemZone(tzinfo):
    """The C library's idea of local time, for TZ values that name no IANA zone (``EST5EDT,M3…``, ``<+09>-9``)."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(seconds=self._local(moment).tm_gmtoff)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1 if self._local(moment).tm_isdst > 0 else 0)

    def tzname(self, moment: datetime | None) -> str:
        return self._local(moment).tm_zone

    def fromutc(self, moment: datetime) -> datetime:
        local = time.localtime(moment.replace(tzinfo=UTC).timestamp())
        return (moment + timedelta(seconds=local.tm_gmtoff)).replace(tzinfo=self)

    def _local(self, moment: datetime | None) -> time.struct_time:
        if moment is None:
            return time.localtime()
        try:
            return time.localtime(time.mktime(moment.replace(tzinfo=None).timetuple()))
        except (OverflowError, ValueError, OSError):
            return time.localtime(0)


def local_zone(environ: Mapping[str, str] | None = None) -> tuple[tzinfo, str]:
    """The local time zone and its name: TZ, else what the system is set to."""
    variables = os.environ if environ is None else environ
    name = variables.get("TZ", "").removeprefix(":") or _system_zone_name()
    if not name:
        return SystemZone(), time.tzname[0]
    # Imported late: 6 ms that only days and dates need.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name), name
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return SystemZone(), name


def _system_zone_name() -> str:
    """The IANA name behind /etc/localtime; '' where it is no link."""
    try:
        target = os.readlink(LOCALTIME)  # noqa: PTH115  the text of the link is wanted, not a path
    except OSError:
        return ""
    _, found, name = target.partition("zoneinfo/")
    return name.removeprefix("posix/") if found else ""


def parse_time(text: str, now: float, zone: tzinfo) -> float:
    """A TIME of the command line (contract.md): RFC 3339, a local date (its midnight), or an age such as ``7d``.

    Raises:
        WrongUse: it is none of these.
    """
    word = text.strip()
    if (seconds := age_seconds(word)) is not None:
        return now - seconds
    try:
        if _DATE.fullmatch(word):
            day = date.fromisoformat(word)
            return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()
        moment = datetime.fromisoformat(word)
    except (ValueError, OverflowError) as error:
        raise WrongUse(
            f"{text!r} is no time ({error})",
            "Write a date (2026-03-01), a moment (2026-03-01T10:00:00Z) or an age (7d, 5h, 30m, 2w).",
        ) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()


def first_instant(moment: float) -> float:
    """The earliest time that is printed as this one: times are printed in whole milliseconds (contract.md)."""
    # datetime rounds to microseconds before it is cut to milliseconds.
    return moment - 0.000_000_5


def last_instant(moment: float) -> float:
    """The latest time that is printed as this one."""
    return moment + 0.000_999_4


def age_seconds(text: str) -> float | None:
    """``7d``, ``5h``, ``30m``, ``2w`` in seconds; ``None`` where it is no age."""
    match = _AGE.fullmatch(text.strip())
    return float(match[1]) * UNITS[match[2]] if match else None
