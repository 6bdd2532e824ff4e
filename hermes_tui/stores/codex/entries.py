"""Turning the lines of a rollout into the entries of a transcript, each shown once (facts/codex.md sections 2, 3).

Both dialects say most things twice: as a raw response item and as an event beside it. The raw item is what the model
sees, so it is the entry; an event counts where its raw twin was lost. Twins lie a few lines apart, so an entry that
waits for its twin holds back what follows it for at most :data:`LOOKAHEAD` lines, or until the turn ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from hermes_tui.model import MessageKind
from hermes_tui.storage.jsonl import GIANT_LINE, Record
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.items import Nature
from hermes_tui.stores.codex.rollout import RESPONSE_ITEMS, SETTINGS_TYPES, Line, mapping, string

LOOKAHEAD: Final = 64
"""Lines within which a twin must come; the program writes them next to each other."""
GIVEN: Final = -1
TITLE_LENGTH: Final = 1000
"""Characters of a prompt that are kept for title and preview."""
QUIET_EVENTS: Final = frozenset(
    {"token_count", "task_started", "turn_started", "thread_settings_applied", "thread_name_updated"}
)
"""Events without anything to read."""
TURN_ENDS: Final = frozenset({"task_complete", "turn_complete", "turn_aborted"})
TURN_STARTS: Final = frozenset({"task_started", "turn_started"})
_TWIN_EVENTS: Final = {
    "patch_apply_end": Nature("tool-result", None, "apply_patch"),
    "mcp_tool_call_end": Nature("tool-result", None),
    "web_search_end": Nature("tool-call", None, "web_search"),
    "image_generation_end": Nature("tool-call", None, "image_generation"),
    "exec_command_end": Nature("tool-result", None, "exec_command"),
}
_NOTICES: Final = frozenset(
    {
        "entered_review_mode", "exited_review_mode", "thread_goal_updated", "turn_aborted",
        "error", "warning", "stream_error", "sub_agent_activity", "undo_completed", "view_image_tool_call",
    }
)  # fmt: skip
_GIANT_TYPE: Final = re.compile(
    rb'"type"\s*:\s*"(?P<outer>[a-z_]+)"\s*,\s*"payload"\s*:\s*\{\s*"type"\s*:\s*"(?P<inner>[A-Za-z_]+)"'
)
_GIANT_EVENTS: Final = {
    "UserMessage": Nature("prompt", "user"), "user_message": Nature("prompt", "user"),
    "AgentMessage": Nature("reply", "assistant"), "agent_message": Nature("reply", "assistant"),
    "Reasoning": Nature("reasoning", None), "agent_reasoning": Nature("reasoning", None),
    "CommandExecution": Nature("tool-result", None, "CommandExecution"),
    "FileChange": Nature("tool-result", None, "FileChange"), "McpToolCall": Nature("tool-result", None, "McpToolCall"),
    **{kind: said for kind, said in _TWIN_EVENTS.items() if said.kind == "tool-result"},
}  # fmt: skip
"""What events say that have a raw twin, by their type."""
_GIANT_EVENT: Final = re.compile(
    rb'"type"\s*:\s*"event_msg"\s*,\s*"payload"\s*:\s*\{\s*"type"\s*:\s*"(?:item_completed"[^{]*"item"\s*:\s*\{\s*'
    rb'(?:"id"\s*:\s*"[^"]*"\s*,\s*)?"type"\s*:\s*"(?P<item>[A-Za-z]+)"|(?P<event>[a-z_]+)")'
)
GIANT_REACH: Final = 600
"""Bytes of a giant line within which its type stands."""
_GIANT_BARE: Final = re.compile(rb'"type"\s*:\s*"([a-z_]+)"')
_GIANT_WORDS: Final = {
    key: re.compile(rb'"' + key.encode() + rb'"\s*:\s*"([^"\\]{1,200})"') for key in ("role", "id", "call_id", "name")
}


class Entry:
    """One entry of a transcript on its way: where it is, what it is, and whether it still waits for its twin."""

    __slots__ = (
        "call_id", "copied", "dead", "due", "event", "id", "kept", "kind", "length", "line", "name", "offset",
        "part", "role", "stamp", "text",
    )  # fmt: skip

    def __init__(self, record: Record, said: Nature, stamp: str | None, item_id: str | None, part: int = 0) -> None:
        self.id = item_id
        """The item's own id; ``None``: its place stands for it."""
        self.part = part
        self.kind: MessageKind = said.kind
        self.role = said.role
        self.name = said.name
        self.call_id = said.call_id
        self.stamp = stamp
        """When it was written, as the line says it."""
        self.line = record.line
        self.offset = record.offset
        self.length = record.length
        self.text: str | None = None
        """Of prompts, the beginning; else ``None``."""
        self.copied = False
        """Stands in the file but came from another thread."""
        self.event = False
        """Made from an event whose raw twin is not there."""
        self.dead = False
        """Its twin took its place."""
        self.due = 0
        """The line count at which it no longer waits; 0: it does not wait; :data:`GIVEN`: it waited in vain."""
        self.kept: frozenset[str] | None = None
        """Of a compaction, what stayed in the model's view: ids, and texts of prompts (:func:`kept_by`)."""

    @property
    def text_key(self) -> str | None:
        """How a prompt without an id is known again in a replacement history."""
        return None if self.text is None or self.kind != "prompt" else TEXT_KEY + self.text

    def dump(self) -> list[object]:
        """The state as JSON values."""
        kept = None if self.kept is None else sorted(self.kept)
        return [*(getattr(self, name) for name in self.__slots__ if name != "kept"), kept]

    @classmethod
    def restore(cls, values: Sequence[Any]) -> Entry:
        """Take up the state again."""
        entry = cls.__new__(cls)
        names = [name for name in cls.__slots__ if name != "kept"]
        for name, value in zip(names, values[:-1], strict=True):
            setattr(entry, name, value)
        entry.kept = None if values[-1] is None else frozenset(values[-1])
        return entry


TEXT_KEY: Final = "t:"
GIANT_KEY: Final = "g:"
"""How an event without an id waits for a raw item that is too long as well."""


PROMPTS_KEY: Final = "p:"
"""Stands for every prompt before a compaction."""


def is_lost(record: Record) -> bool:
    """Whether the program drops a line: what is no JSON, and what is no UTF-8 (facts/codex.md section 7)."""
    return record.value is None or (record.problem is not None and record.length <= len(record.raw))


def kept_by(payload: Mapping[str, object]) -> frozenset[str]:
    """What a ``compacted`` record leaves in the model's view, by id, or by text where items have no ids.

    One of 2025, which has only a message, leaves all prompts (facts/codex.md section 9, step 3).
    """
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        return frozenset((PROMPTS_KEY,))
    found: set[str] = set()
    for item in history:
        # Thousands of items a time, nearly all with an id: no call for each.
        item_id = item.get("id") if type(item) is dict else None
        if type(item_id) is str and item_id:
            found.add(item_id)
        elif mapping(item).get("role") == "user":
            found.add(TEXT_KEY + items.prompt_text(mapping(item))[:TITLE_LENGTH])
    return frozenset(found)


Sink = Callable[[Entry], None]


class Assembler:
    """Takes lines in file order and gives entries in file order, twins joined."""

    def __init__(self, sink: Sink, said: Sink | None = None) -> None:
        self._sink = sink
        self._said_at_once = said
        """Told of raw items when they are met, even while they are held back."""
        self._queue: deque[Entry] = deque()
        self._count = 0
        self._user_events = False
        self._calls: dict[str, str] = {}
        self._new_turn()

    def _new_turn(self) -> None:
        self._raw: dict[str, int] = {}
        """Raw items of this turn by id or text, how often they are not yet claimed by an event."""
        self._waiting: dict[str, list[Entry]] = {}
        """Events of this turn that wait for a raw twin, by id or text."""
        self._users: list[tuple[Entry, str, str]] = []
        """Raw user messages of this turn not yet confirmed by an event: entry, typed text, whole text."""
        self._compacted = False

    # ------------------------------------------------------------------------------------------------ feeding

    @property
    def waits(self) -> bool:
        """Whether entries are held back."""
        return bool(self._queue)

    def feed(self, line: Line, record: Record, *, copied: bool = False, part: int = 0) -> None:
        """Take in one line; ``part`` is its number where one stored line holds several."""
        self._count += 1
        before = len(self._queue)
        kind = line.type
        if kind == "response_item":
            self._item(line, record)
        elif kind == "event_msg":
            self._event(line, record)
        elif kind == "compacted":
            # What came before the cut is counted before it.
            self._end_waiting()
            self._compacted = True
            entry = Entry(record, Nature("summary", "user"), line.stamp, None)
            if not is_lost(record):
                # The program loses a compaction in a damaged line, so what came before stays in its view.
                entry.kept = kept_by(line.payload)
            self._put(entry)
        elif kind not in SETTINGS_TYPES:
            self._put(Entry(record, Nature("unknown", None), line.stamp, None))
        if (copied or part) and self._queue:
            for place in range(before, len(self._queue)):
                self._queue[place].copied = copied
                self._queue[place].part = part
        if self._queue:
            self._drain()

    def feed_giant(self, record: Record, *, copied: bool = False) -> None:
        """Take in a line that was not loaded: what it is, is told by its head."""
        self._count += 1
        before = len(self._queue)
        told = giant_event(record)
        if told is not None:
            self._giant_event(told)
        elif (entry := giant_entry(record)) is not None:
            if entry.kind == "prompt":
                entry.due = self._count + LOOKAHEAD
                self._users.append((entry, "", ""))
            for key in (entry.id, entry.call_id):
                if key is not None and entry.kind != "tool-call":
                    self._met(key)
            self._claim(GIANT_KEY + entry.kind)
            self._put(entry)
        for place in range(before, len(self._queue)):
            self._queue[place].copied = copied
        self._drain()

    def _giant_event(self, entry: Entry) -> None:
        """An event whose text was not loaded: its twin is known by its id, else by being as long."""
        if entry.kind != "prompt":
            name = entry.call_id or entry.id
            self._twin(entry, (GIANT_KEY + entry.kind if name is None else f"i{name}",))
            return
        self._user_events = True
        for place in range(len(self._users) - 1, -1, -1):
            raw = self._users[place][0]
            if raw.length > GIANT_LINE:
                raw.kind, raw.due = "prompt", 0
                del self._users[place]
                return
        entry.event = True
        self._put(entry)

    def finish(self) -> None:
        """No more lines: nothing waits any longer."""
        for entry in self._queue:
            entry.due = min(entry.due, 1)
        self._count = max(self._count, 1)
        self._drain()

    def dump(self) -> dict[str, object]:
        """The state as JSON values."""
        queue = list(self._queue)
        place = {id(entry): number for number, entry in enumerate(queue)}
        return {
            "queue": [entry.dump() for entry in queue], "count": self._count, "events": self._user_events,
            "calls": self._calls, "raw": self._raw, "compacted": self._compacted,
            "waiting": {
                key: numbers
                for key, entries in self._waiting.items()
                if (numbers := [place[id(entry)] for entry in entries if id(entry) in place])
            },
            "users": [[place.get(id(entry), entry.dump()), typed, whole] for entry, typed, whole in self._users],
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up the state again."""
        queue = [Entry.restore(values) for values in state["queue"]]
        self._queue = deque(queue)
        self._count, self._user_events = state["count"], state["events"]
        self._calls, self._raw, self._compacted = state["calls"], state["raw"], state["compacted"]
        self._waiting = {key: [queue[number] for number in numbers] for key, numbers in state["waiting"].items()}
        self._users = [
            (queue[known] if isinstance(known, int) else Entry.restore(known), typed, whole)
            for known, typed, whole in state["users"]
        ]

    @property
    def open_calls(self) -> Mapping[str, str]:
        """Names of calls without an output so far, by call id."""
        return self._calls

    def open_call(self, payload: Mapping[str, object]) -> None:
        """A call was met elsewhere."""
        call_id = string(payload.get("call_id"))
        if call_id is not None:
            self._calls[call_id] = string(payload.get("name")) or ""

    def open(self, call_id: str, name: str) -> None:
        """A call of this id was met elsewhere."""
        self._calls[call_id] = name

    def close(self, call_id: str) -> None:
        """The output of the call of this id was met elsewhere."""
        self._calls.pop(call_id, None)

    def close_call(self, payload: Mapping[str, object]) -> None:
        """The output of a call was met elsewhere."""
        call_id = string(payload.get("call_id"))
        if call_id is not None:
            self._calls.pop(call_id, None)

    def turn_started(self) -> None:
        """A turn began: nothing that comes is a twin of what was before."""
        self._end_waiting()
        self._new_turn()

    def user(self, entry: Entry, typed: str, whole: str, *, sure: bool) -> None:
        """Take in a raw user message as :meth:`feed` does.

        Args:
            entry: its entry, prompt or context.
            typed: its prompt (:func:`items.prompt_text`).
            whole: all its text (:func:`items.message_text`).
            sure: it is a prompt whether an event says so or not.
        """
        self._count += 1
        self._user(entry, typed, whole, sure=sure)
        self._put(entry)
        self._drain()

    @property
    def newest_typed(self) -> str | None:
        """What the newest raw message says that no event confirmed yet; ``None``: there is none."""
        return self._users[-1][1] if self._users else None

    def confirm(self, text: str) -> None:
        """Take in an event that says what that message says."""
        self._count += 1
        self._user_events = True
        self._confirm(text)
        self._drain()

    def prompt_told(self, entry: Entry, text: str) -> None:
        """Take in an event that says what the user typed."""
        self._count += 1
        self._prompted(entry, text)
        self._drain()

    def _put(self, entry: Entry, *, wait: bool = False) -> None:
        if wait:
            entry.due = self._count + LOOKAHEAD
        elif self._said_at_once is not None:
            self._said_at_once(entry)
        self._queue.append(entry)

    def _drain(self) -> None:
        queue = self._queue
        while queue:
            entry = queue[0]
            if not entry.dead:
                if entry.due > self._count:
                    return
                if entry.due and entry.kind == "prompt" and not entry.event and self._user_events:
                    # Every prompt of this file has its event; a user message without one was injected.
                    entry.kind = "context"
                if entry.due:
                    entry.due = GIVEN
                self._sink(entry)
            queue.popleft()

    def _end_waiting(self) -> None:
        for entry in self._queue:
            if entry.due:
                entry.due = min(entry.due, self._count)

    # -------------------------------------------------------------------------------------------------- items

    def _item(self, line: Line, record: Record) -> None:
        payload = line.payload
        said = items.nature(payload)
        item_id = string(payload.get("id"))
        entry = Entry(record, said, line.stamp, item_id)
        if said.kind in ("prompt", "context") and said.role == "user":
            prompt, typed, whole = items.user_said(payload)
            self._user(entry, typed, whole, sure=prompt is not None)
        elif said.kind == "reply":
            self._said(item_id, (items.message_text(payload),), "r")
        elif said.kind == "reasoning":
            self._said(item_id, items.reasoning_texts(payload), "s")
        elif said.kind == "tool-call":
            self._call(entry, item_id)
        elif said.kind == "tool-result" and said.call_id is not None:
            entry.name = said.name or self._calls.pop(said.call_id, None)
            self._met(said.call_id)
        self._put(entry)

    def _call(self, entry: Entry, item_id: str | None) -> None:
        if entry.call_id is not None and entry.name is not None:
            self._calls[entry.call_id] = entry.name
        if item_id is not None:
            self._met(item_id)

    def _user(self, entry: Entry, typed: str, whole: str, *, sure: bool) -> None:
        if entry.kind == "context":
            return
        entry.text = typed[:TITLE_LENGTH]
        if self._claim(f"u{typed}"):
            return
        self._users.append((entry, typed, whole))
        if not sure:
            entry.due = self._count + LOOKAHEAD

    def _said(self, item_id: str | None, texts: Iterable[str], mark: str) -> None:
        """A raw reply or reasoning: it takes the place of the events that wait for it, or is remembered for them."""
        if item_id is not None:
            self._met(item_id)
        for text in texts:
            if not self._claim(mark + text):
                self._note(mark + text)

    def _met(self, item_id: str) -> None:
        """A raw item came: every event of its id, before or after it, is its twin."""
        key = f"i{item_id}"
        self._claim(key)
        self._raw[key] = 1

    def _note(self, key: str) -> None:
        self._raw[key] = self._raw.get(key, 0) + 1

    def _claim(self, key: str) -> bool:
        """The raw twin of a waiting event came: the event is no entry."""
        waiting = self._waiting.get(key)
        while waiting:
            event = waiting.pop(0)
            if event.due != GIVEN:
                event.dead = True
                return True
        return False

    # ------------------------------------------------------------------------------------------------- events

    def _event(self, line: Line, record: Record) -> None:
        payload = line.payload
        kind = line.kind
        if kind in QUIET_EVENTS:
            if kind in TURN_STARTS:
                self.turn_started()
        elif kind == "item_completed":
            self._completed(line, record, mapping(payload.get("item")))
        elif kind == "user_message":
            self._prompted(Entry(record, items.PROMPT, line.stamp, None), items.event_prompt(payload))
        elif kind == "agent_message":
            text = string(payload.get("message")) or ""
            self._twin(Entry(record, Nature("reply", "assistant"), line.stamp, None), ("r" + text,))
        elif kind in ("agent_reasoning", "agent_reasoning_raw_content"):
            text = string(payload.get("text")) or ""
            self._twin(Entry(record, Nature("reasoning", None), line.stamp, None), ("s" + text,))
        elif kind in _TWIN_EVENTS:
            said = _TWIN_EVENTS[kind]
            call_id = string(payload.get("call_id"))
            entry = Entry(record, Nature(said.kind, None, said.name, call_id), line.stamp, None)
            self._twin(entry, () if call_id is None else (f"i{call_id}",))
        elif kind == "context_compacted":
            self._compaction_told(line, record)
        elif kind in TURN_ENDS:
            self._ended(line, record)
        elif kind == "thread_rolled_back":
            self._end_waiting()
            self._put(Entry(record, Nature("notice", None), line.stamp, None))
        else:
            known = kind in _NOTICES
            self._put(Entry(record, Nature("notice" if known else "unknown", None), line.stamp, None))

    def _ended(self, line: Line, record: Record) -> None:
        self._end_waiting()
        if line.kind == "turn_aborted" or line.payload.get("error"):
            self._put(Entry(record, Nature("notice", None), line.stamp, None))

    def _completed(self, line: Line, record: Record, item: Mapping[str, object]) -> None:
        kind = item.get("type")
        if kind == "ContextCompaction":
            self._compaction_told(line, record)
            return
        item_id = string(item.get("id"))
        entry = Entry(record, items.completed_nature(item), line.stamp, item_id)
        if kind == "UserMessage":
            self._prompted(entry, items.item_prompt(item))
            return
        keys = [] if item_id is None else [f"i{item_id}"]
        if kind == "AgentMessage":
            keys.append("r" + items.completed_text(item))
        elif kind == "Reasoning":
            keys.extend("s" + text for text in items.item_reasoning(item))
        self._twin(entry, keys)

    def _twin(self, entry: Entry, keys: Iterable[str]) -> None:
        """An event that should have a raw twin before or after it."""
        keys = tuple(keys)
        for key in keys:
            left = self._raw.get(key, 0)
            if left:
                if key[0] != "i":
                    self._raw[key] = left - 1
                return
        entry.event = True
        for key in keys:
            self._waiting.setdefault(key, []).append(entry)
            if key[0] == "i":
                self._raw[key] = 1
        self._put(entry, wait=bool(keys))

    def _prompted(self, entry: Entry, text: str) -> None:
        """An event says what the user typed: it confirms the raw message before it, or waits for the one after it."""
        self._user_events = True
        if self._confirm(text):
            return
        entry.event = True
        entry.text = text[:TITLE_LENGTH]
        self._waiting.setdefault(f"u{text}", []).append(entry)
        self._put(entry, wait=True)

    def _confirm(self, text: str) -> bool:
        """Whether the raw message of this prompt stands before it; a giant one may be its own."""
        for place in range(len(self._users) - 1, -1, -1):
            raw, typed, whole = self._users[place]
            if raw.kind == "context":
                continue  # given so already, for no event came in time
            if typed == text or (text and text in whole):
                raw.kind, raw.due = "prompt", 0
                raw.text = (text or typed)[:TITLE_LENGTH]
                del self._users[place]
                return True
            if raw.length > GIANT_LINE:
                raw.dead = True
                del self._users[place]
                break
        return False

    def _compaction_told(self, line: Line, record: Record) -> None:
        """The event after a ``compacted`` line; it is an entry only where that line was lost."""
        if not self._compacted:
            self._put(Entry(record, Nature("notice", None), line.stamp, None))


def giant_event(record: Record) -> Entry | None:
    """The entry of an event too long to load that repeats a raw item; ``None`` for any other line."""
    found = _GIANT_EVENT.search(record.raw[:GIANT_REACH])
    if found is None:
        return None
    words = _giant_words(record)
    said = _GIANT_EVENTS.get((found["item"] or found["event"]).decode())
    if said is None:
        return None
    if said.kind == "tool-result":
        said = said._replace(call_id=words.get("call_id") or words.get("id"))
    return Entry(record, said, None, words.get("id"))


def _giant_words(record: Record) -> dict[str, str]:
    return {
        key: match[1].decode("utf-8", "replace")
        for key, pattern in _GIANT_WORDS.items()
        if (match := pattern.search(record.raw[:2000]))
    }


def giant_entry(record: Record) -> Entry | None:
    """The entry of a line too long to load; ``None`` for settings."""
    found = _GIANT_TYPE.search(record.raw[:400])
    outer, inner = (found["outer"].decode(), found["inner"].decode()) if found else _giant_outer(record.raw[:400])
    if outer in SETTINGS_TYPES:
        return None
    words = _giant_words(record)
    if outer == "response_item":
        payload: dict[str, object] = {"type": inner, **words}
        return Entry(record, items.nature(payload), None, words.get("id"))
    if outer == "compacted":
        return Entry(record, Nature("summary", "user"), None, None)
    return Entry(record, Nature("unknown", None), None, None)


def _giant_outer(head: bytes) -> tuple[str, str]:
    found = _GIANT_BARE.search(head)
    word = found[1].decode() if found else ""
    return ("response_item", word) if word in RESPONSE_ITEMS else (word, "")
