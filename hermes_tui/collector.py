"""How often Python looks for rings of objects that nobody holds."""

from __future__ import annotations

import gc
from typing import Final

ROUNDS: Final = (20_000, 20, 2)
"""Thresholds of :func:`gc.set_threshold`. Parsed records are trees without rings: at Python's own thresholds, looking
through them is a third of the time in which a large log is read, and finds nothing. Screens that were left are rings,
with all the messages that were read in them: everything is looked through after 800,000 new objects."""


def collect_rarely() -> None:
    """For every process of the program, as its first act."""
    gc.set_threshold(*ROUNDS)
