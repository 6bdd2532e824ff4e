"""A value parsed in steps is the value the parser gives at once."""

from __future__ import annotations

import json
import random

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes_tui.storage import giant_values
from hermes_tui.storage.giant_values import load_in_steps

ITEMS = b"items"
TEXTS = st.text(st.sampled_from('ab"\\/\n\0가🙂{}[],:'), max_size=120)
LEAVES = TEXTS | st.integers() | st.none() | st.booleans()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=20
)
LINES = st.fixed_dictionaries(
    {"type": TEXTS, "payload": st.fixed_dictionaries({"items": st.lists(VALUES | st.dictionaries(TEXTS, VALUES))})}
)


@given(LINES | VALUES, st.booleans(), st.integers(8, 64))
@example([{"a key longer than some steps " * 8: ""}], True, 8)
def test_every_value_is_the_same_in_steps(value: object, escaped: bool, step: int) -> None:
    raw = json.dumps(value, ensure_ascii=escaped, separators=(",", ":")).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(giant_values, "STEP", step)
        assert load_in_steps(raw, ITEMS) == orjson.loads(raw)


@given(LINES, st.data())
def test_what_is_damaged_is_refused_as_at_once(value: object, data: st.DataObject) -> None:
    raw = bytearray(json.dumps(value, separators=(",", ":")).encode())
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        wanted = orjson.loads(raw)
    except orjson.JSONDecodeError:
        wanted = orjson.JSONDecodeError
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(giant_values, "STEP", 16)
        if wanted is orjson.JSONDecodeError:
            with pytest.raises(orjson.JSONDecodeError):
                load_in_steps(bytes(raw), ITEMS)
        else:
            assert load_in_steps(bytes(raw), ITEMS) == wanted


def long_line() -> bytes:
    draw = random.Random(3)
    items = [{"type": "message", "id": f"m{n}", "text": "w" * draw.randrange(400)} for n in range(40_000)]
    items.append({"type": "message", "id": "long", "text": 'said "가" \\ \n' * 800_000})
    line = {"type": "compacted", "payload": {"message": "", "items": items, "window_number": 4}}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def test_no_call_of_the_parser_gets_more_than_some_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = long_line()
    assert len(raw) > 20_000_000
    wanted = orjson.loads(raw)
    sizes: list[int] = []

    class Counted:
        JSONDecodeError = orjson.JSONDecodeError
        dumps = staticmethod(orjson.dumps)

        @staticmethod
        def loads(text: bytes) -> object:
            sizes.append(len(text))
            return orjson.loads(text)

    monkeypatch.setattr(giant_values, "orjson", Counted)
    assert load_in_steps(raw, ITEMS) == wanted
    assert max(sizes) <= 3 * giant_values.STEP
