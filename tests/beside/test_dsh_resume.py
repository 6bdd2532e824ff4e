"""What `recover` says, held against what the real dsh sends when it resumes the same log.

Needs the runtime of the wheel deepseek-harness-runtime-bin 0.2.1rc2: `dsh` on PATH, or its path in HERMES_TUI_DSH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import zstandard

from hermes_tui.model import Message, PowerCut, SessionId, StoreRef
from hermes_tui.stores.dsh.demo_session import project_folder
from hermes_tui.stores.dsh.discovery import walk
from hermes_tui.stores.dsh.store import DshStore

SAMPLES = Path(__file__).parents[1] / "data" / "samples" / "dsh"
PROMPT = "Go on please"
RUNTIME = os.environ.get("HERMES_TUI_DSH") or shutil.which("dsh")
BASIC = "session-e8a532fc-5bb2-4d4f-be02-b04169fb2666"
AGENTS = "session-3db74b1b-b7e7-4156-b12a-82baa6291cb8"
COMPACTED = "session-fd87d091-ac15-496a-891e-be0f9bddc7ae"
UNICODE = "session-f600af60-da87-460a-9975-5327cae2f923"
RAW = "session-61b824cf-9f21-4055-a021-2ec2a9d9848e"

pytestmark = [
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.skipif(RUNTIME is None, reason="the real dsh is not installed (HERMES_TUI_DSH)"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare: the real program must reach no network"),
]

Item = tuple[str, str]
"""Kind and text of one block; texts of one side that follow each other are one."""


@pytest.mark.parametrize(
    ("session", "cut"),
    [
        (BASIC, None), (AGENTS, None), (COMPACTED, None), (UNICODE, None), (RAW, None),
        # The power goes: behind the prompt, behind the reply, behind the call, with a prompt in the inbox, half a line.
        (BASIC, PowerCut(10)), (BASIC, PowerCut(17)), (BASIC, PowerCut(18)), (BASIC, PowerCut(20)),
        (BASIC, PowerCut(31)), (BASIC, PowerCut(36)), (BASIC, PowerCut(56)), (BASIC, PowerCut(24, 30)),
        (COMPACTED, PowerCut(71)), (COMPACTED, PowerCut(72)), (COMPACTED, PowerCut(128)), (COMPACTED, PowerCut(129)),
    ],
)  # fmt: skip
def test_recovery_is_what_is_sent(tmp_path: Path, session: str, cut: PowerCut | None) -> None:
    cwd = tmp_path / "work"
    cwd.mkdir()
    log = moved(tmp_path / "home", session, str(cwd))
    store = DshStore(StoreRef("dsh", "dsh", str(tmp_path / "home")))
    recovery = store.recovery(SessionId(session), cut)
    cut_off(log, cut)
    sent = first_request(tmp_path, session, cwd)
    assert list(ours(recovery.messages)) == list(theirs(sent))


def moved(home: Path, session: str, cwd: str) -> Path:
    """The session's log in a home of its own, recorded in another folder: dsh insists on the folder."""
    (source,) = (log for name in ("dot-dsh", "dot-dsh-raw") for log in walk(SAMPLES / name / "sessions").logs
                 if log.session_id == session)  # fmt: skip
    header, rest = unpacked(Path(source.path)).split(b"\n", 1)
    moved_header = json.dumps({**json.loads(header), "cwd": cwd}, separators=(",", ":"), ensure_ascii=False).encode()
    folder = home / "sessions" / project_folder(cwd) / session
    folder.mkdir(parents=True)
    # A home as it is by default is compressed: the plain sample's events are the same.
    path = folder / "session.v4.jsonl.zstd"
    pack(path, moved_header + b"\n" + rest)
    return path


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".zstd":
        return data
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


def pack(path: Path, data: bytes) -> None:
    head, rest = data.split(b"\n", 1)
    packer = zstandard.ZstdCompressor(write_checksum=True)
    path.write_bytes(packer.compress(head + b"\n") + (packer.compress(rest) if rest else b""))


def cut_off(log: Path, cut: PowerCut | None) -> None:
    if cut is None:
        return
    lines = unpacked(log).split(b"\n")
    if cut.byte is None:
        pack(log, b"\n".join(lines[: cut.line]) + b"\n")
        return
    # A writer that loses power in the middle of a line leaves half a frame: half a line in a whole one is corrupt.
    pack(log, b"\n".join(lines[: cut.line - 1]) + b"\n")
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(lines[cut.line - 1] + b"\n")
    with log.open("ab") as file:
        file.write(frame[: cut.byte])


def first_request(tmp_path: Path, session: str, cwd: Path) -> dict[str, Any]:
    requests = tmp_path / "requests.jsonl"
    server = Path(__file__).with_name("dsh_answering.py")
    arguments = [str(requests), str(RUNTIME), str(tmp_path / "home"), str(cwd), session, PROMPT]
    command = ["unshare", "--map-root-user", "--net", sys.executable, str(server), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    with requests.open() as file:
        asked = [json.loads(line) for line in file]
    return next(request for request in asked if request.get("tools"))


def joined(items: Iterator[Item]) -> Iterator[Item]:
    for kind, group in groupby(items, key=lambda item: item[0]):
        if kind in ("user", "assistant"):
            yield kind, "\n".join(text for _, text in group)
        else:
            yield from group


def theirs(request: dict[str, Any]) -> Iterator[Item]:
    """The request without what this resume added: the new prompt, the new context, the new instructions."""
    return joined(item for item in _theirs(request) if not _new(item))


def _new(item: Item) -> bool:
    return item[1] == PROMPT or item[1].startswith(("Current runtime context.", "You are an AI agent powered by"))


def _theirs(request: dict[str, Any]) -> Iterator[Item]:
    yield "system", request["system"]
    for message in request["messages"]:
        for block in message["content"]:
            match block["type"]:
                case "text":
                    yield message["role"], block["text"]
                case "thinking":
                    yield "thinking", block["thinking"]
                case "tool_use":
                    yield "call", json.dumps([block["id"], block["name"], block["input"]])
                case "tool_result":
                    text = "\n".join(part["text"] for part in block["content"])
                    yield "result", json.dumps([block["tool_use_id"], text])


def ours(messages: tuple[Message, ...]) -> Iterator[Item]:
    return joined(_ours(message) for message in messages)


def _ours(message: Message) -> Item:
    head, text = message.head, message.text or ""
    if head.kind == "tool-call":
        return "call", json.dumps([head.tool_call_id, head.tool_name, json.loads(text)])
    if head.kind == "tool-result":
        return "result", json.dumps([head.tool_call_id, text])
    if head.kind == "reasoning":
        return "thinking", text
    return str(head.role), text
