"""Sums that the index keeps give the same totals as the requests they were made of, whatever is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.mirror.codec import dump_card, dump_requests, load_summary
from hermes_tui.model import CacheEvent, CostGrouping, Request, SessionId, SessionRow, StoreRef, Usage, UsageReport
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.stores import request_rows
from hermes_tui.stores.kept_requests import KeptRequests
from hermes_tui.stores.log_source import LogSummary
from hermes_tui.stores.log_usage import UsageLedger
from hermes_tui.stores.logs import with_requests
from hermes_tui.stores.request_rows import RequestRows
from hermes_tui.text import RawText

REF = StoreRef("codex", "/home/ana/.codex", "codex")
ID = SessionId("s1")
ROW = SessionRow(
    store=REF, id=ID, root_id=ID, tip_id=ID, started_at=1_800_000_000.0, cwd=RawText("/a"), message_count=1
)
GROUPINGS: tuple[CostGrouping, ...] = (
    "model",
    "task",
    "day",
    "source",
    "cwd",
    "channel",
    "provider",
    "session",
    "store",
)
ZONES: tuple[tzinfo, ...] = (UTC, ZoneInfo("Asia/Kathmandu"), ZoneInfo("Europe/Berlin"), timezone(timedelta(minutes=7)))

words = st.sampled_from([None, RawText("a"), RawText("b")])
counts = st.integers(0, 400_000)
times = st.none() | st.integers(1_790_000_000, 1_790_200_000).map(float)
requests = st.builds(
    Request,
    session_id=st.just(ID),
    chain=st.sampled_from(["s1", "s1/x"]),
    request_id=st.none() | st.text(max_size=4),
    message_id=st.none() | st.text(max_size=4),
    at=times,
    model=words,
    provider=words,
    usage=st.builds(Usage, counts, counts, counts, counts, counts),
    write_1h=counts,
    reports_writes=st.booleans(),
    task=st.sampled_from(["", "title"]),
    events=st.lists(st.builds(CacheEvent, st.just("rewind"), st.text(max_size=5).map(RawText)), max_size=2).map(tuple),
    source=words,
    cwd=words,
    session_key=words,
)


def report(
    requests: object, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
) -> UsageReport:
    ledger = UsageLedger(grouping, since, until, zone)
    ledger.add(ROW, requests, lambda: ROW)  # type: ignore[arg-type]
    return ledger.report()


def as_set(found: UsageReport) -> tuple[object, ...]:
    sums = {(part.key, replace(part.spend)) for part in found.sums}
    assert len(sums) == len(found.sums)
    return sums, found.sessions, found.distinct


@settings(max_examples=60, deadline=None)
@given(
    st.lists(requests, max_size=12).map(tuple),
    st.sampled_from(GROUPINGS),
    times,
    times,
    st.sampled_from(ZONES),
)
def test_sums_are_those_of_the_requests(
    made: tuple[Request, ...], grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
) -> None:
    summary = LogSummary(ROW, made, (), (), made[:2])
    kept = load_summary(dump_card(summary), dump_requests(summary), REF)
    assert tuple(kept.requests) == made
    assert kept.apart == made[:2]
    assert as_set(report(kept.requests, grouping, since, until, zone)) == as_set(
        report(made, grouping, since, until, zone)
    )
    assert with_requests(kept) == replace(with_requests(summary), origin="mirror")


@given(st.lists(requests, min_size=1, max_size=8).map(tuple), times.filter(lambda at: at is not None))
def test_logs_that_are_passed_over_hold_nothing_newer(made: tuple[Request, ...], since: float) -> None:
    summary = LogSummary(ROW, made, (), ())
    kept = load_summary(dump_card(summary), dump_requests(summary), REF).requests
    assert isinstance(kept, KeptRequests)
    if kept.none_since(since):
        assert not [request for request in made if request.at is not None and request.at >= since]


def test_slices_and_lengths_are_those_of_a_tuple() -> None:
    one = Request(ID, "s1", "r", "m", 1_790_000_000.0, None, None, Usage(1, 2, 3, 4, 1))
    made = (one, replace(one, at=1_790_000_001.0), replace(one, at=None))
    summary = LogSummary(ROW, made, (), ())
    kept = load_summary(dump_card(summary), dump_requests(summary), REF).requests
    assert (len(kept), kept[0], kept[-2:], list(kept)) == (3, one, made[-2:], list(made))
    with pytest.raises(IndexError):
        kept[3]


rows = st.lists(
    st.tuples(
        times,
        words,
        words,
        st.tuples(counts, counts, counts, counts, counts),
        st.lists(st.tuples(st.just("rewind"), st.text(max_size=5)), max_size=2),
        words,
        words,
    ),
    max_size=12,
)


@given(rows, st.integers(1, 9))
def test_requests_in_columns_are_the_same(rows: list[tuple[Any, ...]], chunk: int) -> None:
    """What is kept of them, what they sum up to, and what they are, also when they were put away between."""
    with patch.object(request_rows, "CHUNK_ROWS", chunk):
        kept = RequestRows()
        for number, (at, model, provider, usage, events, source, cwd) in enumerate(rows):
            if number % 5 == 4:
                kept = RequestRows.restore(load_json(dump_json(kept.dump(sums=number % 2 == 0))))
            kept.add(ID, f"r{number}", None, at, model, provider, usage, events, source, cwd)
    made = tuple(kept)
    assert [request.usage for request in made] == [Usage(*row[3]) for row in rows]
    assert [(request.at, request.model, request.cwd) for request in made] == [(row[0], row[1], row[6]) for row in rows]
    assert list(kept.request_ids) == [request.request_id for request in made]
    for begin, end, step in ((1, 3, 1), (-2, None, 1), (0, 20, 2), (5, 2, 1), (None, None, -1), (8, 99, 3)):
        assert made[begin:end:step] == kept[begin:end:step]
    assert [kept[place] for place in range(-len(made), len(made))] == [*made, *made]
    assert kept == kept.copy() == made
    one, other = (LogSummary(ROW, some, (), ()) for some in (kept, made))
    assert list(load_summary(dump_card(one), dump_requests(one), REF).requests) == list(made)
    assert dump_card(one) == dump_card(other)
    assert with_requests(one) == with_requests(other)
