"""Usage records taken in together say what they say one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.model import CacheEvent, SessionId
from hermes_tui.stores.codex.ledger import Ledger
from hermes_tui.text import RawText

OWN = SessionId("own")
COUNT = st.integers(0, 9)
RECORD = st.tuples(
    st.sampled_from([None, "m1", "m2"]),
    st.floats(1e9, 1.1e9),
    st.sampled_from(["own", "own", "own", "other"]),
    st.sampled_from([f"r{number}" for number in range(12)]),
    st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT),
    st.sampled_from([0, 5, 7]),
)
STEPS = st.lists(st.one_of(st.lists(RECORD, min_size=1, max_size=5), st.sampled_from(["note", "said", "count", "own"])))


def told(ledger: Ledger) -> list[object]:
    return [ledger.fill, ledger._fill_before, ledger._last_response, ledger.reply, ledger.models, list(ledger.requests)]


@given(STEPS)
def test_together_is_one_by_one(steps: list[list[tuple]]) -> None:  # type: ignore[type-arg]
    one, other = (Ledger("/x", OWN, model=RawText("m")) for _ in range(2))
    for step in steps:
        for ledger in (one, other):
            if step == "note":
                ledger._events.append(CacheEvent("rewind", RawText("why")))
            elif step == "said":
                ledger.said("m9")
            elif step == "count":
                ledger.fill = 50
            elif step == "own":
                ledger.requests.dump()  # as putting the state away does
        if isinstance(step, list):
            for reply, *record in step:
                one.reply = reply
                one.record(*record)
            for reply, *_ in step:
                other.reply = reply
                assert other.record_met() == reply
            replies, times, threads, responses, counts, totals = map(list, zip(*step, strict=True))
            other.records(replies, times, threads, responses, list(zip(*counts, strict=True)), totals)
        assert told(one) == told(other)
