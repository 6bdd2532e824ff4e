"""How often Python looks for rings of objects that nobody holds."""

from __future__ import annotations

import gc
from typing import Final

ROUNDS: Final = (2_000, 10, 40)
"""Thresholds of :func:`gc.set_threshold`. Parsed records are trees without rings: at Python's own thresholds, looking
through them is a third of the time in which a large log is read, and finds nothing. Screens that were left are rings,
with all the messages that were read in them: everything is looked through after 800,000 new objects. The steps before
are small, for they hold up the keys: 1 ms for 2,000 new objects; with 20,000 it was 8 ms, at every twentieth key."""


WHILE_KEYS_COME: Final = 400
"""The last of these thresholds on a screen: looking through everything holds up the keys for 50 ms where a list of
70,000 is read. Until then it is done when nobody types (:func:`collect_if_due`)."""


def collect_rarely() -> None:
    """For every process of the program, as its first act."""
    gc.set_threshold(*ROUNDS)


def collect_at_rest() -> None:
    """For a screen: whoever shows it asks :func:`collect_if_due` while no keys come."""
    gc.set_threshold(*ROUNDS[:2], WHILE_KEYS_COME)


def collect_if_due() -> None:
    """Look through everything where :data:`ROUNDS` would have done so."""
    if gc.get_count()[2] >= ROUNDS[2]:
        gc.collect()
