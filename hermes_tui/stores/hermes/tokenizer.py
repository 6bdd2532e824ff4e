"""The tokenizers our read connections need for a Hermes store's indexes (facts/hermes.md, section 3).

``cjk_unicode61`` is a C extension of the product that is rarely at hand; this one gives the same tokens.
``trigram`` is SQLite's own, save that a query for one or two letters followed by a star finds the trigrams that begin
with them: an index over all rows then serves short Korean, Chinese and Japanese words without a scan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

import apsw

from hermes_tui.storage.letters import CJK_CLASS

CJK_TOKENIZER: Final = "cjk_unicode61"
TRIGRAM_TOKENIZER: Final = "trigram"
_RUN: Final = re.compile(f"[{CJK_CLASS}]+|[^{CJK_CLASS}]+")
_CJK_START: Final = re.compile(f"[{CJK_CLASS}]")

Token = tuple[int, int, str]
"""First byte, byte after the last, text."""
Tokenizer = Callable[[bytes, int, str | None], Iterable[Token]]
Factory = Callable[[apsw.Connection, list[str]], Tokenizer]


def register_tokenizers(connection: apsw.Connection) -> None:
    """Give a connection the tokenizers, before it first looks at an index."""
    connection.register_fts5_tokenizer(CJK_TOKENIZER, _cjk_factory)
    # Taken before the name is ours, so that the factory reaches SQLite's own.
    plain = connection.fts5_tokenizer(TRIGRAM_TOKENIZER, [])
    connection.register_fts5_tokenizer(TRIGRAM_TOKENIZER, _trigram_factory(plain))


def pair_tokens(tokens: Iterable[Token]) -> Iterator[Token]:
    """Re-emit unicode61's tokens with CJK runs as overlapping pairs; a lone CJK letter stays one token.

    Places are byte positions inside the folded token, kept within it.
    """
    for start, end, text in tokens:
        if _CJK_START.search(text) is None:
            yield start, end, text
            continue
        for run in _RUN.finditer(text):
            yield from _run_tokens(start, end, text, run.start(), run.group())


def _run_tokens(start: int, end: int, text: str, at: int, run: str) -> Iterator[Token]:
    pieces = [run] if len(run) == 1 or not _CJK_START.match(run) else [run[i : i + 2] for i in range(len(run) - 1)]
    place = start + len(text[:at].encode("utf-8", "surrogatepass"))
    for piece in pieces:
        length = len(piece.encode("utf-8", "surrogatepass"))
        yield min(place, end), min(place + length, end), piece
        place += len(piece[0].encode("utf-8", "surrogatepass"))


def _cjk_factory(connection: apsw.Connection, arguments: list[str]) -> Tokenizer:
    inner = connection.fts5_tokenizer("unicode61", arguments)

    def tokenize(text: bytes, flags: int, locale: str | None) -> Iterable[Token]:
        # The stubs do not know which shape the two switches give.
        return pair_tokens(cast(Iterable[Token], inner(text, flags, locale, include_colocated=False)))

    return tokenize


def _trigram_factory(plain: apsw.FTS5Tokenizer) -> Factory:
    def factory(_connection: apsw.Connection, _arguments: list[str]) -> Tokenizer:
        def tokenize(text: bytes, flags: int, locale: str | None) -> Iterable[Token]:
            if flags & apsw.FTS5_TOKENIZE_PREFIX:
                letters = text.decode("utf-8", "replace")
                if 0 < len(letters) < 3:
                    return [(0, len(text), letters)]
            return cast(Iterable[Token], plain(text, flags, locale, include_colocated=False))

        return tokenize

    return factory
