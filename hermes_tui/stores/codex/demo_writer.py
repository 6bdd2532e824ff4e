"""Writes rollouts in both dialects, with the lines codex-cli 0.171.0 keeps (facts/codex.md sections 2, 3)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hermes_tui.records import dataclass

VERSION: Final = "0.171.0"
WINDOW: Final = 258_400
CACHE_BLOCK: Final = 128
"""Prompt caches count in blocks of so many tokens."""
BASE_TEXT: Final = "You are a coding agent. Work in small steps, run the tests, and say what you changed."
PERMISSIONS: Final = (
    "<permissions instructions>\nEverything in the workspace may be changed.\n</permissions instructions>"
)


def uuid7(at: float, source: random.Random) -> str:
    """A UUIDv7 made at this time, Unix seconds."""
    head, tail = f"{int(at * 1000):012x}", source.getrandbits(74)
    body = f"{head}7{tail >> 62:03x}{0x8000 | (tail >> 48) & 0x3FFF:04x}{tail & 0xFFFFFFFFFFFF:012x}"
    return f"{body[:8]}-{body[8:12]}-{body[12:16]}-{body[16:20]}-{body[20:]}"


def stamp(at: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{int(at * 1000) % 1000:03d}Z"


@dataclass(slots=True)
class Clock:
    """The time of the next line, Unix seconds."""

    at: float

    def tick(self, seconds: float) -> float:
        """Let time pass."""
        self.at += seconds
        return self.at


@dataclass(slots=True)
class Rollout:
    """One thread while it is written; :meth:`save` puts it on disk."""

    home: Path
    clock: Clock
    source: random.Random
    cwd: str
    model: str = "gpt-5.5"
    legacy: bool = False
    origin: object = "cli"
    branch: str | None = "main"
    archived: bool = False
    parent: str | None = None
    nickname: str | None = None
    base: Mapping[str, object] | None = None
    forked_from: str | None = None
    thread_id: str = ""
    segment: str | None = None
    ordinal: int = 0
    context: int = 11_400
    """Tokens in the context; instructions and tools take most of it at first."""
    totals: dict[str, int] = field(default_factory=dict)
    named_at: float | None = None
    history: list[dict[str, object]] = field(default_factory=list)
    """The user's prompts, which a compaction keeps."""
    windows: int = 0
    turn_id: str = ""
    _lines: list[str] = field(default_factory=list)
    _size: int = 0
    _begun: bool = False

    def __post_init__(self) -> None:
        self.thread_id = self.thread_id or uuid7(self.clock.at, self.source)
        self.named_at = self.named_at or self.clock.at
        self._meta()

    # -------------------------------------------------------------------------------------------------- lines

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._size

    def _put(self, kind: str, payload: Mapping[str, object]) -> None:
        line: dict[str, object] = {"timestamp": stamp(self.clock.tick(0.02))}
        if not self.legacy:
            line["ordinal"] = self.ordinal
        line |= {"type": kind, "payload": payload}
        self.ordinal += 1
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        self._lines.append(text)
        self._size += len(text.encode())

    def _event(self, kind: str, **values: object) -> None:
        self._put("event_msg", {"type": kind, **values})

    def _meta(self) -> None:
        meta: dict[str, object] = {
            "session_id": self.parent or self.thread_id, "id": self.thread_id, "timestamp": stamp(self.clock.at),
            "cwd": self.cwd, "originator": "codex_exec" if self.origin == "exec" else "codex-tui",
            "cli_version": VERSION, "source": self.origin, "model_provider": "openai",
            "base_instructions": {"text": BASE_TEXT}, "history_mode": "legacy" if self.legacy else "paginated",
        }  # fmt: skip
        extra = {
            "forked_from_id": self.forked_from, "parent_thread_id": self.parent, "agent_nickname": self.nickname,
            "history_base": self.base, "git": self.branch and {"branch": self.branch},
        }  # fmt: skip
        self._put("session_meta", meta | {key: value for key, value in extra.items() if value})

    def _item(self, iid: str, item: Mapping[str, object]) -> None:
        moment = int(self.clock.at * 1000)
        self._event(
            "item_completed", thread_id=self.thread_id, turn_id=self.turn_id,
            item={"type": item["type"], "id": iid, **item}, started_at_ms=moment, completed_at_ms=moment,
        )  # fmt: skip

    def _message(self, role: str, text: str) -> dict[str, object]:
        part = "output_text" if role == "assistant" else "input_text"
        item: dict[str, object] = {
            "type": "message", "id": "msg_" + uuid7(self.clock.at, self.source), "role": role,
            "content": [{"type": part, "text": text}],
        }  # fmt: skip
        self._put("response_item", item)
        return item

    # -------------------------------------------------------------------------------------------------- turns

    def turn(self, prompt: str, *, pause: float = 90.0) -> None:
        """Begin a turn after a pause in seconds."""
        self.clock.tick(pause)
        self.turn_id = uuid7(self.clock.at, self.source)
        self._event(
            "task_started", turn_id=self.turn_id, root_turn_id=self.turn_id, started_at=int(self.clock.at),
            model_context_window=WINDOW,
        )  # fmt: skip
        if not self._begun and self.base is None:
            self._message("developer", PERMISSIONS)
            self._message("user", f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n</environment_context>")
            self._world()
        self._begun = True
        self._context()
        self.history.append(self._message("user", prompt))
        if self.legacy:
            self._event("user_message", message=prompt, images=[], local_images=[])
        else:
            content = [{"type": "text", "text": prompt, "text_elements": []}]
            self._item(uuid7(self.clock.at, self.source), {"type": "UserMessage", "content": content})
        self.context += len(prompt) // 3 + 20

    def _context(self) -> None:
        self._put(
            "turn_context",
            {"turn_id": self.turn_id, "root_turn_id": self.turn_id, "cwd": self.cwd,
             "approval_policy": "on-request", "model": self.model,
             "summary": "auto", "sandbox_policy": {"type": "workspace-write"}},
        )  # fmt: skip

    def _world(self) -> None:
        state = {"model": self.model, "environments": {"local": {"cwd": self.cwd, "shell": "bash"}}}
        self._put("world_state", {"full": True, "state": state})

    def think(self, text: str) -> None:
        """Reasoning with a readable summary."""
        iid = f"rs_{self.source.getrandbits(40):010x}"
        item = {"type": "reasoning", "id": iid, "summary": [{"type": "summary_text", "text": text}], "content": None}
        if self.legacy:
            self._event("agent_reasoning", text=text)
        else:
            self._item(iid, {"type": "Reasoning", "summary_text": [text], "raw_content": []})
        self._put("response_item", {**item, "encrypted_content": f"{self.source.getrandbits(400):x}"})

    def run(self, command: str, output: str, *, code: int = 0, cached: float = 1.0) -> None:
        """A command, what it printed, and the request that asked for it."""
        call = f"call_{self.source.getrandbits(48):012x}"
        arguments = json.dumps({"cmd": command}, ensure_ascii=False)
        self._call(call, "exec_command", arguments)
        self._usage(60 + len(command), cached)
        self.clock.tick(1.5)
        if not self.legacy:
            self._item(call, {"type": "CommandExecution", "command": ["/bin/bash", "-lc", command],
                              "cwd": f"file://{self.cwd}", "status": "completed" if code == 0 else "failed",
                              "aggregated_output": output, "exit_code": code})  # fmt: skip
        text = f"Process exited with code {code}\nOutput:\n{output}"
        self._output(call, text)
        self.context += len(text) // 3 + 40

    def _call(self, call: str, name: str, arguments: str) -> None:
        self._put("response_item", {"type": "function_call", "id": "fc_" + call[5:], "name": name,
                                    "arguments": arguments, "call_id": call, **self._about()})  # fmt: skip

    def _output(self, call: str, text: str, *, kind: str = "function_call_output") -> None:
        name = ("fco_" if kind.startswith("function") else "ctco_") + call[5:]
        self._put("response_item", {"type": kind, "id": name, "call_id": call, "output": text, **self._about()})

    def _about(self) -> dict[str, object]:
        return {"internal_chat_message_metadata_passthrough": {"turn_id": self.turn_id}}

    def patch(self, text: str, path: str) -> None:
        """A patch to one file and its result."""
        call = f"call_{self.source.getrandbits(48):012x}"
        self._put("response_item", {"type": "custom_tool_call", "id": "ctc_" + call[5:], "status": "completed",
                                    "call_id": call, "name": "apply_patch", "input": text,
                                    **self._about()})  # fmt: skip
        self._usage(90 + len(text) // 3, 1.0)
        if not self.legacy:
            self._item(call, {"type": "FileChange", "changes": {f"{self.cwd}/{path}": {"type": "update"}},
                              "status": "completed"})  # fmt: skip
        output = f"Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM {path}\n"
        self._output(call, output, kind="custom_tool_call_output")
        self.context += len(text) // 3 + 60

    def spawn(self, task: str, child: str, nickname: str) -> None:
        """Ask a sub-agent."""
        call = f"call_{self.source.getrandbits(48):012x}"
        self._call(call, "spawn_agent", json.dumps({"message": task}))
        self._usage(70, 1.0)
        self._output(call, json.dumps({"agent_id": child, "nickname": nickname}))

    def answer(self, text: str, *, cached: float = 1.0) -> None:
        """The reply, its usage, and the end of the turn."""
        self.clock.tick(3.0)
        iid = f"msg_{self.source.getrandbits(40):010x}"
        if self.legacy:
            self._event("agent_message", message=text)
        else:
            self._item(iid, {"type": "AgentMessage", "content": [{"type": "Text", "text": text}]})
        content = [{"type": "output_text", "text": text}]
        self._put("response_item", {"type": "message", "id": iid, "role": "assistant", "content": content})
        self._usage(40 + len(text) // 3, cached)
        self._event("task_complete", turn_id=self.turn_id, last_agent_message=text)

    def fail(self, reason: str) -> None:
        """The turn ends with an error."""
        self._event("task_complete", turn_id=self.turn_id, last_agent_message=None, error={"message": reason})

    def abort(self) -> None:
        """The user interrupts the turn."""
        self._message("user", "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>")
        self._event("turn_aborted", turn_id=self.turn_id, reason="interrupted")

    # ------------------------------------------------------------------------------------- usage and compaction

    def _usage(self, output: int, cached: float, response: str | None = None) -> str:
        self.clock.tick(2.0)
        read = int(max(0, self.context - 500) * cached) // CACHE_BLOCK * CACHE_BLOCK
        usage = {
            "input_tokens": self.context, "cached_input_tokens": read, "cache_write_input_tokens": 0,
            "output_tokens": output, "reasoning_output_tokens": output // 4, "total_tokens": self.context + output,
        }  # fmt: skip
        for key, value in usage.items():
            self.totals[key] = self.totals.get(key, 0) + value
        name = response or f"resp_{self.source.getrandbits(48):012x}"
        self._put("token_usage_record", {
            "thread_id": self.thread_id, "turn_id": self.turn_id, "session_id": self.parent or self.thread_id,
            "root_turn_id": self.turn_id, "response_id": name, "usage": usage, "turn_token_usage": usage,
            "thread_token_usage": dict(self.totals),
        })  # fmt: skip
        self._count(usage)
        self.context += output
        return name

    def _count(self, last: Mapping[str, int]) -> None:
        self._event("token_count", info={"total_token_usage": dict(self.totals), "last_token_usage": dict(last),
                                         "model_context_window": WINDOW})  # fmt: skip

    def compact(self, summary: str) -> None:
        """A compaction inside a turn: the context becomes the prompts so far and a summary (section 9)."""
        self._message("assistant", summary)
        response = self._usage(len(summary) // 3, 0.9)
        self.windows += 1
        message = f"Another model worked on this task and left a summary:\n{summary}"
        tail = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": message}]}
        self._put("compacted", {"message": message, "replacement_history": [*self.history, tail],
                                "window_number": self.windows, "compaction_response_id": response})  # fmt: skip
        self._world()
        self._context()
        self.context = 12_200
        empty = dict.fromkeys(self.totals, 0)
        self._count({**empty, "total_tokens": self.context})
        if self.legacy:
            self._event("context_compacted")
        else:
            self._item(uuid7(self.clock.at, self.source), {"type": "ContextCompaction"})

    # ----------------------------------------------------------------------------------------------- branching

    def cut(self) -> dict[str, object]:
        """A history base at this point, for a fork or a revert."""
        return {"thread_id": self.thread_id, "end_ordinal_exclusive": self.ordinal, "end_byte_offset": self.size}

    def save(self) -> Path:
        """Write the file where Codex would."""
        moment = datetime.fromtimestamp(self.named_at or self.clock.at, UTC)
        end = "" if self.segment is None else f"_{self.segment}"
        name = f"rollout-{moment:%Y-%m-%dT%H-%M-%S}-{self.thread_id}{end}.jsonl"
        folder = self.home / ("archived_sessions" if self.archived else f"sessions/{moment:%Y/%m/%d}")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text("".join(self._lines), encoding="utf-8", newline="\n")
        return path


def index_lines(names: Sequence[tuple[str, str, float]]) -> str:
    """``session_index.jsonl`` for these threads: id, name, when."""
    return "".join(
        json.dumps({"id": thread, "thread_name": name, "updated_at": stamp(at)}, ensure_ascii=False) + "\n"
        for thread, name, at in names
    )
