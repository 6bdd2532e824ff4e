"""A place in a search comes back as it was given, or is refused."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.library.failures import WrongUse
from hermes_tui.library.search_cursor import Cursor, StorePlace, read_cursor, write_cursor

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLACES = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name.isprintable()),
    st.builds(StorePlace, st.lists(NUMBERS, max_size=4).map(tuple), st.none() | st.floats(0, 4e9)),
    max_size=3,
)


def document(text: str) -> Any:
    return orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def text_of(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


@given(PLACES, st.integers(0, 1 << 40))
def test_it_comes_back_as_it_was_given(places: dict[str, StorePlace], number: int) -> None:
    cursor = Cursor(places, number)
    assert read_cursor(write_cursor(cursor, "half a pair \ud800"), "half a pair \ud800") == cursor


def test_that_of_another_search_is_refused() -> None:
    text = write_cursor(Cursor({"a": StorePlace((1.0, 2.0), 3.0)}), "one")
    with pytest.raises(WrongUse, match="belongs to another search"):
        read_cursor(text, "two")


@pytest.mark.parametrize("order", [[], [1], ["x"], [None], [1, 2, 3, 4]])
def test_one_that_was_changed_is_refused(order: list[object]) -> None:
    seal, digest, number, _ = document(write_cursor(Cursor({"a": StorePlace((1.0, 2.0), 3.0)}), "one"))
    with pytest.raises(WrongUse, match="is no place in a search"):
        read_cursor(text_of([seal, digest, number, {"a": [order, 3.0]}]), "one")


@pytest.mark.parametrize("value", [{"q": 1, "g": 0, "s": {"a": [[1.0], 1.0]}}, [], [1], 7, None, "text", [[], 1, 2, 3]])
def test_what_is_no_cursor_of_today_is_refused(value: object) -> None:
    with pytest.raises(WrongUse, match="is no place in a search"):
        read_cursor(text_of(value), "one")
    with pytest.raises(WrongUse, match="is no place in a search"):
        read_cursor("%%%", "one")
