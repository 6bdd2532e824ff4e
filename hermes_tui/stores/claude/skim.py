"""Takes in the usual lines of a transcript at a third of the price: replies and tool results that say nothing new.

Every line is parsed, so nothing is guessed: a line is usual when it has a uuid of its own that was not met before, the
same version, entry point, folder and branch as the line before, and no field a fold treats apart. Any other is fed.
"""

from __future__ import annotations

from typing import Final, cast

import orjson

from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.index_texts import ClaudeTexts
from hermes_tui.stores.claude.lines import SYNTHETIC_MODEL, Entry, time_of
from hermes_tui.stores.claude.parts import CALL_BLOCKS
from hermes_tui.stores.claude.weights import Weight
from hermes_tui.stores.log_source import Feed, Say

_NEEDED: Final = frozenset(
    {
        "parentUuid", "isSidechain", "message", "type", "uuid", "timestamp", "entrypoint", "cwd", "sessionId",
        "version", "gitBranch",
    }
)  # fmt: skip
_OTHERS: Final = frozenset(
    {
        "requestId", "userType", "promptId", "toolUseResult", "sourceToolAssistantUUID", "slug", "thinkingMetadata",
        "permissionMode", "origin", "promptSource", "todos", "sourceToolUseID",
    }
)  # fmt: skip
"""Fields of a message line that no fold looks at, or that are looked at here."""
_MOST_SHAPES: Final = 256
_TUPLE: Final = tuple.__new__


class ClaudeSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: TranscriptFold, say: Say | None) -> None:
        self._fold = fold
        self._say = say
        self._texts = ClaudeTexts()
        self._shapes: dict[tuple[str, ...], bool] = {}
        self._reply: tuple[object, ...] | None = None
        """Ids, model and usage of the reply that was taken in last."""
        self._reply_at = 0.0

    def take(self, lines: Lines, feed: Feed) -> None:
        """Take in lines that follow each other; those that are not usual go through ``feed``."""
        line, offset = lines.line, lines.offset
        load, usual = orjson.loads, self._usual
        for raw in lines.raws:
            length = len(raw)
            try:
                value = load(raw)
            except orjson.JSONDecodeError:
                record = complete_record(line, offset, raw)
                if record is not None:
                    feed(record)
                    self._reply = None
            else:
                if type(value) is not dict or not usual(value, raw, line, offset, length):
                    self._reply = None
                    feed(_TUPLE(Record, (line, offset, length, value, raw, None, (), True)))
            line += 1
            offset += length + 1

    def _usual(self, value: dict[str, object], raw: bytes, line: int, offset: int, length: int) -> bool:
        """Take in a line as :meth:`TranscriptFold.feed` does; ``False``: it is not usual, nothing was taken in."""
        shape = tuple(value)
        known = self._shapes.get(shape)
        if not (self._learn(shape) if known is None else known):
            return False
        kind, uuid, message, parent = value["type"], value["uuid"], value["message"], value["parentUuid"]
        fold = self._fold
        if type(uuid) is not str or not uuid or not fold.is_new(uuid) or type(message) is not dict:
            return False
        content = message.get("content")
        at = time_of(value["timestamp"])
        said = [value["version"], value["entrypoint"], value["cwd"], value["gitBranch"]]
        if type(content) is not list or at is None or said != fold.header.said:
            return False
        message_id = None
        # Strings that come again and again are kept once.
        if parent == fold.previous:
            parent = fold.previous
        if kind == "assistant":
            kind, message_id = "assistant", message.get("id")
            if type(message_id) is not str or not message_id or message.get("model") == SYNTHETIC_MODEL:
                return False
            weight = _reply_weight(content)
            if fold.entries and fold.entries[-1].message_id == message_id:
                message_id = fold.entries[-1].message_id
        elif kind == "user":
            kind, weight = "user", _results_weight(content)
        else:
            return False
        if weight is None:
            return False
        entry = _TUPLE(
            Entry,
            (
                uuid,
                parent if type(parent) is str and parent else None,
                None,
                kind,
                "",
                value["isSidechain"] is True,
                at,
                line,
                offset,
                length,
                message_id,
                message_id is None,
                False,
                False,
                None,
                False,
                False,
            ),
        )
        fold.take_usual(entry, at, value, weight)
        if message_id is not None:
            # Most replies are several lines, which say the same of model and usage.
            reply = (message_id, value.get("requestId"), message.get("model"), message.get("usage"))
            if reply != self._reply or at < self._reply_at:
                fold.take_reply(value, entry)
                self._reply, self._reply_at = reply, at
        if self._say is not None and self._texts.phase(raw) == "talk":
            if message_id is not None and not weight.calls:
                text = _said(content)
                if text:
                    self._say(line, offset, length, at, text)
            else:
                for told in self._texts.texts(_TUPLE(Record, (line, offset, length, value, raw, None, (), True))):
                    self._say(line, offset, length, told.at, told.text)
        return True

    def _learn(self, shape: tuple[str, ...]) -> bool:
        if len(self._shapes) >= _MOST_SHAPES:
            return False
        fields = frozenset(shape)
        self._shapes[shape] = usual = fields >= _NEEDED and fields <= _NEEDED | _OTHERS
        return usual


def _reply_weight(content: list[object]) -> Weight | None:
    """As :func:`hermes_tui.stores.claude.weights.weight_of` weighs a reply; ``None`` where a block is unusual."""
    messages = calls = size = 0
    for block in content:
        if type(block) is not dict:
            return None
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            if type(text) is not str:
                return None
            messages += 1
            size += len(text)
        elif type(kind) is str and kind in CALL_BLOCKS:
            messages += 1
            calls += 1
        elif kind != "thinking":
            return None
    return _TUPLE(Weight, (messages, calls, size)) if content else None


def _results_weight(content: list[object]) -> Weight | None:
    """The same of a line of tool results."""
    size = 0
    for block in content:
        if type(block) is not dict or block.get("type") != "tool_result":
            return None
        text = block.get("content")
        if type(text) is str:
            size += len(text)
    return _TUPLE(Weight, (len(content), 0, size)) if content else None


def _said(content: list[object]) -> str:
    """The texts of a reply without calls, as :class:`ClaudeTexts` gives them."""
    texts = []
    for block in cast("list[dict[str, object]]", content):
        text = block.get("text" if block["type"] == "text" else "thinking")
        if type(text) is str and text:
            texts.append(text)
    return "\n".join(texts)
