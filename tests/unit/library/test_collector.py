"""How often Python looks for rings of objects: rarely, and still before much is held by nobody."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from hermes_tui.collector import collect_at_rest, collect_if_due, collect_rarely

HEADS = 50_000
OPENED = 80
KEPT = 12
"""So many are looked at for a while: they are old when they are left."""


class Closed:
    """A screen that was left: its parts hold each other, and many messages."""

    def __init__(self) -> None:
        self.owner = self
        self.heads: list[list[int]] = [[] for _ in range(HEADS)]


@pytest.fixture(autouse=True)
def as_the_program_does() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    collect_rarely()
    yield
    gc.set_threshold(*before)
    gc.collect()


def test_a_screen_looks_through_everything_when_it_is_told_that_nobody_types() -> None:
    collect_at_rest()
    opened = [Closed() for _ in range(KEPT)]
    left = weakref.ref(opened[0])
    for _ in range(OPENED):
        opened = [*opened[-KEPT:], Closed()]
    assert left() is not None, "everything was looked through while keys may come"
    collect_if_due()
    assert left() is None
    again = weakref.ref(Closed())
    collect_if_due()
    assert again() is not None, "it was not due"


def test_of_many_conversations_that_were_read_most_are_given_back() -> None:
    screens: list[weakref.ref[Closed]] = []
    shown: list[Closed] = []
    for _ in range(OPENED):
        one = Closed()
        screens.append(weakref.ref(one))
        shown = [*shown[-KEPT:], one]
    held = sum(screen() is not None for screen in screens)
    assert held < OPENED * 2 // 3, f"{held} of {OPENED} are held"
