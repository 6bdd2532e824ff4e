"""What is packed comes back, and damage is told."""

from __future__ import annotations

import pytest

from hermes_tui.storage.packing import LARGE, packed, unpacked


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, 3 * LARGE])
def test_what_is_packed_comes_back(size: int) -> None:
    data = b"[" * size
    assert unpacked(packed(data)) == data
    assert len(packed(data)) == (size if size < LARGE else pytest.approx(0, abs=1_000))


@pytest.mark.parametrize("cut", [4, 5, 20, -1])
def test_damage_is_told(cut: int) -> None:
    data = packed(bytes(range(256)) * 1_000)
    with pytest.raises(ValueError, match="not what was packed"):
        unpacked(data[:cut])
