"""What is taken in quickly says the same as what is fed line by line: of usual logs, odd ones and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.mirror.projector import _Collector
from hermes_tui.model import SessionId, StoreRef
from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.index_texts import ClaudeTexts
from hermes_tui.stores.claude.lines import plain_entry
from hermes_tui.stores.claude.skim import ClaudeSkim
from hermes_tui.stores.claude.transcript import IndexedFold
from hermes_tui.stores.request_rows import RequestRows

REF = StoreRef("claude", "claude", "/x")
PLACES = st.integers(0, 9)
STAMPS = (
    "2026-11-29T16:58:16.010Z", "2026-11-29T16:58:16.009Z", "2026-11-29T16:58:17.500Z", "2027-01-01T00:00:00.000Z",
    "2026-11-29T16:58:16Z", "2026-11-29T16:58:16.010+00:00", "2026-11-29T18:58:16.01+02:00", "2026-11-29T16:58:16.010",
    "2026-11-29T16:58:16.010 ", "2026-11-29 16:58:16.010Z", "2026-02-30T00:00:00.000Z", "1999-12-31T23:59:59.999Z",
    "2000-01-01T00:00:00.000Z", "2099-12-31T23:59:59.999Z", "2100-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
    "2026-11-29T16:58Z", "yesterday", "", 5, None,
)  # fmt: skip
USUAL_STAMPS = st.integers(0, 59).map(lambda second: f"2026-11-29T16:58:{second:02}.010Z")
TEXTS = st.sampled_from(
    (
        "plain words", "", " ", "1 < 2", "<command-name>/compact</command-name><command-args>it</command-args>",
        "[Request interrupted by user]", "\n[Request interrupted by user for tool use]", "\u2003", "한국어 글",
        "<system-reminder>x</system-reminder>go on", 'says "type":"tool_use" and toolUseResult"', "\ud83d", "x" * 1_200,
    )
)  # fmt: skip
ODD = st.sampled_from((None, 5, True, "text", [], {}, [None], ["words"], [{"type": 7}], {"type": "text"}))
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS | ODD),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, TEXTS | ODD),
    st.builds(lambda name: {"type": "tool_use", "id": f"t{name}", "name": f"n{name}", "input": {"a": name}}, PLACES),
    st.builds(lambda text: {"tool_use_id": "t1", "type": "tool_result", "content": text}, TEXTS | ODD),
    st.sampled_from(({"type": "server_tool_use", "id": "t8", "name": "x"}, {"type": "image"}, {"type": ["text"]})),
    ODD,
)
REPLY_BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, TEXTS),
    st.builds(lambda name: {"type": "tool_use", "id": f"t{name}", "name": f"n{name}", "input": {"a": name}}, PLACES),
)
RESULT_BLOCKS = st.builds(lambda text: {"tool_use_id": "t1", "type": "tool_result", "content": text}, TEXTS | ODD)
COUNTS = st.sampled_from((0, 1, 7, 2**70, -1, 1.5, True, "9", None))
USAGES = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 2), "output_tokens": st.integers(0, 2)},
    optional={
        "cache_read_input_tokens": COUNTS,
        "cache_creation_input_tokens": COUNTS,
        "cache_creation": st.fixed_dictionaries({"ephemeral_1h_input_tokens": COUNTS}) | ODD,
    },
)


def reply(blocks: Any, number: int, model: Any, usage: Any) -> dict[str, Any]:
    return {
        "id": f"m{number}", "type": "message", "role": "assistant", "model": model, "content": blocks,
        "stop_reason": None, "usage": usage,
    }  # fmt: skip


MODELS = st.sampled_from(("big", "big", "big", "small", "<synthetic>", None))
REPLIES = st.builds(reply, st.lists(REPLY_BLOCKS, min_size=1, max_size=2), st.integers(0, 3), MODELS, USAGES)
ODD_REPLIES = st.builds(reply, st.lists(BLOCKS, max_size=3) | ODD | TEXTS, st.integers(0, 3), MODELS, USAGES | ODD)
USER = st.builds(lambda content: {"role": "user", "content": content}, TEXTS | st.lists(RESULT_BLOCKS, max_size=2))
ODD_USER = st.builds(lambda content: {"role": "user", "content": content}, st.lists(BLOCKS, max_size=3) | ODD)
SETTINGS = {
    "userType": "external", "entrypoint": "cli", "cwd": "/w", "sessionId": "s", "version": "2.1.0", "gitBranch": "main",
}  # fmt: skip
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ("user", "assistant", "system", "attachment", "progress", "summary", "last-prompt", "new", None, 7)
        ),
        "uuid": PLACES.map(lambda place: f"u{place}") | ODD,
        "parentUuid": PLACES.map(lambda place: f"u{place}") | ODD,
        "timestamp": st.sampled_from(STAMPS),
        "isSidechain": st.booleans() | ODD,
        "message": ODD_REPLIES | ODD_USER | ODD,
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "isApiErrorMessage": st.booleans(),
        "cwd": st.sampled_from(("/w", "/v", None, 3)),
        "version": st.sampled_from(("2.1.0", "2.1.1")),
        "slug": st.sampled_from(("a", "b")),
        "requestId": st.sampled_from(("r0", "r1", None, 4)),
        "toolUseResult": ODD | st.just({"stdout": "x"}),
        "userType": st.just("internal"),
        "forkedFrom": st.just({"sessionId": "older"}),
        "subtype": st.just("compact_boundary"),
        "customTitle": st.just("a title"),
        "leafUuid": st.none() | PLACES.map(lambda place: f"u{place}"),
        "explicit": st.booleans(),
        "agentId": st.just("a1"),
    },
)
STEPS = st.tuples(
    REPLIES | USER,
    USUAL_STAMPS,
    st.none() | st.none() | st.none() | CHANGES,
    st.integers(0, 14),
    st.sampled_from(
        ("", "", "", "", "drop", "cut", "byte", "twice", "spaced", "blank", "again", "key twice", "inside")
    ),
)


def made(steps: Sequence[tuple[dict[str, Any], str, dict[str, Any] | None, int, str]]) -> list[bytes]:
    """The lines of a log, most of them as the program writes them: each follows the one before."""
    lines: list[bytes] = []
    previous: str | None = None
    for place, (message, stamp, changes, back, damage) in enumerate(steps):
        late = message.get("role") == "assistant"
        fields: dict[str, Any] = {"parentUuid": previous if back else None, "isSidechain": False}
        fields |= {"type": "assistant" if late else "user", "message": message}
        fields |= {"requestId": f"r{message['id']}"} if late else {}
        fields |= {"uuid": f"u{place}", "timestamp": stamp}
        if not late and type(message["content"]) is list:
            fields |= {"toolUseResult": {"stdout": message["content"]}}
        fields |= SETTINGS | (changes or {})
        if damage == "drop":
            del fields[list(fields)[back % len(fields)]]
        separators = (", ", ": ") if damage == "spaced" else (",", ":")
        raw = json.dumps(fields, separators=separators).encode("ascii")
        previous = f"u{place}"
        lines += damaged(raw, damage, back, lines)
    return lines


def damaged(raw: bytes, damage: str, place: int, lines: list[bytes]) -> list[bytes]:
    middle = place * len(raw) // 15
    if damage == "cut":
        return [raw[:middle]]
    if damage == "byte":
        return [raw[:middle] + b"\xff\x00"[place % 2 :][:1] + raw[middle + 1 :]]
    if damage == "twice":
        return [raw + raw]
    if damage == "blank":
        return [b"", b" \r", raw + b"\r"]
    if damage == "again":
        return [raw, *lines[-place - 1 :][:1]]
    if damage == "key twice":
        return [raw[:-1] + b',"' + (b"cwd", b"uuid", b"type", b"timestamp")[place % 4] + b'":"user"}']
    if damage == "inside":
        # An unusual line whose text ends as usual lines do.
        end = raw[raw.rfind(b',"userType') :]
        return [json.dumps({"type": "user", "uuid": f"i{place}", "message": {"content": end.decode()}}).encode()]
    return [raw]


def in_one_piece(raws: list[bytes], offset: int) -> Lines:
    block = b"".join(raw + b"\n" for raw in raws)
    return Lines(block, len(block), offset)


def taken(raws: list[bytes], fold: TranscriptFold, skim: bool, pieces: int = 3) -> _Collector:
    """What becomes of the lines, given in pieces, with their words."""
    collector = _Collector(fold, ClaudeTexts(), True, 12.0)
    skimmer = ClaudeSkim(fold, collector.say)
    offset = 0
    for first in range(0, len(raws), pieces):
        some = raws[first : first + pieces]
        after = offset + sum(map(len, some)) + len(some)
        if skim:
            skimmer.take(in_one_piece(some, offset), first + 1, collector.feed)
        else:
            at = offset
            for line, raw in enumerate(some, first + 1):
                record = complete_record(line, at, raw)
                if record is not None:
                    collector.feed(record)
                at += len(raw) + 1
        offset = after
    return collector


def both(raws: list[bytes]) -> tuple[_Collector, _Collector]:
    return (
        taken(raws, TranscriptFold(REF, "/x", SessionId("s")), skim=True),
        taken(raws, TranscriptFold(REF, "/x", SessionId("s")), skim=False, pieces=1_000),
    )


def assert_it_is_what_a_walk_says(quick: _Collector) -> None:
    """Of a fold that was taken up again it is not known that its lines follow each other straight on."""
    assert isinstance(quick.fold, TranscriptFold)
    walked = TranscriptFold(REF, "/x", SessionId("s"))
    assert walked.restore(quick.dump())
    assert not walked.course.straight or not walked.entries
    assert walked.summary() == quick.summary()
    short, long = quick.fold.graph(), walked.graph()
    assert (short.states, short.chain, short.boundary, short.branches) == (
        long.states, long.chain, long.boundary, long.branches
    )  # fmt: skip
    assert list(map(plain_entry, short.order)) == list(map(plain_entry, long.order))
    assert walked.sidechain == quick.fold.sidechain


STRAIGHT = st.tuples(
    REPLIES | USER, USUAL_STAMPS, st.none(), st.integers(1, 14), st.sampled_from(("", "", "", "twice"))
)


@given(st.lists(STRAIGHT, max_size=10), st.lists(STEPS, max_size=2), st.lists(STRAIGHT, max_size=4))
@settings(max_examples=300, deadline=None)
def test_what_follows_straight_on_is_live_and_nothing_else_is_said(
    first: list[Any], odd: list[Any], then: list[Any]
) -> None:
    assert_it_is_what_a_walk_says(both(made([*first, *odd, *then]))[0])


@given(st.lists(STEPS, max_size=14))
@settings(max_examples=600, deadline=None)
def test_whatever_a_log_holds_it_says_the_same(steps: list[Any]) -> None:
    raws = made(steps)
    quick, fed = both(raws)
    assert isinstance(quick.fold, TranscriptFold)
    assert isinstance(fed.fold, TranscriptFold)
    assert quick.summary() == fed.summary()
    assert quick.fold.trace() == fed.fold.trace()
    assert quick.dump() == fed.dump()
    assert list(map(plain_entry, quick.fold.graph().order)) == list(map(plain_entry, fed.fold.graph().order))
    assert quick.fold.graph().states == fed.fold.graph().states
    assert_it_is_what_a_walk_says(quick)
    lost = [one for one in fed.found if one not in quick.found]
    assert not lost
    # A line that seems to be of a call is indexed now already, and once more with the tools.
    more = [raws[one[1] - 1] for one in quick.found if one not in fed.found]
    assert all(ClaudeTexts().phase(raw) != "talk" for raw in more)


@given(st.lists(STEPS, max_size=8), st.lists(STEPS, max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_fold_put_away_goes_on_quickly_as_if_it_never_was(first: list[Any], then: list[Any]) -> None:
    raws = made([*first, *then])
    begun = taken(made(first), TranscriptFold(REF, "/x", SessionId("s")), skim=True)
    again = TranscriptFold(REF, "/x", SessionId("s"))
    assert again.restore(begun.dump())
    rest = raws[len(made(first)) :]
    skim, offset = ClaudeSkim(again, None), sum(map(len, raws)) - sum(map(len, rest)) + len(raws) - len(rest)
    skim.take(in_one_piece(rest, offset), len(raws) - len(rest) + 1, again.feed)
    assert again.dump() == both(raws)[1].dump()


@given(st.lists(STEPS, max_size=10))
@settings(max_examples=100, deadline=None)
def test_a_transcript_knows_the_names_of_all_calls(steps: list[Any]) -> None:
    raws = made(steps)
    quick, fed = IndexedFold(REF, "/x", SessionId("s")), IndexedFold(REF, "/x", SessionId("s"))
    taken(raws, quick, skim=True)
    taken(raws, fed, skim=False)
    assert quick.tool_names == fed.tool_names
    assert quick.parts.items() <= fed.parts.items()
    assert list(map(plain_entry, quick.entries)) == list(map(plain_entry, fed.entries))


def usual(count: int) -> list[bytes]:
    """A prompt, replies of two lines and results."""
    call = {"type": "tool_use", "id": "t1", "name": "n", "input": {}}
    usage = {"input_tokens": 1, "output_tokens": 2}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(count):
        messages += [
            reply([{"type": "text", "text": "words"}], number, "big", usage),
            reply([call], number, "big", usage),
        ]
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "out"}]})
    return made([(message, "2026-11-29T16:58:16.010Z", None, 1, "") for message in messages])


def test_all_but_the_first_of_usual_lines_are_taken_in_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    feed = TranscriptFold.feed

    def noting(fold: TranscriptFold, record: Record) -> None:
        fed.append(record.line)
        feed(fold, record)

    monkeypatch.setattr(TranscriptFold, "feed", noting)
    fold = TranscriptFold(REF, "/x", SessionId("s"))
    taken(usual(5), fold, skim=True)
    assert fed == [1]
    assert len(fold.entries) == 16


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_time_written_otherwise_is_the_same_time(stamp: object) -> None:
    raws = usual(2)
    raws[3] = raws[3].replace(b'"2026-11-29T16:58:16.010Z"', json.dumps(stamp).encode())
    quick, fed = both(raws)
    assert quick.dump() == fed.dump()
    assert quick.summary() == fed.summary()


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize(
    ("key", "said"),
    [(key, "other") for key in ("cwd", "version", "entrypoint", "gitBranch", "userType", "slug", "uuid", "agentId")]
    + [(key, True) for key in ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")],
)
def test_a_field_that_differs_in_one_line_is_seen(key: str, said: object, place: int) -> None:
    quick, fed = both(changed(usual(2), place, {key: said}))
    assert quick.dump() == fed.dump()
    assert quick.summary() == fed.summary()


@pytest.mark.parametrize(
    "said", [{"timestamp": "2026-11-29T16:58:15.010Z"}, {"requestId": "another"}, {"parentUuid": "u1"}], ids=str
)
def test_a_line_of_a_reply_that_says_something_else_of_it_counts(said: dict[str, object]) -> None:
    quick, fed = both(changed(usual(2), 2, said))
    assert quick.dump() == fed.dump()
    assert quick.summary() == fed.summary()


def test_a_reply_goes_on_after_an_unusual_line_of_another_model() -> None:
    raws = usual(2)
    raws[2:2] = [raws[4].replace(b'"big"', b'"small"').replace(b'"u4"', b'"v"').replace(b"{", b'{"isMeta":true,', 1)]
    quick, fed = both(raws[:4])
    assert quick.dump() == fed.dump()


def changed(raws: list[bytes], place: int, said: dict[str, object]) -> list[bytes]:
    fields = json.loads(raws[place]) | said
    return [*raws[:place], json.dumps(fields, separators=(",", ":")).encode(), *raws[place + 1 :]]


def test_usual_lines_are_a_straight_course() -> None:
    fold = TranscriptFold(REF, "/x", SessionId("s"))
    taken(usual(3), fold, skim=True)
    assert fold.course.straight
    assert fold.course.speakers == ["m0", "m1", "m2"]


def last_prompt(leaf: str | None, *, explicit: bool = True) -> bytes:
    return json.dumps({"type": "last-prompt", "lastPrompt": "go", "leafUuid": leaf, "explicit": explicit}).encode()


def odd_courses() -> dict[str, list[bytes]]:
    """Lines that follow each other straight on but for one thing."""
    raws = usual(3)
    boundary = {"type": "system", "subtype": "compact_boundary", "content": "x"}
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    usage["cache_creation"] = {"ephemeral_1h_input_tokens": 1}
    text = [{"type": "text", "text": "words"}]
    spoken = [reply(text, number, "big", usage) for number in (0, 1, 0, 2)]
    told = [
        (message, "2026-11-29T16:58:16.010Z", None, 1, "") for message in ({"role": "user", "content": "go"}, *spoken)
    ]
    return {
        "a compaction": changed(raws, 5, boundary),
        "the same uuid again": changed(raws, 9, {"uuid": "u2"}),
        "another parent": changed(raws, 5, {"parentUuid": "u2"}),
        "the other side": changed(raws, 5, {"isSidechain": True}),
        "bridged over": changed(raws, 9, {"type": "progress"}),
        "no uuid": changed(raws, 9, {"uuid": None}),
        "a mark": [*raws, last_prompt("u3")],
        "a mark of nothing": [*raws, last_prompt(None)],
        "a mark that is past": [*raws[:6], last_prompt("u3"), *raws[6:]],
        "replies in each other": made(told),
        "two models": changed(raws, 7, {"message": spoken[1] | {"id": "m2", "model": "small"}}),
    }


@pytest.mark.parametrize("name", odd_courses())
def test_a_course_that_is_not_straight_is_walked(name: str) -> None:
    quick, fed = both(odd_courses()[name])
    assert quick.summary() == fed.summary()
    assert_it_is_what_a_walk_says(quick)


def test_a_reply_that_tells_its_cost_keeps_it() -> None:
    """Then its requests are no columns, which have no place for it."""
    said = {"role": "assistant", "id": "m", "model": "claude-x", "content": [{"type": "text", "text": "ok"}]}
    message = said | {"usage": {"input_tokens": 3, "output_tokens": 2}}
    for cost in (0.25, None):
        changes = None if cost is None else {"costUSD": cost}
        for collector in both(made([(message, STAMPS[0], changes, 1, "")])):
            requests = collector.summary().requests
            assert isinstance(requests, RequestRows) is (cost is None)
            assert [request.cost_usd for request in requests] == [cost]
