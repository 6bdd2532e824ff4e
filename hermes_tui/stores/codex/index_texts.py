"""What a full-text index takes from a rollout: each thing once, although both dialects say most things twice.

The transcript shows the raw response item and an event only where its twin was lost (entries.py). Here an event waits a
few lines for a raw item with the same text; so the index holds one of them, or both where they lie far apart. What the
transcript shows must be in the index, so a twin counts here only where it counts there: within a turn, and a text for
one event.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from hermes_tui.model import MessageKind
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import LOOKAHEAD, QUIET_EVENTS, TURN_STARTS
from hermes_tui.stores.codex.items import Nature
from hermes_tui.stores.codex.oldest import first_values
from hermes_tui.stores.codex.rollout import SETTINGS_TYPES, Line, line_of, mapping, string
from hermes_tui.stores.codex.transcript import shown_text
from hermes_tui.stores.log_texts import LogText, TextPhase
from hermes_tui.stores.matching import compared_texts

LOOKED_AT: Final = 300
"""Bytes of a line in which its type and its payload's type stand."""
_TYPE: Final = re.compile(rb'"type"\s*:\s*"([A-Za-z_]{1,60})"')
_TALK: Final = frozenset({b"message", b"user_message", b"agent_message"})
_NOTHING: Final = frozenset(kind.encode() for kind in (*SETTINGS_TYPES, "token_usage_record"))
_QUIET: Final = frozenset(kind.encode() for kind in QUIET_EVENTS)
_STARTS: Final = frozenset(kind.encode() for kind in TURN_STARTS)
_MARKS: Final = {"prompt": "u", "reply": "r", "reasoning": "s"}
_EVENT_MARKS: Final = {
    "user_message": "u", "UserMessage": "u", "agent_message": "r", "AgentMessage": "r", "agent_reasoning": "s",
    "agent_reasoning_raw_content": "s", "Reasoning": "s",
}  # fmt: skip
"""What an event says, as its raw item says it."""
_TWINS: Final = frozenset({"reply", "reasoning", "tool-result"})
"""Kinds of raw items that events of the same id repeat."""
_GLUED: Final = b'}{"'
"""Stands in a line that holds another record behind its first: the transcript shows that too."""
_TALK_ITEM: Final = re.compile(rb'"item"\s*:\s*\{\s*"type"\s*:\s*"(?:UserMessage|AgentMessage|Plan)"')


class _Held(NamedTuple):
    """An event that waits for its raw twin."""

    text: LogText
    keys: tuple[str, ...]
    due: int


_Said = tuple[int, list[str]]
"""A raw item that was met: the line up to which events may be its twins, what they may still know it by. A bare tuple,
for there are many."""


class CodexTexts:
    """Takes the lines of one phase in order."""

    def __init__(self) -> None:
        self._raw: deque[_Said] = deque()
        self._held: deque[_Held] = deque()

    def phase(self, line: bytes) -> TextPhase | None:
        """See :class:`LogTexts`."""
        head = line[:LOOKED_AT]
        kinds = _TYPE.findall(head)
        if not kinds:
            return "tools"
        if kinds[0] == b"event_msg" and len(kinds) > 1 and kinds[1] in _STARTS:
            return "both"  # nothing to read, but what lies before it is no twin of what comes
        if kinds[0] in _NOTHING or (kinds[0] == b"event_msg" and len(kinds) > 1 and kinds[1] in _QUIET):
            return "talk" if _GLUED in line else None
        inner = kinds[1] if len(kinds) > 1 and kinds[0] in (b"response_item", b"event_msg") else kinds[0]
        if inner == b"item_completed":
            return "talk" if _TALK_ITEM.search(line[: 2 * LOOKED_AT]) else "tools"
        return "talk" if inner in _TALK or kinds[0] == b"compacted" else "tools"

    def texts(self, record: Record) -> Iterator[LogText]:
        """See :class:`LogTexts`."""
        yield from self._due(record.line)
        for value in first_values(record):
            line = line_of(value)
            if line is None:
                continue
            if line.type == "event_msg" and line.kind in TURN_STARTS:
                yield from self.turn_started()
                continue
            said = items.nature(line.payload) if line.type == "response_item" else None
            text = _text(line, said)
            if text:
                keys = tuple(_keys(line, said, text))
                yield from self._take(LogText(record, text, line.at), keys, event=line.type == "event_msg")

    def turn_started(self) -> list[LogText]:
        """A turn began: what was before it is no twin of what comes."""
        found = list(self.rest()) if self._held else []
        self._raw.clear()
        return found

    @property
    def holds(self) -> bool:
        """Whether events wait for their twins."""
        return bool(self._held)

    def met(self, line: int, keys: tuple[str, ...]) -> None:
        """A raw item with these keys (:func:`raw_keys`) was met; no event that waits is its twin."""
        self._pass(line)
        self._raw.append((line + LOOKAHEAD, list(keys)))

    def told(self, line: int, keys: tuple[str, ...]) -> bool:
        """Take in an event with these keys if a raw item before it says the same and nothing waits."""
        return not self._held and self._told(keys, line)

    def known(self, text: LogText, keys: tuple[str, ...], *, event: bool) -> list[LogText]:
        """The same as :meth:`texts` for a line whose text and keys are known already."""
        found = list(self._due(text.record.line))
        return found + self._take(text, keys, event=event) if text.text else found

    def rest(self) -> Iterator[LogText]:
        """See :class:`LogTexts`."""
        while self._held:
            yield self._held.popleft().text

    def _take(self, text: LogText, keys: tuple[str, ...], *, event: bool) -> list[LogText]:
        line = text.record.line
        if event:
            if not self._told(keys, line):
                self._held.append(_Held(text, keys, line + LOOKAHEAD))
            return []
        before: list[LogText] = []
        if self._held:
            twin = next((held for held in self._held if not set(keys).isdisjoint(held.keys)), None)
            if twin is not None:
                self._held.remove(twin)
                before = [] if line <= twin.text.record.line + 1 else [twin.text]
                # Its text was told by that event; by its id every event may know it.
                keys = tuple(key for key in keys if key[0] == "i" or key not in twin.keys)
        self.met(line, keys)
        return [*before, text]

    def _told(self, keys: tuple[str, ...], line: int) -> bool:
        """Whether a raw item before this line says the same; a text is told by one event only."""
        self._pass(line)
        for key in reversed(keys):
            for due, left in self._raw:
                # A raw prompt may have been given as context in between, where its turn ended.
                if key in left and (key[0] != "u" or line <= due - LOOKAHEAD + 1):
                    if key[0] != "i":
                        left.remove(key)
                    return True
        return False

    def _due(self, line: int) -> Iterator[LogText]:
        while self._held and self._held[0].due <= line:
            yield self._held.popleft().text

    def _pass(self, line: int) -> None:
        """Forget raw items that lie too far back for events behind this line."""
        said = self._raw
        while said and said[0][0] <= line:
            said.popleft()


def raw_keys(kind: MessageKind, text: str, item_id: str | None) -> tuple[str, ...]:
    """What a raw reply or thought has in common with its event."""
    said = _MARKS.get(kind, "t") + text
    return (said,) if item_id is None else (said, f"i{item_id}")


def event_keys(kind: str, text: str, item_id: str | None = None) -> tuple[str, ...]:
    """What an event of this kind, or of an item of this kind, has in common with its raw item."""
    said = _EVENT_MARKS[kind] + text
    return (said,) if item_id is None else (said, f"i{item_id}")


def _keys(line: Line, said: Nature | None, text: str) -> Iterator[str]:
    """What a raw item and its event have in common: the text, or the id of the answer or of the call it answers."""
    if line.type == "event_msg":
        yield _EVENT_MARKS.get(str(mapping(line.payload.get("item")).get("type") or line.kind), "t") + text
        for holder in (mapping(line.payload.get("item")), line.payload):
            yield from (f"i{name}" for key in ("id", "call_id") if (name := string(holder.get(key))) is not None)
        return
    yield ("t" if said is None else _MARKS.get(said.kind, "t")) + text
    if said is not None and said.kind in _TWINS:
        # A call names the same id as its output, whose event must not vanish when the output was lost.
        name = said.call_id if said.kind == "tool-result" else string(line.payload.get("id"))
        if name is not None:
            yield f"i{name}"


def _text(line: Line, said: Nature | None) -> str:
    if said is None:
        return shown_text(line) or ""
    # As shown_text does it.
    shown = items.prompt_text(line.payload) if said.kind == "prompt" else items.item_text(line.payload)
    return "\n".join(compared_texts(said.kind, said.name, shown)) if shown else ""
