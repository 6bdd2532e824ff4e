"""Raw and clean text: the one place where text from a store becomes text a terminal may get.

Everything a store says is :data:`RawText`. :func:`clean` makes :data:`CleanText`, which is all that screens and
tables accept. Comparison, search, export and JSON work on raw text, for there bytes decide (design.md, rule 5;
what terminals do with control bytes: facts/textual.md, section 5).
"""

from __future__ import annotations

import re
from typing import Final, NewType

RawText = NewType("RawText", str)
"""As the store has it; may hold escapes, C1 bytes, bidi controls."""
CleanText = NewType("CleanText", str)
"""Safe to write to a terminal: no control but newline."""

TAB_WIDTH: Final = 4
REPLACEMENT: Final = "\ufffd"
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HOSTILE: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_BIDI}\ud800-\udfff]")
_LINE_BREAK: Final = re.compile("\r\n|\r|\u2028|\u2029")
_WHITE: Final = re.compile(r"\s+")
_JSON_HOSTILE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f{_BIDI}]")


def clean(raw: str) -> CleanText:
    """Make store text safe for a terminal: controls become U+FFFD, tabs spaces, line breaks newlines."""
    text = _LINE_BREAK.sub("\n", raw) if "\r" in raw or "\u2028" in raw or "\u2029" in raw else raw
    if "\t" in text:
        text = text.expandtabs(TAB_WIDTH)
    return CleanText(_HOSTILE.sub(REPLACEMENT, text))


def clean_line(raw: str) -> CleanText:
    """The same on one line: runs of white space become one space."""
    return CleanText(_HOSTILE.sub(REPLACEMENT, _WHITE.sub(" ", raw).strip()))


def literal(text: str) -> CleanText:
    """Our own words, which need no cleaning; only for text that holds nothing from a store."""
    return CleanText(text)


def escape_json_controls(document: str) -> str:
    r"""Escape DEL, C1 and bidi controls inside a JSON document as ``\uXXXX``; newlines between tokens stay.

    orjson and json already escape C0 inside strings, so what is left of it is layout.
    """
    return _JSON_HOSTILE.sub(lambda m: m[0] if m[0] == "\n" else f"\\u{ord(m[0]):04x}", document)
