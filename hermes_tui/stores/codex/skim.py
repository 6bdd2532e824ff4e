"""Takes in a rollout's lines by their first bytes, as far as these tell all that a fold needs of them.

Most of a rollout is what tools gave back, twice, and counts that usage records repeat. Lines that look as the program
writes them are told by one expression; of those, replies and thoughts are parsed and counted at once; any other line,
and any while something unusual is going on, is parsed and fed. A line that was passed over may be damaged behind what
was looked at: whoever parses all lines later folds such a log again (:func:`passed_over`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from hermes_tui.model import MessageKind
from hermes_tui.storage.jsonl import Record, complete_record
from hermes_tui.storage.log_lines import Lines
from hermes_tui.stores.codex import items
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.codex.index_texts import CodexTexts, event_keys, raw_keys
from hermes_tui.stores.codex.rollout import USUAL_STAMP, seconds, string
from hermes_tui.stores.log_source import Feed, Say

_WORD: Final = rb'[^"\\\x00-\x1f\x80-\xff]'
_COUNT: Final = rb"(0|[1-9][0-9]{0,14})"
_TOOL_ITEMS: Final = (
    rb"CommandExecution|FileChange|CollabAgentToolCall|McpToolCall|DynamicToolCall|ImageView|ToolSearch|WebSearch"
    rb"|ImageGeneration"
)
_HEAD: Final = re.compile(
    rb'\{"timestamp":"(' + USUAL_STAMP.encode() + rb')",'
    rb'(?:"ordinal":[0-9]{1,15},)?"type":"(?:'
    rb'event_msg","payload":\{"type":"(?:'
    rb'token_count","info":\{"total_token_usage":\{[^{}\\]*\},"last_token_usage":\{"input_tokens":[1-9]()'
    rb'|item_completed","thread_id":"' + _WORD + rb'*","turn_id":"' + _WORD + rb'*","item":\{(?:'
    rb'"type":"(?:' + _TOOL_ITEMS + rb')","id":"(' + _WORD + rb'+)"'
    rb'|"id":"(' + _WORD + rb'+)","type":"(?:' + _TOOL_ITEMS + rb'|AgentMessage)"'
    rb'|"id":"' + _WORD + rb'+","type":"Reasoning()")'
    rb'|agent_(?:message|reasoning)"())'
    rb'|response_item","payload":\{"type":"(?:'
    rb'(?:function|custom_tool)_call_output","call_id":"(' + _WORD + rb'+)","output":"()'
    rb'|function_call",(?:"id":"(' + _WORD + rb'+)",)?"name":"(' + _WORD + rb'+)","arguments":"()'
    rb'|reasoning"()|message","id":"' + _WORD + rb'+","role":"assistant"())'
    rb'|turn_context","payload":\{"turn_id":"' + _WORD + rb'+",()'
    rb'|token_usage_record","payload":\{"thread_id":"(' + _WORD + rb'+)","turn_id":"' + _WORD + rb'*",'
    rb'"response_id":"(' + _WORD + rb'+)","usage":\{"input_tokens":' + _COUNT + rb',"cached_input_tokens":' + _COUNT
    + rb',"cache_write_input_tokens":' + _COUNT + rb',"output_tokens":' + _COUNT + rb',"reasoning_output_tokens":'
    + _COUNT + rb',"total_tokens":' + _COUNT + rb'\})'
)  # fmt: skip
(_COUNTED, _ITEM, _ITEM_LAST, _THOUGHT, _EVENT, _CALL_ID, _OUTPUT, _OWN_ID, _NAME, _CALL, _REASONING, _REPLY,
 _SETTINGS, _THREAD, _RESPONSE, _SIZE, _READ, _WRITE, _GIVEN, _REASONED, _USAGE) = range(2, 23)  # fmt: skip
"""Groups of the expression; the last one that matched tells the kind."""
_PASSED: Final = frozenset({_COUNTED, _ITEM, _ITEM_LAST, _THOUGHT, _OUTPUT, _CALL, _SETTINGS, _USAGE})
"""Kinds that are not parsed."""
_TWINS: Final = (_ITEM, _ITEM_LAST)
_SAID: Final = (_EVENT, _REASONING, _REPLY)
_CALL_END: Final = re.compile(rb'","call_id":"(' + _WORD + rb'+)"\}\}$')
_TAIL: Final = 120
"""Bytes at the end of a call in which its id stands."""
_STRING_END: Final = b'"}}'
_NEXT_KEY: Final = b'","'
_LAST: Final = 600
"""Bytes at the end of an output in which no other key may stand."""
_RECORD: Final = tuple.__new__


def passed_over(raw: bytes) -> bool:
    """Whether a line may have been taken in by its first bytes alone."""
    found = _HEAD.match(raw)
    return found is not None and found.lastindex in _PASSED


class CodexSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: CodexFold, texts: CodexTexts | None, say: Say | None) -> None:
        self._fold = fold
        self._texts = texts
        self._say = say
        self._settings = b""
        """The newest settings of a turn, as they stand in the line."""

    def take(self, lines: Lines, feed: Feed) -> None:
        """Take in lines that follow each other; those that must be fed go through ``feed``."""
        fold, line, offset = self._fold, lines.line, lines.offset
        match, other, parsed = _HEAD.match, self._other, self._parsed
        ledger, twin, newest = fold.ledger, fold.twin_met, b""
        begun, usual = fold.begun, fold.usual
        for raw in lines.raws:
            found = match(raw) if begun else None
            if found is not None:
                kind = found.lastindex
                if kind == _COUNTED:
                    told = ledger.has_records
                elif kind in _TWINS:
                    twin(found[kind].decode())
                    told = True
                elif kind == _THOUGHT:
                    told = True
                elif not usual:
                    told = False
                elif kind in _SAID:
                    told = parsed(kind, raw, line, offset)
                else:
                    told = other(kind, found, raw, line)
                if told:
                    if found[1] > newest:
                        newest = found[1]
                    line += 1
                    offset += len(raw) + 1
                    continue
            record = complete_record(line, offset, raw)
            if record is not None:
                feed(record)
                begun, usual = fold.begun, fold.usual
            line += 1
            offset += len(raw) + 1
        fold.passed(lines.end, newest.decode())

    def _other(self, kind: int | None, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        """Take in a line by what was found; ``False``: it must be fed."""
        fold = self._fold
        if kind == _OUTPUT:
            # What stands behind the output may be an id.
            if not raw.endswith(_STRING_END) or raw.find(_NEXT_KEY, max(found.end(), len(raw) - _LAST)) >= 0:
                return False
            fold.output_met(found[_CALL_ID].decode(), line)
        elif kind == _USAGE:
            thread, response, size, read, write, given, reasoned, total = found.group(
                _THREAD, _RESPONSE, _SIZE, _READ, _WRITE, _GIVEN, _REASONED, _USAGE
            )
            cached, written = int(read), int(write)
            counts = (max(0, int(size) - cached - written), int(given), cached, written, int(reasoned))
            fold.ledger.record(found[1].decode(), thread.decode(), response.decode(), counts, int(total))
        elif kind == _CALL:
            end = _CALL_END.search(raw, max(found.end(), len(raw) - _TAIL))
            if end is None:
                return False
            own = found[_OWN_ID]
            fold.call_met(None if own is None else own.decode(), found[_NAME].decode(), end[1].decode(), line)
        else:
            settings = raw[found.end() :]
            if settings != self._settings:
                # Fed, and known from now on; another model or folder is told by them.
                self._settings = settings
                return False
        return True

    def _parsed(self, kind: int, raw: bytes, line: int, offset: int) -> bool:
        """Take in a reply, a thought, or an event that repeats one; ``False``: it must be fed."""
        try:
            value: dict[str, Any] = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return False
        payload: Mapping[str, Any] | None = value.get("payload")
        if type(payload) is not dict or string(payload.get("type")) is None or string(value.get("timestamp")) is None:
            return False  # a key that comes twice says something else than the first bytes
        event = kind == _EVENT
        if event:
            if "id" in payload or "call_id" in payload or "item" in payload:
                return False
            said = payload["type"]
            text = string(payload.get("message" if said == "agent_message" else "text")) or ""
            if said == "agent_message":
                self._fold.reply_told(f"{payload.get('message')}")
            keys = event_keys(said, text)
        else:
            item = string(payload.get("id"))
            reply: MessageKind = "reply" if kind == _REPLY else "reasoning"
            text = items.message_text(payload) if kind == _REPLY else "\n".join(items.reasoning_texts(payload))
            self._fold.item_met(reply, item, line, text)
            keys = raw_keys(reply, text, item)
        if self._texts is not None and self._say is not None:
            record = _RECORD(Record, (line, offset, len(raw), None, raw, None, (), True))
            for told in self._texts.known(record, text, seconds(value["timestamp"]), keys, event=event):
                self._say(told.record.line, told.record.offset, told.record.length, told.at, told.text)
        return True
