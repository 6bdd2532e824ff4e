"""Lines in blocks: where they end, and whether anything stands behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.storage import log_lines
from hermes_tui.storage.log_lines import placed, read_lines


@pytest.mark.parametrize("block", [1, 3, 4, 7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "end", "lines", "last"),
    [
        (b"ab\ncd\n", None, [b"ab", b"cd"], True),
        (b"ab\ncd", None, [b"ab"], False),
        (b"ab\n\n\n", None, [b"ab", b"", b""], True),
        (b"ab\ncd\nef\n", 6, [b"ab", b"cd"], True),
        (b"ab\ncd\nef\n", 7, [b"ab", b"cd"], False),
    ],
)
def test_whether_the_log_ends_there(
    block: int,
    data: bytes,
    end: int | None,
    lines: list[bytes],
    last: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_lines, "LINES_BLOCK", block)
    path = tmp_path / "log"
    path.write_bytes(data)
    found = list(read_lines(path, end=end))
    assert [raw for some in found for raw in some.cut()] == [raw + b"\n" for raw in lines]
    assert [some.last for some in found] == [False] * (len(found) - 1) + [last]
    assert found[-1].end == sum(map(len, lines)) + len(lines)


@pytest.mark.parametrize("longest", [15, 16, 17, 40])
def test_a_giant_line_ends_the_blocks(longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies before it may be given, what lies behind it not; whoever reads the rest begins where the blocks end."""
    monkeypatch.setattr(log_lines, "LINES_BLOCK", 4)
    monkeypatch.setattr(log_lines, "GIANT_LINE", 16)
    lines = [b"ab\n", b"x" * longest + b"\n", b"cd\n"]
    path = tmp_path / "log"
    path.write_bytes(b"".join(lines))
    found = list(read_lines(path))
    told = [raw for some in found for raw in some.cut()]
    assert told == (lines if longest <= 16 else lines[:1])
    assert found[-1].end == sum(map(len, told))
    assert found[-1].last is (longest <= 16)


@pytest.mark.parametrize(("change", "expected"), [("grows", 4), ("is cut", 2), ("is emptied", 2)])
def test_a_log_that_changes_while_it_is_read(
    change: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lines, "LINES_BLOCK", 8)
    path = tmp_path / "log"
    path.write_bytes(b"abc\n" * 4)
    found = []
    for some in read_lines(path):
        found += some.cut()
        if len(found) == 2:
            with path.open("r+b") as file:
                file.truncate({"grows": 16, "is cut": 10, "is emptied": 0}[change])
                if change == "grows":
                    file.seek(0, 2)
                    file.write(b"new\n")
    assert found == [b"abc\n"] * expected


def test_lines_are_placed() -> None:
    assert list(placed([b"ab\n", b"\n", b"c\n"], 7, 100)) == [(7, 100, b"ab\n"), (8, 103, b"\n"), (9, 104, b"c\n")]
