from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hermes_tui.library.failures import WrongUse
from hermes_tui.library.times import SystemZone, local_zone, parse_time

NOW = 1_772_323_200.0  # 2026-03-01T00:00:00Z
SEOUL = ZoneInfo("Asia/Seoul")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("5h", 18_000), ("30m", 1_800), ("2w", 1_209_600), ("1.5h", 5_400), ("90s", 90)],
)
def test_ages(text: str, seconds: float) -> None:
    assert parse_time(text, NOW, UTC) == NOW - seconds


def test_a_date_is_its_local_midnight() -> None:
    assert parse_time("2026-03-01", NOW, SEOUL) == NOW - 9 * 3_600


def test_moments() -> None:
    assert parse_time("2026-03-01T00:00:00Z", 0, SEOUL) == NOW
    assert parse_time("2026-03-01T09:00:00.000+09:00", 0, UTC) == NOW
    assert parse_time("2026-03-01T09:00:00", 0, SEOUL) == NOW, "without an offset it is local"


@pytest.mark.parametrize(
    "text", ["", "soon", "7", "7y", "-7d", "2026-13-01", "2026-02-30", "0000-00-00", "9" * 40 + "d"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(WrongUse) as failure:
        parse_time(text, NOW, UTC)
    assert failure.value.exit_code == 2


def test_the_zone_by_its_name() -> None:
    zone, name = local_zone({"TZ": "Asia/Seoul"})
    assert name == "Asia/Seoul"
    assert datetime.fromtimestamp(NOW, zone).hour == 9


def test_a_zone_by_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "<+0930>-9:30")
    time.tzset()
    zone, name = local_zone()
    assert isinstance(zone, SystemZone)
    assert name == "<+0930>-9:30"
    moment = datetime.fromtimestamp(NOW, zone)
    assert moment.utcoffset() == timedelta(hours=9, minutes=30)
    assert parse_time("2026-03-01", NOW, zone) == NOW - 9.5 * 3_600
