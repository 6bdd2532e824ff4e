"""A damaged log whose compaction stands beside the chain it compacts is told as far as it goes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes_tui.model import SessionId, StoreRef
from hermes_tui.storage.jsonl import read_records
from hermes_tui.stores.claude.fold import TranscriptFold

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "claude"
COMPACTED = sorted(path for path in SAMPLES.rglob("*.jsonl") if b"compact_boundary" in path.read_bytes())


def fold_of(path: Path) -> TranscriptFold:
    fold = TranscriptFold(StoreRef("claude", "claude", str(path.parent)), str(path), SessionId(path.stem))
    for record in read_records(path):
        fold.feed(record)
    return fold


@pytest.mark.parametrize("source", COMPACTED, ids=[path.stem[:8] for path in COMPACTED])
def test_it_is_told_as_far_as_it_goes(source: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in source.read_bytes().splitlines()]
    messages = {line["uuid"] for line in lines if "isSidechain" in line}
    bounds = [place for place, line in enumerate(lines) if line.get("subtype") == "compact_boundary"]
    assert bounds
    for bound in bounds:
        for first in range(0, bound + 1, 3):
            for end in range(bound + 1, len(lines) + 1, 3):
                changed = [
                    line | {"isSidechain": True} if first <= place < end and "isSidechain" in line else line
                    for place, line in enumerate(lines)
                ]
                path = tmp_path / "log.jsonl"
                path.write_text("".join(json.dumps(line) + "\n" for line in changed))
                fold = fold_of(path)
                assert set(fold.graph().states) <= messages
                assert fold.summary().row.message_count > 0
