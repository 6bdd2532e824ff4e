"""Takes in a rollout's lines by their first bytes, as far as these tell all that a fold needs of them.

Most of a rollout is what tools gave back, twice, and counts that usage records repeat. Lines that look as the program
writes them are told by one expression; of those, replies and prompts are parsed and counted at once, usage records are
taken in together, and an event that repeats the prompt before it is only compared with it. Any other line, and any
while something unusual is going on, is parsed and fed. A line that was passed over may be damaged behind what was
looked at: whoever parses all lines later folds such a log again (:func:`misread`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import orjson

from hermes_tui.model import MessageKind
from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines, placed
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.entries import LOOKAHEAD
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.codex.index_texts import CodexTexts, event_keys, raw_keys
from hermes_tui.stores.codex.rollout import USUAL_STAMP, seconds, string, usual_seconds
from hermes_tui.stores.log_source import Feed, Say
from hermes_tui.stores.log_texts import LogText

_WORD: Final = rb'[^"\\\x00-\x1f\x80-\xff]'
_COUNT: Final = rb"(0|[1-9][0-9]{0,14})"
_REPEATED: Final = (
    rb"CommandExecution|FileChange|CollabAgentToolCall|McpToolCall|DynamicToolCall|ImageView|ToolSearch|WebSearch"
    rb"|ImageGeneration"
)
"""Items of events that a raw item of the same id, or call id, says as well."""
_IN_TURN: Final = rb'","thread_id":"[^"]*","turn_id":"[^"]*'
_ROOT_TURN: Final = rb'(?:"root_turn_id":(?:null|"[^"]*"),|)'
# What may be missing is an empty choice rather than something repeated once or not at all: the latter takes longer.
_HEAD: Final = re.compile(
    rb'\{"timestamp":"(' + USUAL_STAMP.encode() + rb')",'
    rb'(?:"ordinal":[0-9]{1,15},|)"type":"(?:'
    rb'event_msg","payload":\{"type":"(?:'
    rb'token_count","info":\{"total_token_usage":\{[^}]*\},"last_token_usage":\{"input_tokens":[1-9]'
    rb'[^}]*"total_tokens":([1-9][0-9]{0,14})\}'
    rb'|item_completed' + _IN_TURN + rb'","item":\{"type":"(?:'
    rb'(?:' + _REPEATED + rb')","id":"(' + _WORD + rb'+)"|AgentMessage","id":"(' + _WORD + rb'+)"|Reasoning"()'
    rb'|UserMessage"()(?:,"id":"' + _WORD + rb'+","content":\[\{"type":"text","text":|))'
    rb'|agent_(?:reasoning"()|message"())|task_(?:started"()|complete"())|user_message"()(?:,"message":|))'
    rb'|response_item","payload":\{"type":"(?:'
    rb'(?:function|custom_tool)_call_output",(?:"id":"(' + _WORD + rb'+)",|)"call_id":"(' + _WORD + rb'+)","output":"()'
    rb'|function_call",(?:"id":"(' + _WORD + rb'+)",|)"name":"(' + _WORD + rb'+)",'
    rb'(?:"namespace":"[^"]*",|)"arguments":"()'
    rb'|custom_tool_call",(?:"id":"(' + _WORD + rb'+)",|)(?:"status":"[^"]*",|)'
    rb'"call_id":"(' + _WORD + rb'+)","name":"(' + _WORD + rb'+)","input":"()'
    rb'|reasoning"(?:,"id":"(' + _WORD + rb'+)"|)()'
    rb'|message",(?:"status":"[^"]*",|)(?:"id":"[^"]+",|)"role":"(?:assistant"()|user"()))'
    rb'|turn_context","payload":\{"turn_id":"[^"]+",' + _ROOT_TURN + rb'()'
    rb'|token_usage_record","payload":\{"thread_id":"(' + _WORD + rb'+)","turn_id":"[^"]*",'
    rb'(?:"session_id":"[^"]*",|)' + _ROOT_TURN + rb'"response_id":"(' + _WORD + rb'+)","usage":'
    rb'\{"input_tokens":' + _COUNT + rb',"cached_input_tokens":' + _COUNT + rb',"cache_write_input_tokens":' + _COUNT
    + rb',"output_tokens":' + _COUNT + rb',"reasoning_output_tokens":' + _COUNT + rb',"total_tokens":' + _COUNT
    + rb'\})'
)  # fmt: skip
(_COUNTED, _ITEM, _REPLY_ITEM, _THOUGHT, _PROMPT_ITEM, _THOUGHT_EVENT, _REPLY_EVENT, _STARTED, _ENDED, _PROMPT_EVENT,
 _OUTPUT_ID, _CALL_ID, _OUTPUT, _OWN_ID, _NAME, _CALL, _CUSTOM_ID, _CUSTOM_CALL_ID, _CUSTOM_NAME, _CUSTOM,
 _THOUGHT_ID, _REASONING, _REPLY, _USER,
 _SETTINGS, _THREAD, _RESPONSE, _SIZE, _READ, _WRITE, _GIVEN, _REASONED, _USAGE) = range(2, 35)  # fmt: skip
"""Groups of the expression; the last one that matched tells the kind."""
_PASSED: Final = frozenset(
    {
        _COUNTED, _ITEM, _REPLY_ITEM, _THOUGHT, _THOUGHT_EVENT, _STARTED, _ENDED, _OUTPUT, _CALL, _CUSTOM, _REASONING,
        _SETTINGS, _USAGE, _PROMPT_ITEM, _PROMPT_EVENT,
    }
)  # fmt: skip
"""Kinds that are not parsed, or not always."""
_USAGE_GROUPS: Final = (1, _THREAD, _RESPONSE, _SIZE, _READ, _WRITE, _GIVEN, _REASONED, _USAGE)
_STAMP: Final = slice(14, 38)
"""Where the time stands in a line that was told by its first bytes."""
_TYPES_REACH: Final = 200
"""Bytes of such a line within which its types stand."""
_PROMPTS: Final = (_PROMPT_ITEM, _PROMPT_EVENT)
_PROMPT_TYPE: Final = "user_message"
_PARSED: Final[Mapping[int | None, tuple[str, str]]] = {
    _PROMPT_ITEM: ("event_msg", "item_completed"),
    _PROMPT_EVENT: ("event_msg", _PROMPT_TYPE),
    _REPLY_EVENT: ("event_msg", "agent_message"),
    _REPLY: ("response_item", "message"),
    _USER: ("response_item", "message"),
}
"""Types of line and payload by kind: a key that comes twice says something else than the first bytes."""
_WINDOW: Final = re.compile(rb'"model_context_window":' + _COUNT + rb"[,}]")
_ERROR_KEY: Final = b'"error":'
_ITEM_ID: Final = b',"id":"'
_ID_KEY: Final = b'"id":'
_REST: Final = rb'(?:,"internal_chat_message_metadata_passthrough":\{[^{}]*\})?\}(?:,"metadata":\{[^{}]*\})?\}$'
"""What may stand behind the last value of an item: nothing a fold looks at."""
_CALL_END: Final = re.compile(rb'","call_id":"(' + _WORD + rb'+)"' + _REST)
_TAIL: Final = 1_200
"""Bytes at the end of an item in which the id of a call stands, and nothing unknown behind an output."""
_STRING_END: Final = re.compile(rb'"' + _REST)
_DIGITS: Final = b"0123456789"
_NEXT_KEY: Final = b'","'
_LINE_END: Final = b'"}}\n'
_RECORD: Final = tuple.__new__


def passed_over(raw: bytes) -> bool:
    """Whether a line may have been taken in by its first bytes alone."""
    found = _HEAD.match(raw)
    return found is not None and found.lastindex in _PASSED


def misread(record: Record) -> bool:
    """Whether a line that may have been passed over says something else than its first bytes do.

    It is damaged behind them, or a key comes twice: the last of them counts to a parser.
    """
    raw, value = record.raw, record.value
    if type(value) is dict and record.problem is None:
        kind, stamp, payload = value.get("type"), value.get("timestamp"), value.get("payload")
        if type(payload) is dict and payload and type(kind) is str and type(stamp) is str and stamp.isascii():
            said = payload.get("type")
            told = _types(kind, said) if type(said) is str else _types(kind, None, next(iter(payload)))
            if raw.startswith(stamp.encode(), _STAMP.start) and raw.find(told, _STAMP.stop, _TYPES_REACH) > 0:
                return False
    return passed_over(raw)


@lru_cache(maxsize=256)
def _types(kind: str, said: str | None, key: str = "type") -> bytes:
    """A line's types as they stand in it, or its type and the first key of a payload that has none."""
    told = f'"type":"{kind}","payload":{{"{key}":' + ("" if said is None else f'"{said}"')
    return told.encode("utf-8", "surrogatepass")


class CodexSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: CodexFold, texts: CodexTexts | None, say: Say | None) -> None:
        self._fold = fold
        self._texts = texts
        self._say = say
        self._settings = b""
        """The newest settings of a turn, as they stand in the line."""
        self._spent: list[tuple[re.Match[bytes], str | None]] = []
        """Usage records that are not taken in yet, with the entries they belong to."""
        self._replies_told: dict[str, list[tuple[int, int, bytes]]] = {}
        """By id: numbers, offsets and bytes of events whose raw reply did not come yet."""
        self._typed: tuple[bytes, str] = (b"", "")
        """The newest prompt of a raw message, as JSON and as it is."""
        self._behind: dict[int | None, bytes] = {}
        """By kind of event that says what the user typed: what stood behind the text of the newest, but for digits."""
        self._others: Final[Mapping[int | None, Callable[[re.Match[bytes], bytes, int], bool]]] = {
            _OUTPUT: self._output, _CALL: self._call, _CUSTOM: self._custom_call, _REASONING: self._thought,
            _SETTINGS: self._turn_settings, _STARTED: self._turn_start, _ENDED: self._turn_end,
        }  # fmt: skip

    def take(self, lines: Lines, line: int, feed: Feed) -> int:
        """Take in lines of which the first has this number, and feed those that must be; the number of the next."""
        fold, raws = self._fold, lines.cut()
        others, parsed, prompted = self._others, self._parsed, self._prompted
        ledger, twin, spent, newest = fold.ledger, fold.twin_met, self._spent.append, b""
        begun, usual, filled = fold.begun, fold.usual, self._filled()
        # As little as can be for each line: cutting, matching and counting are left to what is written in C.
        for (number, offset, raw), found in zip(placed(raws, line, lines.offset), map(_HEAD.match, raws), strict=True):
            if found is not None and begun:
                kind = found.lastindex
                if kind == _COUNTED:
                    told = found[_COUNTED] == filled and ledger.has_records
                elif kind == _USAGE:
                    told = usual
                    if told:
                        spent((found, ledger.record_met()))
                        filled = found[_USAGE]
                elif kind in others:
                    told = usual and others[kind](found, raw, number)
                elif kind == _ITEM:
                    twin(found[_ITEM].decode(), number)
                    told = True
                elif kind == _REPLY_ITEM:
                    self._reply_told(found[_REPLY_ITEM].decode(), raw, number, offset)
                    told = True
                elif kind in _PROMPTS:
                    told = fold.own and prompted(found, raw, number, offset)
                    usual = fold.usual
                elif kind in _PARSED:
                    told = usual and parsed(found, raw, number, offset)
                    if told:
                        usual = fold.usual
                else:
                    told = True
                if told:
                    stamp = found[1]
                    if stamp > newest:
                        newest = stamp
                    continue
            self._settle()
            self._index_lost_replies()
            record = complete_record(number, offset, raw[:-1])
            if record is not None:
                feed(record)
                begun, usual, filled = fold.begun, fold.usual, self._filled()
        self._settle()
        self._index_lost_replies()
        fold.passed(lines.end, newest.decode())
        return line + len(raws)

    def _filled(self) -> bytes:
        """The size of the context by what was taken in: a count that tells the same tells nothing new."""
        return b"%d" % (self._fold.ledger.fill or 0)

    def _settle(self) -> None:
        """Take in the usage records met so far: together they cost half of what they cost one by one."""
        if not self._spent:
            return
        found, replies = zip(*self._spent, strict=True)
        self._spent.clear()
        stamps, threads, responses, *counts = zip(*(each.group(*_USAGE_GROUPS) for each in found), strict=True)
        sizes, reads, writes, given, reasoned, totals = map(_numbers, counts)
        fresh = [
            some if (some := size - read - write) > 0 else 0
            for size, read, write in zip(sizes, reads, writes, strict=True)
        ]
        times = [usual_seconds(stamp) for stamp in _words(stamps)]
        usages = (fresh, given, reads, writes, reasoned)
        whose = _words(dict.fromkeys(threads))  # mostly one thread's
        told = whose * len(threads) if len(whose) == 1 else _words(threads)
        self._fold.ledger.records(replies, times, told, _words(responses), usages, totals)

    def _reply_told(self, item: str, raw: bytes, line: int, offset: int) -> None:
        """Take in an event that repeats a raw reply: its words count only where that one is lost."""
        self._fold.twin_met(item, line)
        if self._texts is not None:
            self._replies_told.setdefault(item, []).append((line, offset, raw))

    def _reply_came(self, item: str, line: int) -> None:
        """Forget the first event of a reply whose raw one came, as near as a twin must be."""
        told = self._replies_told[item]
        near = next((event for event in told if event[0] + LOOKAHEAD > line), None)
        if near is not None:
            told.remove(near)

    def _index_lost_replies(self) -> None:
        """Give the words of replies that only events tell to the index; where a raw one comes yet, they stand twice."""
        for line, offset, raw in sorted(chain.from_iterable(self._replies_told.values())):
            record = complete_record(line, offset, raw[:-1])
            if record is not None:
                alone = CodexTexts()
                self._tell([*alone.texts(record), *alone.rest()])
        self._replies_told.clear()

    # ------------------------------------------------- told by what was found; ``False``: the line must be fed

    def _output(self, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        if not _ends_with_it(raw, found.end()):
            return False
        own, call = found.group(_OUTPUT_ID, _CALL_ID)
        self._fold.output_met(None if own is None else own.decode(), call.decode(), line)
        return True

    def _call(self, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        end = _CALL_END.search(raw, max(found.end(), len(raw) - _TAIL))
        if end is None:
            return False
        own, name = found.group(_OWN_ID, _NAME)
        self._fold.call_met(None if own is None else own.decode(), name.decode(), end[1].decode(), line)
        return True

    def _custom_call(self, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        if not _ends_with_it(raw, found.end()):
            return False
        own, call, name = found.group(_CUSTOM_ID, _CUSTOM_CALL_ID, _CUSTOM_NAME)
        self._fold.call_met(None if own is None else own.decode(), name.decode(), call.decode(), line)
        return True

    def _thought(self, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        name = found[_THOUGHT_ID]
        if name is None and raw.find(_ID_KEY, found.end()) >= 0:
            return False
        self._fold.item_met("reasoning", None if name is None else name.decode(), line, "")
        return True

    def _turn_settings(self, found: re.Match[bytes], raw: bytes, _: int) -> bool:
        """Settings that are the newest ones say nothing; others are fed: another model or folder is told by them."""
        settings = raw[found.end() :]
        same, self._settings = settings == self._settings, settings
        return same

    def _turn_start(self, found: re.Match[bytes], raw: bytes, _: int) -> bool:
        try:
            orjson.loads(raw)
        except orjson.JSONDecodeError:
            return False  # what it parts in fold and index is not joined again when its damage is found later
        window = _WINDOW.search(raw, found.end())
        self._fold.turn_started(0 if window is None else int(window[1]))
        if self._texts is not None:
            self._index_lost_replies()
            self._tell(self._texts.turn_started())
        return True

    def _turn_end(self, found: re.Match[bytes], raw: bytes, _: int) -> bool:
        if raw.find(_ERROR_KEY, found.end()) >= 0:
            return False
        self._fold.turn_ended()
        if self._replies_told:
            self._index_lost_replies()
        return True

    # ------------------------------------------------------------------------------------------------- parsed

    def _prompted(self, found: re.Match[bytes], raw: bytes, line: int, offset: int) -> bool:
        """Take in an event that says what the user typed; ``False``: it must be fed.

        Mostly the raw message before it says the same, and what stands behind the text is, but for digits (times), what
        stood there the last time: then parsing it would tell nothing new.
        """
        encoded, typed = self._typed
        text_at = found.end()
        if (
            typed
            and raw.startswith(encoded, text_at)
            and raw[text_at + len(encoded) :].translate(None, _DIGITS) == self._behind.get(found.lastindex)
            and self._fold.may_confirm(typed)
            and (self._texts is None or self._texts.told(line, _event_keys(found, raw, typed)))
        ):
            self._fold.prompt_confirmed(typed)
            return True
        return self._parsed(found, raw, line, offset)

    def _parsed(self, found: re.Match[bytes], raw: bytes, line: int, offset: int) -> bool:
        """Take in a prompt or reply, raw or told by an event; ``False``: it must be fed."""
        kind = found.lastindex
        try:
            value: dict[str, Any] = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return False
        get = value.get
        payload: Mapping[str, Any] | None = get("payload")
        stamp = get("timestamp")
        if type(payload) is not dict or (get("type"), payload.get("type")) != _PARSED[kind] or type(stamp) is not str:
            return False
        if stamp.encode() != raw[_STAMP] or "items" in value:
            return False  # a time that comes twice, or a document, told so by a key behind the others
        if kind == _REPLY:
            return self._reply(raw, line, offset, stamp, payload)
        if kind == _USER:
            return self._user(raw, line, offset, stamp, payload)
        return self._event(found, raw, _record(raw, line, offset), stamp, payload)

    def _user(self, raw: bytes, line: int, offset: int, stamp: str, payload: Mapping[str, Any]) -> bool:
        if payload.get("role") != "user":
            return False
        prompt, typed, whole = items.user_said(payload)
        kind: MessageKind = "context" if prompt is False else "prompt"
        item, text = string(payload.get("id")), whole if prompt is False else typed
        self._typed = (b"", "") if prompt is False else (orjson.dumps(typed), typed)
        self._fold.user_met(_record(raw, line, offset), stamp, item, typed, whole, prompt=prompt)
        # Its event names another id, if any: only what was said tells that they are one.
        self._index(raw, line, offset, stamp, text, raw_keys(kind, text, None))
        return True

    def _reply(self, raw: bytes, line: int, offset: int, stamp: str, payload: Mapping[str, Any]) -> bool:
        if payload.get("role") != "assistant":
            return False
        text, item = items.message_text(payload), string(payload.get("id"))
        self._fold.item_met("reply", item, line, text)
        if item is not None and item in self._replies_told:
            self._reply_came(item, line)
        self._index(raw, line, offset, stamp, text, raw_keys("reply", text, item))
        return True

    def _event(
        self, found: re.Match[bytes], raw: bytes, record: Record, stamp: str, payload: Mapping[str, Any]
    ) -> bool:
        kind = found.lastindex
        if "id" in payload or "call_id" in payload:
            return False
        item, item_id = payload.get("item"), None
        if kind == _PROMPT_ITEM:
            if type(item) is not dict or item.get("type") != "UserMessage" or "call_id" in item:
                return False
            item_id, text = string(item.get("id")), items.item_prompt(item)
        elif item is not None:
            return False
        elif kind == _PROMPT_EVENT:
            text = items.event_prompt(payload)
        else:
            text = string(payload.get("message")) or ""
        if kind == _REPLY_EVENT:
            self._fold.reply_told(f"{payload.get('message')}", record.line)
        else:
            self._fold.prompt_told(record, stamp, item_id, text)
            self._learn(found, raw, text)
        if self._texts is not None:
            keys = event_keys((item or payload)["type"], text, item_id)
            self._tell(self._texts.known(LogText(record, text, seconds(stamp)), keys, event=True))
        return True

    def _learn(self, found: re.Match[bytes], raw: bytes, text: str) -> None:
        """Remember what stands behind the text of an event that says nothing else, where the text stands as it is."""
        encoded = orjson.dumps(text)
        if raw.startswith(encoded, found.end()):
            self._behind[found.lastindex] = raw[found.end() + len(encoded) :].translate(None, _DIGITS)

    def _index(self, raw: bytes, line: int, offset: int, stamp: str, text: str, keys: tuple[str, ...]) -> None:
        """Give the words of a raw item to the index."""
        texts, say = self._texts, self._say
        if texts is None:
            return
        at = usual_seconds(stamp)
        if texts.holds or not text:
            self._tell(texts.known(LogText(_record(raw, line, offset), text, at), keys, event=False))
            return
        texts.met(line, keys)
        if say is not None:
            say(line, offset, at, text)

    def _tell(self, texts: Iterable[LogText]) -> None:
        if self._say is not None:
            for told in texts:
                self._say(told.record.line, told.record.offset, told.at, told.text)


def _record(raw: bytes, line: int, offset: int) -> Record:
    """A line that is parsed here, where a record is asked for that only tells its place."""
    return _RECORD(Record, (line, offset, len(raw) - 1, None, raw[:-1], None, (), True))


def _ends_with_it(raw: bytes, begin: int) -> bool:
    """Whether a line ends with the text that begins there: what stands behind it may be an id."""
    place = raw.find(_NEXT_KEY, max(begin, len(raw) - _TAIL))
    return raw.endswith(_LINE_END) if place < 0 else _STRING_END.match(raw, place) is not None


def _event_keys(found: re.Match[bytes], raw: bytes, text: str) -> tuple[str, ...]:
    """What an event that says what the user typed has in common with its raw message."""
    if found.lastindex == _PROMPT_EVENT:
        return event_keys(_PROMPT_TYPE, text)
    begin = found.start(_PROMPT_ITEM) + len(_ITEM_ID)
    return event_keys("UserMessage", text, raw[begin : raw.find(b'"', begin)].decode("utf-8", "replace"))


def _words(found: Iterable[bytes]) -> list[str]:
    """Each as text; none holds a newline."""
    return b"\n".join(found).decode().split("\n")


def _numbers(found: Iterable[bytes]) -> list[int]:
    """Each as a number; all are written as JSON writes them."""
    numbers: list[int] = orjson.loads(b"[%b]" % b",".join(found))
    return numbers
