"""The words of the index: Latin as it stands, CJK runs as pairs; and the question a query asks of it.

The pairs are made here and the rest is left to SQLite's own tokenizer, because a tokenizer in Python is ten times
slower (issue 6). The index only proposes: the matcher reads the log and decides.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import Final

from hermes_tui.storage.fulltext import All, Any, Matcher, Node, Term, Unit
from hermes_tui.storage.letters import CJK_CLASS

WORD_LENGTH: Final = 24
"""Letters between two spaces that may be a word rather than a sentence."""
MOST_WORDS: Final = 16_384
"""So many words are remembered."""
_RUN: Final = re.compile(f"([{CJK_CLASS}\ud800-\udfff]+)")
_SURROGATES: Final = re.compile("[\ud800-\udfff]+")
"""Halves of signs, which an index in UTF-8 cannot hold; to the matcher they are no letters."""
_QUOTE: Final = str.maketrans({'"': " "})


def index_words(text: str) -> str:
    """The text as it goes to the tokenizer: each CJK run becomes its pairs and its last character, spaces between."""
    if text.isascii():
        return text
    # No run goes beyond a space, and where spaces stand between words the same come again and again.
    return " ".join([word if word.isascii() else _WORDS[word] for word in text.split(" ")])


def _made(letters: str) -> str:
    if _SURROGATES.search(letters) is not None:
        return " ".join(_made(part) for part in _SURROGATES.split(letters) if part) or " "
    pairs = " ".join(map(str.__add__, letters, letters[1:]))
    return f" {pairs} {letters[-1]} " if pairs else f" {letters} "


class _Words(dict[str, str]):
    """What becomes of what stands between two spaces."""

    def __missing__(self, word: str) -> str:
        pieces = _RUN.split(word)
        # Between the runs stands what stays.
        pieces[1::2] = map(_made, pieces[1::2])
        made = "".join(pieces)
        if len(word) <= WORD_LENGTH:
            if len(self) >= MOST_WORDS:
                self.clear()
            self[word] = made
        return made


_WORDS: Final = _Words()


def store_word(store_path: str) -> str:
    """A word that every text of a store has in the index, and hardly a text in itself.

    A word that is common in one store and in no other is told apart by it at once. Where two stores have the same one,
    more is proposed than need be.
    """
    return f"\U0010fff0{zlib.crc32(store_path.encode('utf-8', 'surrogatepass')):x}"


def index_query(matcher: Matcher) -> str | None:
    """What to ask the index so that every match is among the answers; ``None`` where only a scan can tell."""
    return None if matcher.root is None else _node(matcher.root)


def _node(node: Node) -> str | None:
    match node:
        case Term(units, prefix):
            return _all(list(_term(units, prefix)))
        case All(parts, _):
            # What is to be left out is the matcher's business: a proposal may be too wide, never too narrow.
            return _all([asked for part in parts if (asked := _node(part)) is not None])
        case Any(parts):
            choices = [asked for part in parts if (asked := _node(part)) is not None]
            return f"({' OR '.join(choices)})" if len(choices) == len(parts) else None


def _all(asked: list[str]) -> str | None:
    if not asked:
        return None
    return asked[0] if len(asked) == 1 else f"({' AND '.join(asked)})"


def _term(units: tuple[Unit, ...], prefix: bool) -> Iterator[str]:
    for place, unit in enumerate(units):
        if unit.cjk:
            yield from _cjk(unit.text)
        else:
            yield from _latin(unit.text, prefix and place == len(units) - 1)


def _cjk(text: str) -> Iterator[str]:
    if len(text) == 1:
        yield f'"{text}" *'
    else:
        yield from dict.fromkeys(f'"{text[at : at + 2]}"' for at in range(len(text) - 1))


def _latin(text: str, prefix: bool) -> Iterator[str]:
    """A word of a script whose vowel signs the tokenizer takes for gaps is several words to it."""
    pieces = "".join(" " if unicodedata.category(letter)[0] == "M" else letter for letter in text)
    words = pieces.translate(_QUOTE).split()
    for place, word in enumerate(words):
        yield f'"{word}" *' if prefix and place == len(words) - 1 else f'"{word}"'
