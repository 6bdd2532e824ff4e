"""Lines too long to load: what stands around their content is enough to keep them in the chain."""

from __future__ import annotations

import json
import re
from typing import Final

from hermes_tui.storage.jsonl import GIANT_LINE, Record, read_piece
from hermes_tui.stores.claude.lines import Fields

PIECE: Final = 1 << 20
"""Bytes looked through at a time."""
OVERLAP: Final = 4 << 10
"""Bytes two pieces share, so that nothing is missed between them."""
_TYPE: Final = re.compile(rb'"type": ?"(user|assistant|attachment|system|progress)"')
_PARENT: Final = re.compile(rb'"parentUuid": ?(?:null|"([^"\\]*)")')
_SIDECHAIN: Final = re.compile(rb'"isSidechain": ?true')
_RESULT: Final = re.compile(rb'"type": ?"tool_result"')
_CALL: Final = re.compile(rb'"tool_use_id": ?"([^"\\]*)"')
_PLACE: Final = re.compile(rb'"uuid": ?"([^"\\]+)", ?"timestamp": ?"([^"\\]+)"')
"""Claude Code writes the two side by side; inside a string the quotes would be escaped."""
_USAGE: Final = re.compile(rb'"usage": ?\{')
_TOOL: Final = re.compile(rb'"content": ?\[\{"type": ?"tool_use", ?"id": ?"([^"\\]+)", ?"name": ?"([^"\\]+)"')
_REQUEST: Final = re.compile(rb'"requestId": ?"([^"\\]+)"')
_OF_REPLY: Final = {name: re.compile(b'"%s": ?"([^"\\\\]+)"' % name.encode()) for name in ("id", "model")}
_DECODER: Final = json.JSONDecoder()
_SAID: Final = {
    name: re.compile(b'"%s": ?"([^"\\\\]*)"' % name.encode())
    for name in ("cwd", "sessionId", "version", "gitBranch", "entrypoint")
}


def salvaged(path: str, record: Record) -> Fields | None:
    """The fields of a giant message line that place it in the chain, with a text that names its size.

    ``None`` when the record is no giant line, or nothing tells its place. Its content stays on disk.
    """
    if record.length <= GIANT_LINE:
        return None
    head = record.raw[:OVERLAP]
    kind, parent = _TYPE.search(record.raw), _PARENT.search(head)
    try:
        found = _place(path, record)
    except OSError:
        return None
    if kind is None or found is None:
        return None
    (uuid, time), around = found
    fields: dict[str, object] = {
        "type": kind[1].decode(),
        "uuid": _text(uuid),
        "timestamp": _text(time),
        "parentUuid": _text(parent[1]) if parent is not None and parent[1] else None,
        "isSidechain": _SIDECHAIN.search(head) is not None,
    }
    for name, pattern in _SAID.items():
        said = pattern.search(around)
        if said is not None:
            fields[name] = _text(said[1])
    text = f"(a line of {record.length:,} bytes, not loaded)"
    content: list[object] = [{"type": "text", "text": text}]
    if _RESULT.search(record.raw) is not None:
        call = _CALL.search(record.raw)
        content = [{"type": "tool_result", "tool_use_id": _text(call[1]) if call else None, "content": text}]
    called = _TOOL.search(head) if fields["type"] == "assistant" else None
    if called is not None:
        content = [{"type": "tool_use", "id": _text(called[1]), "name": _text(called[2]), "input": text}]
    fields["message"] = {"role": fields["type"], "content": content, **_reply(path, record, fields)}
    return fields


def _reply(path: str, record: Record, fields: dict[str, object]) -> Fields:
    """What a reply says of itself before its content and behind it; the id of its request goes into ``fields``."""
    if fields["type"] != "assistant":
        return {}
    head = record.raw[: max(0, record.raw.find(b'"content"'))]
    said: dict[str, object] = {}
    for name, pattern in _OF_REPLY.items():
        found = pattern.search(head, max(0, head.find(b'"message"')))
        if found is not None:
            said[name] = _text(found[1])
    try:
        tail = read_piece(path, max(record.offset, record.offset + record.length - OVERLAP), OVERLAP)
    except OSError:
        return said
    request = _REQUEST.search(tail) or _REQUEST.search(head)
    if request is not None:
        fields["requestId"] = _text(request[1])
    for used in _USAGE.finditer(tail):
        try:
            said["usage"], _ = _DECODER.raw_decode(_text(tail[used.end() - 1 :]))
        except ValueError:
            continue
    return said


def _place(path: str, record: Record) -> tuple[tuple[bytes, bytes], bytes] | None:
    """The uuid and time of the line, and the bytes behind them: looked for in pieces, nothing is kept."""
    offset, end = record.offset, record.offset + record.length
    while offset < end:
        piece = read_piece(path, offset, min(PIECE, end - offset))
        found = _PLACE.search(piece)
        if found is not None:
            behind = read_piece(path, offset + found.start(), min(OVERLAP, end - offset - found.start()))
            return (found[1], found[2]), behind
        if len(piece) <= OVERLAP or offset + len(piece) >= end:
            return None
        offset += len(piece) - OVERLAP
    return None


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")
