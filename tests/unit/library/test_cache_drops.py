from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library.cache import Judge, cache_report, expected_tokens, shown_seconds, worst
from hermes_tui.library.prices import PriceTable
from hermes_tui.model import CacheEvent, Request, SessionId, StoreRef, Usage
from hermes_tui.settings import OwnPrice
from hermes_tui.text import RawText
from tests.unit.library.fake_store import store_named
from tests.unit.library.test_ids import library_of

REF = StoreRef("claude", "claude", "/c")


def request(
    number: int, read: int, write: int = 0, plain: int = 10, at: float | None = None, **more: object
) -> Request:
    return Request(
        session_id=SessionId("s"), chain="s", request_id=f"r{number}", message_id=f"m{number}",
        at=float(number * 10) if at is None else at, model=RawText("big"), provider=RawText("anthropic"),
        usage=Usage(plain, 5, read, write), reports_writes=True, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def judge() -> Judge:
    return Judge(1_024, 0.5, PriceTable([OwnPrice("big", None, 3.0, 15.0, 0.3, 3.75, 6.0)]))


def causes(*requests: Request) -> list[str | None]:
    one = judge()
    drops = [one.judged(REF, each) for each in requests]
    return [None if drop is None else drop.cause for drop in drops]


def test_a_warm_chain_has_no_drop_after_its_cold_start() -> None:
    assert causes(request(1, 0, 5_000), request(2, 5_000, 200), request(3, 5_200, 100)) == ["first-request", None, None]


def test_a_first_request_that_finds_the_cache_warm_is_no_drop() -> None:
    assert causes(request(1, 5_000, 100)) == [None]


def test_a_short_first_request_is_no_drop() -> None:
    assert causes(request(1, 0, 900)) == [None]


def test_the_numbers_of_an_unexplained_drop() -> None:
    one = judge()
    one.judged(REF, request(1, 0, 5_000))
    drop = one.judged(REF, request(2, 0, 6_000))
    assert drop is not None
    assert (drop.expected_tokens, drop.read_tokens, drop.lost_tokens) == (5_000, 0, 5_000)
    assert (drop.from_rate, drop.to_rate) == (0.0, 0.0)
    assert (drop.cause, drop.expected) == ("unknown", False)
    assert drop.cost_usd == pytest.approx(5_000 * (3.75 - 0.3) / 1e6)


def test_expected_is_never_more_than_this_prompt() -> None:
    assert expected_tokens(request(1, 90_000, 10_000), request(2, 0, 3_000, 10)) == 3_010


def test_without_writes_the_previous_prompt_is_what_could_be_read() -> None:
    before = replace(request(1, 1_000, 0, 4_000), reports_writes=False)
    assert expected_tokens(before, request(2, 0, 0, 9_000)) == 5_000


@pytest.mark.parametrize(("lost", "is_drop"), [(1_023, False), (1_024, True)])
def test_the_least_loss(lost: int, is_drop: bool) -> None:
    assert (causes(request(1, 0, 1_500), request(2, 1_500 - lost, 1_500))[1] is not None) == is_drop


@pytest.mark.parametrize(("read", "is_drop"), [(5_000, True), (5_001, False)])
def test_at_least_half_of_what_was_expected(read: int, is_drop: bool) -> None:
    assert (causes(request(1, 0, 10_000), request(2, read, 5_000))[1] is not None) == is_drop


def test_idle_longer_than_five_minutes() -> None:
    assert causes(request(1, 0, 5_000, at=0.0), request(2, 0, 5_000, at=300.0))[1] == "unknown"
    one = judge()
    one.judged(REF, request(1, 0, 5_000, at=0.0))
    drop = one.judged(REF, request(2, 0, 5_000, at=432.0))
    assert drop is not None
    assert (drop.cause, drop.evidence) == ("expired", "idle 7 min 12 s, lifetime 5 min")


def test_a_write_for_an_hour_lives_an_hour_through_reads() -> None:
    start = request(1, 0, 5_000, at=0.0, write_1h=5_000)
    reading = request(2, 5_000, 0, at=3_000.0)
    assert causes(start, reading, request(3, 0, 5_100, at=3_900.0))[2] == "unknown"
    assert causes(start, reading, request(3, 0, 5_100, at=6_700.0))[2] == "expired"


def test_another_model() -> None:
    assert causes(request(1, 0, 5_000), replace(request(2, 0, 5_000), model=RawText("small")))[1] == "model-change"


@pytest.mark.parametrize("cause", ["compaction", "rewind", "fork", "context-change", "logged-reason"])
def test_what_the_store_saw(cause: str) -> None:
    event = CacheEvent(cause, RawText(f"saw {cause}"))  # type: ignore[arg-type]
    one = judge()
    one.judged(REF, request(1, 0, 5_000))
    drop = one.judged(REF, request(2, 0, 5_000, events=(event,)))
    assert drop is not None
    assert (drop.cause, drop.evidence) == (cause, f"saw {cause}")
    assert drop.expected == (cause in ("compaction", "fork"))


def test_what_is_by_design_is_named_before_what_came_with_it() -> None:
    events = (CacheEvent("context-change", RawText("x")), CacheEvent("compaction", RawText("y")))
    assert causes(request(1, 0, 5_000), request(2, 0, 5_000, at=9_999.0, events=events))[1] == "compaction"


def test_the_start_of_a_fork_is_no_bad_drop() -> None:
    assert causes(request(1, 0, 5_000, events=(CacheEvent("fork", RawText("of a")),)))[0] == "fork"


def test_chains_do_not_mix() -> None:
    one = judge()
    one.judged(REF, request(1, 0, 5_000))
    sub_agent = replace(request(2, 0, 500), chain="s agent")
    assert one.judged(REF, sub_agent) is None
    assert one.judged(REF, request(3, 5_000, 100)) is None


def test_a_request_that_sent_nothing_is_passed_over() -> None:
    assert causes(request(1, 0, 5_000), request(2, 0, 0, 0), request(3, 5_000, 100)) == ["first-request", None, None]


def sums(number: int, plain: int, read: int, calls: int, **more: object) -> Request:
    return replace(request(number, read, 0, plain), request_id=None, calls=calls, reports_writes=False, **more)  # type: ignore[arg-type]


def test_rows_of_sums_are_judged_by_their_rates() -> None:
    one = judge()
    assert one.judged(REF, sums(1, 8_000, 92_000, 5)) is None
    compaction = (CacheEvent("compaction", RawText("a was compacted into b")),)
    assert one.judged(REF, sums(2, 10_000, 90_000, 5, events=compaction)) is None
    drop = one.judged(REF, sums(3, 92_000, 8_000, 5, events=compaction))
    assert drop is not None
    assert (drop.expected_tokens, drop.lost_tokens, drop.from_rate, drop.to_rate) == (90_000, 82_000, 0.9, 0.08)
    assert (drop.cause, drop.expected) == ("unknown", False)
    assert drop.evidence.startswith("a was compacted into b, which explains one call of 5")


def test_a_compaction_explains_the_one_call_it_costs() -> None:
    one = judge()
    one.judged(REF, sums(1, 1_000, 9_000, 2))
    drop = one.judged(REF, sums(2, 5_200, 4_800, 2, events=(CacheEvent("compaction", RawText("c")),)))
    assert drop is None, "4,200 of 9,000 expected is less than half"
    drop = one.judged(REF, sums(3, 9_900, 100, 1, events=(CacheEvent("compaction", RawText("c")),)))
    assert drop is not None
    assert drop.cause == "compaction"


def test_the_share_of_unknown_causes_and_the_worst_drops() -> None:
    store = store_named("claude")
    store.all_requests = [
        request(1, 0, 5_000),
        request(2, 0, 6_000),
        request(3, 6_000, 100),
        request(4, 0, 9_000, at=9_999.0),
    ]
    report = cache_report(library_of(store))
    assert [drop.cause for drop in report.drops] == ["first-request", "unknown", "expired"]
    assert report.unknown_share == 0.5
    assert len(report.points) == 4
    assert [drop.lost_tokens for drop in worst(report.drops, 1)] == [6_100]
    later = cache_report(library_of(store), since=9_000.0)
    assert [point.request.request_id for point in later.points] == ["r4"]
    assert later.drops[0].cause == "expired", "what came before is known though it is not shown"


def test_a_store_that_fails_is_named_and_the_others_answer() -> None:
    whole = store_named("claude")
    whole.all_requests = [request(1, 0, 5_000)]
    report = cache_report(library_of(store_named("hermes/default", broken=True), whole))
    assert len(report.points) == 1
    assert [failure.ref.name for failure in report.failures] == ["hermes/default"]


usages = st.builds(Usage, st.integers(0, 20_000), st.just(1), st.integers(0, 20_000), st.integers(0, 20_000))


@given(st.lists(st.tuples(usages, st.booleans(), st.integers(1, 3)), max_size=12))
def test_every_drop_keeps_the_rules(parts: list[tuple[Usage, bool, int]]) -> None:
    one = judge()
    for number, (usage, writes, calls) in enumerate(parts):
        each = replace(request(number, 0), usage=usage, reports_writes=writes, calls=calls)
        drop = one.judged(REF, each)
        if drop is None:
            continue
        assert drop.lost_tokens == drop.expected_tokens - drop.read_tokens
        assert drop.lost_tokens >= max(1_024, drop.expected_tokens / 2)
        assert 0 <= drop.expected_tokens <= usage.prompt_size
        assert drop.read_tokens == usage.cache_read


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.9, "59 s"), (432, "7 min 12 s"), (34_560, "9 h 36 min"), (90_000, "1 d 1 h")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert shown_seconds(seconds) == words
