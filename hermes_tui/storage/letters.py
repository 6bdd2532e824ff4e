"""How letters count in a search: which end a word, how case and accents fold, which are CJK.

The word indexes of the agents are made with SQLite's unicode61 tokenizer (facts/hermes.md, section 3), so SQLite itself
is asked about each letter, once: the matcher and the index then agree on every one of them.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Iterable
from typing import Final

import apsw

CJK_RANGES: Final[tuple[tuple[int, int], ...]] = (
    (0x1100, 0x11FF),
    (0x3040, 0x309F),
    (0x30A0, 0x30FF),
    (0x3130, 0x318F),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7A3),
    (0xD7B0, 0xD7FF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2FA1F),
)
"""facts/hermes.md, section 3: what cjk_unicode61 cuts into pairs."""
CJK_CLASS: Final = "".join(f"{chr(low)}-{chr(high)}" for low, high in CJK_RANGES)
"""For use inside the brackets of a regular expression."""
GAP: Final = " "
"""What every character that is no letter becomes in canonical text."""
_CJK: Final = re.compile(f"[{CJK_CLASS}]")
_ACCENTED: Final = re.compile(rb"[\xc3-\xc9\xcc\xcd]|\xe1[\xb8-\xbb]|\xe2\x84[\xaa\xab]")
"""Latin letters with accents, and accents, in UTF-8."""
_STARTS: Final = bytes(byte in (*range(0xC3, 0xCA), 0xCC, 0xCD, 0xE1, 0xE2) for byte in range(256))
"""1 for bytes a match of that begins with; to translate by it takes a tenth of the time of the expression."""
_TONE_MARKS: Final = range(0x302A, 0x3030)
_GENERIC_MARKS: Final = (range(0x300, 0x370), range(0x1AB0, 0x1E00), range(0x20D0, 0x2100), range(0xFE00, 0xFE30))
_READY_MADE: Final = range(0x1E00, 0x2000)
_PLANE_14: Final = 0xE0000


def is_cjk(letter: str) -> bool:
    """Whether a letter is written without spaces between words, as far as the search goes."""
    return _CJK.match(letter) is not None


def may_hold_accents(text: bytes) -> bool:
    """Whether UTF-8 text may hold a letter that folds to an ASCII one; no is certain, yes is not."""
    return not text.isascii() and 1 in text.translate(_STARTS) and _ACCENTED.search(text) is not None


class _Unicode61:
    """SQLite's own answer for one character; a tokenizer belongs to a connection, and threads take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection = apsw.Connection(":memory:")
        self._tokenizer = self._connection.fts5_tokenizer("unicode61", [])

    def fold(self, letter: str) -> str | None:
        """The folded letter, ``GAP`` where it ends a word, ``None`` where it is a removed accent."""
        probe = f"x{letter}y".encode("utf-8", "replace")
        with self._lock:
            tokens: Iterable[object] = self._tokenizer(
                probe, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
            )
        words = [str(token) for token in tokens]
        return GAP if len(words) > 1 else words[0][1:-1] or None


@functools.cache
def _unicode61() -> _Unicode61:
    return _Unicode61()


def _is_script_mark(code: int) -> bool:
    """Vowel signs of Indic, Thai and the like: part of the word for a person, a gap for unicode61."""
    if code in _TONE_MARKS or code >= _PLANE_14 or any(code in block for block in _GENERIC_MARKS):
        return False
    letter = chr(code)
    return unicodedata.category(letter)[0] == "M" and not is_cjk(letter)


class _Folding(dict[int, str | None]):
    """A table for ``str.translate`` that learns each character when it first meets it."""

    def __missing__(self, code: int) -> str | None:
        folded = _unicode61().fold(chr(code))
        if folded == GAP and _is_script_mark(code):
            # The index cuts such a word into more pieces than we do; a phrase of its pieces still proposes it.
            folded = chr(code)
        self[code] = folded
        return folded


_FOLDING: Final = _Folding({code: chr(code).lower() if chr(code).isalnum() else GAP for code in range(128)})


@functools.cache
def spellings(letter: str) -> tuple[str, ...]:
    """The characters that count as this letter of a canonical text: either case, and with accents; itself first.

    Looked for in the neighbourhood of the letter and in the blocks of ready-made accented letters, where they lie.
    """
    code = ord(letter)
    near = range(max(0x80, code // 256 * 256 - 256), code // 256 * 256 + 512)
    cased = [ord(one) for one in (letter.upper(), letter.title()) if len(one) == 1]
    found = [chr(one) for one in (*cased, *near, *_READY_MADE) if _FOLDING[one] == letter]
    return tuple(dict.fromkeys([letter, *found]))


def canonical(text: str) -> str:
    """Text as it is compared: letters folded, accents gone, everything else a gap; may be shorter than ``text``."""
    return text.translate(_FOLDING)


def positions(text: str) -> list[int]:
    """Where each character of ``canonical(text)`` stands in ``text``, and at the end where ``text`` ends."""
    kept = [place for place, letter in enumerate(text) if _FOLDING[ord(letter)] is not None]
    kept.append(len(text))
    return kept
