"""Reading many sessions of a damaged store: what lies on a broken page is lost for its sessions, not for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from hermes_tui.storage.errors import StoreDamaged

Key = TypeVar("Key", str, int)
Value = TypeVar("Value")


def salvaged(
    read: Callable[[Sequence[Key]], Mapping[Key, Value]], ids: Sequence[Key]
) -> tuple[dict[Key, Value], frozenset[Key]]:
    """What a question by ids gives, asked of halves where all together meet a damaged page.

    Returns:
        The answers by id, and the ids whose answer cannot be read.
    """
    try:
        return dict(read(ids)), frozenset()
    except StoreDamaged:
        if len(ids) <= 1:
            return {}, frozenset(ids)
    middle = len(ids) // 2
    first, first_lost = salvaged(read, ids[:middle])
    second, second_lost = salvaged(read, ids[middle:])
    return {**first, **second}, first_lost | second_lost


def whole_or_salvaged(
    read: Callable[[Sequence[str] | None], Mapping[str, Value]], ids: Sequence[str]
) -> dict[str, Value]:
    """A question to every session (``None``), asked of some of them at a time only where a page is damaged."""
    try:
        return dict(read(None))
    except StoreDamaged:
        return salvaged(read, ids)[0]
