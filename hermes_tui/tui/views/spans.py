"""Colour for texts without changing them: which characters of a text take which ink.

Texts stay as they were written, sign for sign, so that heights are those of plain wrapping, a copy is what was read,
and a mark of a search fits. Only texts on screen are looked at (facts/textual.md, section 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

Span = tuple[int, int, str]
"""Start, end, ink names; spans of one text are in order and never overlap."""

MOST: Final = 64_000
"""Characters coloured of one text; what follows is plain. Colouring 64,000 takes about 10 ms, in a thread."""
MOST_CODE: Final = 24_000
"""Characters of one code block given to a lexer."""
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`\n]*$")
_HEADING: Final = re.compile(r"^ {0,3}#{1,6} .*$")
_BULLET: Final = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])(?= )")
_QUOTE: Final = re.compile(r"^\s*>.*$")
_RULE: Final = re.compile(r"^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$")
_INLINE: Final = re.compile(
    r"(?P<code>`[^`\n]+`)|(?P<strong>\*\*[^*\n]+\*\*|__[^_\n]+__)|(?P<link>\[[^\]\n]+\]\([^)\n]+\)|https?://[^\s<>)\]]+)"
)
_INLINE_INKS: Final = {"code": "code", "strong": "strong", "link": "accent"}
_JSON: Final = re.compile(
    r'(?P<key>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<number>-?\b\d+(?:\.\d+)?\b)|(?P<keyword>\b(?:true|false|null)\b)'
)
_JSON_INKS: Final = {"key": "keyword", "string": "string", "number": "number", "keyword": "number"}
_DIFF: Final = re.compile(r"^(?:@@ -\d|diff --git |\*\*\* (?:Begin Patch|Update File|Add File))", re.MULTILINE)


def markdown_spans(text: str) -> list[Span]:
    """Headings, lists, quotes, inline code, code blocks of a Markdown text."""
    spans: list[Span] = []
    fence = ""
    language = ""
    code_start = 0
    at = 0
    for line in text[:MOST].split("\n"):
        end = at + len(line)
        match = _FENCE.match(line) if "`" in line or "~" in line else None
        if match and (not fence or (line.strip().startswith(fence) and not match[2])):
            if fence:
                spans += code_spans(text[code_start:at], language, code_start)
                fence = ""
            else:
                fence, language = match[1], match[2]
                code_start = end + 1
            spans.append((at, end, "rule"))
        elif not fence:
            spans += _line_spans(line, at)
        at = end + 1
    if fence and code_start < at:
        spans += code_spans(text[code_start : at - 1], language, code_start)
    return spans


def _line_spans(line: str, at: int) -> Iterator[Span]:
    if not line or line.isspace():
        return
    if _HEADING.match(line):
        yield at, at + len(line), "title"
        return
    if _RULE.match(line):
        yield at, at + len(line), "rule"
        return
    if _QUOTE.match(line):
        yield at, at + len(line), "quote"
        return
    start = 0
    if bullet := _BULLET.match(line):
        yield at, at + bullet.end(), "accent"
        start = bullet.end()
    for match in _INLINE.finditer(line, start):
        yield at + match.start(), at + match.end(), _INLINE_INKS[match.lastgroup or "code"]


def code_spans(code: str, language: str, offset: int) -> list[Span]:
    """A piece of code by the lexer of its language; plain code ink where there is none."""
    if not code:
        return []
    if language and len(code) <= MOST_CODE:
        spans = _lexed(code, language, offset)
        if spans is not None:
            return spans
    return [(offset, offset + len(code), "code")]


def _lexed(code: str, language: str, offset: int) -> list[Span] | None:
    # Imported late: 15 ms, and only texts with code need it.
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.token import Comment, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    inks = (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Operator.Word, "keyword"),
        (Name.Function, "title"),
        (Name.Class, "title"),
        (Name.Decorator, "accent"),
        (Name.Tag, "keyword"),
    )
    spans: list[Span] = []
    for at, token, value in lexer.get_tokens_unprocessed(code):
        ink = next((name for kind, name in inks if token in kind), "code")
        if value and not value.isspace():
            start = offset + at
            if spans and spans[-1][1] == start and spans[-1][2] == ink:
                spans[-1] = (spans[-1][0], start + len(value), ink)
            else:
                spans.append((start, start + len(value), ink))
    return spans


def json_spans(text: str) -> list[Span]:
    """Keys, strings, numbers of a JSON text or what looks like one."""
    return [
        (match.start(), match.end(), _JSON_INKS[match.lastgroup or "string"]) for match in _JSON.finditer(text[:MOST])
    ]


def output_spans(text: str) -> list[Span]:
    """Added and removed lines where a tool's output is a difference; else nothing."""
    head = text[:MOST]
    if not _DIFF.search(head):
        return []
    spans: list[Span] = []
    at = 0
    for line in head.split("\n"):
        ink = {"+": "good", "-": "bad", "@": "accent"}.get(line[:1])
        if ink:
            spans.append((at, at + len(line), ink))
        at += len(line) + 1
    return spans


def runs(
    text: str, start: int, end: int, spans: Sequence[Span], marks: Sequence[Span], ink: str
) -> list[tuple[str, str]]:
    """The characters from ``start`` to ``end`` cut where the ink changes; marks lie over spans."""
    out: list[tuple[str, str]] = []
    for piece_start, piece_end, own in _fill(start, end, spans, ink):
        for mark_start, mark_end, over in _fill(piece_start, piece_end, marks, ""):
            out.append((text[mark_start:mark_end], over or own))
    return out


def _fill(start: int, end: int, spans: Sequence[Span], rest: str) -> Iterator[Span]:
    """The spans between two places, with the gaps between them."""
    at = start
    for span_start, span_end, ink in _from(spans, start):
        if span_start >= end:
            break
        if span_start > at:
            yield at, span_start, rest
        low, high = max(at, span_start), min(end, span_end)
        if high > low:
            yield low, high, ink
            at = high
    if at < end:
        yield at, end, rest


def _from(spans: Sequence[Span], start: int) -> Iterator[Span]:
    """The spans from the first that ends after a place."""
    low, high = 0, len(spans)
    while low < high:
        middle = (low + high) // 2
        if spans[middle][1] <= start:
            low = middle + 1
        else:
            high = middle
    for at in range(low, len(spans)):
        yield spans[at]
