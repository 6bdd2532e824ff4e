"""Builds Claude Code transcripts line by line, in short notation: a line is called by a name, its parent too."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

BEGIN = datetime(2026, 11, 28, 10, 0, 0)
FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
OPUS = "claude-opus-4-8"
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def mark(name: str) -> str:
    """A uuid for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def stamp(milliseconds: int) -> str:
    return (BEGIN + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"


class Made:
    """One transcript being made; every method gives it back."""

    def __init__(self, name: str, cwd: str = "/home/ana/code") -> None:
        self.name = name
        self.id = mark("session " + name)
        self.cwd = cwd
        self.lines: list[str] = []
        self.time = 0

    def uuid(self, line: str) -> str:
        return mark(f"{self.name} {line}")

    def add(self, fields: dict[str, Any]) -> Made:
        self.lines.append(json.dumps(fields))
        return self

    def raw(self, line: str) -> Made:
        self.lines.append(line)
        return self

    def fields(self, name: str, parent: str | None, dt: int, **more: Any) -> dict[str, Any]:
        self.time = more.pop("t", self.time + dt)
        return {
            "parentUuid": self.uuid(parent) if parent else None,
            "isSidechain": more.pop("side", False),
            "uuid": self.uuid(name),
            "timestamp": stamp(self.time),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.id,
            "version": "2.1.197",
            "gitBranch": "main",
            **more,
        }

    def user(self, name: str, parent: str | None, text: Any = None, dt: int = 1000, **more: Any) -> Made:
        content = f"P {name}" if text is None else text
        message = {"role": "user", "content": content}
        return self.add({**self.fields(name, parent, dt, **more), "type": "user", "message": message})

    def reply(
        self,
        name: str,
        parent: str | None,
        text: str | None = None,
        *,
        message: str | None = None,
        block: dict[str, Any] | None = None,
        model: str = OPUS,
        usage: dict[str, Any] | None = None,
        dt: int = 1000,
        **more: Any,
    ) -> Made:
        number = message or f"{self.name}-{name}"
        tokens = {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 5,
            "output_tokens": 4,
        }
        return self.add(
            {
                **self.fields(name, parent, dt, **more),
                "type": "assistant",
                "requestId": f"req_{number}",
                "message": {
                    "id": f"msg_{number}",
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "content": [block or {"type": "text", "text": f"R {name}" if text is None else text}],
                    "stop_reason": "end_turn",
                    "stop_sequence": None,
                    "usage": usage or tokens,
                },
            }
        )

    def think(self, name: str, parent: str, message: str | None = None, **more: Any) -> Made:
        block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
        return self.reply(name, parent, message=message, block=block, **more)

    def use(self, name: str, parent: str, message: str | None = None, dt: int = 10, **more: Any) -> Made:
        block = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": f"echo {name}"}}
        return self.reply(name, parent, message=message, block=block, dt=dt, **more)

    def result(self, name: str, parent: str, call: str, text: str | None = None, dt: int = 10, **more: Any) -> Made:
        block = {"type": "tool_result", "tool_use_id": f"toolu_{call}", "content": text or f"out {name}"}
        return self.user(name, parent, [block], dt=dt, **more)

    def system(self, name: str, parent: str, subtype: str, content: str = "x", **more: Any) -> Made:
        fields = self.fields(name, parent, 10, **more)
        return self.add({**fields, "type": "system", "subtype": subtype, "content": content, "level": "info"})

    def attach(self, name: str, parent: str) -> Made:
        listing = {"type": "skill_listing", "content": "zzz", "skillCount": 1, "isInitial": True, "names": ["z"]}
        return self.add({**self.fields(name, parent, 10), "type": "attachment", "attachment": listing})

    def progress(self, name: str, parent: str | None) -> Made:
        return self.add({**self.fields(name, parent, 10), "type": "progress", "data": {}})

    def boundary(
        self,
        name: str,
        logical: str | None,
        *,
        kept: list[str] | None = None,
        segment: tuple[str, str] | None = None,
        anchor: str = "s",
        **more: Any,
    ) -> Made:
        said: dict[str, Any] = {"trigger": "auto", "preTokens": 1000, "postTokens": 100}
        if kept is not None:
            uuids = [self.uuid(line) for line in kept]
            said["preservedMessages"] = {"anchorUuid": self.uuid(anchor), "uuids": uuids, "allUuids": uuids}
        if segment is not None:
            head, tail = (self.uuid(line) for line in segment)
            said["preservedSegment"] = {"headUuid": head, "anchorUuid": self.uuid(anchor), "tailUuid": tail}
        return self.add(
            {
                **self.fields(name, None, 100, **more),
                "type": "system",
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "level": "info",
                "logicalParentUuid": self.uuid(logical) if logical else None,
                "compactMetadata": said,
            }
        )

    def summary(self, name: str, parent: str, **more: Any) -> Made:
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return self.user(name, parent, f"SUMMARY {name}", dt=10, **marks, **more)

    def leaf(self, line: str | None, **more: Any) -> Made:
        uuid_ = self.uuid(line) if line else None
        return self.add({"type": "last-prompt", "lastPrompt": "x", "leafUuid": uuid_, "sessionId": self.id, **more})

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def write(self, folder: Path) -> Path:
        """Write it into a project folder."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.jsonl"
        path.write_bytes(self.text().encode("utf-8", "surrogatepass"))
        return path
