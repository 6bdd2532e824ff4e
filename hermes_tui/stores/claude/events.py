"""What may have cost a reply its cache: changes of settings or model, compactions, a rewind."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from hermes_tui.model import CacheEvent, DropCause
from hermes_tui.stores.claude.lines import Entry
from hermes_tui.stores.claude.replies import ReplyColumns
from hermes_tui.text import RawText

_STEPS: Final = 3
"""So many lines up, before the whole way is looked at."""
_NONE: Final = Entry("", None, None, "", "", False, None, 0, 0, 0)


class Change(NamedTuple):
    """Something between two message lines that can explain a cache miss."""

    place: int
    """How many message lines stand above it."""
    cause: DropCause
    evidence: str
    at: float | None = None
    """Unix seconds: lines may stand out of order, and replies are put in order by time."""


def cache_events(
    replies: ReplyColumns, entries: Sequence[Entry], lines: Mapping[str, Entry] | None, changes: Sequence[Change]
) -> dict[str, tuple[CacheEvent, ...]]:
    """By the key of a reply: what happened since the one before.

    Args:
        replies: those of one chain, in order.
        entries: the lines of the log.
        lines: the same by their uuids, where each has one of its own.
        changes: in file order.
    """
    rewound = _rewound(replies, entries, lines)
    between = _between(replies, changes)
    found: dict[str, tuple[CacheEvent, ...]] = {}
    told = zip(replies.keys, replies.models, strict=True)
    for number, ((_, before), (key, model)) in enumerate(pairwise(told), 1):
        events = [CacheEvent(change.cause, RawText(change.evidence)) for change in between.get(number, ())]
        if before != model:
            events.append(CacheEvent("model-change", RawText(f"{before} -> {model}")))
        if key in rewound:
            events.append(CacheEvent("rewind", RawText("the conversation went on from an earlier reply")))
        if events:
            found[key] = tuple(events)
    return found


def _between(replies: ReplyColumns, changes: Sequence[Change]) -> dict[int, list[Change]]:
    """By the number of a reply: what happened between the one before and it, in file order."""
    found: dict[int, list[Change]] = {}
    timed = [(at, place) for at, place in zip(replies.times, replies.places, strict=True) if at is not None]
    dated = [change for change in changes if change.at is not None] if len(timed) == len(replies.times) else []
    for change in dated:
        found.setdefault(bisect_left(timed, (change.at, change.place)), []).append(change)
    if len(dated) == len(changes):
        return found
    # Without a time the place in the file has to do.
    others = list(changes) if not dated else [change for change in changes if change.at is None]
    places = [change.place for change in others]
    for number, (above, place) in enumerate(pairwise(replies.places), 1):
        low, high = sorted((above, place))
        here = others[bisect_right(places, low) : bisect_right(places, high)]
        if here:
            found[number] = sorted([*found.get(number, ()), *here], key=lambda change: change.place)
    return found


def _rewound(replies: ReplyColumns, entries: Sequence[Entry], lines: Mapping[str, Entry] | None) -> set[str]:
    """The keys of the replies that follow another one than the one before them."""
    if lines is None:
        parents: Mapping[str, Entry] = {entry.uuid: entry for entry in entries}
        owners = {uuid: entry.message_id for uuid, entry in parents.items()}
        owners |= {entry.uuid: entry.message_id for entry in entries if entry.message_id is not None}
        owned = [owners.get(uuid) for uuid in replies.uuids]
    else:
        parents = lines
        owned = [lines[uuid].message_id for uuid in replies.uuids]
    billed = set(owned) - {None}
    found: set[str] = set()
    before, find = owned[0] if owned else None, parents.get
    for key, uuid, own in zip(replies.keys[1:], replies.uuids[1:], owned[1:], strict=True):
        # Mostly it follows the result of a call of the one before, or a prompt that follows that one.
        above = find(uuid, _NONE)
        for _ in range(_STEPS):
            above = find(above.parent or "", _NONE)
            if above.message_id is not None:
                break
        if before is None or before == own or above.message_id != before:
            highest = _reply_above(uuid, own, parents, billed)
            if highest is not None and highest != before:
                found.add(key)
        before = own
    return found


def _reply_above(uuid: str, own: str | None, parents: Mapping[str, Entry], billed: set[str | None]) -> str | None:
    """The message id of the billed reply this one follows; ``None`` where the chain ends before one."""
    at: str | None = uuid
    # More steps than lines are a ring.
    for _ in range(len(parents)):
        entry = None if at is None else parents.get(at)
        if entry is None:
            return None
        above = entry.message_id
        if above in billed and above != own:
            return above
        at = entry.parent
    return None
