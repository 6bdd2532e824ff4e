"""Runs beside the real dsh: answers every request of its model with one word and writes down what was asked.

Usage: dsh_answering.py REQUESTS DSH HOME CWD SESSION PROMPT. Started in a network that holds this server only.
"""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

SIOCSIFFLAGS: Final = 0x8914
UP_AND_RUNNING: Final = 0x41
ANSWER: Final = (
    ("message_start", {"message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}),
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "resumed"}}),
    ("content_block_stop", {"index": 0}),
    ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}}),
    ("message_stop", {}),
)  # fmt: skip


class Answering(http.server.BaseHTTPRequestHandler):
    """The messages endpoint, as far as a resume needs it."""

    requests_file: Path

    def log_message(self, format: str, *args: object) -> None:
        del format, args

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with self.requests_file.open("ab") as file:
            file.write(json.dumps(json.loads(body)).encode() + b"\n")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for kind, data in ANSWER:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())


def raise_loopback() -> None:
    """A new network has a loopback that is down."""
    with socket.socket() as handle:
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))


def main() -> int:
    requests_file, dsh, home, cwd, session, prompt = sys.argv[1:]
    raise_loopback()
    Answering.requests_file = Path(requests_file)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        "PATH": os.environ["PATH"], "HOME": home, "DSH_HOME": home, "DEEPSEEK_API_KEY": "none",
        "DEEPSEEK_BASE_URL": f"http://127.0.0.1:{server.server_port}", "DSH_TELEMETRY_MODE": "DISABLED",
    }  # fmt: skip
    command = [dsh, "--profile", "headless", "--session-id", session, prompt]
    done = subprocess.run(command, cwd=cwd, env=environment, timeout=90, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
