"""Parsing a line of tens of megabytes in steps: one call would keep every other thread, the screen's too, from running.

Two things make a line so long: one string, or one array of many items. Each is parsed piece by piece, and the rest
around it as a whole. Pieces that parse alone are what the whole would have been; where one does not, the line is parsed
in one call after all, so that the answer is always the parser's.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

STEP: Final = 256 << 10
"""Bytes parsed in one call: about a millisecond."""
_QUOTE: Final = re.compile(rb'(?<!\\)(?:\\\\)*"')
"""A quote that is not escaped."""
_QUIET: Final = 16
"""Bytes without a backslash before a place where a string may be cut: longer than a pair of escaped surrogates."""
_SLASH: Final = 0x5C
_HIGH_HALF: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_ESCAPED: Final = 6
"""Bytes of one half of an escaped pair."""
_MOST_STRINGS: Final = 64
_BETWEEN: Final = b'},{"'
_MARK: Final = "\0hermes-tui:%d\0"
"""Stands for a long string while the rest is parsed; a NUL is always escaped in JSON."""


def load_in_steps(raw: bytes, array: bytes) -> object:
    """The value of a JSON text, as ``orjson.loads`` gives it.

    Args:
        raw: the text.
        array: the key of an array that may be long.

    Raises:
        orjson.JSONDecodeError: it is none.
    """
    if len(raw) <= 2 * STEP:
        return orjson.loads(raw)
    rest, strings = _without_strings(raw)
    try:
        value = _with_array(rest, array)
    except orjson.JSONDecodeError:
        value = None
    if value is None or strings is None:
        return orjson.loads(raw)
    return _filled(value, strings) if strings else value


# ------------------------------------------------------------------------------------------------------ long strings


def _without_strings(raw: bytes) -> tuple[bytes, dict[str, str] | None]:
    """The text with marks in place of its long strings, and these by their marks; ``None``: they cannot be told."""
    kept: list[bytes] = []
    found: dict[str, str] = {}
    done = place = 0
    while place + STEP < len(raw):
        if not _quiet(raw, place):
            place += STEP
            continue
        begin, end = _last_quote(raw, done, place), _next_quote(raw, place + STEP)
        text = None if begin is None or end is None else _string(raw, begin + 1, end)
        if text is None or begin is None or end is None or len(found) >= _MOST_STRINGS:
            return raw, None
        mark = _MARK % len(found)
        found[mark] = text
        kept += (raw[done:begin], orjson.dumps(mark))
        done = place = end + 1
    if not found:
        return raw, found
    kept.append(raw[done:])
    return b"".join(kept), found


def _quiet(raw: bytes, place: int) -> bool:
    """Whether every quote of this step is escaped.

    One behind two backslashes is not, and is taken for one: the string it ends will not parse, then.
    """
    return raw.count(b'"', place, place + STEP) == raw.count(b'\\"', place, place + STEP)


def _last_quote(raw: bytes, start: int, before: int) -> int | None:
    """The unescaped quote a long string begins with: nothing like one stands behind it."""
    at = before
    while (at := raw.rfind(b'"', start, at)) >= 0:
        slashes = at
        while slashes > start and raw[slashes - 1] == _SLASH:
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at
    return None


def _next_quote(raw: bytes, place: int) -> int | None:
    while place < len(raw):
        match = None if _quiet(raw, place) else _QUOTE.search(raw, place, place + STEP)
        if match is not None:
            return match.end() - 1
        place += STEP
    return None


def _string(raw: bytes, begin: int, end: int) -> str | None:
    """A JSON string between its quotes, parsed in pieces; ``None`` where one of them is none."""
    pieces: list[str] = []
    while begin < end:
        cut = end if end - begin <= STEP else _quiet_place(raw, begin, begin + STEP)
        if cut is None:
            return None
        try:
            piece = orjson.loads(b'"%b"' % raw[begin:cut])
        except orjson.JSONDecodeError:
            return None
        if not isinstance(piece, str):
            return None
        pieces.append(piece)
        begin = cut
    return "".join(pieces)


def _quiet_place(raw: bytes, begin: int, place: int) -> int | None:
    """The last place before this one where neither an escape, a pair of them nor a character is cut."""
    while place - _QUIET > begin:
        slash = raw.rfind(b"\\", place - _QUIET, place)
        if slash >= 0:
            while slash > begin and raw[slash - 1] == _SLASH:
                slash -= 1
            # Where backslashes begin, an escape does; it may be the second half of a pair.
            if _HIGH_HALF.fullmatch(raw, slash - _ESCAPED, slash) is None:
                return slash if slash > begin else None
            place = slash
        elif raw[place] & 0xC0 == 0x80:
            place -= 1
        else:
            return place
    return None


def _filled(value: object, strings: dict[str, str]) -> object:
    """The value with the long strings in place of their marks; what holds them is small, or one long array."""
    if isinstance(value, str):
        return strings.get(value, value) if value.startswith("\0") else value
    if isinstance(value, dict):
        # A key may be long too: it has a mark like any text.
        return {strings.get(key, key): _filled(one, strings) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, strings) for one in value]
    return value


# -------------------------------------------------------------------------------------------------------- long arrays


def _with_array(raw: bytes, key: bytes) -> object:
    """The value, the items of its long array parsed some at a time; ``None`` where they cannot be told apart.

    Raises:
        orjson.JSONDecodeError: what is around the array, or the whole, is no JSON.
    """
    if len(raw) <= 2 * STEP:
        return orjson.loads(raw)
    opening = b'"%b":[' % key
    begin = raw.find(opening)
    if begin < 0 or raw.find(opening, begin + 1) >= 0:
        return None
    begin += len(opening)
    end = raw.rfind(b"]")
    around = orjson.loads(raw[:begin] + raw[end:]) if end > begin else None
    items = _items(raw, begin, end)
    holder = _holder(around, key.decode())
    if items is None or holder is None:
        return None
    holder[key.decode()] = items
    return around


def _items(raw: bytes, begin: int, end: int) -> list[object] | None:
    items: list[object] = []
    while end - begin > 2 * STEP:
        cut = raw.find(_BETWEEN, begin + STEP, begin + 2 * STEP) + 1
        if not cut:
            return None
        some = _list(raw[begin:cut])
        if some is None:
            return None
        items += some
        begin = cut + 1
    some = _list(raw[begin:end])
    return None if some is None else items + some


def _list(inside: bytes) -> list[object] | None:
    try:
        some = orjson.loads(b"[%b]" % inside)
    except orjson.JSONDecodeError:
        return None
    return some if isinstance(some, list) else None


def _holder(value: object, key: str) -> dict[str, object] | None:
    """The object in a parsed line that holds the array: the line itself or its payload."""
    for holder in (value, value.get("payload") if isinstance(value, dict) else None):
        if isinstance(holder, dict) and holder.get(key) == []:
            return holder
    return None
