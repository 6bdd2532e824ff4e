"""How much a line weighs: what the list counts, without making the texts that a transcript shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hermes_tui.model import COUNTED_KINDS
from hermes_tui.stores.claude.lines import SYNTHETIC_MODEL, Fields
from hermes_tui.stores.claude.parts import CALL_BLOCKS, Part, parts_of


class Weight(NamedTuple):
    """How many parts of a line count as messages, how many are tool calls, and about how long it is."""

    messages: int
    calls: int
    size: int
    """Characters of its texts, as far as they are cheaply had: two lines that say the same are equal in it."""


NOTHING: Final = Weight(0, 0, 0)


def weight_of(fields: Fields) -> Weight:
    """The weight of a message line; the same counts as its parts give, which takes three times as long."""
    kind = fields.get("type")
    message = fields.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if kind == "assistant" and isinstance(message, dict) and isinstance(content, list) and content:
        told = fields.get("isApiErrorMessage") is True or message.get("model") == SYNTHETIC_MODEL
        return _reply_weight(content, told=told)
    if kind == "user" and isinstance(content, list):
        weight = _results_weight(content)
        if weight is not None:
            return weight
    return weight_of_parts(parts_of(fields))


def weight_of_parts(parts: Sequence[Part]) -> Weight:
    """The weight of a line by its parts."""
    messages = calls = size = 0
    for part in parts:
        messages += part.kind in COUNTED_KINDS
        calls += part.kind == "tool-call"
        size += len(part.text)
    return Weight(messages, calls, size)


def _reply_weight(content: list[object], *, told: bool) -> Weight:
    messages = calls = size = 0
    for block in content:
        if isinstance(block, str):
            messages, size = messages + (not told), size + len(block)
            continue
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            messages += not told
            size += len(text) if isinstance(text, str) else 0
        elif isinstance(kind, str) and kind in CALL_BLOCKS:
            messages, calls = messages + 1, calls + 1
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            messages += 1
    return Weight(messages, calls, size) if any(isinstance(block, (dict, str)) for block in content) else (
        Weight(int(not told), 0, 0))  # fmt: skip


def _results_weight(content: list[object]) -> Weight | None:
    """Of a line that holds nothing but tool results; ``None`` for any other."""
    messages = size = 0
    for block in content:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            return None
        text = block.get("content")
        messages += 1
        size += len(text) if isinstance(text, str) else 0
    return Weight(messages, 0, size) if messages else None
