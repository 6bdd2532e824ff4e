"""Rows are exactly as wide as the screen, whatever is in them; wrapping loses nothing."""

from __future__ import annotations

import dataclasses
from datetime import UTC
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hermes_tui.library.cost import CostRow
from hermes_tui.model import (
    Compaction,
    Cost,
    Lineage,
    LineageNode,
    Message,
    MessageHead,
    SessionId,
    StoreRef,
    Usage,
)
from hermes_tui.text import RawText, clean, clean_line
from hermes_tui.tui.cells import fit, fit_end, wrap
from hermes_tui.tui.formats import Moment, money, rate, tokens
from hermes_tui.tui.glyphs import ASCII, UNICODE
from hermes_tui.tui.heights import BLOCK, VariedHeights
from hermes_tui.tui.inks import clip, line_width
from hermes_tui.tui.views.blocks import Frame, body_line, in_first_answer, make_block, part_line, title_line
from hermes_tui.tui.views.cost_table import GROUPINGS
from hermes_tui.tui.views.cost_table import heading as cost_heading
from hermes_tui.tui.views.cost_table import row_line as cost_line
from hermes_tui.tui.views.lineage_tree import line_of, tree_lines
from hermes_tui.tui.views.plot import Curve, plot_lines
from hermes_tui.tui.views.recovery_rows import Pair, pair_line
from hermes_tui.tui.views.session_columns import columns_for, heading, row_line
from hermes_tui.tui.views.session_preview import preview_lines
from hermes_tui.tui.views.spans import markdown_spans, runs
from hermes_tui.tui.views.transcript_head import head_line
from tests.pilot.memory_store import NOW, row_of

texts = st.text(st.one_of(st.characters(), st.sampled_from("가나다あ漢字 👨‍👩‍👧❤️é\t\n*`#[]\x1b\u202e")), max_size=120)
widths = st.integers(20, 200)
moment = Moment(NOW, UTC)
REF = StoreRef("hermes", "hermes/default", "/x")


def head(**more: object) -> MessageHead:
    base = MessageHead("1", 0, SessionId("s"), RawText("user"), "prompt", "live", NOW, 10)
    return dataclasses.replace(base, **more)  # type: ignore[arg-type]


@given(texts, st.integers(1, 80), st.sampled_from(["left", "right"]))
def test_fit_is_exact(text: str, width: int, align: str) -> None:
    assert cell_len(fit(clean_line(text), width, align)) == width  # type: ignore[arg-type]


@given(texts, st.integers(2, 60))
def test_wrap_loses_only_spaces_and_breaks_and_no_line_is_too_wide(text: str, width: int) -> None:
    cleaned = clean(text)
    ranges = wrap(cleaned, width)
    assert ranges
    at = 0
    for start, end in ranges:
        assert start >= at
        assert set(cleaned[at:start]) <= {" ", "\n"}
        assert "\n" not in cleaned[start:end]
        assert cell_len(cleaned[start:end]) <= width
        at = end
    assert set(cleaned[at:]) <= {" ", "\n"}


@given(texts, texts, widths, st.booleans())
@settings(max_examples=60)
def test_a_row_of_the_list_is_exact_and_its_columns_are_aligned(
    title: str, other: str, width: int, ascii_only: bool
) -> None:
    glyphs = ASCII if ascii_only else UNICODE
    columns = columns_for(width)
    row = row_of(REF, "id", title, at=NOW, model=other, cwd="/" + other, compactions=3, hit_rates=(0.1, None, 1.0))
    row = dataclasses.replace(row, cost=Cost(1.5, "estimated"), worst_drop_lost=5)
    for one in (
        row_line(row, columns, width, moment, glyphs, "> "),
        row_line(None, columns, width, moment, glyphs, "  "),
    ):
        assert line_width(one) == width
    assert line_width(heading(columns, width, "tokens", glyphs)) == width


@given(texts, widths, st.booleans(), st.sampled_from(["prompt", "reply", "reasoning", "tool-call", "summary"]))
@settings(max_examples=80)
def test_lines_of_a_message_fit_and_are_as_many_as_its_height(text: str, width: int, folded: bool, kind: str) -> None:
    message = Message(
        head(kind=kind, tool_name=RawText(text)), RawText(text), sent_text=RawText(text + "x"), usage=Usage(1, 2, 3)
    )
    block = make_block(message, width)
    frame = Frame(UNICODE, moment, folded, True, 7, result=head())
    assert line_width(title_line(message.head, block, frame, width)) <= width
    assert line_width(title_line(message.head, None, frame, width)) <= width
    for line in range(block.height):
        assert line_width(body_line(block, line, frame)) <= max(width, 60)
    shown = "".join(block.text[start:end] for start, end in block.ranges)
    assert shown.replace(" ", "") == block.text.replace(" ", "").replace("\n", "")


@given(texts, widths)
def test_single_lines_fit(text: str, width: int) -> None:
    row = row_of(REF, "id", text, at=NOW)
    assert line_width(head_line(row, "2 parts", "record", width, UNICODE)) <= max(width, 62)
    assert line_width(part_line(2, 4, "", width, UNICODE)) <= max(width, 30)
    for line in preview_lines(row, None, width, 7, moment, UNICODE):
        assert line_width(line) <= width
    pair = Pair(3, head(), Message(head(), RawText(text)))
    assert line_width(pair_line(pair, clean_line(text), "both", width, UNICODE, True)) == width


@given(widths, st.sampled_from(GROUPINGS))
def test_headings_of_costs_fit(width: int, grouping: str) -> None:
    assert line_width(cost_heading(grouping, width)) <= width  # type: ignore[arg-type]


@given(st.lists(st.tuples(texts, st.just("")), max_size=6), st.integers(0, 100))
def test_clip_is_exact(parts: list[tuple[str, str]], width: int) -> None:
    line = tuple((clean_line(text), ink) for text, ink in parts)
    assert line_width(clip(line, width)) == width


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=300),
    st.integers(20, 160),
    st.integers(4, 14),
    st.booleans(),
)
@settings(max_examples=60)
def test_the_plot_is_as_large_as_asked(values: list[float | None], width: int, height: int, ascii_only: bool) -> None:
    marks = tuple((at, at % 2 == 0) for at in range(0, len(values), 7))
    lines = plot_lines(Curve(tuple(values), marks, "a", "b"), width, height, ASCII if ascii_only else UNICODE)
    assert len(lines) == height
    assert all(line_width(line) <= width for line in lines)


@given(st.lists(st.integers(0, 9), max_size=3 * BLOCK), st.data())
@settings(max_examples=40)
def test_heights_agree_with_adding_up(heights: list[int], data: st.DataObject) -> None:
    counted = VariedHeights(heights[: len(heights) // 2])
    counted.extend(heights[len(heights) // 2 :])
    for _ in range(3):
        if heights:
            at, new = data.draw(st.integers(0, len(heights) - 1)), data.draw(st.integers(0, 9))
            heights[at] = new
            counted.set(at, new)
    assert counted.total == sum(heights)
    lines = [(item, part) for item, height in enumerate(heights) for part in range(height)]
    for line in range(0, len(lines), max(1, len(lines) // 50)):
        assert counted.at(line) == lines[line]
    for item in range(0, len(heights), max(1, len(heights) // 50)):
        assert counted.top(item) == sum(heights[:item])


@given(texts)
def test_colour_changes_no_sign(text: str) -> None:
    cleaned = clean(text)
    spans = markdown_spans(cleaned)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    for start, end in wrap(cleaned, 30):
        drawn = runs(cleaned, start, end, spans, [(3, 9, "mark")], "")
        assert "".join(piece for piece, _ in drawn) == cleaned[start:end]


def test_numbers_read_well() -> None:
    assert [tokens(n) for n in (None, 0, 999, 1_204, 9_960, 310_400, 2_100_000)] == [
        "-",
        "0",
        "999",
        "1.2k",
        "10k",
        "310k",
        "2.1M",
    ]
    assert money(Cost(None, "unknown")) == "?"
    assert money(Cost(0.214, "estimated")) == "0.21~"
    assert money(Cost(0.0032, "actual")) == "0.0032"
    assert money(Cost(0.0, "included")) == "incl"
    assert money(Cost(None, None)) == "-"


def test_a_rate_is_one_only_where_all_was_read() -> None:
    assert [rate(value) for value in (None, 0.0, 0.29, 0.9966, 1.0)] == ["-", "0.00", "0.29", "0.99", "1.00"]


@given(texts, st.integers(1, 80))
def test_the_end_of_a_text_fits_exactly(text: str, width: int) -> None:
    shown = fit_end(clean_line(text), width)
    assert cell_len(shown) == width
    assert cell_len(clean_line(text)) > width or shown.rstrip() == clean_line(text).rstrip()


def test_folders_of_costs_are_told_apart_by_their_ends() -> None:
    row = CostRow(RawText("/home/ana/code/window-split"), 1, 1, Usage(1, 1), Cost(1.0, "actual"), None)
    line = "".join(text for text, _ in cost_line(row, "cwd", 80, UNICODE, False))
    assert "…na/code/window-split " in line


def test_a_compaction_of_the_tree_is_cut_with_an_ellipsis() -> None:
    one = Compaction(NOW, "automatic", 151_000, 12_000, 3, 651)
    node = LineageNode(SessionId("a"), None, "root", row_of(REF, "a", "A", at=NOW), (one,), ())
    lineage = Lineage(SessionId("a"), SessionId("a"), (SessionId("a"),), (node,))
    drawn = line_of(tree_lines(lineage, UNICODE)[1], 60, moment, UNICODE, False)
    assert line_width(drawn) == 60
    assert "".join(text for text, _ in drawn).endswith("…")


def test_the_first_answer_ends_where_another_speaks() -> None:
    heads = [
        MessageHead(str(place), 0, SessionId("s"), RawText(role), "reply", "live", None, 1)
        for place, role in enumerate(("user", "assistant", "assistant", "tool", "assistant"))
    ]
    assert [in_first_answer(heads, place) for place in range(5)] == [False, True, True, False, False]
