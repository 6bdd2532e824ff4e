"""The chain of a transcript: which lines are live, which a compaction put away, which are dead branches.

The rules are facts/claude-code.md section 4; the numbers in comments are its rules. File order is not conversation
order, so everything goes by ``parentUuid``; the place in the file only breaks ties.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from operator import itemgetter
from typing import Final, Literal

from hermes_tui.records import dataclass
from hermes_tui.stores.claude.lines import BRIDGED_TYPE, MESSAGE_TYPES, TURNS, Entry, Fields, text_of

BRIDGE_SECONDS: Final = 5.0
"""A lost parent is replaced by the closest line that is at most so much older (rule 5)."""

LineState = Literal["live", "compacted", "dead-branch"]


@dataclass(frozen=True, slots=True)
class LeafMark:
    """A ``last-prompt`` line that says explicitly where the session stands (rules 2 and 3)."""

    leaf: str | None
    """``None``: the session was cleared."""
    place: int
    """How many message lines stood before it."""


@dataclass(frozen=True, slots=True)
class Preserved:
    """What a compaction boundary says it kept word for word."""

    uuids: tuple[str, ...] = ()
    head: str | None = None
    tail: str | None = None
    anchor: str | None = None
    """The line after which the kept ones are sent."""


def preserved_of(fields: Fields) -> Preserved:
    """The preserved messages or segment a ``compact_boundary`` line names."""
    metadata = fields.get("compactMetadata")
    if not isinstance(metadata, dict):
        return Preserved()
    segment, messages = metadata.get("preservedSegment"), metadata.get("preservedMessages")
    segment = segment if isinstance(segment, dict) else {}
    messages = messages if isinstance(messages, dict) else {}
    named: list[str] = []
    for key in ("allUuids", "uuids"):
        listed = messages.get(key)
        named += [uuid for uuid in listed if isinstance(uuid, str)] if isinstance(listed, list) else []
    return Preserved(
        uuids=tuple(dict.fromkeys(named)),
        head=text_of(segment.get("headUuid")),
        tail=text_of(segment.get("tailUuid")),
        anchor=text_of(messages.get("anchorUuid")) or text_of(segment.get("anchorUuid")),
    )


@dataclass(slots=True)
class Graph:
    """The answer: every line once, in the order of the conversation, with its state."""

    sort: Callable[[], tuple[Entry, ...]] | None
    """Works out the order; ``None`` once that is done, so that what it needed is let go."""
    states: dict[str, LineState]
    chain: tuple[str, ...]
    """Root to leaf, through compactions."""
    boundary: str | None
    """The last compaction on the chain."""
    branches: int
    """Dead branches (rule 7)."""
    kept: dict[str, int]
    """By boundary: user and assistant lines it kept."""
    dropped: dict[str, int]
    """By boundary: user and assistant lines the model no longer sees after it."""
    _order: tuple[Entry, ...] | None = None

    @property
    def order(self) -> tuple[Entry, ...]:
        """Chain order, then place; worked out when first asked for, as a list needs only states."""
        if self._order is None:
            self._order = () if self.sort is None else self.sort()
            self.sort = None
        return self._order


def build(
    entries: Sequence[Entry], mark: LeafMark | None, preserved: dict[str, Preserved], *, sidechain: bool = False
) -> Graph:
    """Find the live branch among the lines of one file that have this ``isSidechain`` flag."""
    return Builder(entries, mark, preserved, sidechain).graph()


def straight_graph(entries: Sequence[Entry]) -> Graph:
    """The graph of lines of which each follows the one before it, the last of which is the leaf."""
    states: dict[str, LineState] = dict.fromkeys(map(_UUID, entries), "live")
    order = tuple(entries)
    return Graph(lambda: order, states, chain=tuple(states), boundary=None, branches=0, kept={}, dropped={})


_UUID: Final = itemgetter(0)
SORT: Final = itemgetter(3, 5)
"""Type and side of an entry, by place: there are thousands."""


class Builder:
    """One run over the lines of a session."""

    def __init__(
        self,
        entries: Sequence[Entry],
        mark: LeafMark | None,
        preserved: dict[str, Preserved],
        sidechain: bool,
        *,
        history: bool = True,
    ) -> None:
        self._history = history
        self._preserved = preserved
        self._mark = mark
        self._nodes: dict[str, Entry] = {}
        """Every uuid with the first line that has it, in file order."""
        self._latest: dict[str, Entry] = {}
        """Those that come again with the last line that has them: its parent counts."""
        self._last_places: dict[str, int] = {}
        """The places of those lines."""
        self._first_places: dict[str, int] | None = None
        self._bridged: dict[str, str | None] = {}
        self._last_line: str | None = None
        self._lines = 0
        self._bounded = False
        """Whether a compaction boundary may be among them."""
        self._by_time: list[tuple[float, int, str]] | None = None
        """Lines by time; sorted when a parent is missing."""
        self._whole = self._take_all(entries, sidechain)
        if not self._whole:
            self._take(entries, sidechain)

    def _take_all(self, entries: Sequence[Entry], sidechain: bool) -> bool:
        """Take lines of which each has a uuid of its own and none is bridged over or stands on the other side.

        A session has thousands of lines, and most are so. ``False``: these are not, and none was taken.
        """
        nodes = {entry[0]: entry for entry in entries}
        sorts = set(map(SORT, entries))
        kinds = {kind for kind, _ in sorts}
        if len(nodes) != len(entries) or any(side != sidechain for _, side in sorts) or BRIDGED_TYPE in kinds:
            return False
        self._nodes = nodes
        self._lines = len(entries) if kinds <= MESSAGE_TYPES else sum(one.type in MESSAGE_TYPES for one in entries)
        self._bounded = "system" in kinds
        self._last_line = next((entry.uuid for entry in reversed(entries) if not entry.detached), None)
        return True

    def _take(self, entries: Sequence[Entry], sidechain: bool) -> None:
        """Take any lines."""
        nodes, place = self._nodes, -1
        self._first_places = places = {}
        for entry in entries:
            kind, uuid = entry.type, entry.uuid
            if kind == BRIDGED_TYPE:
                self._bridged[uuid] = entry.parent
                continue
            place += 1
            if kind in MESSAGE_TYPES:
                self._lines += 1
                if kind == "system":
                    self._bounded = True
            if entry.sidechain != sidechain:
                continue
            if not entry.detached:
                self._last_line = uuid
            if uuid in nodes:
                self._latest[uuid], self._last_places[uuid] = entry, place
            else:
                nodes[uuid], places[uuid] = entry, place

    @property
    def _places(self) -> dict[str, int]:
        """By uuid: which line of the file its first one is; worked out when first asked for."""
        if self._first_places is None:
            self._first_places = {uuid: place for place, uuid in enumerate(self._nodes)}
        return self._first_places

    def _parent(self, uuid: str) -> str | None:
        """What the last line with this uuid says of its parent."""
        return (self._latest.get(uuid) or self._nodes[uuid]).parent

    def _last_place(self, uuid: str) -> int:
        known = self._last_places.get(uuid)
        return self._places[uuid] if known is None else known

    def resuming(self, mark: LeafMark | None) -> Builder:
        """The same lines as a resume looks at them: no further back than the last compaction, from this mark."""
        other = copy(self)
        other._mark, other._preserved, other._history = mark, {}, False
        return other

    @property
    def lines(self) -> dict[str, Entry] | None:
        """Every line by its uuid; ``None`` where some come again, stand on the other side or are bridged over."""
        return self._nodes if self._whole else None

    @property
    def latest(self) -> dict[str, Entry]:
        """Every uuid with the last line that has it: that one counts where they differ (section 2)."""
        return self._nodes | self._latest

    # ------------------------------------------------------------------------------------------------- walking

    def _over_bridges(self, uuid: str | None) -> str | None:
        seen: set[str] = set()
        while uuid is not None and uuid in self._bridged and uuid not in self._nodes and uuid not in seen:
            seen.add(uuid)
            uuid = self._bridged[uuid]
        return uuid

    def leaf(self) -> str | None:
        """Rules 1 to 3; where no user or assistant line is above it (rule 4), the last one of the file stands in."""
        mark = self._mark
        leaf = self._last_line
        if mark is not None and mark.place >= self._lines:
            if mark.leaf is None:
                return None
            if mark.leaf in self._nodes:
                leaf = mark.leaf
        return leaf if leaf is not None and self._nearest_turn(leaf) is not None else self._last_turn()

    def _last_turn(self) -> str | None:
        turns = [(self._last_place(uuid), uuid) for uuid, entry in self._nodes.items()
                 if entry.turn and not entry.detached]  # fmt: skip
        return max(turns)[1] if turns else None

    def _nearest_turn(self, uuid: str | None) -> str | None:
        """The line itself or the closest user or assistant line above it."""
        seen: set[str] = set()
        while uuid is not None and uuid not in seen:
            entry = self._nodes.get(uuid)
            if entry is None:
                return None
            if entry.turn and not entry.detached:
                return uuid
            seen.add(uuid)
            uuid = self._over_bridges(self._parent(uuid))
        return None

    def holds(self, uuid: str) -> bool:
        """Whether this line is on the side the graph is of."""
        return uuid in self._nodes

    def walk(self, leaf: str) -> list[str]:
        """From the leaf to the root, root first."""
        seen: dict[str, None] = {}
        at: str | None = leaf
        nodes, latest, bridged = self._nodes, self._latest, self._bridged
        while at is not None:
            seen[at] = None
            parent = (latest.get(at) or nodes[at])[1] if latest else nodes[at][1]
            # What _before says of most lines.
            at = parent if parent in nodes and parent not in seen and not bridged else self._before(at, seen)
        return list(reversed(seen))

    def _before(self, uuid: str, seen: dict[str, None]) -> str | None:
        entry, parent = self._nodes[uuid], self._over_bridges(self._parent(uuid))
        if parent is None:
            return self._before_boundary(entry, seen) if entry.boundary and self._history else None
        if parent in self._nodes and parent not in seen:
            return parent
        return self._closest_earlier(entry.at, seen)

    def _before_boundary(self, entry: Entry, seen: dict[str, None]) -> str | None:
        """History goes on through ``logicalParentUuid``, unless that is a kept message stored below the boundary."""
        logical = self._over_bridges(entry.logical_parent)
        known = self._nodes.get(logical) if logical is not None else None
        if known is None:
            return self._line_above(self._places[entry.uuid], seen)
        if logical not in seen:
            return logical
        first = self._over_bridges(known.parent)
        return first if first in self._nodes and first not in seen else None

    def _line_above(self, place: int, seen: dict[str, None]) -> str | None:
        """The last line of the file above this one: a boundary is appended to the chain it closes."""
        places = ((self._last_place(uuid), uuid) for uuid in self._nodes if uuid not in seen)
        return max((above for above in places if above[0] < place), default=(0, None))[1]

    def _closest_earlier(self, at: float | None, seen: dict[str, None]) -> str | None:
        """Rule 5, for a parent that is missing or already walked: closest in time; the place breaks a tie."""
        if at is None:
            return None
        if self._by_time is None:
            places = self._places
            self._by_time = sorted(
                (time, places[uuid], uuid) for uuid, other in self._nodes.items() if (time := other.at) is not None
            )
        best: tuple[float, str] | None = None
        for index in range(bisect_right(self._by_time, (at, math.inf)) - 1, -1, -1):
            earlier, _, uuid = self._by_time[index]
            if at - earlier > BRIDGE_SECONDS or (best is not None and earlier < best[0]):
                break
            if uuid not in seen and not self._nodes[uuid].detached:
                best = (earlier, uuid)
        return best[1] if best is not None else None

    # ------------------------------------------------------------------------------------------------- answers

    def graph(self, sent: Sequence[str] = (), begun: str | None = None) -> Graph:
        """Put it together.

        Args:
            sent: what a resume sends, where that is not what the walk from the leaf passes.
            begun: the compaction it begins with then.
        """
        nodes = self._nodes
        leaf = self.leaf()
        chain = self.walk(leaf) if leaf is not None else []
        away: dict[str, tuple[str, ...]] = {}
        if begun is not None:
            before = dict.fromkeys(self.walk(begun))
            chain = [*before, *(uuid for uuid in sent if uuid not in before)]
            away[begun] = tuple(uuid for uuid in sent if uuid in before)
        bounds = [
            place
            for place, uuid in enumerate(chain if self._bounded else ())
            if nodes[uuid].type == "system" and nodes[uuid].boundary
        ]
        kept = {chain[bound]: self._kept(chain, bound) for bound in bounds} | away
        states = self._chain_states(chain, bounds, kept)
        extras = self.parallel(chain)
        for uuid in chain if extras else ():
            for extra in extras.get(self._nodes[uuid].message_id or "", ()):
                states[extra] = states[uuid]
        branches = self._side_lines_and_branches(states)
        return Graph(
            sort=lambda: self._order(chain, extras),
            states=states,
            chain=tuple(chain),
            boundary=chain[bounds[-1]] if bounds else None,
            branches=branches,
            kept={bound: self._turns(uuids) for bound, uuids in kept.items()},
            dropped=self._dropped(chain, bounds, kept),
        )

    def _kept(self, chain: Sequence[str], bound: int) -> tuple[str, ...]:
        """The lines a compaction kept, in the order they had; those stored again below it need no help."""
        preserved = self._preserved.get(chain[bound], Preserved())
        wanted = set(preserved.uuids)
        if not wanted and preserved.head is not None and preserved.tail is not None:
            wanted = self._segment(preserved.head, preserved.tail)
        if not wanted:
            return ()
        above = [uuid for uuid in chain[:bound] if uuid in wanted]
        missing = sorted((self._places[uuid], uuid) for uuid in wanted - set(chain) if uuid in self._nodes)
        return tuple(above + [uuid for _, uuid in missing])

    def _segment(self, head: str, tail: str) -> set[str]:
        """The lines from tail up to head; empty when they do not hang together."""
        found: dict[str, None] = {}
        at: str | None = tail
        while at is not None and at in self._nodes and at not in found:
            found[at] = None
            if at == head:
                return set(found)
            at = self._over_bridges(self._nodes[at].parent)
        return set()

    def _chain_states(
        self, chain: Sequence[str], bounds: Sequence[int], kept: dict[str, tuple[str, ...]]
    ) -> dict[str, LineState]:
        states: dict[str, LineState] = dict.fromkeys(chain, "live")
        if bounds:
            last = bounds[-1]
            states.update(dict.fromkeys(chain[:last], "compacted"))
            states.update(dict.fromkeys(kept[chain[last]], "live"))
        return states

    def parallel(self, chain: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Rule 6: blocks of one reply are lines of their own, each with its result; the walk passes only one of them.

        Returns:
            by message id, the lines that belong to the chain as well: blocks first, then results.
        """
        nodes = self._nodes
        if len(chain) == len(nodes):
            return {}
        walked = set(chain)
        # Nearly every line of a long session is walked: only the others are looked at one by one.
        beside = [(uuid, entry) for uuid, entry in nodes.items() if uuid not in walked]
        if not beside:
            return {}
        replies = {nodes[uuid].message_id for uuid in chain}
        replies.discard(None)
        extras: dict[str, list[str]] = {}
        for uuid, entry in beside:
            message_id = entry.message_id
            if message_id is not None and message_id in replies:
                extras.setdefault(message_id, []).append(uuid)
        for uuid, entry in beside:
            call = nodes.get(self._over_bridges(self._parent(uuid)) or "") if entry.has_result else None
            message_id = None if call is None else call.message_id
            if message_id is not None and message_id in replies:
                extras.setdefault(message_id, []).append(uuid)
        return {message_id: tuple(uuids) for message_id, uuids in extras.items()}

    def _side_lines_and_branches(self, states: dict[str, LineState]) -> int:
        """Rule 7: give every other line its state; count the branches that are no mere side lines."""
        if len(states) == len(self._nodes):
            return 0
        for uuid in self._nodes:
            owner = None if uuid in states else self._owner(uuid, states)
            if owner is not None:
                states[uuid] = states[owner]
        for uuid in self._nodes:
            states.setdefault(uuid, "dead-branch")
        # A line of a type nobody knows stands in no branch.
        dead = [
            uuid for uuid, state in states.items() if state == "dead-branch" and self._nodes[uuid].type in MESSAGE_TYPES
        ]
        parents = {self._over_bridges(self._parent(uuid)) for uuid in dead}
        leaves = [uuid for uuid in dead if uuid not in parents]
        return len({self._nearest_turn(uuid) for uuid in leaves} - {None})

    def _owner(self, uuid: str, states: dict[str, LineState]) -> str | None:
        """The live line a side line hangs on; ``None`` when a turn of its own lies between: a branch."""
        seen: set[str] = set()
        at: str | None = uuid
        while at is not None and at in self._nodes and at not in seen:
            if at in states:
                return at
            entry = self._nodes[at]
            if entry.boundary:
                logical = self._over_bridges(entry.logical_parent)
                return logical if logical in states else None
            if entry.turn and not entry.detached:
                return None
            seen.add(at)
            at = self._over_bridges(self._parent(at))
        return None

    def _order(self, chain: Sequence[str], extras: dict[str, tuple[str, ...]]) -> tuple[Entry, ...]:
        """Every line after what it follows, otherwise by place: a topological order with the place as the tie break."""
        if self._stands_in_order(chain, extras):
            return tuple(self._nodes.values())
        after: dict[str, set[str]] = {}
        for uuid, entry in self._nodes.items():
            parent = self._over_bridges(entry.parent)
            after[uuid] = {parent} if parent in self._nodes and parent != uuid else set()
        for uuid, others in self._chain_links(chain, extras):
            after[uuid] = set(others)
        return tuple(self._nodes[uuid] for uuid in _sorted(after, self._places))

    def _stands_in_order(self, chain: Sequence[str], extras: dict[str, tuple[str, ...]]) -> bool:
        """Whether every line already stands behind what it follows, as in most files; nodes are kept by place."""
        places = self._places
        for uuid, entry in self._nodes.items():
            parent = self._over_bridges(entry.parent) if self._bridged else entry.parent
            if parent in places and places[parent] > places[uuid]:
                return False
        return all(
            places[other] < places[uuid] for uuid, others in self._chain_links(chain, extras) for other in others
        )

    def _chain_links(
        self, chain: Sequence[str], extras: dict[str, tuple[str, ...]]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """For each line of the chain that stays at its place: what it must stand behind."""
        previous: str | None = None
        open_groups: list[str] = []
        for uuid in chain:
            entry = self._nodes[uuid]
            if uuid in self._latest and entry.parent != self._parent(uuid):
                continue  # kept by a compaction and stored again: it stays at its first place
            others: list[str] = []
            if previous is not None:
                others.append(previous)
            elif (parent := self._over_bridges(entry.parent)) in self._nodes and parent != uuid:
                others.append(str(parent))
            if not (entry.message_id or entry.has_result):
                others += (other for group in open_groups for other in extras[group])
                open_groups = []
            elif entry.message_id is not None and entry.message_id not in open_groups:
                others += (other for group in open_groups for other in extras[group])
                open_groups = [entry.message_id] if entry.message_id in extras else []
            yield uuid, others
            previous = uuid

    def _turns(self, uuids: Sequence[str]) -> int:
        nodes = self._nodes
        return sum(1 for uuid in uuids if (entry := nodes[uuid]).type in TURNS and not entry.meta)

    def _dropped(self, chain: Sequence[str], bounds: Sequence[int], kept: dict[str, tuple[str, ...]]) -> dict[str, int]:
        """What was in the context before each boundary and is not after it."""
        dropped: dict[str, int] = {}
        start, carried = 0, 0
        for bound in bounds:
            held = carried + self._turns(chain[start:bound])
            carried = self._turns(kept[chain[bound]])
            dropped[chain[bound]] = max(0, held - carried)
            start = bound + 1
        return dropped


def _sorted(after: dict[str, set[str]], places: dict[str, int]) -> list[str]:
    """Topological order, the smallest place first; where lines wait for each other the smallest place breaks it."""
    waiting = {uuid: {other for other in others if other in after} for uuid, others in after.items()}
    followers: dict[str, list[str]] = {}
    for uuid, others in waiting.items():
        for other in others:
            followers.setdefault(other, []).append(uuid)
    ready = [(places[uuid], uuid) for uuid, others in waiting.items() if not others]
    heapq.heapify(ready)
    stuck = iter(sorted(waiting, key=places.__getitem__))
    result: dict[str, None] = {}
    while len(result) < len(waiting):
        if not ready:
            ready.append(next((places[uuid], uuid) for uuid in stuck if uuid not in result))
        _, uuid = heapq.heappop(ready)
        if uuid in result:
            continue
        result[uuid] = None
        for follower in followers.get(uuid, ()):
            waiting[follower].discard(uuid)
            if not waiting[follower] and follower not in result:
                heapq.heappush(ready, (places[follower], follower))
    return list(result)
