"""Takes in the usual lines of a transcript at a third of the price: prompts, replies, tool results, nothing else new.

Every line is parsed, so nothing is guessed: a line is usual when it has a uuid of its own that was not met before, the
same version, entry point, folder and branch as the line before, and no field a fold treats apart. Any other is fed.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final, cast

import orjson

from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.index_texts import ClaudeTexts, text_of_parts
from hermes_tui.stores.claude.lines import SYNTHETIC_MODEL, Entry, time_of
from hermes_tui.stores.claude.parts import CALL_BLOCKS, parts_of
from hermes_tui.stores.claude.weights import Weight, weight_of_parts
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
_FIELDS: Final = itemgetter("type", "uuid", "message", "parentUuid", "timestamp", "isSidechain")
_SETTINGS: Final = itemgetter("version", "entrypoint", "cwd", "gitBranch")
"""In the order of :attr:`Header.said`."""
_KIND: Final = b'"type":"'
_EARLY: Final = 400
"""Bytes of a line in which its type mostly stands."""
_TUPLE: Final = tuple.__new__


class ClaudeSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: TranscriptFold, say: Say | None) -> None:
        self._fold = fold
        self._say = say
        self._texts = ClaudeTexts()
        self._shapes: dict[tuple[str, ...], bool] = {}
        self._settings: tuple[object, ...] | None = None
        """Those of the line before; ``None``: it was fed."""
        self._reply: tuple[object, ...] | None = None
        """Ids, model and usage of the reply that was taken in last."""
        self._reply_at = 0.0

    def take(self, lines: Lines, feed: Feed) -> None:
        """Take in lines that follow each other; those that are not usual go through ``feed``."""
        line, offset = lines.line, lines.offset
        load, usual = orjson.loads, self._usual
        for raw in lines.raws:
            try:
                value = load(raw)
            except orjson.JSONDecodeError:
                record = complete_record(line, offset, raw)
                if record is not None:
                    feed(record)
                    self._reply = self._settings = None
            else:
                if type(value) is not dict or not usual(value, raw, line, offset):
                    feed(_TUPLE(Record, (line, offset, len(raw), value, raw, None, (), True)))
                    self._reply = self._settings = None
            line += 1
            offset += len(raw) + 1

    def _usual(self, value: dict[str, object], raw: bytes, line: int, offset: int) -> bool:
        """Take in a line as :meth:`TranscriptFold.feed` does; ``False``: it is not usual, nothing was taken in."""
        shape = tuple(value)
        known = self._shapes.get(shape)
        if not (self._learn(shape) if known is None else known):
            return False
        kind, uuid, message, parent, stamp, sidechain = _FIELDS(value)
        fold = self._fold
        at = time_of(stamp)
        if at is None or type(message) is not dict or type(uuid) is not str or not uuid or uuid in fold.weights:
            return False
        settings = _SETTINGS(value)
        if settings != self._settings and not self._same_settings(settings):
            return False
        content = message.get("content")
        weight: Weight | None
        message_id, model, parts = None, None, None
        if kind == "assistant":
            kind, message_id, model = "assistant", message.get("id"), message.get("model")
            if type(message_id) is not str or not message_id or model == SYNTHETIC_MODEL or type(content) is not list:
                return False
            weight = _reply_weight(content)
        elif kind == "user":
            kind, weight = "user", _results_weight(content) if type(content) is list else None
            if weight is None and _is_text(content):
                parts = parts_of(value)
                weight = weight_of_parts(parts)
        else:
            return False
        if weight is None:
            return False
        # Strings that come again and again are kept once.
        if parent == fold.previous:
            parent = fold.previous
        reply = self._reply
        if message_id is not None and reply is not None and reply[0] == message_id:
            message_id = cast("str", reply[0])
        entry = _TUPLE(
            Entry,
            (
                uuid,
                parent if type(parent) is str and parent else None,
                None,
                kind,
                "",
                sidechain is True,
                at,
                line,
                offset,
                len(raw),
                message_id,
                message_id is None and parts is None,
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
            told = (message_id, value.get("requestId"), model, message.get("usage"))
            if told != reply or at < self._reply_at:
                fold.take_reply(entry, message, told[1])
                self._reply, self._reply_at = told, at
        elif parts is not None:
            fold.note_prompt(entry, parts)
        if self._say is not None:
            text = None
            if message_id is not None and not weight.calls:
                # With its type at its head it talks, unless a text looks like a call: then it is indexed twice, which
                # harms nobody.
                if (weight.messages and _KIND in raw[:_EARLY]) or self._texts.is_talk(raw):
                    text = _said(content)
            elif self._texts.is_talk(raw):
                text = text_of_parts(parts_of(value) if parts is None else parts)
            if text:
                self._say(line, offset, len(raw), at, text)
        return True

    def _same_settings(self, settings: tuple[object, ...]) -> bool:
        """Whether those of the line before were the same, where the fold has to tell it."""
        header = self._fold.header
        if settings != header.said or header.session_id is None:
            return False
        self._settings = settings
        return True

    def _learn(self, shape: tuple[str, ...]) -> bool:
        if len(self._shapes) >= _MOST_SHAPES:
            return False
        fields = frozenset(shape)
        self._shapes[shape] = usual = fields >= _NEEDED and fields <= _NEEDED | _OTHERS
        return usual


def _is_text(content: object) -> bool:
    """Whether a user line holds nothing but texts."""
    if type(content) is list:
        return bool(content) and all(type(block) is dict and block.get("type") == "text" for block in content)
    return type(content) is str


def _reply_weight(content: list[object]) -> Weight | None:
    """As :func:`hermes_tui.stores.claude.weights.weight_of` weighs a reply; ``None`` where a block is unusual."""
    messages = calls = size = 0
    for block in content:
        if type(block) is not dict:
            return None
        kind = block.get("type")
        if kind == "tool_use":
            messages += 1
            calls += 1
        elif kind == "text":
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


def _said(content: object) -> str:
    """The texts of a reply without calls, as :class:`ClaudeTexts` gives them."""
    texts = []
    for block in cast("list[dict[str, object]]", content):
        text = block.get("text" if block["type"] == "text" else "thinking")
        if type(text) is str and text:
            texts.append(text)
    return "\n".join(texts)
