"""The parts of a message line: one line may give a reasoning, a reply and tool-calls, or several tool results.

Fields: facts/claude-code.md section 3; kinds: design.md, Vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from hermes_tui.model import MessageKind
from hermes_tui.stores.claude.lines import (
    HEADER_TYPES,
    LOCAL_COMMAND,
    SYNTHETIC_MODEL,
    Fields,
    blocks_of,
    message_of,
    text_of,
)
from hermes_tui.stores.claude.texts import command_text, user_text, without_reminders

REASONING_BLOCKS: Final = frozenset({"thinking", "redacted_thinking"})
CALL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Part(NamedTuple):
    """One entry of the transcript as it will be shown."""

    kind: MessageKind
    text: str
    sent: str | None = None
    """What is stored, where that differs from ``text``."""
    role: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    attachments: tuple[str, ...] = ()


def parts_of(fields: Fields) -> list[Part]:
    """The parts of a line, in its order; at least one for a message line, none for header lines."""
    kind = text_of(fields.get("type"))
    if kind == "assistant":
        return _reply_parts(fields)
    if kind == "user":
        return _user_parts(fields)
    if kind == "attachment":
        return [_attachment_part(fields)]
    if kind == "system":
        return [_system_part(fields)]
    if kind in HEADER_TYPES or kind == "progress":
        return []
    return [Part("unknown", json_text(fields), role=kind)]


def json_text(value: object) -> str:
    """A JSON value as compact text; what orjson refuses goes through json."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ------------------------------------------------------------------------------------------------------ assistant


def _reply_parts(fields: Fields) -> list[Part]:
    role = text_of(message_of(fields).get("role")) or "assistant"
    parts = [_reply_part(block, role) for block in blocks_of(fields)] or [Part("reply", "", role=role)]
    if message_of(fields).get("model") == SYNTHETIC_MODEL or fields.get("isApiErrorMessage") is True:
        return [part._replace(kind="notice") if part.kind == "reply" else part for part in parts]
    return parts


def _reply_part(block: Fields, role: str) -> Part:
    kind = text_of(block.get("type"))
    if kind == "text":
        return Part("reply", text_of(block.get("text")) or "", role=role)
    if kind in REASONING_BLOCKS:
        return Part("reasoning", text_of(block.get("thinking")) or "", role=role)
    if kind in CALL_BLOCKS:
        return Part(
            "tool-call",
            json_text(block.get("input")),
            role=role,
            tool_name=text_of(block.get("name")),
            tool_call_id=text_of(block.get("id")),
        )
    if kind is not None and kind.endswith("_tool_result"):
        return _result_part(block, role, None)
    return Part("unknown", json_text(block), role=role)


# ----------------------------------------------------------------------------------------------------------- user


def _user_parts(fields: Fields) -> list[Part]:
    role = text_of(message_of(fields).get("role")) or "user"
    blocks = blocks_of(fields)
    summary = fields.get("isCompactSummary") is True
    meta = (
        fields.get("isMeta") is True
        or fields.get("isVisibleInTranscriptOnly") is True
        or any(block.get("type") == "tool_result" for block in blocks)
    )
    parts: list[Part] = []
    media: list[str] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            parts.append(_result_part(block, role, spilled_file(fields)))
        elif kind == "text":
            _add_text(parts, text_of(block.get("text")) or "", role, meta=meta, summary=summary)
        elif (name := media_name(block)) is not None:
            media.append(name)
        else:
            parts.append(Part("unknown", json_text(block), role=role))
    if media:
        _add_media(parts, tuple(media), role, meta=meta)
    return parts or [Part("context", "", role=role)]


def _add_text(parts: list[Part], text: str, role: str, *, meta: bool, summary: bool) -> None:
    """Add a text block; prompt texts that follow each other are one prompt."""
    shown = user_text(text, meta=meta, summary=summary)
    sent = text if shown.text != text else None
    last = parts[-1] if parts else None
    if last is not None and last.kind == shown.kind == "prompt":
        both = f"{last.sent or last.text}\n{text}" if last.sent is not None or sent is not None else None
        parts[-1] = last._replace(text=f"{last.text}\n{shown.text}", sent=both)
    else:
        parts.append(Part(shown.kind, shown.text, sent, role))


def _add_media(parts: list[Part], media: tuple[str, ...], role: str, *, meta: bool) -> None:
    """Hang images and documents on the prompt they came with."""
    for place, part in enumerate(parts):
        if part.kind in ("prompt", "context"):
            parts[place] = part._replace(attachments=media)
            return
    parts.append(Part("context" if meta else "prompt", "", role=role, attachments=media))


def _result_part(block: Fields, role: str, spilled: str | None) -> Part:
    content = block.get("content")
    texts: list[str] = []
    media: list[str] = [spilled] if spilled else []
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, list):
        for item in content:
            _add_result_item(item, texts, media)
    elif content is not None:
        texts.append(json_text(content))
    stored = "\n".join(texts)
    shown = without_reminders(stored)
    return Part(
        "tool-result",
        shown,
        stored if shown != stored else None,
        role,
        tool_call_id=text_of(block.get("tool_use_id")),
        attachments=tuple(media),
    )


def _add_result_item(item: object, texts: list[str], media: list[str]) -> None:
    if isinstance(item, str):
        texts.append(item)
    elif isinstance(item, dict) and item.get("type") == "text":
        texts.append(text_of(item.get("text")) or "")
    elif isinstance(item, dict) and (name := media_name(item)) is not None:
        media.append(name)
    else:
        texts.append(json_text(item))


def media_name(block: Fields) -> str | None:
    """What an image or document block is called: its type and, where it has one, its title; never its bytes."""
    kind = block.get("type")
    if kind not in ("image", "document"):
        return None
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    kind_name = text_of(source.get("media_type")) or text_of(source.get("type")) or str(kind)
    title = text_of(block.get("title")) or text_of(source.get("url")) or text_of(source.get("file_id"))
    return f"{kind}: {title} ({kind_name})" if title else f"{kind}: {kind_name}"


def spilled_file(fields: Fields) -> str | None:
    """Where a tool output too large for its line lies: ``tool-results/<id>.txt`` (facts/claude-code.md section 1)."""
    result = fields.get("toolUseResult")
    path = text_of(result.get("persistedOutputPath")) if isinstance(result, dict) else None
    if path is None:
        return None
    return "/".join(path.replace("\\", "/").rsplit("/", 2)[-2:])


# -------------------------------------------------------------------------------------------- attachments, system


def _attachment_part(fields: Fields) -> Part:
    attachment = fields.get("attachment")
    if not isinstance(attachment, dict):
        return Part("context", json_text(attachment), role="attachment")
    name = text_of(attachment.get("type")) or "attachment"
    texts = list(_attachment_texts(attachment))
    text = "\n".join(texts) if texts else json_text({k: v for k, v in attachment.items() if k != "type"})
    filename = text_of(attachment.get("filename")) or text_of(attachment.get("displayPath"))
    return Part("context", text, role="attachment", attachments=(filename or name,))


def _attachment_texts(attachment: Fields) -> Iterator[str]:
    """The texts an attachment brings in; their field differs by type."""
    for key in ("prompt", "content", "addedLines", "text", "snippet", "planContent"):
        value = attachment.get(key)
        if isinstance(value, str) and value:
            yield value
        elif isinstance(value, list):
            yield from (text for item in value if (text := _item_text(item)))
        elif isinstance(value, dict) and (text := _file_text(value)):
            yield text


def _item_text(item: object) -> str | None:
    if isinstance(item, str):
        return item
    return text_of(item.get("text")) if isinstance(item, dict) else None


def _file_text(value: Fields) -> str | None:
    file = value.get("file")
    holder = file if isinstance(file, dict) else value
    return text_of(holder.get("content"))


def _system_part(fields: Fields) -> Part:
    subtype = text_of(fields.get("subtype")) or "system"
    content = fields.get("content")
    stored = content if isinstance(content, str) else "" if content is None else json_text(content)
    command = command_text(stored)
    text = command if command is not None else stored
    if not text and command is None:
        known = {"type", "subtype", "uuid", "parentUuid", "isSidechain", "timestamp", "cwd", "sessionId", "version",
                 "gitBranch", "userType", "entrypoint", "isMeta", "level", "slug", "content"}  # fmt: skip
        rest = {key: value for key, value in fields.items() if key not in known}
        text = f"{subtype} {json_text(rest)}" if rest else subtype
    # A resume sends what local commands printed, as if a user line held it.
    kind: MessageKind = "context" if subtype == LOCAL_COMMAND else "notice"
    return Part(kind, text, stored if stored and stored != text else None, "system")
