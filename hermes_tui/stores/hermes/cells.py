"""Reading single cells of a Hermes store: what a salvaged file may hold instead of text, numbers and times.

SQLite keeps any type in any column, and repaired stores do (facts/hermes.md section 11): a BLOB where text belongs, a
word where a time belongs. Each function takes whatever came and gives what the vocabulary knows, or ``None``.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

import orjson

from hermes_tui.text import RawText

EARLIEST: Final = 946_684_800.0
"""2000-01-01 UTC: no agent wrote anything before."""
LATEST: Final = 4_102_444_800.0
"""2100-01-01 UTC: later than this is damage, not a date (facts/hermes.md section 11)."""
MOST: Final = 10**15
"""No counter reaches this: a cell that says so is damage, and a sum of such cells would overflow in SQLite."""


def text_or_none(cell: Any) -> RawText | None:
    """The text of a cell; a BLOB or a number in a text column becomes text too."""
    if cell is None:
        return None
    if isinstance(cell, bytes):
        return RawText(cell.decode("utf-8", "replace"))
    return RawText(cell if isinstance(cell, str) else str(cell))


def filled_text(cell: Any) -> RawText | None:
    """The same, with the empty text as ``None``."""
    return text_or_none(cell) or None


def count(cell: Any) -> int:
    """A counter: whole, never negative, 0 for what is no number or too large to be a count."""
    if isinstance(cell, int | float) and 0 < cell < MOST:
        return int(cell)
    return 0


def counter(expression: str) -> str:
    """The same as an SQL expression over a column; texts and BLOBs sort behind every number, NULL compares as no."""
    return f"iif({expression} > 0 AND {expression} < {MOST}, CAST({expression} AS INTEGER), 0)"


def money(cell: Any) -> float | None:
    """An amount in USD; ``None`` for what is no amount."""
    if isinstance(cell, int | float) and 0 <= cell < 1e12:
        return float(cell)
    return None


def flag(cell: Any) -> bool:
    """A 0/1 column; NULL and text are 0."""
    return isinstance(cell, int | float) and cell != 0


def set_flag(expression: str) -> str:
    """The same as an SQL condition."""
    return f"(typeof({expression}) IN ('integer', 'real') AND {expression} <> 0)"


def time_or_none(cell: Any) -> float | None:
    """Unix seconds; ``None`` for NULL, text, and times no agent can have written."""
    if isinstance(cell, int | float) and EARLIEST <= cell < LATEST:
        return float(cell)
    return None


def json_or_none(cell: Any) -> Any:
    """The JSON in a cell; ``None`` when there is none or it cannot be read."""
    if not isinstance(cell, str | bytes) or not cell:
        return None
    try:
        return read_json(cell)
    except ValueError:
        return None


def read_json(cell: str | bytes) -> Any:
    """JSON as the agent and its SQL read it: an escaped lone surrogate, half of a cut emoji, is no mistake.

    Raises:
        ValueError: it is none.
    """
    try:
        return orjson.loads(cell)
    except ValueError as error:
        refused = error
    try:
        return json.loads(cell if isinstance(cell, str) else cell.decode(), parse_constant=_no_json)
    except (ValueError, RecursionError):
        raise refused from None


def _no_json(constant: str) -> NoReturn:
    """NaN and infinities, which Python writes and SQLite refuses."""
    raise ValueError(constant)


def json_text(value: object) -> str:
    """What was read as JSON, as JSON again."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # It refuses lone surrogates.
        return json.dumps(value, separators=(",", ":"))
