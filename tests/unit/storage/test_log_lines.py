"""Lines in blocks: where they end, and whether anything stands behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_tui.storage import log_lines
from hermes_tui.storage.log_lines import read_lines


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
    assert [raw for some in found for raw in some.raws] == [raw + b"\n" for raw in lines]
    assert [some.last for some in found] == [False] * (len(found) - 1) + [last]
    assert found[-1].end == sum(map(len, lines)) + len(lines)
