"""Takes in the usual lines of a transcript at a third of the price: prompts, replies, tool results, nothing else new.

Every line is parsed, so nothing is guessed: a line is usual when it has a uuid of its own that was not met before, the
same version, entry point, folder and branch as the line before, and no field a fold treats apart. Any other is fed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final

import orjson

from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines, placed
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.header import PROMPT_CUT
from hermes_tui.stores.claude.index_texts import LOOKED_AT, THOUGHT, TOOL, ClaudeTexts, text_of_parts
from hermes_tui.stores.claude.lines import EARLIEST, LATEST, SYNTHETIC_MODEL, UsualEntry
from hermes_tui.stores.claude.parts import CALL_BLOCKS, Part, parts_of
from hermes_tui.stores.claude.texts import is_plain_prompt
from hermes_tui.stores.claude.weights import weight_of_parts
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
_GOT_ALONE: Final = frozenset(("type", "uuid", "message", "parentUuid", "timestamp", "isSidechain"))
_SETTINGS: Final = itemgetter("version", "entrypoint", "cwd", "gitBranch")
"""In the order of :attr:`Header.said`."""
_END: Final = b',"userType":"'
"""What the fields at the end of a line begin with that are the same in line after line."""
_NO_END: Final = b"\n\n"
"""No line ends so."""
_KIND: Final = b'"type":"'
_EARLY: Final = 400
"""Bytes of a line in which its type mostly stands."""
_MARKS: Final = {
    "tool_use": (TOOL, LOOKED_AT), "tool_result": (TOOL, LOOKED_AT), "thinking": (THOUGHT, LOOKED_AT),
    "text": (_KIND, _EARLY), "prompt": (_KIND, _EARLY),
}  # fmt: skip
"""By what a line is: the bytes that stand early in it where it is indexed later, or, of a text, at once."""
_STAMP: Final = len("2026-11-29T16:58:16.010Z")
_EARLIEST: Final = datetime.fromtimestamp(EARLIEST, UTC)
_LATEST: Final = datetime.fromtimestamp(LATEST, UTC)
_UNUSUAL: Final = (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError)
"""What a line raises that is no JSON, or lacks fields of a usual one, or has others in their place."""
_Weight = tuple[int, int, int]
"""See :class:`hermes_tui.stores.claude.weights.Weight`: a bare tuple is made in a quarter of the time."""
_ONE_CALL: Final = (1, 1, 0)
_ONE_RESULT: Final = (1, 0, 0)
_THOUGHT: Final = (0, 0, 0)
_Reply = tuple[Any, Any, Any, Any, datetime]
_NO_REPLY: Final[_Reply] = (None, None, None, None, _LATEST)


class ClaudeSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: TranscriptFold, say: Say | None) -> None:
        self._fold = fold
        self._say = say
        self._texts = ClaudeTexts()
        self._shapes: dict[tuple[str, ...], bool] = {}
        """Whether lines with these fields are usual."""
        self._end = _NO_END
        """A line that ends so has the settings of the line before (:meth:`_learn_end`)."""
        self._end_said: tuple[object, ...] = ()
        """The settings these bytes tell."""
        self._least = 0
        """How many fields a line that ends so has at least; one with so many has no unusual one."""
        self._reply = _NO_REPLY
        """Id, request, model, usage and time of the reply that was taken in last."""
        self._spots = dict.fromkeys(_MARKS, 0)
        """Where the mark of each stood last: mostly it stands there again."""

    def take(self, lines: Lines, line: int, feed: Feed) -> int:
        """Take in lines of which the first has this number, and feed those that are unusual; the number of the next."""
        # One long loop over locals: each call and each attribute in it costs a twentieth of parsing a line.
        fold, say, keeps_parts, shapes = self._fold, self._say, self._fold.keeps_parts, self._shapes
        weights, keep, sides, marks, spots = fold.weights, fold.entries.append, fold.course.sides, _MARKS, self._spots
        load, time_of, make = orjson.loads, datetime.fromisoformat, tuple.__new__
        raws = lines.cut()
        earliest, latest = _EARLIEST, _LATEST
        place, previous, straight, first, last = fold.lines, fold.previous, True, _LATEST, _EARLIEST
        side = None
        end, least = self._current_end()
        reply_id, reply_request, reply_model, reply_usage, reply_at = self._reply
        for number, offset, raw in placed(raws, line, lines.offset):
            value: Any = None
            weight = message_id = words = parts = what = None
            result = False
            try:
                value = load(raw)
                message, kind, uuid, parent, stamp = (
                    value["message"], value["type"], value["uuid"], value["parentUuid"], value["timestamp"]
                )  # fmt: skip
                content, sidechain, at = message["content"], value["isSidechain"], time_of(stamp)
                fields = len(value)
                if not raw.endswith(end):
                    usual = self._same_settings(value) and self._has_usual_fields(value)
                    if usual:
                        self._learn_end(value, raw)
                        end, least = self._end, self._least
                elif (
                    fields == least
                    or (fields == least + 1 and "requestId" in value)
                    or (fields == least + 2 and "toolUseResult" in value and "sourceToolAssistantUUID" in value)
                ):
                    usual = True
                else:
                    shape = shapes.get(tuple(value))
                    usual = self._has_usual_fields(value) if shape is None else shape
                if (
                    not usual
                    or uuid in weights
                    or at < earliest
                    or at >= latest
                    or len(stamp) != _STAMP
                    or type(uuid) is not str
                    or not uuid
                ):
                    pass
                elif kind == "assistant":
                    message_id, model, usage = message["id"], message["model"], message["usage"]
                    if message_id and type(message_id) is str and model != SYNTHETIC_MODEL:
                        kind = "assistant"
                        if len(content) != 1:
                            weight = _reply_weight(content)
                        elif (what := content[0]["type"]) == "tool_use":
                            weight = _ONE_CALL
                        elif what == "text":
                            words = content[0]["text"]
                            weight = (1, 0, len(words)) if type(words) is str else None
                        elif what == "thinking":
                            weight = _THOUGHT
                        else:
                            weight, what = _reply_weight(content), None
                elif kind == "user":
                    kind, what = "user", "tool_result"
                    if type(content) is list:
                        if len(content) == 1 and content[0]["type"] == what:
                            shown = content[0].get("content")
                            weight = (1, 0, len(shown)) if type(shown) is str else _ONE_RESULT
                        else:
                            weight = _results_weight(content)
                        result = weight is not None
                    elif not keeps_parts and type(content) is str and is_plain_prompt(content):
                        words, weight, what = content, (1, 0, len(content)), "prompt"
                    if weight is None and _is_text(content):
                        parts, what = parts_of(value), None
                        weight = weight_of_parts(parts)
            except _UNUSUAL:
                weight = None
            if weight is None:
                self._pass(place, previous, straight, first, last)
                record = (
                    complete_record(number, offset, raw[:-1])
                    if value is None
                    else make(Record, (number, offset, len(raw) - 1, value, raw[:-1], None, (), True))
                )
                if record is not None:
                    feed(record)
                    reply_id = None
                place, previous, straight, first, last = fold.lines, fold.previous, True, _LATEST, _EARLIEST
                end, least = self._current_end()
                continue
            # Strings that come again and again are kept once.
            if parent == previous:
                parent = previous
            else:
                straight = False
                if type(parent) is not str or not parent:
                    parent = None
            if message_id is not None:
                # Most replies are several lines, which say the same of model and usage.
                request = value.get("requestId")
                if message_id == reply_id:
                    message_id = reply_id
                    same = usage == reply_usage and request == reply_request and model == reply_model
                else:
                    same = False
                if not same or at < reply_at:
                    fold.take_reply(message_id, uuid, at.timestamp(), place, model, usage, request)
                    reply_id, reply_request, reply_model, reply_usage = message_id, request, model, usage
                    reply_at = at
                if keeps_parts and weight[1]:
                    fold.note_calls(content)
            elif words is not None:
                fold.prompts[uuid] = words[:PROMPT_CUT]
            elif parts is not None:
                fold.note_prompt(uuid, parts)
            sidechain = sidechain is True
            keep(
                make(
                    UsualEntry,
                    (
                        uuid, parent, None, kind, "", sidechain, at, number, offset, len(raw) - 1, message_id, result,
                        False, False, None, False, False,
                    ),
                )
            )  # fmt: skip
            weights[uuid] = weight
            previous = uuid
            place += 1
            if sidechain is not side:
                side = sidechain
                sides.add(side)
            if at > last:
                last = at
            if at < first:
                first = at
            if say is None:
                continue
            marked = what is not None and (raw.startswith(marks[what][0], spots[what]) or self._marked(raw, what))
            if words is None and marked:
                continue  # it is indexed later
            if words is not None and marked and "toolUseResult" not in value:
                # With its type at its head it talks, unless a text looks like a call: then it is indexed twice, which
                # harms nobody.
                text: str | None = words
            elif message_id is not None and not weight[1]:
                text = self._said(raw, content, weight)
            else:
                text = self._others(raw, value, parts)
            if text:
                say(number, offset, at.timestamp(), text)
        self._pass(place, previous, straight, first, last)
        self._reply = (reply_id, reply_request, reply_model, reply_usage, reply_at)
        return line + len(raws)

    def _pass(self, lines: int, previous: str | None, straight: bool, first: datetime, last: datetime) -> None:
        """Tell the fold of the usual lines since it was told last, if there are any."""
        fold = self._fold
        if lines != fold.lines:
            fold.course.take_usual(straight=straight)
            fold.passed(lines, previous, first.timestamp(), last.timestamp())

    def _marked(self, raw: bytes, what: str) -> bool:
        """Whether the mark of such a line stands early in it."""
        mark, end = _MARKS[what]
        place = raw.find(mark, 0, end)
        if place >= 0:
            self._spots[what] = place
        return place >= 0

    def _current_end(self) -> tuple[bytes, int]:
        """What a line ends with that has the settings of the last one, and how many fields it has at least."""
        header = self._fold.header
        if self._end_said != header.said or header.session_id is None:
            return _NO_END, 0
        return self._end, self._least

    def _same_settings(self, value: dict[str, object]) -> bool:
        """Whether those of the line before were the same."""
        header = self._fold.header
        return _SETTINGS(value) == header.said and header.session_id is not None

    def _has_usual_fields(self, value: dict[str, object]) -> bool:
        shape = tuple(value)
        usual = self._shapes.get(shape)
        if usual is None:
            fields = frozenset(shape)
            usual = fields >= _NEEDED and fields <= _NEEDED | _OTHERS
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[shape] = usual
        return usual

    def _learn_end(self, value: dict[str, object], raw: bytes) -> None:
        """Learn how a usual line ends: whatever line ends with the same bytes has the same settings.

        They are whole fields and the end of the object. A line that is JSON cannot hold them within a string: their
        first quote would end it, and a letter follows that. So they are its last fields, and the last ones count.
        """
        place = raw.rfind(_END)
        try:
            told = orjson.loads(b"{" + raw[place + 1 :]) if place > 0 else {}
        except orjson.JSONDecodeError:
            return
        fields = _NEEDED.union(told)
        if fields.difference(told) == _GOT_ALONE and fields <= _NEEDED | _OTHERS and "requestId" not in told:
            self._end, self._end_said, self._least = raw[place:], _SETTINGS(value), len(fields)

    def _said(self, raw: bytes, content: Any, weight: _Weight) -> str | None:
        """The texts of a reply without calls, as :class:`ClaudeTexts` gives them."""
        if weight[0]:
            told = raw.find(_KIND, 0, _EARLY) >= 0 or self._texts.is_talk(raw)
        else:
            told = raw.find(THOUGHT, 0, LOOKED_AT) < 0 and self._texts.is_talk(raw)
        if not told:
            return None
        texts = [block.get("text" if block["type"] == "text" else "thinking") for block in content]
        return "\n".join([text for text in texts if type(text) is str and text])

    def _others(self, raw: bytes, value: dict[str, object], parts: list[Part] | None) -> str | None:
        """The same of any other line."""
        if not self._texts.is_talk(raw):
            return None
        return text_of_parts(parts_of(value) if parts is None else parts)


def _is_text(content: object) -> bool:
    """Whether a user line holds nothing but texts."""
    if type(content) is list:
        return bool(content) and all(type(block) is dict and block.get("type") == "text" for block in content)
    return type(content) is str


def _reply_weight(content: Any) -> _Weight | None:
    """As :func:`hermes_tui.stores.claude.weights.weight_of` weighs a reply; ``None`` where a block is unusual."""
    if type(content) is not list:
        return None
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
    return (messages, calls, size) if content else None


def _results_weight(content: list[Any]) -> _Weight | None:
    """The same of a line of tool results."""
    size = 0
    for block in content:
        if block["type"] != "tool_result":
            return None
        text = block.get("content")
        if type(text) is str:
            size += len(text)
    return (len(content), 0, size) if content else None
