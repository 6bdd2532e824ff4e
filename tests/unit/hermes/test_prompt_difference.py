"""Where two prompts begin to differ is found without looking at each character."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hermes_tui.stores.hermes.prefixes import SHOWN, difference


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_the_first_differing_character(same: str, one: str, other: str) -> None:
    one, other = same + one, same + other
    pairs = enumerate(zip(one, other, strict=False))
    place = next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
    shown = f"differs at character {place:,}: {one[place : place + SHOWN]!r} / {other[place : place + SHOWN]!r}"
    assert difference(one, other) == shown
