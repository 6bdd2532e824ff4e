"""DSH homes for tests: the samples, and logs made line by line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from hermes_tui.model import ListQuery, Message, SessionId, SessionRow, StoreRef
from hermes_tui.stores.dsh.store import DshStore

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "dsh"
MS = 1_795_000_000_000
"""Milliseconds at which made logs begin."""


class Log:
    """Builds the lines of one session."""

    def __init__(self, session_id: str = "session-a", version: int = 4, **header: object) -> None:
        base: dict[str, Any] = {"type": "session", "version": version, "id": session_id, "createdAt": MS, "cwd": "/w/a"}
        if version >= 2:
            base["isSeeded"] = False
        base["delegationDepth"] = 0
        self.version = version
        self.id = session_id
        self.header = {key: value for key, value in {**base, **header}.items() if value is not ...}
        self.lines: list[bytes] = []
        self.seq = 0
        self.turn = 0

    def event(self, event_type: str, data: Mapping[str, Any] | None = None, span: int = 1, **more: object) -> int:
        seq = self.seq
        self.seq += span
        line = {"type": event_type, "seq": seq, "time": MS + seq * 10, "data": data or {}, **more}
        self.lines.append(json.dumps(line, ensure_ascii=False).encode())
        return seq

    def packed(self, texts: list[str], kind: str = "text-chunks") -> int:
        seq = self.seq
        self.seq += len(texts)
        data = {"turn": self.turn, "step": 1, "index": 0, "dt": [0] * (len(texts) - 1), "texts": texts}
        line = {"type": kind, "seq0": seq, "time0": MS + seq * 10, "data": data}
        self.lines.append(json.dumps(line).encode())
        return seq

    def user(self, text: str, kind: str = "user", message_id: str | None = None, op: object = "append") -> int:
        data = {
            "role": "user",
            "content": [{"type": "text", "text": text}],
            "source": {"kind": kind},
            "id": message_id or f"{self.id}-u{self.seq}",
        }
        return self.event("user/message", data, surfaceOp=op)

    def reply(
        self,
        text: str,
        usage: Mapping[str, int] | None = None,
        step: int = 1,
        call: tuple[str, str] | None = None,
        model: str = "deepseek-flash",
    ) -> int:
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        if call is not None:
            content.append({"type": "tool-call", "id": call[0], "name": call[1], "arguments": "{}"})
        message = {
            "role": "assistant",
            "content": content,
            "source": {"kind": "model", "provider": "deepseek-official", "model": model},
            "id": f"{self.id}-a{self.seq}",
        }
        data: dict[str, Any] = {"turn": self.turn, "step": step, "message": message, "stream": []}
        if usage is not None:
            data["usage"] = dict(usage)
        return self.event("assistant/message", data, surfaceOp="append")

    def result(self, call_id: str, text: str, op: object = "append") -> int:
        message = {
            "role": "tool",
            "toolCallId": call_id,
            "content": [{"type": "text", "text": text}],
            "id": f"{self.id}-r{self.seq}",
        }
        return self.event("tool/result", {"turn": self.turn, "step": 1, "message": message}, surfaceOp=op)

    def begin(self) -> None:
        self.turn += 1
        self.event("turn/start", {"turn": self.turn})
        self.event("step/start", {"turn": self.turn, "step": 1})

    def end(self) -> None:
        self.event("step/end", {"turn": self.turn, "step": 1})
        self.event("turn/end", {"turn": self.turn, "reason": {"kind": "completed"}})

    def talk(self, prompt: str = "hello", answer: str = "hi", usage: Mapping[str, int] | None = None) -> Log:
        self.begin()
        self.user(prompt)
        self.reply(answer, usage or used(3, 10, 100, 20))
        self.end()
        return self

    def bytes(self) -> bytes:
        return b"".join(line + b"\n" for line in (json.dumps(self.header).encode(), *self.lines))

    def write(self, home: Path, name: str | None = None, project: str = "--w-a--", folder: str | None = None) -> Path:
        return put(home, self.bytes(), name or log_name(self.version), project, folder or self.id)


def used(fresh: int, write: int, read: int, out: int) -> dict[str, int]:
    total = fresh + write + read + out
    return {
        "inputTokens": fresh, "cacheWriteTokens": write, "cacheReadTokens": read, "outputTokens": out,
        "totalTokens": total,
    }  # fmt: skip


def log_name(version: int, zipped: bool = False) -> str:
    return ("session.jsonl" if version == 0 else f"session.v{version}.jsonl") + (".zstd" if zipped else "")


def put(home: Path, data: bytes, name: str, project: str = "--w-a--", folder: str = "session-a") -> Path:
    path = home / "sessions" / project / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def zipped(data: bytes, lines_a_frame: int = 3) -> bytes:
    """The header as a frame, then frames of a few lines."""
    lines = data.splitlines(keepends=True)
    frames = [lines[:1], *(lines[at : at + lines_a_frame] for at in range(1, len(lines), lines_a_frame))]
    return b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(b"".join(frame)) for frame in frames)


def opened(home: Path, now: float = 1_900_000_000.0) -> DshStore:
    return DshStore(StoreRef("dsh", "dsh", str(home)), clock=lambda: now)


def rows_of(store: DshStore) -> dict[str, SessionRow]:
    entries = store.listing(ListQuery(sessions=True)).entries
    return {row.id: row for row in store.rows([entry.id for entry in entries])}


def messages_of(store: DshStore, session_id: str) -> list[Message]:
    transcript = store.transcript([SessionId(session_id)])
    return [message for batch in transcript.heads() for message in transcript.load(batch)]


def problems_of(store: DshStore, session_id: str) -> list[str]:
    transcript = store.transcript([SessionId(session_id)])
    for _ in transcript.heads():
        pass
    return [problem.reason for problem in transcript.problems]


def texts(messages: Iterable[Message], kind: str | None = None, state: str | None = None) -> list[str]:
    return [
        message.text or ""
        for message in messages
        if (kind is None or message.head.kind == kind) and (state is None or message.head.state == state)
    ]


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """Copies one sample home and gives its path."""

    def copy(name: str) -> Path:
        target = tmp_path / name
        shutil.copytree(SAMPLES / name, target)
        return target

    return copy
