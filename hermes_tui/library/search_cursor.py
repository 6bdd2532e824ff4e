"""Where a search goes on: the place of each store in its own order, as text nobody has to understand."""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import field
from typing import Final

import orjson

from hermes_tui.library.failures import WrongUse
from hermes_tui.records import dataclass

ADVICE: Final = "Take it from `next` of the page before, with the same query, filters and order."


@dataclass(slots=True)
class StorePlace:
    """How far one store was given."""

    order: tuple[float, ...] | None = None
    """Of the last hit given; ``None``: none yet."""
    at: float | None = None
    """The time it counted with among the other stores."""


@dataclass(slots=True)
class Cursor:
    """How far everything was given."""

    stores: dict[str, StorePlace] = field(default_factory=dict)
    given: int = 0
    """The place in the ranking, for ``rank``."""

    def place(self, store: str) -> StorePlace:
        """The place of a store."""
        return self.stores.setdefault(store, StorePlace())


def write_cursor(cursor: Cursor, question: str) -> str:
    """The cursor as text that fits only the same question."""
    places = {name: [place.order, place.at] for name, place in cursor.stores.items() if place.order is not None}
    document = orjson.dumps({"q": _digest(question), "g": cursor.given, "s": places})
    return base64.urlsafe_b64encode(document).decode().rstrip("=")


def read_cursor(text: str | None, question: str) -> Cursor:
    """The cursor of a page.

    Raises:
        WrongUse: it is none, or of another question.
    """
    if text is None:
        return Cursor()
    try:
        document = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        cursor = Cursor(given=int(document["g"]))
        for name, (order, at) in document["s"].items():
            cursor.stores[name] = StorePlace(tuple(map(_number, order)), None if at is None else float(at))
        digest = document["q"]
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongUse(f"{text!r} is no place in a search ({error})", ADVICE) from None
    if digest != _digest(question):
        raise WrongUse("This cursor belongs to another search", ADVICE)
    return cursor


def _number(part: object) -> float:
    """A part of an order; a whole number stays one, for a float holds no row id of over 53 bits."""
    return part if isinstance(part, int | float) else float(str(part))


def _digest(question: str) -> int:
    return zlib.crc32(question.encode("utf-8", "surrogatepass"))
