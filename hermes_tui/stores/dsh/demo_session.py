"""Writes one DSH session of version 4 event by event, as the real program would: for the demo and for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import orjson
import zstandard

from hermes_tui.locations import FILE_MODE, FOLDER_MODE

PROVIDER: Final = "deepseek-official"
FIRST_PROMPT_TOKENS: Final = 1_900
"""System prompt and tools of a new session."""
CHARACTERS_A_TOKEN: Final = 3
EVENTS_A_FRAME: Final = 8
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")
_SEPARATORS: Final = re.compile(r"[/\\:]+")
LONGEST_KEY: Final = 251


def escaped(text: str) -> str:
    """``~XXXX`` for every UTF-16 unit a folder name does not take."""

    def units(match: re.Match[str]) -> str:
        data = match[0].encode("utf-16-be", "surrogatepass")
        return "".join(f"~{data[at] << 8 | data[at + 1]:04X}" for at in range(0, len(data), 2))

    return _UNSAFE.sub(units, text)


def project_folder(cwd: str | None) -> str:
    """The folder of a project (facts/dsh.md section 2)."""
    if cwd is None:
        return "_no-cwd"
    key = escaped(_SEPARATORS.sub("-", cwd)).lstrip("-")
    return f"--{key[:LONGEST_KEY]}--"


class DemoSession:
    """A session that grows by turns; times are Unix seconds and move on by themselves."""

    def __init__(
        self,
        session_id: str,
        cwd: str,
        start: float,
        *,
        model: str = "deepseek-flash",
        parent: str | None = None,
        seeded: bool = False,
        delegated: bool = False,
    ) -> None:
        self.id = session_id
        self.cwd = cwd
        self.model = model
        self.start = start
        self.now = start
        self.turn = 0
        self.prompt_size = FIRST_PROMPT_TOKENS
        self.cached = 0
        self.events: list[dict[str, Any]] = []
        self.surface: list[int] = []
        self._delegated = delegated
        self.header: dict[str, Any] = {
            "type": "session",
            "version": 4,
            "id": session_id,
            "createdAt": _ms(start),
            "cwd": cwd,
            **({"parentSession": parent} if parent else {}),
            "isSeeded": seeded,
            **({"origin": "subagent"} if delegated else {}),
            "delegationDepth": 1 if delegated else 0,
        }

    def event(self, event_type: str, data: Mapping[str, Any], **more: object) -> int:
        """Add one event and give its sequence number."""
        seq = len(self.events)
        self.events.append({"type": event_type, "seq": seq, "time": _ms(self.now), "data": data, **more})
        if more.get("surfaceOp") == "append":
            self.surface.append(seq)
        self.now += 0.02
        return seq

    def name(self, what: str) -> str:
        """An id that is the same each time the demo is written."""
        return str(uuid5(NAMESPACE_URL, f"{self.id}/{len(self.events)}/{what}"))

    def title(self, title: str, kind: str = "provider") -> None:
        """Give the session a title."""
        self.event("session/title", {"title": title, "messageSeqs": self.surface[:1], "source": {"kind": kind}})

    def copied_from(self, parent: DemoSession) -> None:
        """Begin with the parent's events, as a fork does."""
        self.events = [dict(event) for event in parent.events]
        self.surface = list(parent.surface)
        self.turn, self.prompt_size, self.cached = parent.turn, parent.prompt_size, parent.cached
        self.event("session/end-seed", {"inherited": True})

    def begin_turn(self, text: str, after: float = 40.0, source: str = "user", extra: str | None = None) -> None:
        """A prompt arrives: it is queued, taken, and a step begins."""
        self.now += after
        content = [{"type": "text", "text": part} for part in (text, extra) if part is not None]
        message = {"content": content, "source": {"kind": source}, "role": "user", "id": self.name("prompt")}
        first = self.turn == 0
        self.turn += 1
        inbox = {"target": "next-turn", "start": 0}
        self.event("agent/inbox/spliced", {**inbox, "inserted": [message]})
        self.event("turn/start", {"turn": self.turn})
        self.event("agent/inbox/spliced", {**inbox, "removedCount": 1, "inserted": []})
        self.event("step/start", {"turn": self.turn, "step": 1})
        if first:
            self._system()
        self.event("user/message", message, surfaceOp="append")
        self.prompt_size += len(text) // CHARACTERS_A_TOKEN
        if first:
            self._context()
            config = {"provider": PROVIDER, "model": self.model, "maxTokens": 256_000, "reasoningEffort": "high"}
            tools: list[dict[str, Any]] = [
                {"name": name, "description": name, "parameters": {}} for name in ("bash", "edit", "read", "task")
            ]
            self.event("request/header", {"header": {"config": config, "tools": tools}, "reason": "initial"})
            route = {"provider": PROVIDER, "model": self.model, "contextWindow": 131_072}
            self.event("request/context", route)

    def _system(self) -> None:
        message = {
            "role": "system",
            "content": [{"type": "text", "text": "You are a careful engineer. Say what you are about to do."}],
            "source": {"kind": "system-prompt"},
            "id": self.name("system"),
        }
        self.event("system/message", {"turn": self.turn, "step": 1, "message": message}, surfaceOp="append")

    def _context(self) -> None:
        text = f"Working directory: {self.cwd}\nSandbox: workspace-write"
        source = {"kind": "runtime-context", "form": "snapshot", "sections": []}
        content = [{"type": "text", "text": text}]
        message = {"content": content, "source": source, "role": "user", "id": self.name("context")}
        self.event("user/message", message, surfaceOp="append")

    def reply(
        self,
        step: int,
        text: str = "",
        *,
        reasoning: str = "",
        call: tuple[str, Mapping[str, Any]] | None = None,
        result: str = "",
        miss: bool = False,
    ) -> None:
        """One model call: what it says, and one tool it runs."""
        self.now += 3.0
        content: list[dict[str, Any]] = []
        if reasoning:
            content.append({"type": "reasoning", "text": reasoning})
        if text:
            content.append({"type": "text", "text": text})
        call_id = f"call_{self.name('call')[:8]}"
        arguments = "" if call is None else orjson.dumps(call[1]).decode()
        if call is not None:
            content.append({"type": "tool-call", "id": call_id, "name": call[0], "arguments": arguments})
        message = {
            "role": "assistant",
            "content": content,
            "source": {"kind": "model", "provider": PROVIDER, "model": self.model},
            "id": self.name("reply"),
        }
        data = {"turn": self.turn, "step": step, "message": message, "usage": self._usage(content, miss), "stream": []}
        self.event("assistant/message", data, surfaceOp="append")
        if call is not None:
            self._tool(step, call[0], call_id, arguments, result)
        self.event("step/end", {"turn": self.turn, "step": step})
        if call is not None:
            self.event("step/start", {"turn": self.turn, "step": step + 1})
            return
        self.event("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})

    def _tool(self, step: int, name: str, call_id: str, arguments: str, result: str) -> None:
        place = {"turn": self.turn, "step": step}
        call = self.event("tool/call", {**place, "callId": call_id, "name": name, "arguments": arguments})
        self.now += 0.8
        message = {
            "role": "tool",
            "source": {"kind": "tool", "callId": call_id},
            "toolCallId": call_id,
            "content": [{"type": "text", "text": result}],
            "isError": False,
            "id": self.name("result"),
        }
        self.event("tool/result", {**place, "message": message}, sourceEventSeqs=[call], surfaceOp="append")
        self.prompt_size += len(result) // CHARACTERS_A_TOKEN + 8

    def _usage(self, content: Sequence[Mapping[str, Any]], miss: bool) -> dict[str, int]:
        output = (
            sum(len(str(block.get("text") or block.get("arguments"))) for block in content) // CHARACTERS_A_TOKEN + 4
        )
        read = 0 if miss else self.cached
        usage = {
            "inputTokens": 3,
            "outputTokens": output,
            "cacheReadTokens": read,
            "cacheWriteTokens": self.prompt_size - read,
        }
        self.cached = self.prompt_size
        self.prompt_size += output
        return {**usage, "totalTokens": sum(usage.values())}

    def retry(self, step: int = 1) -> None:
        """A try that fails, and the wait before the next one."""
        place = {"turn": self.turn, "step": step}
        failure = {"message": "the service is overloaded", "code": "SERVER", "status": 529}
        finish = {"type": "chunk", "time": _ms(self.now), "chunk": {"type": "finish", "reason": {"failure": failure}}}
        retry = {"retryId": self.name("retry"), **place, "retry": 1, "maxRetries": 5, "delayMs": 500}
        self.event("assistant/attempt", {**place, "stream": [finish]})
        self.event("llm/retry", {**retry, "failure": failure})
        self.now += 0.5
        self.event("llm/retry-started", {"retryId": retry["retryId"], **place, "retry": 1})

    def compact(self, summary: str, keep: int = 2) -> None:
        """A summary takes the place of all but the system message and the last ones."""
        compaction = self.name("compaction")
        gone = self.surface[1:-keep]
        started = self.event("compaction/start", {"compactionId": compaction, "turn": self.turn})
        content = [{"type": "text", "text": summary}]
        told = {
            "compactionId": compaction,
            "summary": content,
            "shadowedRange": {"start": gone[0], "end": gone[-1]},
            "shadowedSeqs": gone,
            "shadowedTokenCount": self.prompt_size - FIRST_PROMPT_TOKENS,
            "provider": PROVIDER,
            "model": self.model,
            "usage": self._usage(content, miss=False),
        }
        summed = self.event("compaction/summary", told)
        source = {"kind": "compact-checkpoint", "compactionId": compaction}
        message = {"content": content, "source": source, "role": "user", "id": self.name("checkpoint")}
        operation = {"op": "replace", "startSeq": gone[0], "endSeq": gone[-1]}
        place = self.event("user/message", message, sourceEventSeqs=[started, summed, *gone], surfaceOp=operation)
        self.surface[1:-keep] = [place]
        self.event("compaction/end", {"compactionId": compaction, "turn": self.turn})
        self.cached = FIRST_PROMPT_TOKENS // 2
        self.prompt_size = FIRST_PROMPT_TOKENS + len(summary) // CHARACTERS_A_TOKEN

    def resume(self, after: float) -> None:
        """Another process goes on with it."""
        self.now += after
        self.event("session/end-seed", {})

    def write(self, home: Path, *, compressed: bool = True) -> Path:
        """Write the log where a home keeps it; the header is a frame of its own."""
        folder = home / "sessions" / project_folder(self.cwd) / escaped(self.id)
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        lines = [orjson.dumps(line) + b"\n" for line in (self.header, *self.events)]
        path = folder / ("session.v4.jsonl.zstd" if compressed else "session.v4.jsonl")
        frames = [lines[:1], *(lines[at : at + EVENTS_A_FRAME] for at in range(1, len(lines), EVENTS_A_FRAME))]
        packer = zstandard.ZstdCompressor(write_checksum=True)
        path.write_bytes(b"".join(packer.compress(b"".join(f)) if compressed else b"".join(f) for f in frames))
        path.chmod(FILE_MODE)
        (folder / "session.lock").touch(0o644)
        return path


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
