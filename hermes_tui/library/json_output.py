"""JSON for programs: one document, safe on a terminal, written piece by piece where it is large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

import orjson

from hermes_tui.text import escape_json_controls

Write = Callable[[str], object]


def dumps(value: object) -> str:
    r"""One JSON document; C0, DEL, C1 and bidi controls and lone surrogates as ``\uXXXX``, NaN as null."""
    try:
        document = orjson.dumps(value).decode("utf-8")
    except TypeError:
        # orjson refuses lone surrogates and integers over 64 bits; the slow writer takes both.
        document = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"))
    return escape_json_controls(document)


def _finite(value: object) -> object:
    """The same with NaN and infinities as null, as orjson writes them."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def string_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """One JSON string out of many pieces of text, so that a long text is never held whole."""
    yield '"'
    for piece in pieces:
        yield dumps(piece)[1:-1]
    yield '"'


def with_long_text(document: dict[str, object], key: str, pieces: Iterable[str]) -> Iterator[str]:
    """A JSON object whose value under one key is a string in pieces."""
    names = list(document)
    place = names.index(key) if key in document else len(names)
    before = {name: document[name] for name in names[:place]}
    after = {name: document[name] for name in names[place + 1 :]}
    yield f"{dumps(before)[:-1]}{',' if before else ''}{dumps(key)}:"
    yield from string_pieces(pieces)
    yield f",{dumps(after)[1:]}" if after else "}"


class ObjectWriter:
    """Writes one JSON object key by key, with lists that need not be held whole."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._first = True
        write("{")

    def key(self, name: str, value: object) -> None:
        """A key whose value is at hand."""
        self._name(name)
        self._write(dumps(value))

    def items(self, name: str, items: Iterable[Iterable[str]]) -> None:
        """A key whose value is a list; each item comes as the pieces of its JSON."""
        self._name(name)
        self._write("[")
        for place, pieces in enumerate(items):
            if place:
                self._write(",")
            for piece in pieces:
                self._write(piece)
        self._write("]")

    def close(self) -> None:
        """End the document."""
        self._write("}\n")

    def _name(self, name: str) -> None:
        self._write(("" if self._first else ",") + dumps(name) + ":")
        self._first = False
