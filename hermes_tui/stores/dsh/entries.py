"""What one DSH event gives a transcript: its entries with kind, text and name."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from hermes_tui.model import MessageKind, Usage
from hermes_tui.records import dataclass
from hermes_tui.stores.dsh.content import (
    CHECKPOINT,
    USER,
    blocks_of,
    items,
    json_bytes,
    mapping,
    source_kind,
    text_of,
    usage_of,
    whole_text,
)
from hermes_tui.stores.dsh.events import Event
from hermes_tui.stores.dsh.format import is_known, text_or_none

HIDDEN: Final = frozenset(
    {
        "approval/policy", "assistant/chunk", "command/done", "compaction/start",
        "compaction/summary", "hook/result", "job/registered", "job/settled", "llm/retry-started", "permission/preset",
        "request/context", "request/header", "sandbox/mode", "session-log-deepseek/delivery-accepted",
        "session/title", "session/title-llm-request", "step/end", "step/start", "subagent/descriptor",
        "subagent/model-selection-policy", "text-chunks", "reasoning-chunks", "tool-call-chunks",
        "tool/ptc-dispatch-start", "turn/start", "workspace/changes",
    }
)  # fmt: skip
"""Bookkeeping that says nothing a reader of the talk misses."""
NOTICE_CHARACTERS: Final = 2_000
QUEUED: Final = "queued, not sent: "
"""Our words before a prompt that waits in the inbox."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One part of what an event says."""

    part: int
    kind: MessageKind
    text: str
    role: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    """On the first part of a reply."""
    attachments: tuple[str, ...] = ()


class Reading:
    """What earlier events say about later ones: the names of tools, and which calls a reply already showed."""

    def __init__(self, version: int, *, delegated: bool, queued: Container[str] = ()) -> None:
        self._version = version
        self._queued = queued
        self._delegated = delegated
        self._names: dict[str, str] = {}

    def entries(self, event: Event) -> list[Entry]:
        """The entries of an event, in order; none for bookkeeping."""
        if event.giant:
            return [self._giant(event)]
        if event.ignorable and not is_known(event.type, self._version):
            return [Entry(0, "unknown", _told(event.type, event.data), role=None)]
        match event.type:
            case "user/message":
                return list(self._user(event.data))
            case "system/message" | "developer/message":
                message = mapping(event.data.get("message")) or event.data
                return [_of_content(message, "context", event.type.partition("/")[0])]
            case "assistant/message":
                return list(self._assistant(event.data))
            case "tool/result":
                return [self._result(event.data)]
            case "tool/call":
                return list(self._call(event.data))
            case "agent/inbox/spliced":
                return list(self._inbox(event.data))
            case _:
                return _notices(event)

    def _giant(self, event: Event) -> Entry:
        kinds: dict[str, MessageKind] = {"tool/result": "tool-result", "assistant/message": "reply"}
        return Entry(0, kinds.get(event.type, "unknown"), "", role=event.type.partition("/")[0])

    def _user(self, data: Mapping[str, Any]) -> Iterator[Entry]:
        source = source_kind(data)
        blocks = blocks_of(data.get("content"))
        texts = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
        attachments = _attachments(blocks)
        if source == USER and self._delegated and len(texts) > 1:
            # The parent's order comes with a second text that names the parent: that was not said by anybody.
            yield Entry(0, "prompt", texts[0], role="user", attachments=attachments)
            yield Entry(1, "context", "\n".join(texts[1:]), role="user")
            return
        kind: MessageKind = "prompt" if source == USER else "context"
        if source == CHECKPOINT:
            kind = "summary"
        elif source == "subagent-settled":
            kind = "notice"
        yield Entry(0, kind, "\n".join(texts), role="user", attachments=attachments)

    def _inbox(self, data: Mapping[str, Any]) -> Iterator[Entry]:
        """Prompts that wait in the inbox; those a message carries are shown there, once."""
        for part, item in enumerate(items(data.get("inserted"))):
            if text_of(item.get("id")) in self._queued:
                text = whole_text(item.get("content"))
                yield Entry(part, "notice", f"{QUEUED}{text}", role="user")

    def _assistant(self, data: Mapping[str, Any]) -> Iterator[Entry]:
        message = mapping(data.get("message"))
        source = mapping(message.get("source"))
        model = text_or_none(source.get("model"))
        usage = usage_of(data["usage"]) if isinstance(data.get("usage"), Mapping) else None
        for part, block in enumerate(blocks_of(message.get("content"))):
            entry = self._block(part, block, model, usage if part == 0 else None)
            if entry is not None:
                yield entry

    def _block(self, part: int, block: Mapping[str, Any], model: str | None, usage: Usage | None) -> Entry | None:
        kind = block.get("type")
        if kind == "tool-call":
            call_id, name = text_or_none(block.get("id")), text_or_none(block.get("name"))
            if call_id is not None:
                self._names[call_id] = name or ""
            arguments = _arguments(block.get("arguments"))
            return Entry(part, "tool-call", arguments, "assistant", name, call_id, model, usage)
        text = text_of(block.get("text"))
        if kind == "reasoning":
            return Entry(part, "reasoning", text, "assistant", model=model, usage=usage)
        if kind == "text":
            return Entry(part, "reply", text, "assistant", model=model, usage=usage) if text or usage else None
        return Entry(part, "unknown", _told(text_of(kind) or "block", block), "assistant", model=model, usage=usage)

    def _call(self, data: Mapping[str, Any]) -> Iterator[Entry]:
        """A call the reply before did not show (one made by a program of the model's)."""
        call_id = text_or_none(data.get("callId"))
        if call_id is not None and call_id in self._names:
            return
        name = text_or_none(data.get("name"))
        if call_id is not None:
            self._names[call_id] = name or ""
        yield Entry(0, "tool-call", _arguments(data.get("arguments")), "assistant", name, call_id)

    def _result(self, data: Mapping[str, Any]) -> Entry:
        message = mapping(data.get("message"))
        call_id = result_of(data) or None
        blocks = items(message.get("content"))
        nested = [block for block in blocks if block.get("type") == "tool-result"]
        if nested:
            inner = self._block_result(0, nested[0])
            return Entry(0, "tool-result", inner.text, "tool", inner.tool_name, inner.tool_call_id or call_id)
        entry = _of_content(message, "tool-result", text_or_none(message.get("role")) or "tool")
        name = self._names.get(call_id or "") or None
        return Entry(0, "tool-result", entry.text, entry.role, name, call_id, attachments=entry.attachments)

    def _block_result(self, part: int, block: Mapping[str, Any]) -> Entry:
        call_id = text_or_none(block.get("toolCallId")) or text_or_none(block.get("id"))
        text = whole_text(block.get("content")) or text_of(block.get("text"))
        return Entry(part, "tool-result", text, "tool", self._names.get(call_id or "") or None, call_id)


def result_of(data: Mapping[str, Any]) -> str:
    """The call a tool/result answers; '' where it does not say."""
    message = mapping(data.get("message"))
    return text_of(message.get("toolCallId")) or text_of(mapping(message.get("source")).get("callId"))


def _of_content(message: Mapping[str, Any], kind: MessageKind, role: str) -> Entry:
    content = message.get("content")
    return Entry(0, kind, whole_text(content), role, attachments=_attachments(blocks_of(content)))


def _attachments(blocks: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Images and files by name or type, never their content."""
    return tuple(
        text_or_none(block.get("name")) or text_or_none(block.get("mediaType")) or text_of(block.get("type"))
        for block in blocks
        if block.get("type") in ("image", "file", "document", "attachment")
    )


def _arguments(value: object) -> str:
    """Arguments as they are stored: JSON text; what is stored as an object is written as such."""
    return value if isinstance(value, str) else "" if value is None else json_bytes(value).decode()


def _notices(event: Event) -> list[Entry]:
    """Events worth a line of their own."""
    text = _notice(event)
    return [] if text is None else [Entry(0, "notice", text)]


def _notice(event: Event) -> str | None:
    data = event.data
    if event.type in HIDDEN:
        return None
    match event.type:
        case "assistant/attempt":
            return f"attempt failed: {_failure(data)}"
        case "llm/retry":
            failure = mapping(data.get("failure"))
            return f"retry {data.get('retry')} of {data.get('maxRetries')}: {_reason(failure)}"
        case "turn/end":
            reason = mapping(data.get("reason"))
            return None if reason.get("kind") == "completed" else f"turn ended: {_reason(reason)}"
        case "compaction/end":
            return f"compaction failed: {text_of(data.get('error'))}" if data.get("error") else None
        case "session/end-seed":
            return "what came before was copied from the parent session" if data.get("inherited") is True else None
        case "subagent/catalog":
            return f"sub-agent {text_of(data.get('childId'))}: {text_of(data.get('label'))}"
        case _:
            return _told(event.type, data)


def _failure(data: Mapping[str, Any]) -> str:
    for item in reversed(items(data.get("stream"))):
        reason = mapping(mapping(item.get("chunk")).get("reason"))
        if reason:
            return _reason(mapping(reason.get("failure")) or reason)
    return "no reason is stored"


def _reason(reason: Mapping[str, Any]) -> str:
    words = [text_of(reason.get(key)) for key in ("kind", "message", "code")]
    status = reason.get("status")
    told = ", ".join(word for word in (*words, str(status) if status is not None else "") if word)
    return told or "no reason is stored"


def _told(event_type: str, data: Mapping[str, Any]) -> str:
    return f"{event_type} {json_bytes(data).decode()}"[:NOTICE_CHARACTERS]
