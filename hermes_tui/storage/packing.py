"""Bytes of ours that are large are kept compressed: writing them takes longer than packing them."""

from __future__ import annotations

from typing import Final

import zstandard

from hermes_tui.storage.log_bytes import ZSTD_MAGIC

LARGE: Final = 64 << 10
"""Bytes; less is kept as it is."""
_QUICKEST: Final = 1


def packed(data: bytes) -> bytes:
    """The same in less room; what is given must not begin as a zstd frame does (JSON never does)."""
    return data if len(data) < LARGE else zstandard.ZstdCompressor(level=_QUICKEST).compress(data)


def unpacked(data: bytes) -> bytes:
    """What was given to :func:`packed`.

    Raises:
        ValueError: it is damaged.
    """
    if not data.startswith(ZSTD_MAGIC):
        return data
    try:
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"not what was packed: {error}") from error
