"""What of a transcript tells its copies from it; see :mod:`hermes_tui.stores.claude.relations`."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from hermes_tui.records import dataclass


class Spent(NamedTuple):
    """What a reply used, in the order of :class:`Reply`."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    write_1h: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What tells copies of a session from the original."""

    marks: array[int]
    """A number for each uuid, in file order, each once."""
    messages: bytes
    """For each of them: its parts that are live and count as messages."""
    calls: bytes
    """For each of them: its live tool calls."""
    broken: int
    """Places between two message lines where a line stands that no fork copies."""
    birth: float | None
    marked: bool
    """Its lines say that they were copied (``/branch``)."""
    begins_with_boundary: bool
    headless: bool
    """Its first line follows one that is not in it, or none of its lines begins a conversation."""
    requests: Mapping[str, Spent]
    """By the key of each of its replies."""
    compactions: tuple[int, ...]
    """A number for each compaction, in the order a summary has them."""
    delegated: bool
    """It is a sub-agent's: what a session holds as well was written there first."""
    last_at: float | None


def mark_of(uuid: str) -> int:
    """A number for a uuid, the same in every process."""
    return int.from_bytes(blake2b(uuid.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
