"""A scripted server that answers "pong" to every model request and keeps the first one of each name.

Usage: claude_server.py PORT FOLDER; the file ``now`` in the folder says what the next request is called.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[2])
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
    ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "pong"}}),
    ("content_block_stop", {"index": 0}),
    ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}}),
    ("message_stop", {}),
]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            self.plain({"input_tokens": 10})
            return
        kept = FOLDER / ((FOLDER / "now").read_text().strip() + ".json")
        if not kept.exists():
            kept.write_text(json.dumps(body))
        message = {
            "id": "msg_pong", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
        }  # fmt: skip
        if not body.get("stream"):
            self.plain({**message, "content": [{"type": "text", "text": "pong"}], "stop_reason": "end_turn"})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for name, fields in [("message_start", {"message": message}), *EVENTS]:
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode())

    def plain(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
