"""The query a person types, and the one matcher that decides whether a text answers it.

The rule (contract.md, search): words are AND; a Latin word matches a whole word with case and accents folded; a change
between CJK and other letters ends a word; ``word*`` is a prefix; CJK matches as a substring; ``"…"`` is a phrase; OR
and NOT in capitals; brackets group. Words joined by punctuation (``chat-send``) are a phrase. Indexes only propose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from hermes_tui.records import dataclass
from hermes_tui.storage.letters import CJK_CLASS, GAP, canonical, is_cjk, positions

Span = tuple[int, int]
"""Start and length in characters."""
MARK_LIMIT: Final = 2_000
"""Marks kept of one text; a word that stands there more often needs no more of them."""
DEPTH_LIMIT: Final = 40
"""Brackets nested deeper are read as punctuation."""
_RUN: Final = re.compile(f"[{CJK_CLASS}]+|[^{GAP}{CJK_CLASS}]+")
_PIECE: Final = re.compile(r'"(?P<phrase>[^"]*)"|(?P<bracket>[()])|(?P<word>(?:(?!"[^"]*")[^\s()])+|"|\()')
_OPERATORS: Final = frozenset({"AND", "OR", "NOT"})
_LETTER: Final = f"[^{GAP}{CJK_CLASS}]"

NOTHING_TO_FIND: Final = "the query has no letter or digit to look for"


class BadPattern(ValueError):
    """A regular expression that can't be read."""

    def __init__(self, pattern: str, reason: str, place: int | None) -> None:
        where = "" if place is None else f" at character {place + 1}"
        super().__init__(f"the regular expression {pattern!r} can't be read{where}: {reason}")


@dataclass(frozen=True, slots=True)
class Unit:
    """A run of letters of one kind inside a term."""

    text: str
    """Folded."""
    cjk: bool


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase: units that follow each other."""

    units: tuple[Unit, ...]
    prefix: bool = False
    """The last unit may go on."""

    def __str__(self) -> str:
        return " ".join(unit.text for unit in self.units) + ("*" if self.prefix else "")


@dataclass(frozen=True, slots=True)
class All:
    """Every part must be there and nothing of ``without``."""

    parts: tuple[Node, ...]
    without: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Any:
    """One of the parts must be there."""

    parts: tuple[Node, ...]


Node = Term | All | Any


@dataclass(frozen=True, slots=True)
class _Text:
    """A text made ready for comparison, once for all terms."""

    raw: str
    folded: str

    def spans(self, found: Iterable[Span]) -> tuple[Span, ...]:
        """(start, end) in the folded text to (start, length) in the raw one, overlapping ones joined."""
        joined: list[list[int]] = []
        for start, end in sorted(found):
            if joined and start < joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        if len(self.folded) == len(self.raw):
            return tuple((start, end - start) for start, end in joined)
        places = positions(self.raw)
        return tuple((places[start], places[end] - places[start]) for start, end in joined)


class Matcher:
    """Decides whether a text answers a query, and where."""

    __slots__ = ("_patterns", "_regex", "query", "root")

    def __init__(self, query: str, root: Node | None, regex: re.Pattern[str] | None = None) -> None:
        self.query = query
        self.root = root
        """``None`` for a regular expression, or where nothing can be found."""
        self._regex = regex
        self._patterns = {term: _term_pattern(term) for term in _terms(root, wanted=True)}
        self._patterns.update((term, _term_pattern(term)) for term in _terms(root, wanted=False))

    @property
    def regex(self) -> re.Pattern[str] | None:
        """The regular expression, when this is one."""
        return self._regex

    @property
    def wanted(self) -> tuple[Term, ...]:
        """The terms that a text can be found by, in the order of the query."""
        return tuple(dict.fromkeys(_terms(self.root, wanted=True)))

    @property
    def terms(self) -> tuple[str, ...]:
        """The same as text, folded."""
        return tuple(str(term) for term in self.wanted)

    @property
    def empty_reason(self) -> str | None:
        """Why this can find nothing at all; ``None`` when it can."""
        return NOTHING_TO_FIND if self.root is None and self._regex is None else None

    def matches(self, text: str) -> bool:
        """Whether the text answers the query."""
        return self.find(text) is not None

    def find(self, text: str) -> tuple[Span, ...] | None:
        """The marks, in order and apart from each other; ``None``: no match."""
        if self._regex is not None:
            return self._find_regex(text)
        if self.root is None:
            return None
        ready = _Text(text, canonical(text))
        if not self._holds(self.root, ready):
            return None
        found = (span for term in self.wanted for span in self._places(term, ready, MARK_LIMIT))
        return ready.spans(found)[:MARK_LIMIT]

    def counts(self, text: str) -> tuple[tuple[int, ...], int]:
        """How often each wanted term stands in the text, and how many words the text has: what bm25 needs."""
        ready = _Text(text, canonical(text))
        often = tuple(sum(1 for _ in self._places(term, ready, MARK_LIMIT)) for term in self.wanted)
        return often, ready.folded.count(GAP) + 1

    def holds_together(self, texts: Sequence[str]) -> bool:
        """Whether several texts answer the query together: a word may be in one and its neighbour in another."""
        if self.root is None:
            return any(self.matches(text) for text in texts)
        # A letter that is no letter of any word keeps phrases from reaching over the joint.
        return self._holds(self.root, _Text("", f"{GAP}\0{GAP}".join(canonical(text) for text in texts)))

    def touches(self, text: str) -> tuple[Span, ...]:
        """Marks of the wanted terms, whether or not the text answers the whole query."""
        if self._regex is not None:
            return self._find_regex(text) or ()
        ready = _Text(text, canonical(text))
        return ready.spans(span for term in self.wanted for span in self._places(term, ready, MARK_LIMIT))

    def _find_regex(self, text: str) -> tuple[Span, ...] | None:
        assert self._regex is not None
        marks: list[Span] = []
        for hit in self._regex.finditer(text):
            if hit.end() > hit.start():
                marks.append((hit.start(), hit.end() - hit.start()))
                if len(marks) == MARK_LIMIT:
                    break
        return tuple(marks) or None

    def _holds(self, node: Node, text: _Text) -> bool:
        match node:
            case Term():
                return next(self._places(node, text, 1), None) is not None
            case All(parts, without):
                return all(self._holds(part, text) for part in parts) and not any(
                    self._holds(part, text) for part in without
                )
            case Any(parts):
                return any(self._holds(part, text) for part in parts)

    def _places(self, term: Term, text: _Text, limit: int) -> Iterator[Span]:
        # str.find is many times faster than a pattern with look-behind, and most texts lack the word.
        if term.units[0].text not in text.folded:
            return
        for count, hit in enumerate(self._patterns[term].finditer(text.folded)):
            if count == limit:
                return
            yield hit.span()


def _terms(node: Node | None, *, wanted: bool) -> Iterator[Term]:
    """The terms a text is found by, or those that keep it out."""
    match node:
        case Term():
            if wanted:
                yield node
        case All(parts, without):
            for part in parts:
                yield from _terms(part, wanted=wanted)
            if not wanted:
                for part in without:
                    yield from _terms(part, wanted=True)
                    yield from _terms(part, wanted=False)
        case Any(parts):
            for part in parts:
                yield from _terms(part, wanted=wanted)
        case None:
            return


def _term_pattern(term: Term) -> re.Pattern[str]:
    """A pattern over canonical text: whole Latin words, CJK anywhere, gaps only between units."""
    first, last = term.units[0], term.units[-1]
    pieces = ["" if first.cjk else f"(?<!{_LETTER})", re.escape(first.text)]
    for before, unit in zip(term.units, term.units[1:], strict=False):
        pieces.append(f"{GAP}+" if before.cjk == unit.cjk else f"{GAP}*")
        pieces.append(re.escape(unit.text))
    if not last.cjk:
        pieces.append(f"{_LETTER}*" if term.prefix else f"(?!{_LETTER})")
    return re.compile("".join(pieces))


def parse_query(text: str, regex: bool = False) -> Matcher:
    """Read a query; with ``regex`` it is one regular expression, upper and lower case told apart.

    Raises:
        BadPattern: only with ``regex``.
    """
    if not regex:
        return Matcher(text, _Parser(text).parse())
    try:
        return Matcher(text, None, re.compile(text, re.MULTILINE))
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(text, str(error), getattr(error, "pos", None)) from None


def term_of(text: str, prefix: bool = False) -> Term | None:
    """One word or phrase; ``None`` when it has no letter."""
    units = tuple(Unit(run, is_cjk(run[0])) for run in _RUN.findall(canonical(text)))
    return Term(units, prefix and not units[-1].cjk) if units else None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["term", "AND", "OR", "NOT", "(", ")"]
    term: Term | None = None


class _Parser:
    """Reads tokens into a tree; whatever makes no sense is passed over, so that any text is a query."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_balanced(_tokens(text)))
        self._next = 0
        self._first_term = next((at for at, token in enumerate(self._tokens) if token.kind == "term"), 0)

    def parse(self) -> Node | None:
        return self._alternatives()

    def _alternatives(self) -> Node | None:
        """Groups with OR between them, up to a closing bracket or the end."""
        groups: list[Node] = []
        while True:
            group = self._group()
            if group is not None:
                groups.append(group)
            if self._peek() != "OR":
                break
            self._next += 1
        return _one_of(groups)

    def _group(self) -> Node | None:
        """Terms with AND or nothing between them; NOT counts for the term or bracket right after it."""
        wanted: list[Node] = []
        unwanted: list[Node] = []
        negated = False
        while (kind := self._peek()) not in (None, "OR", ")"):
            self._next += 1
            if kind == "NOT":
                # A leading NOT has nothing to leave out from: it is dropped like any leading operator.
                negated = self._next > self._first_term
            elif kind in ("term", "("):
                node = self._operand(kind)
                if node is not None:
                    (unwanted if negated else wanted).append(node)
                negated = False
        if not wanted:
            return None
        return wanted[0] if len(wanted) == 1 and not unwanted else All(tuple(wanted), tuple(unwanted))

    def _operand(self, kind: str) -> Node | None:
        if kind == "term":
            return self._tokens[self._next - 1].term
        inner = self._alternatives()
        self._next += 1
        return inner

    def _peek(self) -> str | None:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else None


def _one_of(groups: list[Node]) -> Node | None:
    if len(groups) > 1:
        return Any(tuple(groups))
    return groups[0] if groups else None


def _tokens(text: str) -> Iterator[_Token]:
    for piece in _PIECE.finditer(text):
        if piece["bracket"]:
            yield _Token("(" if piece["bracket"] == "(" else ")")
            continue
        if piece["phrase"] is not None:
            term = term_of(piece["phrase"])
        elif piece["word"] in _OPERATORS:
            yield _Token(_operator(piece["word"]))
            continue
        else:
            term = _word(piece["word"])
        if term is not None:
            yield _Token("term", term)


def _operator(word: str) -> Literal["AND", "OR", "NOT"]:
    return "OR" if word == "OR" else "NOT" if word == "NOT" else "AND"


def _word(word: str) -> Term | None:
    """A word as typed; a star at its end makes it a prefix, other stars are punctuation."""
    bare = word.rstrip("".join({c for c in word if canonical(c) == GAP and c != "*"}))
    return term_of(bare, prefix=bare.endswith("*"))


def _balanced(tokens: Iterable[_Token]) -> Iterator[_Token]:
    """The tokens without brackets that have no partner, hold nothing, or are nested too deep."""
    kept = list(tokens)
    partner: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(kept):
        if token.kind == "(":
            opened.append(place)
        elif token.kind == ")" and opened:
            start = opened.pop()
            if len(opened) < DEPTH_LIMIT:
                partner[start], partner[place] = place, start
    return (token for place, token in enumerate(kept) if token.kind not in ("(", ")") or place in partner)
