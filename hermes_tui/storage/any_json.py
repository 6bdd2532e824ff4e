"""JSON of ours that may hold what foreign text holds: lone surrogates, integers over 64 bits."""

from __future__ import annotations

import json
from typing import Any

import orjson


def dump_json(value: object) -> bytes:
    """JSON bytes; text with lone surrogates, which UTF-8 has no place for, goes as escapes."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def load_json(data: bytes | str) -> Any:
    """What :func:`dump_json` wrote."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)
