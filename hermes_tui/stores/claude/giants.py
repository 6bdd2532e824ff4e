"""Lines too long to load: what their two ends tell is enough to keep them in the chain."""

from __future__ import annotations

import re
from typing import Final

from hermes_tui.storage.jsonl import GIANT_LINE, Record, read_piece
from hermes_tui.stores.claude.lines import Fields

TAIL: Final = 64 << 10
"""Bytes read from the end of a giant line: Claude Code writes uuid, time and folder behind the message."""
_STRING: Final = rb'"((?:[^"\\]|\\.)*)"'
_TYPE: Final = re.compile(rb'"type":"(user|assistant|attachment|system|progress)"')
_PARENT: Final = re.compile(rb'\A.?\{"parentUuid":(?:null|"([^"\\]*)")', re.DOTALL)
_SIDECHAIN: Final = re.compile(rb'"isSidechain":true')
_RESULT: Final = re.compile(rb'"type":"tool_result"')
_RESULT_ID: Final = re.compile(rb'"tool_use_id":"([^"\\]*)"')
_LAST: Final = {
    name: re.compile(rb'"%s":%s' % (name.encode(), _STRING))
    for name in ("uuid", "timestamp", "cwd", "sessionId", "version", "gitBranch", "entrypoint")
}


def salvaged(path: str, record: Record) -> Fields | None:
    """The fields of a giant message line that place it in the chain, with a text that names its size.

    ``None`` when the record is no giant line, or its ends do not tell. Its content stays on disk.
    """
    if record.length <= GIANT_LINE:
        return None
    try:
        tail = read_piece(path, record.offset + record.length - TAIL, TAIL)
    except OSError:
        return None
    kind, parent = _TYPE.search(record.raw[:4096]), _PARENT.match(record.raw)
    fields: dict[str, object] = {}
    for name, pattern in _LAST.items():
        found = pattern.findall(tail)
        if found:
            fields[name] = found[-1].decode("utf-8", "replace")
    if kind is None or "uuid" not in fields:
        return None
    fields["type"] = kind[1].decode()
    fields["parentUuid"] = parent[1].decode("utf-8", "replace") if parent is not None and parent[1] else None
    fields["isSidechain"] = _SIDECHAIN.search(record.raw[:4096]) is not None
    text = f"(a line of {record.length:,} bytes, not loaded)"
    content: list[object] = [{"type": "text", "text": text}]
    if _RESULT.search(record.raw[:4096]) is not None:
        call = _RESULT_ID.search(record.raw)
        content = [{"type": "tool_result", "tool_use_id": call[1].decode() if call else None, "content": text}]
    fields["message"] = {"role": fields["type"], "content": content}
    return fields
