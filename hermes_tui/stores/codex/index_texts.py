"""What a full-text index takes from a rollout: each thing once, although both dialects say most things twice.

The transcript shows the raw response item and an event only where its twin was lost (entries.py). Here an event waits a
few lines for a raw item with the same text; so the index holds one of them, or both where they lie far apart.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import LOOKAHEAD, QUIET_EVENTS
from hermes_tui.stores.codex.items import Nature
from hermes_tui.stores.codex.oldest import first_values
from hermes_tui.stores.codex.rollout import SETTINGS_TYPES, Line, line_of, mapping, string
from hermes_tui.stores.codex.transcript import shown_text
from hermes_tui.stores.log_texts import LogText, TextPhase
from hermes_tui.stores.matching import compared_texts

LOOKED_AT: Final = 300
"""Bytes of a line in which its type and its payload's type stand."""
_TYPE: Final = re.compile(rb'"type"\s*:\s*"([A-Za-z_]{1,60})"')
_TALK: Final = frozenset({b"message", b"user_message", b"agent_message", b"reasoning", b"agent_reasoning"})
_NOTHING: Final = frozenset(kind.encode() for kind in (*SETTINGS_TYPES, "token_usage_record"))
_QUIET: Final = frozenset(kind.encode() for kind in QUIET_EVENTS)
_TALK_ITEM: Final = re.compile(rb'"item"\s*:\s*\{\s*"type"\s*:\s*"(?:UserMessage|AgentMessage|Reasoning|Plan)"')


class _Held(NamedTuple):
    """An event that waits for its raw twin."""

    text: LogText
    keys: tuple[str, ...]
    due: int


class CodexTexts:
    """Takes the lines of one phase in order."""

    def __init__(self) -> None:
        self._count = 0
        self._raw: deque[tuple[int, tuple[str, ...]]] = deque()
        self._near: Counter[str] = Counter()
        self._held: deque[_Held] = deque()

    def phase(self, line: bytes) -> TextPhase | None:
        """See :class:`LogTexts`."""
        head = line[:LOOKED_AT]
        kinds = _TYPE.findall(head)
        if not kinds:
            return "tools"
        if kinds[0] in _NOTHING or (kinds[0] == b"event_msg" and len(kinds) > 1 and kinds[1] in _QUIET):
            return None
        inner = kinds[1] if len(kinds) > 1 and kinds[0] in (b"response_item", b"event_msg") else kinds[0]
        if inner == b"item_completed":
            return "talk" if _TALK_ITEM.search(line[: 2 * LOOKED_AT]) else "tools"
        return "talk" if inner in _TALK or kinds[0] == b"compacted" else "tools"

    def texts(self, record: Record) -> Iterator[LogText]:
        """See :class:`LogTexts`."""
        self._count += 1
        for value in first_values(record):
            line = line_of(value)
            if line is None:
                continue
            said = items.nature(line.payload) if line.type == "response_item" else None
            text = _text(line, said)
            if text:
                yield from self._take(line, said, LogText(record, text, line.at))
        yield from self._due()

    def rest(self) -> Iterator[LogText]:
        """See :class:`LogTexts`."""
        while self._held:
            yield self._held.popleft().text

    def _take(self, line: Line, said: Nature | None, text: LogText) -> Iterator[LogText]:
        keys = tuple(_keys(line, said, text.text))
        if line.type == "event_msg":
            if not any(key in self._near for key in keys):
                self._held.append(_Held(text, keys, self._count + LOOKAHEAD))
            return
        if self._held:
            self._held = deque(held for held in self._held if not set(keys) & set(held.keys))
        self._raw.append((self._count + LOOKAHEAD, keys))
        self._near.update(keys)
        yield text

    def _due(self) -> Iterator[LogText]:
        while self._held and self._held[0].due <= self._count:
            yield self._held.popleft().text
        while self._raw and self._raw[0][0] <= self._count:
            for key in self._raw.popleft()[1]:
                self._near[key] -= 1
                if not self._near[key]:
                    del self._near[key]


def _keys(line: Line, said: Nature | None, text: str) -> Iterator[str]:
    """What a raw item and its event have in common: the text, or the id of the answer or of the call it answers."""
    yield f"t{text}"
    if line.type == "event_msg":
        for holder in (mapping(line.payload.get("item")), line.payload):
            yield from (f"i{name}" for key in ("id", "call_id") if (name := string(holder.get(key))) is not None)
    elif said is not None and said.kind != "tool-call":
        # A call names the same id as its output, whose event must not vanish when the output was lost.
        name = said.call_id or string(line.payload.get("id"))
        if name is not None:
            yield f"i{name}"


def _text(line: Line, said: Nature | None) -> str:
    if said is None:
        return shown_text(line) or ""
    # As shown_text does it.
    shown = items.prompt_text(line.payload) if said.kind == "prompt" else items.item_text(line.payload)
    return "\n".join(compared_texts(said.kind, said.name, shown)) if shown else ""
