r"""Whether the bytes of a log can hold an answer to a query: a quick no before anything is parsed.

The no must be certain, the yes need not be. JSON may keep letters as they are or as ``\uXXXX``, accents fold away in
the comparison (:mod:`hermes_tui.storage.letters`), and case counts only for bytes that are no ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hermes_tui.storage.fulltext import All, Matcher, Node, Term, Unit
from hermes_tui.storage.fulltext import Any as AnyOf
from hermes_tui.storage.letters import may_hold_accents
from hermes_tui.storage.log_bytes import open_log, source_of

OVERLAP: Final = 256
"""Bytes of the block before that are looked at again: longer than any needle."""
_ESCAPED: Final = re.compile(rb"\\u0[0-3]|\\u1e|\\u212")
"""Accented letters and accents in JSON escapes, ASCII lowered."""
NEEDLE_LETTERS: Final = 40


class RawFilter:
    """The needles of one query."""

    def __init__(self, matcher: Matcher) -> None:
        self._root = matcher.root
        self.everything = matcher.root is None
        """Nothing can be said from the bytes: a regular expression."""
        self._needles = {unit: found for unit in _units(matcher.root) if (found := _needles(unit)) is not None}

    def files_may_hold(self, paths: Sequence[str], pulse: Callable[[], None]) -> bool:
        """Whether these files together can hold an answer; ``pulse`` is called between blocks and may raise.

        Raises:
            OSError: one cannot be read.
        """
        missing = dict(self._needles)
        for path in paths:
            for block in _blocks(path):
                pulse()
                lowered = block.lower()
                missing = {unit: needles for unit, needles in missing.items() if not _holds(lowered, needles)}
                if self._root is None or _fulfilled(self._root, missing):
                    return True
        return self._root is None or _fulfilled(self._root, missing)


Needles = tuple[tuple[bytes, ...], bool]
"""Any of these bytes; or, when the second is true, any accented letter."""


def _holds(lowered: bytes, needles: Needles) -> bool:
    words, accents = needles
    return any(word in lowered for word in words) or (accents and _may_be_accented(lowered))


def _may_be_accented(lowered: bytes) -> bool:
    return may_hold_accents(lowered) or (b"\\u" in lowered and _ESCAPED.search(lowered) is not None)


def _needles(unit: Unit) -> Needles | None:
    """``None``: letters with case beyond ASCII, which bytes do not tell."""
    text = unit.text[:NEEDLE_LETTERS]
    if text.isascii():
        return (text.encode(),), True
    if not unit.cjk:
        return None
    escape = "".join(f"\\u{number:04x}" for number in _utf16(text[0]))
    return (text.encode("utf-8", "surrogatepass"), escape.encode()), False


def _blocks(path: str) -> Iterator[bytes]:
    """The decompressed bytes of a log in pieces that overlap."""
    with open_log(path) as file:
        source = source_of(file, 0)
        kept = b""
        while block := source.read():
            yield kept + block
            kept = block[-OVERLAP:]


def _utf16(text: str) -> Iterator[int]:
    raw = text.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2))


def _units(node: Node | None) -> Iterator[Unit]:
    match node:
        case Term(units):
            yield from units
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from _units(part)
        case None:
            return


def _fulfilled(node: Node, missing: dict[Unit, Needles]) -> bool:
    match node:
        case Term(units):
            return not any(unit in missing for unit in units)
        case All(parts):
            return all(_fulfilled(part, missing) for part in parts)
        case AnyOf(parts):
            return any(_fulfilled(part, missing) for part in parts)
