"""Logs as bytes: nothing that is looked for is lost between two blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.storage import log_bytes
from hermes_tui.storage.log_bytes import blocks_of

NEEDLE = b'"isSidechain":true'


@pytest.mark.parametrize("place", range(40))
def test_what_lies_across_two_blocks_is_in_one_of_them(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_bytes, "BLOCK", 16)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"x" * place + NEEDLE + b"y" * 30)
    assert any(NEEDLE in block for block in blocks_of(path, len(NEEDLE)))


def test_an_empty_log_has_no_blocks(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.touch()
    assert list(blocks_of(path, 3)) == []


def test_a_log_that_is_cut_while_it_is_read_ends_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_bytes, "BLOCK", 16)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"x" * 4_096)
    blocks = blocks_of(path, 3)
    assert next(blocks) == b"x" * 16
    path.write_bytes(b"")
    assert list(blocks) == []
