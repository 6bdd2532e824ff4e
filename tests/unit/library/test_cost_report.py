from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.library.cost import cost_report
from hermes_tui.model import CostGrouping, Spend, Usage
from hermes_tui.text import RawText
from tests.unit.library.fake_store import MemoryStore, session, store_named
from tests.unit.library.test_ids import library_of

GROUPINGS: list[CostGrouping] = [
    "model", "task", "day", "source", "cwd", "store", "profile", "channel", "provider", "session",
]  # fmt: skip


def spend(model: str, usd: float | None, status: str | None, task: str = "", size: int = 10, at: float = 0.0) -> Spend:
    usage = Usage(size, 1, 2, 3, 1)
    return Spend(RawText(model), RawText("p"), usage, 1, task, cost_usd=usd, cost_status=status, last_at=at)  # type: ignore[arg-type]


def two_stores() -> tuple[MemoryStore, MemoryStore]:
    one, other = store_named("hermes/default"), store_named("codex")
    session(one, "a", source="cli", spend=(spend("nimbus", 1.0, "estimated"), spend("mini", None, None, "vision")))
    session(one, "b", source="cli", spend=(spend("nimbus", 0.5, "actual"),))
    session(other, "a", source="exec", cwd="/x", spend=(spend("nimbus", 2.0, "estimated"),))
    return one, other


def test_by_model_over_stores() -> None:
    report = cost_report(library_of(*two_stores()), "model", zone=UTC)
    nimbus, mini = report.rows
    assert (nimbus.key, nimbus.sessions, nimbus.requests, nimbus.cost.usd, nimbus.cost.status) == (
        "nimbus", 3, 3, 3.5, "mixed",
    )  # fmt: skip
    assert (mini.key, mini.cost.usd, mini.cost.status, mini.priced_by) == ("mini", None, "unknown", None)
    assert (report.totals.cost.usd, report.totals.cost.status, report.totals.priced_by) == (3.5, "mixed", "store")
    assert dict(report.totals.parts) == {"actual": 0.5, "estimated": 3.0, "unknown": None}
    assert report.totals.usage == Usage(40, 4, 8, 12, 4)


def test_the_main_task_has_a_name() -> None:
    report = cost_report(library_of(*two_stores()), "task", zone=UTC)
    assert {row.key for row in report.rows} == {"main", "vision"}


def test_by_store_and_by_profile() -> None:
    report = cost_report(library_of(*two_stores()), "store", zone=UTC)
    assert {(row.key, row.sessions) for row in report.rows} == {("hermes/default", 2), ("codex", 1)}
    assert report.totals.sessions == 3
    assert [row.key for row in cost_report(library_of(*two_stores()), "profile", zone=UTC).rows] == [None]


def test_sessions_of_two_stores_with_one_id_stay_apart() -> None:
    report = cost_report(library_of(*two_stores()), "session", zone=UTC)
    assert {(row.store, row.key) for row in report.rows} == {
        ("hermes/default", "a"), ("hermes/default", "b"), ("codex", "a"),
    }  # fmt: skip


def test_days_are_local_and_newest_first() -> None:
    store = store_named("codex")
    session(
        store, "a", spend=(spend("m", 1.0, "actual", at=1_772_323_200.0), spend("m", 1.0, "actual", at=1_772_236_800.0))
    )
    session(store, "b", spend=(spend("m", 9.0, "actual", at=1_772_290_000.0),))
    report = cost_report(library_of(store), "day", zone=ZoneInfo("Asia/Seoul"), zone_name="Asia/Seoul")
    assert [row.key for row in report.rows] == ["2026-03-01", "2026-02-28"]
    assert report.zone_name == "Asia/Seoul"


def test_a_broken_store_is_named_and_the_rest_counted() -> None:
    one, _ = two_stores()
    report = cost_report(library_of(store_named("claude", broken=True), one), "model", zone=UTC)
    assert report.totals.requests == 3
    assert [failure.ref.name for failure in report.failures] == ["claude"]


def test_one_folder_only() -> None:
    report = cost_report(library_of(*two_stores()), "source", zone=UTC, here="/x")
    assert [(row.key, row.sessions, row.cost.usd) for row in report.rows] == [("exec", 1, 2.0)]
    assert report.totals.sessions == 1


spends = st.builds(
    spend,
    st.sampled_from(["a", "b"]),
    st.one_of(st.none(), st.floats(0, 10)),
    st.sampled_from([None, "actual", "estimated", "included", "unknown"]),
    st.sampled_from(["", "vision"]),
    st.integers(0, 10**12),
    st.floats(0, 2e9),
)
sessions = st.lists(st.tuples(st.sampled_from(["cli", "cron"]), st.lists(spends, max_size=3)), max_size=4)


@given(sessions, sessions)
@settings(max_examples=40, deadline=None)
def test_totals_are_the_same_at_every_grouping_and_the_rows_add_up_to_them(
    one: list[tuple[str, list[Spend]]], other: list[tuple[str, list[Spend]]]
) -> None:
    stores = (store_named("hermes/default"), store_named("codex"))
    for store, drawn in zip(stores, (one, other), strict=True):
        for number, (source, parts) in enumerate(drawn):
            session(store, f"s{number}", source=source, spend=tuple(parts))
    library = library_of(*stores)
    reports = [cost_report(library, grouping, zone=UTC) for grouping in GROUPINGS]
    for report in reports:
        assert report.totals.usage == reports[0].totals.usage
        assert report.totals.requests == reports[0].totals.requests
        assert report.totals.cost.status == reports[0].totals.cost.status
        total = Usage()
        for row in report.rows:
            total += row.usage
        assert total == report.totals.usage
        known = [row.cost.usd for row in report.rows if row.cost.usd is not None]
        if report.totals.cost.usd is None:
            assert not known
        else:
            assert sum(known) == pytest.approx(report.totals.cost.usd)
