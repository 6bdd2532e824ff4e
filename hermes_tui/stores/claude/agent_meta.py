"""What stands beside a sub-agent's log: ``agent-<id>.meta.json`` (facts/claude-code.md section 4)."""

from __future__ import annotations

from collections.abc import Mapping

import orjson


def described(path: str) -> str | None:
    """What the meta file beside a sub-agent's log calls it."""
    meta = _meta(path)
    said = meta.get("description") or meta.get("name")
    return said if isinstance(said, str) and said else None


def meta_path(path: str) -> str:
    """The meta file beside a sub-agent's log."""
    return path.removesuffix(".jsonl") + ".meta.json"


def _meta(path: str) -> Mapping[str, object]:
    try:
        with open(meta_path(path), "rb") as file:  # noqa: PTH123 - a small JSON file
            value = orjson.loads(file.read(65_536))
    except (OSError, orjson.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
