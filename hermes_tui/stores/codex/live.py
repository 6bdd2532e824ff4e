"""Which counted entries the model still sees: compactions and rollbacks take some away (facts/codex.md section 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from hermes_tui.model import COUNTED_KINDS, MessageKind
from hermes_tui.stores.codex.entries import PROMPTS_KEY, TURN_ENDS, TURN_STARTS, Entry
from hermes_tui.stores.codex.rollout import Line

Link = tuple[str, str | None, MessageKind, Any]
"""One entry: id ('' where nothing asks for it), text key, kind, the link before it. Links are shared, so going back to
an earlier turn is free."""


class LiveEntries:
    """Follows the entries of one file in order."""

    def __init__(self) -> None:
        self._newest: Link | None = None
        self._turns: list[Link | None] = []
        """What was live before each user turn."""
        self._turn_start: Link | None = None
        self._turn_counted = False
        self._in_turn = False
        self._gone: list[tuple[str, str | None]] = []
        """Prompts that compactions dropped: id and text key."""
        self._taken_up = False
        """Turns from before it was put away are not known."""
        self.lost = False
        """A rollback was met that may take back such turns: only the whole file tells what is left."""

    def __iter__(self) -> Iterator[Link]:
        """The entries, newest first."""
        link = self._newest
        while link is not None:
            yield link
            link = link[3]

    def take(self, entry: Entry, key: str) -> tuple[int, int] | None:
        """Take in an entry; of a compaction, how many it kept and dropped."""
        if entry.kept is not None:
            return self._compact(entry.kept)
        if entry.kind == "prompt":
            self._prompt()
        if entry.kind in COUNTED_KINDS:
            self._newest = (key, entry.text_key, entry.kind, self._newest)
        return None

    def add(self, item: str | None, kind: MessageKind) -> None:
        """Take in an entry that is neither prompt nor compaction; one without an id is never kept by a compaction."""
        self._newest = (item or "", None, kind, self._newest)

    def look(self, line: Line) -> None:
        """Take in what a line says of turns, after the entries of that line."""
        if line.type != "event_msg":
            return
        if line.kind in TURN_STARTS:
            self.turn_started()
        elif line.kind in TURN_ENDS:
            self.turn_ended()
        elif line.kind == "thread_rolled_back":
            self._roll_back(line.payload.get("num_turns"))

    def turn_started(self) -> None:
        """A turn began."""
        self._turn_start, self._turn_counted, self._in_turn = self._newest, False, True

    def turn_ended(self) -> None:
        """The turn ended."""
        self._in_turn = False

    def _prompt(self) -> None:
        if not self._in_turn or not self._turn_counted:
            self._turns.append(self._turn_start if self._in_turn else self._newest)
            self._turn_counted = True

    def _compact(self, kept_keys: frozenset[str]) -> tuple[int, int]:
        # Without a call for each link: a long thread is compacted a hundred times, with thousands of them each.
        found: list[Link] = []
        gone: list[tuple[str, str | None]] = []
        all_prompts = PROMPTS_KEY in kept_keys
        dropped = loose = 0
        link = self._newest
        while link is not None:
            if link[0] in kept_keys or link[1] in kept_keys or (all_prompts and link[2] == "prompt"):
                found.append(link)
            else:
                dropped += 1
                loose = len(found)
                if link[2] == "prompt":
                    gone.append(link[:2])
            link = link[3]
        if self._gone and (again := self._taken_back(kept_keys, {link[0] for link in found})):
            found += again
            loose = len(found)
        self._gone += reversed(gone)
        # What is older than all that was dropped stays linked as it is.
        newest = found[loose] if loose < len(found) else None
        for key, text, kind, _ in reversed(found[:loose]):
            newest = (key, text, kind, newest)
        self._newest = newest
        return len(found), dropped

    def _taken_back(self, kept_keys: frozenset[str], living: set[str]) -> list[Link]:
        """Prompts that an earlier compaction dropped and this one names, newest first: the newest decides."""
        named = [gone for gone in self._gone if not kept_keys.isdisjoint(gone)]
        self._gone = [gone for gone in self._gone if gone not in named]
        return [(key, text, "prompt", None) for key, text in reversed(named) if key not in living]

    def _roll_back(self, turns: object) -> None:
        self.lost = self.lost or self._taken_up
        for _ in range(min(turn_count(turns), len(self._turns))):
            self._newest = self._turns.pop()

    def copy(self) -> LiveEntries:
        """The same, which goes on apart."""
        made = copy(self)
        made._turns, made._gone = self._turns.copy(), self._gone.copy()
        return made

    def dump(self) -> dict[str, object]:
        """The state as JSON values. Turns are forgotten: only old files have rollbacks, and those seldom grow."""
        links = list(self)
        links.reverse()
        # In columns: a long thread has ten thousands, and a line that is appended to it brings them here and back.
        columns = [[link[field] for link in links] for field in range(3)]
        return {"links": columns, "lost": self.lost, "gone": self._gone}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state again."""
        for key, text, kind in zip(*state["links"], strict=True):
            self._newest = (key, text, kind, self._newest)
        self._turn_start = self._newest
        self._gone = [(key, text) for key, text in state["gone"]]
        self._taken_up, self.lost = True, state["lost"]


def turn_count(turns: object) -> int:
    """How many turns a rollback takes back."""
    return max(turns, 0) if isinstance(turns, int) and not isinstance(turns, bool) else 1
