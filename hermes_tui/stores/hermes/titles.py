"""Titles by the product's rules, so that what we set is what it would have set (facts/hermes.md section 7, Title)."""

from __future__ import annotations

import re
from typing import Final

import apsw

from hermes_tui.storage.errors import StorageError
from hermes_tui.text import REPLACEMENT

LONGEST_TITLE: Final = 100
"""Code points; a longer one is refused, not cut."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_DROPPED: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffc\ufff9-\ufffb]"
)
_WHITE: Final = re.compile(r"\s+")
_NUMBER: Final = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)


class TitleRefused(StorageError):
    """A title breaks a rule of the store."""

    def __init__(self, detail: str, advice: str | None = None, holder: str | None = None) -> None:
        self.holder = holder
        """The session that has the title."""
        super().__init__("The title was not set", detail, advice)


def clean_title(title: str | None) -> str | None:
    """What the store keeps of a title; ``None`` for an empty one.

    Raises:
        TitleRefused: it is longer than :data:`LONGEST_TITLE` after cleaning.
    """
    if title is None:
        return None
    text = _DROPPED.sub("", _SURROGATES.sub(REPLACEMENT, title))
    text = _WHITE.sub(" ", text).strip()
    if len(text) > LONGEST_TITLE:
        raise TitleRefused(f"it has {len(text)} characters and may have {LONGEST_TITLE}", "Shorten it.")
    return text or None


def title_base(title: str) -> str:
    """A title without its number: "Fix it #3" belongs to "Fix it"."""
    found = _NUMBER.match(title)
    return found[1] if found else title


def next_title(raw: apsw.Connection, base: str) -> str:
    """The next free title of a lineage: the base itself when unused, else the highest number + 1."""
    base = title_base(base)
    pattern = base.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    found = raw.execute(
        "SELECT title FROM sessions WHERE title = ? OR title LIKE ? ESCAPE '\\'", (base, f"{pattern} #%")
    ).fetchall()
    numbers = [_number(title, base) for (title,) in found if isinstance(title, str)]
    taken = [number for number in numbers if number is not None]
    return f"{base} #{max(taken) + 1}" if taken else base


def _number(title: str, base: str) -> int | None:
    """1 for the base itself; ``None`` for a title that only looks alike (LIKE ignores case)."""
    if title == base:
        return 1
    found = _NUMBER.match(title)
    return int(found[2]) if found and found[1] == base else None
