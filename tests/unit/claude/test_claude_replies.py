"""Replies kept in columns are the requests they stand for, in sums and kept bytes as well."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.mirror.codec import dump_card, dump_requests, load_summary
from hermes_tui.model import CacheEvent, SessionId, SessionRow, StoreRef
from hermes_tui.stores.claude.index_texts import ClaudeTexts
from hermes_tui.stores.claude.replies import Reply, ReplyBook, columns_of, request_rows, requests_of
from hermes_tui.stores.kept_requests import slots_of
from hermes_tui.stores.log_source import LogSummary
from hermes_tui.stores.request_rows import RequestRows
from hermes_tui.text import RawText

ID = SessionId("s")
ROW = SessionRow(store=StoreRef("claude", "/h", "claude"), id=ID, root_id=ID, tip_id=ID)
counts = st.integers(0, 300_000)
replies = st.lists(
    st.builds(
        Reply,
        key=st.text(max_size=3),
        uuid=st.text(max_size=3),
        place=st.integers(0, 99),
        at=st.none() | st.integers(1_790_000_000, 1_790_009_000).map(float),
        model=st.sampled_from([None, "", "m", "n"]),
        input=counts,
        output=counts,
        cache_read=counts,
        cache_write=counts,
        write_1h=counts,
    ),
    max_size=12,
)
folders = st.sampled_from([None, "", "/a"])


@given(replies, folders, folders, st.booleans())
def test_columns_are_the_requests(listed: list[Reply], source: str | None, cwd: str | None, noted: bool) -> None:
    told = (CacheEvent("rewind", RawText("why")),)
    events = {reply.key: told for reply in listed[::2]} if noted else {}
    rows = request_rows(columns_of(listed), ID, events, source=source, cwd=cwd)
    made = tuple(requests_of(listed, ID, ID, events, source=source, cwd=cwd))
    assert tuple(rows) == made
    assert slots_of(rows) == slots_of(made)
    one, other = (LogSummary(ROW, some, (), ()) for some in (rows, made))
    assert dump_card(one) == dump_card(other)
    assert tuple(load_summary(dump_card(one), dump_requests(one), ROW.store).requests) == made
    assert RequestRows.restore(rows.dump()) == made


@given(replies)
def test_order_is_by_time_and_place(listed: list[Reply]) -> None:
    book = ReplyBook({str(place): reply for place, reply in enumerate(listed)})
    at, expected = 0.0, []
    for place, reply in enumerate(sorted(listed, key=lambda reply: reply.place)):
        at = at if reply.at is None else reply.at
        expected.append((at, reply.place, place, reply))
    assert book.in_order() == [reply for *_, reply in sorted(expected, key=lambda item: item[:3])]


def test_a_reply_whose_usage_counts_server_tools_talks() -> None:
    line = b'{"type":"assistant","message":{"content":[{"type":"%b"}],"usage":{"server_tool_use":{"n":0}}}}'
    texts = ClaudeTexts()
    assert [texts.phase(line % kind) for kind in (b"text", b"tool_use", b'server_tool_use","id":"')] == [
        "talk",
        "tools",
        "tools",
    ]
    assert [texts.is_talk(line % kind) for kind in (b"text", b"tool_use")] == [True, False]
