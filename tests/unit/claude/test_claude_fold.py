"""Folding: quick weights equal the parts, a fold put away anywhere goes on as if it never was, garbage ends nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_tui.model import COUNTED_KINDS, SessionId, StoreRef
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.lines import time_of
from hermes_tui.stores.claude.parts import parts_of
from hermes_tui.stores.claude.texts import user_text, without_reminders
from hermes_tui.stores.claude.weights import weight_of
from tests.unit.claude.building import Made
from tests.unit.claude.cases import refused, resumable

REF = StoreRef("claude", "claude", "/x")
CASES = [*resumable(), *refused()]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
KINDS = st.sampled_from(
    ["text", "tool_use", "tool_result", "thinking", "image", "server_tool_use", "web_search_tool_result", "odd"]
)
BLOCKS = st.fixed_dictionaries(
    {"type": KINDS | JSON},
    optional=dict.fromkeys(("text", "content", "id", "name", "input", "tool_use_id", "thinking", "source"), JSON),
)
CONTENT = JSON | st.lists(BLOCKS | st.text(max_size=5) | JSON, max_size=4)
MESSAGES = st.fixed_dictionaries({"content": CONTENT}, optional={"id": JSON, "usage": JSON, "model": JSON})
TYPES = st.sampled_from(
    ["user", "assistant", "system", "attachment", "progress", "summary", "last-prompt", "content-replacement", "new"]
)
LINES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["user", "assistant", "system", "attachment", "progress", "summary", "last-prompt", "new"]
        )
    },
    optional={
        "uuid": st.sampled_from(["a", "b", "c", "d", ""]) | JSON,
        "parentUuid": st.sampled_from(["a", "b", "c", "d"]) | JSON,
        "logicalParentUuid": st.sampled_from(["a", "b", "c", "d"]) | JSON,
        "message": JSON
        | st.fixed_dictionaries({"content": CONTENT}, optional={"id": JSON, "usage": JSON, "model": JSON}),
        "isSidechain": JSON,
        "isCompactSummary": st.booleans(),
        "timestamp": JSON | st.sampled_from(["2026-11-29T16:58:16.010Z", "1969-01-01T00:00:00.000Z"]),
        "subtype": st.sampled_from(["compact_boundary", "local_command"]) | JSON,
        "compactMetadata": JSON | st.just({"preservedSegment": {"headUuid": "a", "tailUuid": "b"}}),
        "content": JSON,
        "attachment": JSON,
        "leafUuid": st.sampled_from(["a", "z"]) | JSON,
        "explicit": st.booleans(),
        "forkedFrom": JSON,
        "toolUseResult": JSON,
        "cwd": JSON,
    },
)


def fold_of(values: list[Any], fold: TranscriptFold, first: int = 1) -> TranscriptFold:
    for line, value in enumerate(values, first):
        fold.feed(Record(line, line * 10, 9, value, b"{}"))
    return fold


@pytest.mark.parametrize("made", CASES, ids=[made.name for made in CASES])
def test_weights_are_what_the_parts_say(made: Made) -> None:
    for text in made.lines:
        try:
            fields = json.loads(text)
        except ValueError:
            continue
        if isinstance(fields, dict):
            _same_weight(fields)


def _same_weight(fields: dict[str, Any]) -> None:
    weight, parts = weight_of(fields), parts_of(fields)
    assert weight.messages == sum(part.kind in COUNTED_KINDS for part in parts)
    assert weight.calls == sum(part.kind == "tool-call" for part in parts)


@given(LINES)
@settings(max_examples=300, deadline=None)
def test_weights_of_any_line_are_what_the_parts_say(fields: dict[str, Any]) -> None:
    _same_weight(fields)


@given(st.lists(LINES | JSON, max_size=12))
@settings(max_examples=300, deadline=None)
def test_no_shape_of_lines_ends_a_fold_and_every_line_has_its_place(values: list[Any]) -> None:
    fold = fold_of(values, TranscriptFold(REF, "/x", SessionId("s")))
    summary, graph = fold.summary(), fold.graph()
    assert len(graph.order) == len(set(graph.order)) == len(graph.states)
    assert set(graph.chain) <= set(graph.states)
    assert summary.row.problems == len(summary.problems)


@given(st.lists(LINES | JSON, max_size=12), st.integers(0, 12))
@settings(max_examples=200, deadline=None)
def test_a_fold_put_away_goes_on_as_if_it_never_was(values: list[Any], at: int) -> None:
    whole = fold_of(values, TranscriptFold(REF, "/x", SessionId("s"))).summary()
    begun = fold_of(values[:at], TranscriptFold(REF, "/x", SessionId("s")))
    again = TranscriptFold(REF, "/x", SessionId("s"))
    assert again.restore(begun.dump())
    assert fold_of(values[at:], again, at + 1).summary() == whole


@pytest.mark.parametrize(
    ("text", "kind", "shown"),
    [
        ("plain words", "prompt", "plain words"),
        ("<Uppercase> is typed", "prompt", "<Uppercase> is typed"),
        ("1 < 2 and <b", "prompt", "1 < 2 and <b"),
        ("<task-notification>x</task-notification>", "context", "<task-notification>x</task-notification>"),
        ("<system-reminder>no</system-reminder>\nreal words", "prompt", "real words"),
        ("say <system-reminder>x</system-reminder> again", "prompt", "say <system-reminder>x</system-reminder> again"),
        ("<system-reminder>only</system-reminder>", "context", "<system-reminder>only</system-reminder>"),
        ("[Request interrupted by user for tool use]", "notice", "[Request interrupted by user for tool use]"),
        (
            "<command-name>/compact</command-name>\n <command-args>keep it</command-args>",
            "context",
            "/compact keep it",
        ),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", "context", "/init"),
        ("<bash-input>ls -a</bash-input>", "context", "! ls -a"),
        ("<bash-stdout>out</bash-stdout><bash-stderr>err</bash-stderr>", "context", "out\nerr"),
    ],
)
def test_true_prompts_are_told_from_wrappers(text: str, kind: str, shown: str) -> None:
    assert user_text(text) == (kind, shown)


@given(st.text(max_size=200))
def test_text_without_reminders_is_left_alone(text: str) -> None:
    if "<system-reminder>" not in text:
        assert without_reminders(text) == text


def test_absurd_times_are_unknown() -> None:
    assert time_of("2026-11-29T16:58:16.010Z") == 1795971496.01
    for absurd in ("1969-01-01T00:00:00.000Z", "9999-01-01T00:00:00.000Z", "yesterday, about noon", "", 5, None):
        assert time_of(absurd) is None


def test_a_fold_put_away_survives_a_lone_surrogate() -> None:
    fold = TranscriptFold(REF, "/x", SessionId("s"))
    fold_of([{"type": "user", "uuid": "a", "message": {"content": "lone \ud83d"}}], fold)
    again = TranscriptFold(REF, "/x", SessionId("s"))
    assert again.restore(fold.dump())
    assert again.summary() == fold.summary()
