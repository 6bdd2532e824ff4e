from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library.json_output import ObjectWriter, dumps, with_long_text

HOSTILE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


@given(values)
def test_any_value_comes_back_and_nothing_hostile_is_written(value: object) -> None:
    document = dumps(value)
    assert not HOSTILE.search(document)
    assert json.loads(document) == value
    document.encode("utf-8")


def test_what_is_no_number_is_null() -> None:
    assert dumps([float("nan"), float("inf")]) == "[null,null]"
    assert dumps(["\ud800", float("nan")]) == r'["\ud800",null]'


def test_escapes_are_written_as_the_contract_says() -> None:
    assert dumps("\x1b[31m\x7f\x9b\u202e\ud83d") == r'"\u001b[31m\u007f\u009b\u202e\ud83d"'


@given(st.lists(texts, max_size=5), texts)
def test_a_long_text_in_pieces_is_one_string(pieces: list[str], other: str) -> None:
    written = "".join(with_long_text({"before": other, "text": None, "after": [other]}, "text", pieces))
    found = json.loads(written)
    assert found == {"before": other, "text": "".join(pieces), "after": [other]} or _halves(found["text"], pieces)


def _halves(text: str, pieces: list[str]) -> bool:
    """Two halves of one character on a seam become that character, as JSON readers join them."""
    return text.encode("utf-16", "surrogatepass") == "".join(pieces).encode("utf-16", "surrogatepass")


def test_a_document_is_written_piece_by_piece() -> None:
    written: list[str] = []
    writer = ObjectWriter(written.append)
    writer.key("a", 1)
    writer.items("b", (iter((dumps(number),)) for number in range(3)))
    writer.items("c", ())
    writer.close()
    assert json.loads("".join(written)) == {"a": 1, "b": [0, 1, 2], "c": []}
    assert len(written) > 8
