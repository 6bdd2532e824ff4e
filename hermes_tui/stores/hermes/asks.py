r"""What the indexes of a store are asked for a query, and which rows must be looked at besides.

An ask proposes rows; together the asks and the gaps of a plan hold every row the matcher can say yes to. The traps
(facts/hermes.md sections 3 and 6): the word index keeps Latin glued to CJK as one word; JSON keeps other scripts as
``\uXXXX`` and glues the ``n`` of ``\n`` to the next word; the trigram index keeps accents and, made by an older
SQLite, stops at the NUL before structured content; newer layouts leave tool output out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import apsw

from hermes_tui.model import Route
from hermes_tui.records import dataclass
from hermes_tui.storage.fulltext import All, Matcher, Node, Term
from hermes_tui.storage.fulltext import Any as AnyOf
from hermes_tui.storage.letters import may_hold_accents, spellings
from hermes_tui.stores.hermes.indexes import Index, Indexes
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.tokenizer import register_tokenizers

TRIGRAM: Final = 3
LONG_WORD: Final = 7
"""Letters of a word that is asked for by three of its trigrams."""
MOST_LETTERS: Final = 8
"""Different letters of an escaped word that are asked for."""
JSON_GLUE: Final = "ntrbf"
"""Letters of JSON escapes that end up in front of a word."""
ACCENTS_ESCAPED: Final = " OR ".join(
    f'"{start}" *' for start in ("u00c", "u00d", "u00e", "u00f", "u01", "u02", "u03", "u1e", "u212")
)
"""Rows with accented letters stored as escapes."""
STRUCTURED_ROWS: Final = '^ "json"'
"""Rows whose text begins with the mark of structured content."""
ACCENTS_FUNCTION: Final = "hermes_tui_accents"
"""Of bytes: whether they may hold accented letters (storage/letters.py); GLOB takes five times as long."""
GLUED_TO_ESCAPE: Final = "instr(m.tool_calls, '\\u')"
r"""Rows where a word may stand right behind an escape: ``\u201cdocker`` is one word but in a trigram index."""
CUT_TOOL_OUTPUT: Final = "(m.role = 'tool' AND octet_length(m.content) > 8192)"
"""Rows the newest layout keeps only the beginning of."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to one index."""

    index: Index
    match: str
    main: bool = True
    """False: rows beyond what the main question finds; mostly none, so they are limited in number."""
    but: str | None = None
    """Where there are too many of them: without the rows the word index answers this for."""
    loose: str | None = None
    """A question that finds all of these rows and others, for less: enough where it finds few."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the candidates of a query are found."""

    route: Route
    asks: tuple[Ask, ...] = ()
    gap: str | None = None
    """Rows no ask covers, as a condition on ``m``."""
    scored: str | None = None
    """What the word index is asked for scores: the words as they stand."""
    variants: str | None = None
    """The words as JSON escapes disfigure them: what ``scored`` leaves out of the main question."""
    light: bool = False
    """The gap can hold only oddities: in a large store only its newest rows are looked at, and that is said."""


SCAN: Final = Plan("scan", gap="1")


def plan_for(matcher: Matcher, indexes: Indexes) -> Plan:
    """The cheapest plan that proposes every row the matcher can accept."""
    if matcher.root is None:
        return SCAN
    plans = [_branch_plan(terms, indexes) for terms in _branches(matcher.root)]
    if any(plan is SCAN for plan in plans):
        return SCAN
    gaps = dict.fromkeys(plan.gap for plan in plans if plan.gap)
    return Plan(
        route=plans[0].route,
        asks=tuple(dict.fromkeys(ask for plan in plans for ask in plan.asks)),
        gap=" OR ".join(gaps) or None,
        scored=" OR ".join(f"({plan.scored})" for plan in plans) if all(plan.scored for plan in plans) else None,
        variants=" OR ".join(plan.variants for plan in plans if plan.variants) or None,
        light=all(plan.light for plan in plans if plan.gap),
    )


def _branches(node: Node) -> list[list[Term]]:
    """Terms that must all be there, for each alternative; what is nested deeper is left to the matcher."""
    match node:
        case Term():
            return [[node]]
        case AnyOf(parts):
            return [terms for part in parts for terms in _branches(part)]
        case All(parts):
            terms = [part for part in parts if isinstance(part, Term)]
            return [terms] if terms else _branches(parts[0])


def _branch_plan(terms: list[Term], indexes: Indexes) -> Plan:
    words = indexes.usable("fts")
    if words is None:
        return SCAN
    cjk_runs = [unit.text for term in terms for unit in term.units if unit.cjk]
    plan = _cjk_plan(cjk_runs, words, indexes) if cjk_runs else _latin_plan(terms, words, indexes)
    if plan is SCAN:
        return SCAN
    gaps = [plan.gap, *(_rebuilding(ask.index) for ask in plan.asks)]
    return Plan(
        plan.route,
        plan.asks,
        " OR ".join(dict.fromkeys(gap for gap in gaps if gap)) or None,
        plan.scored,
        plan.variants,
        plan.light and not any(ask.index.gap for ask in plan.asks),
    )


def _rebuilding(index: Index) -> str | None:
    return None if index.gap is None else f"(m.id > {index.gap[0]} AND m.id <= {index.gap[1]})"


def _missing(index: Index) -> str:
    """Rows that are not in an index, as the index itself says."""
    missing = f"NOT EXISTS (SELECT 1 FROM {index.table}_docsize d WHERE d.id = m.id)"
    return missing if index.has_calls else f"({missing} OR m.tool_calls IS NOT NULL OR m.tool_name IS NOT NULL)"


def _cjk_plan(runs: list[str], words: Index, indexes: Indexes) -> Plan:
    """Latin words of the same branch are left to the matcher: no one index has both without exceptions."""
    escaped = tuple(Ask(words, escaped_match(run), main=False) for run in dict.fromkeys(runs))
    trigram, pairs = indexes.usable("trigram"), indexes.usable("cjk")
    shortest = min(map(len, runs))
    cut = None if words.inline else CUT_TOOL_OUTPUT
    if trigram is not None and trigram.inline and trigram.has_calls:
        main = Ask(trigram, " AND ".join(trigram_match(run) for run in dict.fromkeys(runs)))
        return Plan("trigram", (main, *escaped, Ask(words, STRUCTURED_ROWS, main=False)), cut)
    if pairs is not None and shortest >= 2:
        main = Ask(pairs, " AND ".join(f'"{run}"' for run in dict.fromkeys(runs)))
        return Plan("cjk", (main, *escaped), _either(_missing(pairs), cut))
    if trigram is not None and shortest >= TRIGRAM:
        main = Ask(trigram, " AND ".join(trigram_match(run) for run in dict.fromkeys(runs)))
        return Plan(
            "trigram", (main, *escaped, Ask(words, STRUCTURED_ROWS, main=False)), _either(_missing(trigram), cut)
        )
    return SCAN


def _either(*conditions: str | None) -> str | None:
    return " OR ".join(condition for condition in conditions if condition) or None


def _latin_plan(terms: list[Term], words: Index, indexes: Indexes) -> Plan:
    """Words as they stand, then the same words glued to CJK or to an escape."""
    expression = " AND ".join(f"({word_match(term)})" for term in terms)
    gap = None if words.has_calls else "m.tool_calls IS NOT NULL OR m.tool_name IS NOT NULL"
    gap = _either(gap, None if words.inline else CUT_TOOL_OUTPUT)
    asks = [Ask(words, expression), Ask(words, ACCENTS_ESCAPED, main=False), Ask(words, STRUCTURED_ROWS, main=False)]
    escaped = " AND ".join(f"({word_match(term)} OR {one})" for term in terms if (one := escaped_letters(term)))
    if escaped:
        asks.append(Ask(words, escaped, main=False))
    trigram, pairs = indexes.usable("trigram"), indexes.usable("cjk")
    if pairs is not None:
        asks.append(Ask(pairs, expression, main=False))
        gap = _either(gap, _missing(pairs), GLUED_TO_ESCAPE)
    elif trigram is not None:
        asks.append(Ask(trigram, glued_match(terms), False, separate_words(terms), loosely_glued(terms)))
        gap = _either(gap, None if trigram.inline and trigram.has_calls else _missing(trigram))
    else:
        gap = "1"
    scored = " AND ".join(map(plain_match, terms))
    variants = " OR ".join(one for term in terms for one in disfigured(term))
    return Plan("fts", tuple(asks), gap, scored, variants, light=words.has_calls)


def plain_match(term: Term) -> str:
    """A Latin word or phrase for the word index."""
    return '"' + " ".join(unit.text for unit in term.units) + '"' + (" *" if term.prefix else "")


def word_match(term: Term) -> str:
    """The same, also behind the letter of a JSON escape."""
    return " OR ".join([plain_match(term), *disfigured(term)])


def disfigured(term: Term) -> Iterator[str]:
    """The units of a term behind the letter of an escape."""
    for unit in term.units:
        star = " *" if term.prefix and unit is term.units[-1] else ""
        yield from (f'"{letter}{unit.text}"{star}' for letter in JSON_GLUE)


def separate_words(terms: Sequence[Term]) -> str:
    """Rows that have all the words: those the word index has judged, save where one is glued a second time."""
    units = dict.fromkeys(unit.text for term in terms for unit in term.units)
    return " AND ".join(f'"{unit}"' for unit in units)


def glued_match(terms: Sequence[Term]) -> str:
    """The words as parts of longer ones; of short ones only the longest counts."""
    return " AND ".join(map(_inside, _long_units(terms)))


def loosely_glued(terms: Sequence[Term]) -> str | None:
    """The same by the first and the last letters of each word; ``None`` where that says no less."""
    units = _long_units(terms)
    if all(len(unit) <= TRIGRAM for unit in units):
        return None
    ends = dict.fromkeys(end for unit in units for end in (unit[:TRIGRAM], unit[-TRIGRAM:]))
    return " AND ".join(map(trigram_match, ends))


def _long_units(terms: Sequence[Term]) -> list[str]:
    units = [unit.text for term in terms for unit in term.units]
    long = [unit for unit in units if len(unit) >= TRIGRAM]
    return list(dict.fromkeys(long or [max(units, key=len)]))


def _inside(unit: str) -> str:
    """A part of a word; three trigrams of a long one cost less than all of them and mostly say the same."""
    if len(unit) < LONG_WORD:
        return trigram_match(unit)
    middle = (len(unit) - TRIGRAM) // 2
    return " AND ".join(f'"{unit[at : at + TRIGRAM]}"' for at in (0, middle, len(unit) - TRIGRAM))


def trigram_match(text: str) -> str:
    """A substring for the trigram index; our tokenizer makes fewer than three letters the beginning of a trigram."""
    return f'"{text}"' if len(text) >= TRIGRAM else f'"{text}" *'


def escaped_match(run: str) -> str:
    r"""A CJK run as JSON keeps it: the word index cuts ``\ucd94\uac00`` into two tokens."""
    return '"' + " ".join(f"u{unit:04x}" for unit in utf16_units(run)) + '" *'


def escaped_letters(term: Term) -> str:
    """The letters of a word in another script than Latin as JSON escapes, in either case; '' where it has none."""
    letters = dict.fromkeys(letter for unit in term.units for letter in unit.text if not letter.isascii())
    asked = [" OR ".join(map(escaped_match, spellings(letter))) for letter in letters]
    return "(" + " AND ".join(f"({one})" for one in asked[:MOST_LETTERS]) + ")" if asked else ""


def utf16_units(text: str) -> Iterator[int]:
    """The numbers JSON escapes a text with."""
    raw = text.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2))


SEARCHED: Final = ("content", "tool_name", "tool_calls")
REASONING: Final = ("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items")


def prepare_asking(connection: apsw.Connection) -> None:
    """Give a connection what asks and conditions call."""
    register_tokenizers(connection)
    connection.create_scalar_function(ACCENTS_FUNCTION, _accents_of_cell, 1, deterministic=True)


def _accents_of_cell(*cells: object) -> bool:
    """Of the bytes of cells; one without a text has none."""
    return any(isinstance(cell, bytes) and may_hold_accents(cell) for cell in cells)


def raw_condition(matcher: Matcher, schema: Schema, columns: Sequence[str]) -> tuple[str, list[Any]]:
    """A condition on ``m`` that every row the matcher can accept fulfils, for scans."""
    present = [f"m.{name}" for name in columns if schema.has("messages", name)]
    if matcher.root is None or not present:
        return ("1" if present else "0"), []
    return _condition(matcher.root, present)


def _condition(node: Node, columns: Sequence[str]) -> tuple[str, list[Any]]:
    match node:
        case Term():
            return _term_condition(node, columns)
        case AnyOf(parts):
            pieces = [_condition(part, columns) for part in parts]
            return "(" + " OR ".join(sql for sql, _ in pieces) + ")", [
                value for _, values in pieces for value in values
            ]
        case All(parts):
            pieces = [_condition(part, columns) for part in parts]
            return "(" + " AND ".join(sql for sql, _ in pieces) + ")", [
                value for _, values in pieces for value in values
            ]


def _term_condition(term: Term, columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Every unit somewhere in the row, or letters in it that only the matcher can compare."""
    pieces: list[str] = []
    values: list[Any] = []
    for unit in term.units:
        asked: list[str] = []
        for column in columns:
            if unit.cjk:
                first = next(utf16_units(unit.text))
                asked.append(f"instr({column}, ?) OR {_hidden(column)} OR ({_may_escape(column)} AND {column} LIKE ?)")
                # LIKE, because the digits of an escape may be in either case; it stops at NUL, hence char(1).
                values += [unit.text, f"%\\u{first:04x}%"]
            elif unit.text.isascii():
                asked.append(f"instr(lower({column}), ?) OR {_odd_letters(column)}")
                values.append(unit.text)
            else:
                asked.append(f"octet_length({column}) <> length({column}) OR instr({column}, '\\u')")
        pieces.append("(" + " OR ".join(asked) + ")")
    return "(" + " AND ".join(pieces) + ")", values


def _odd_letters(column: str) -> str:
    """Accents, escapes, and text that is hidden behind a NUL."""
    accents = f"octet_length({column}) <> length(CAST({column} AS TEXT)) AND {ACCENTS_FUNCTION}(CAST({column} AS BLOB))"
    return f"({accents}) OR {_hidden(column)} OR ({_may_escape(column)} AND instr({column}, '\\u'))"


def _hidden(column: str) -> str:
    """Text behind a NUL, where LIKE and length stop; mostly structured content. An empty text holds nothing."""
    return f"({column} < char(1) AND {column} <> '')"


def _may_escape(column: str) -> str:
    """Where JSON escapes are read, structured content aside: tool calls and tool output."""
    return "m.role = 'tool'" if column == "m.content" else "1"
