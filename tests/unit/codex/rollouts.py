"""Small rollouts for tests: lines of both dialects and of the older formats, written by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

START = 1_795_000_000.0
THREAD = "01a1ee59-7a00-7000-8000-000000000001"
OTHER = "01a1ee59-7a00-7000-8000-000000000002"


def stamp(second: float) -> str:
    """The time so many seconds after the start."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(START + second, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def line(kind: str, payload: dict[str, Any], second: float = 0.0, ordinal: int | None = None) -> str:
    """An enveloped line without its newline."""
    value: dict[str, Any] = {"timestamp": stamp(second)}
    if ordinal is not None:
        value["ordinal"] = ordinal
    value |= {"type": kind, "payload": payload}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def meta(thread: str = THREAD, **more: Any) -> str:
    """A first line."""
    base = {"id": thread, "timestamp": stamp(0), "cwd": "/home/ana/src", "source": "cli", "model_provider": "openai"}
    return line("session_meta", base | more)


def event(kind: str, second: float = 0.0, **values: Any) -> str:
    """An event line."""
    return line("event_msg", {"type": kind, **values}, second)


def said(role: str, text: str, item_id: str | None = None, second: float = 0.0) -> str:
    """A raw message."""
    part = "output_text" if role == "assistant" else "input_text"
    payload: dict[str, Any] = {"type": "message", "role": role, "content": [{"type": part, "text": text}]}
    if item_id is not None:
        payload["id"] = item_id
    return line("response_item", payload, second)


def call(call_id: str, command: str = "ls", second: float = 0.0) -> str:
    """A raw call of a command."""
    arguments = json.dumps({"cmd": command})
    payload = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call_id}
    return line("response_item", payload, second)


def output(call_id: str, text: str = "ok", second: float = 0.0) -> str:
    """A raw output."""
    return line("response_item", {"type": "function_call_output", "call_id": call_id, "output": text}, second)


def counts(size: int, cached: int, out: int) -> dict[str, int]:
    """A usage object."""
    return {
        "input_tokens": size,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": 0,
        "output_tokens": out,
        "reasoning_output_tokens": 0,
        "total_tokens": size + out,
    }


def record(response: str, size: int, cached: int, out: int, thread: str = THREAD, second: float = 0.0) -> str:
    """A usage record."""
    payload = {"thread_id": thread, "response_id": response, "usage": counts(size, cached, out)}
    return line("token_usage_record", payload, second)


def count(total: dict[str, int], last: dict[str, int], second: float = 0.0) -> str:
    """A ``token_count`` event."""
    info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
    return event("token_count", second, info=info)


def turn(number: int, prompt: str, reply: str, second: float, *, thread: str = THREAD) -> list[str]:
    """A legacy turn of a current client: prompt, reply, usage."""
    turn_id = f"turn-{number}"
    return [
        event("task_started", second, turn_id=turn_id, started_at=int(START + second)),
        line("turn_context", {"turn_id": turn_id, "cwd": "/home/ana/src", "model": "gpt-5.5"}, second),
        said("user", prompt, f"msg_u{thread[-2:]}{number}", second),
        event("user_message", second, message=prompt),
        event("agent_message", second + 1, message=reply),
        said("assistant", reply, f"msg_a{thread[-2:]}{number}", second + 1),
        record(f"resp_{thread[-2:]}{number}", 1000 * number, 100 * number, 10, thread, second + 1),
        event("task_complete", second + 2, turn_id=turn_id, last_agent_message=reply),
    ]


def write(
    home: Path,
    lines: Sequence[str | bytes],
    *,
    thread: str = THREAD,
    folder: str = "sessions/2026/11/18",
    name: str | None = None,
    end: bytes = b"\n",
) -> Path:
    """A rollout of these lines; ``end`` follows the last one."""
    path = home / folder / (name or f"rollout-2026-11-18T10-00-00-{thread}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in lines) + end)
    return path
