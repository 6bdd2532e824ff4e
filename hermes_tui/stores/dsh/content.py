"""What stands in a DSH event: texts, blocks, usage; whatever shape they are found in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

import orjson

from hermes_tui.model import Usage
from hermes_tui.stores.dsh.events import Event
from hermes_tui.stores.dsh.format import text_or_none, whole
from hermes_tui.text import RawText

CHECKPOINT: Final = "compact-checkpoint"
"""The message that stands for what a compaction took away."""
USER: Final = "user"
"""A typed prompt; every other source of a user message is injected (facts/dsh.md section 2)."""
RUNTIME_CONTEXT: Final = "runtime-context"


def counted_entries(event: Event) -> int:
    """How many entries of a kind that counts as a message an event gives (contract.md, list)."""
    if event.type == "user/message":
        return 1 if source_kind(event.data) == USER else 0
    if event.type == "tool/result":
        return 1
    if event.type != "assistant/message":
        return 0
    if event.giant:
        return 1
    blocks = blocks_of(mapping(event.data.get("message")).get("content"))
    counted = sum(1 for block in blocks if block.get("type") == "tool-call" or says(block))
    # An empty text that comes first is shown for the usage of its call.
    first = blocks[0] if blocks and isinstance(event.data.get("usage"), dict) else {}
    return counted + (first.get("type") == "text" and not says(first))


def says(block: Mapping[str, Any]) -> bool:
    """Whether a block is text that says something."""
    return block.get("type") == "text" and bool(block.get("text"))


def entry_id(event: Event) -> str:
    """The id of the transcript entries of an event: the message's own where it has one, else its place."""
    message = event.data.get("message") if event.type != "user/message" else event.data
    own = text_or_none(mapping(message).get("id"))
    return own or f"seq-{event.seq}"


def usage_of(usage: Mapping[str, object]) -> Usage:
    """Tokens of one call; DSH counts the cached ones apart from the input (facts/dsh.md section 4)."""
    return Usage(
        input=_tokens(usage.get("inputTokens")),
        output=_tokens(usage.get("outputTokens")),
        cache_read=_tokens(usage.get("cacheReadTokens")),
        cache_write=_tokens(usage.get("cacheWriteTokens")),
        reasoning=_tokens(usage.get("reasoningTokens")),
    )


def _tokens(value: object) -> int:
    number = whole(value)
    return max(number, 0) if number is not None else 0


def plain_text(content: object) -> str:
    """The first text of a message's blocks."""
    return next((text_of(block.get("text")) for block in blocks_of(content) if says(block)), "")


def whole_text(content: object) -> str:
    """All texts of a message's blocks, one below the other."""
    return "\n".join(text_of(block.get("text")) for block in blocks_of(content) if block.get("type") == "text")


def blocks_of(content: object) -> list[Mapping[str, Any]]:
    """The blocks of a message; what is said as a bare text is one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)


def items(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; nothing when it is none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: object) -> Mapping[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def source_kind(data: Mapping[str, Any]) -> str | None:
    """Who a message is from: user, runtime-context, compact-checkpoint and others."""
    return text_or_none(mapping(data.get("source")).get("kind"))


def text_of(value: object) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def raw_text(value: str | None) -> RawText | None:
    """Text of a store, marked as such."""
    return None if value is None else RawText(value)


def step_of(data: Mapping[str, Any]) -> list[object]:
    """Turn and step an event belongs to."""
    return [data.get("turn"), data.get("step")]


def digest_of(part: object) -> str:
    """Equal for equal parts of a request."""
    return hashlib.blake2b(json_bytes(part, ordered=True), digest_size=12).hexdigest()


def json_bytes(value: object, *, ordered: bool = False) -> bytes:
    """JSON of anything read from a log; lone surrogates and large integers, which orjson refuses, go through json."""
    option = orjson.OPT_NON_STR_KEYS | (orjson.OPT_SORT_KEYS if ordered else 0)
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return json.dumps(value, sort_keys=ordered, separators=(",", ":"), default=_plain).encode("ascii")


def json_value(data: bytes) -> Any:
    """What :func:`json_bytes` wrote."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def _plain(value: object) -> object:
    """Dataclasses for json, which knows none; anything else by its name."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)
