"""Brings what the real program sent, and what our recovery says, into one form that can be compared."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hermes_tui.model import Message, PowerCut, Recovery, SessionId, StoreRef
from hermes_tui.stores.claude.recovery import recover
from hermes_tui.stores.claude.transcript import LogView
from hermes_tui.stores.logs import LogFile

RECORDED = Path(__file__).parents[2] / "data/claude/resumed.json"


def recorded() -> dict[str, list[list[str]]]:
    """What the real program sent, by the name of the case."""
    answers: dict[str, list[list[str]]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return answers


def sent_by_program(body: dict[str, Any]) -> list[list[str]]:
    """Role and text of everything in a request but the injected context and our own last prompt."""
    lines: list[list[str]] = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        lines += [line for block in blocks if (line := _sent_block(message["role"], block)) is not None]
    assert lines.pop() == ["user", "ping"]
    return lines


def _sent_block(role: str, block: dict[str, Any]) -> list[str] | None:
    kind = block["type"]
    if kind == "text":
        return None if block["text"].startswith("<system-reminder>") else [role, block["text"].strip()]
    if kind == "tool_use":
        return [role, f"call {block['id']}"]
    if kind == "tool_result":
        content = block["content"]
        text = content if isinstance(content, str) else "\n".join(item["text"] for item in content)
        return [role, f"result {block['tool_use_id']} {text.strip()}"]
    return [role, str(kind)]


def recovery_of(path: Path, cut: PowerCut | None = None) -> Recovery:
    info = os.stat(path)
    log = LogFile(str(path), SessionId(path.stem), info.st_size, info.st_mtime_ns, info.st_dev, info.st_ino)
    ref = StoreRef("claude", "claude", str(path.parent))
    return recover(ref, LogView(log, log.session_id), lambda row: row, cut)


def said_by_us(path: Path, cut: PowerCut | None = None) -> list[list[str]]:
    """The same of our recovery: attachments are left out, for the program sends them as it likes."""
    lines: list[list[str]] = []
    for message in recovery_of(path, cut).messages:
        if message.head.role != "attachment":
            lines += _our_lines(message)
    return lines


def _our_lines(message: Message) -> list[list[str]]:
    head = message.head
    role = "assistant" if head.role == "assistant" else "user"
    text = (message.sent_text or message.text or "").strip()
    if head.kind == "tool-call":
        return [[role, f"call {head.tool_call_id}"]]
    if head.kind == "tool-result":
        return [[role, f"result {head.tool_call_id} {text}"]]
    if head.kind == "reasoning":
        return [[role, "thinking"]]
    return [[role, text], *([role, "image"] for _ in message.attachments)]
