"""A scripted model server for Codex on loopback: every request is answered by one reply with usage.

Usage: codex_server.py PORT FOLDER; each request's body is kept as FOLDER/request-N.json.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

FOLDER = Path(sys.argv[2])
NUMBERS = count(1)
TAKE = Lock()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with TAKE:
            number = next(NUMBERS)
        (FOLDER / f"request-{number}.json").write_bytes(body)
        reply = {
            "type": "message", "role": "assistant", "id": f"msg_{number}",
            "content": [{"type": "output_text", "text": f"Answer number {number}."}],
        }  # fmt: skip
        usage = {
            "input_tokens": 1000 + number, "input_tokens_details": {"cached_tokens": 900},
            "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 1007 + number,
        }  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for name, fields in (
            ("response.created", {"response": {"id": f"resp_{number}"}}),
            ("response.output_item.done", {"item": reply}),
            ("response.completed", {"response": {"id": f"resp_{number}", "usage": usage}}),
        ):
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode())


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
