"""The oldest format: one JSON object a file, by the TypeScript client of April 2025 (facts/codex.md section 7, c)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from hermes_tui.storage.jsonl import Record

MOST_BYTES: Final = 64 << 20
"""A larger file is named, not loaded: that client kept one short session a file."""


def is_oldest(path: str) -> bool:
    """Whether a file of this name is one JSON document rather than lines."""
    return path.endswith(".json")


def document_values(value: object) -> tuple[object, ...]:
    """The lines such a document stands for: its session, then its items; empty when it is no such document."""
    if not isinstance(value, dict) or not isinstance(value.get("items"), list) or "payload" in value:
        return ()
    session = value.get("session")
    if not isinstance(session, dict):
        return ()
    stamp = session.get("timestamp")
    items = [item if not isinstance(item, dict) else {"timestamp": stamp, **item} for item in value["items"]]
    return ({**session, "timestamp": stamp}, *items)


def read_document(path: str) -> Record:
    """Such a file as one record that holds all its lines.

    Raises:
        OSError: it cannot be read.
    """
    file = Path(path)
    size = file.stat().st_size
    if size > MOST_BYTES:
        return Record(1, 0, size, None, b"", f"a document of {size:,} bytes, not loaded")
    raw = file.read_bytes()
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return Record(1, 0, size, None, raw[:4096], f"not JSON: {error}")
    values = document_values(value)
    if not values:
        return Record(1, 0, size, None, raw[:4096], "not a session of the April 2025 client")
    return Record(1, 0, size, None, raw[:4096], None, values)


def first_values(record: Record) -> tuple[object, ...]:
    """The lines of a record: itself, what was cut out of a damaged one, or the parts of a document."""
    value = record.value
    if value is None:
        return record.rescued
    if isinstance(value, dict) and "items" in value:
        return document_values(value) or (value,)
    return (value,)
