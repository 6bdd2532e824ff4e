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

LAYOUT: Final = 2
"""Changed with what a place in a store's order is made of."""


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
    said = [_digest(question.encode("utf-8", "surrogatepass")), cursor.given, places]
    return base64.urlsafe_b64encode(orjson.dumps([_seal(said), *said])).decode().rstrip("=")


def read_cursor(text: str | None, question: str) -> Cursor:
    """The cursor of a page.

    Raises:
        WrongUse: it is none, is not as it was given, or is of another question.
    """
    if text is None:
        return Cursor()
    try:
        seal, *said = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if seal != _seal(said):
            raise ValueError("it was changed, or another version gave it")
        digest, given, places = said
    except (binascii.Error, ValueError, TypeError) as error:
        raise WrongUse(f"{text!r} is no place in a search ({error})", ADVICE) from None
    if digest != _digest(question.encode("utf-8", "surrogatepass")):
        raise WrongUse("This cursor belongs to another search", ADVICE)
    return Cursor({name: StorePlace(tuple(order), at) for name, (order, at) in places.items()}, given)


def _seal(said: list[object]) -> int:
    """Tells that the parts are those of one cursor, in today's layout: stores take their places as they come."""
    return _digest(orjson.dumps([LAYOUT, *said]))


def _digest(text: bytes) -> int:
    return zlib.crc32(text)
