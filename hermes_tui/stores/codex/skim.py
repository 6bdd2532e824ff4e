"""Takes in a rollout's lines by their first bytes, as far as these tell all that a fold needs of them.

Most of a rollout is what tools gave back, twice, and counts that usage records repeat. Lines that look as the program
writes them are told by one expression; any other, and any while something unusual is going on, is parsed and fed. A
line that was passed over may be damaged behind what was looked at: whoever parses all lines later folds such a log
again (:func:`passed_over`).
"""

from __future__ import annotations

import re
from typing import Final

from hermes_tui.model import Usage
from hermes_tui.storage.jsonl import complete_record
from hermes_tui.storage.log_lines import Lines
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.log_source import Feed

_WORD: Final = rb'[^"\\\x00-\x1f\x80-\xff]'
_COUNT: Final = rb"(0|[1-9][0-9]{0,14})"
_TOOL_ITEMS: Final = (
    rb"CommandExecution|FileChange|CollabAgentToolCall|McpToolCall|DynamicToolCall|ImageView|ToolSearch|WebSearch"
    rb"|ImageGeneration"
)
_HEAD: Final = re.compile(
    rb'\{"timestamp":"(2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)",(?:"ordinal":[0-9]{1,15},)?'
    rb'"type":"(?:'
    rb'event_msg","payload":\{"type":"(?:'
    rb'token_count","info":\{"total_token_usage":\{[^{}\\]*\},"last_token_usage":\{"input_tokens":[1-9]()'
    rb'|item_completed","thread_id":"' + _WORD + rb'*","turn_id":"' + _WORD + rb'*","item":\{(?:'
    rb'"type":"(?:' + _TOOL_ITEMS + rb')","id":"(' + _WORD + rb'+)"'
    rb'|"id":"(' + _WORD + rb'+)","type":"(?:' + _TOOL_ITEMS + rb'|AgentMessage)"'
    rb'|"id":"' + _WORD + rb'+","type":"Reasoning()"))'
    rb'|response_item","payload":\{"type":"(?:'
    rb'(?:function|custom_tool)_call_output","call_id":"(' + _WORD + rb'+)","output":"()'
    rb'|function_call",(?:"id":"(' + _WORD + rb'+)",)?"name":"(' + _WORD + rb'+)","arguments":"())'
    rb'|token_usage_record","payload":\{"thread_id":"(' + _WORD + rb'+)","turn_id":"' + _WORD + rb'*",'
    rb'"response_id":"(' + _WORD + rb'+)","usage":\{"input_tokens":' + _COUNT + rb',"cached_input_tokens":' + _COUNT
    + rb',"cache_write_input_tokens":' + _COUNT + rb',"output_tokens":' + _COUNT + rb',"reasoning_output_tokens":'
    + _COUNT + rb',"total_tokens":' + _COUNT + rb'\})'
)  # fmt: skip
_COUNTED, _ITEM, _ITEM_LAST, _THOUGHT, _OUTPUT, _CALL, _USAGE = 2, 3, 4, 5, 7, 10, 18
"""The last group of each alternative."""
_CALL_ID: Final = re.compile(rb'","call_id":"(' + _WORD + rb'+)"\}\}$')
_TAIL: Final = 120
"""Bytes at the end of a call in which its id stands."""
_STRING_END: Final = b'"}}'
_NEXT_KEY: Final = b'","'
_LAST: Final = 600
"""Bytes at the end of an output in which no other key may stand."""


def passed_over(raw: bytes) -> bool:
    """Whether a line may have been taken in by its first bytes alone."""
    return _HEAD.match(raw) is not None


class CodexSkim:
    """See :class:`hermes_tui.stores.log_source.LineTaker`."""

    def __init__(self, fold: CodexFold) -> None:
        self._fold = fold

    def take(self, lines: Lines, feed: Feed) -> None:
        """Take in lines that follow each other; those that must be parsed go through ``feed``."""
        line, offset = lines.line, lines.offset
        match, told = _HEAD.match, self._told
        for raw in lines.raws:
            found = match(raw)
            if found is None or not told(found, raw, line):
                record = complete_record(line, offset, raw)
                if record is not None:
                    feed(record)
            line += 1
            offset += len(raw) + 1
        self._fold.passed(lines.end)

    def _told(self, found: re.Match[bytes], raw: bytes, line: int) -> bool:
        """Take in a line by what was found; ``False``: it must be parsed."""
        fold, kind = self._fold, found.lastindex
        if not fold.begun:
            return False
        if kind == _COUNTED:
            return fold.glance_count(found[1])
        if kind == _OUTPUT:
            # What stands behind the output may be an id.
            last = raw.endswith(_STRING_END) and raw.find(_NEXT_KEY, max(found.end(), len(raw) - _LAST)) < 0
            return last and fold.glance_output(found[1], found[6], line)
        if kind == _USAGE:
            thread, response, size, read, write, output, reasoning, total = found.group(11, 12, 13, 14, 15, 16, 17, 18)
            cached, written = int(read), int(write)
            usage = Usage(max(0, int(size) - cached - written), int(output), cached, written, int(reasoning))
            return fold.glance_usage(found[1], thread, response, usage, int(total))
        if kind == _CALL:
            end = _CALL_ID.search(raw, max(found.end(), len(raw) - _TAIL))
            return end is not None and fold.glance_call(found[1], found[8], found[9], end[1], line)
        fold.glance_twin(found[1], None if kind == _THOUGHT else found[kind or 0])
        return True
