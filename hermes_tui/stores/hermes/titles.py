"""Titles by the product's rules, so that what we set is what it would have set (facts/hermes.md section 7, Title)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import apsw

from hermes_tui.stores.changing import ChangeRefused
from hermes_tui.text import REPLACEMENT

LONGEST_TITLE: Final = 100
"""Code points; a longer one is refused, not cut."""
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_DROPPED: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffc\ufff9-\ufffb]"
)
_WHITE: Final = re.compile(r"\s+")
_NUMBER: Final = re.compile(r"^(.*?) #(\d+)$", re.DOTALL)


Ask = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Asks a store, through a reading connection or inside a transaction."""


def ask_writer(raw: apsw.Connection) -> Ask:
    """How the same is asked inside a transaction."""
    return lambda sql, params: raw.execute(sql, params).fetchall()


class TitleRefused(ChangeRefused):
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


def next_title(ask: Ask, base: str) -> str:
    """The next free title of a lineage: the base itself when unused, else the highest number + 1."""
    base = title_base(base)
    pattern = base.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    found = ask("SELECT title FROM sessions WHERE title = ? OR title LIKE ? ESCAPE '\\'", (base, f"{pattern} #%"))
    numbers = [_number(title, base) for (title,) in found if isinstance(title, str)]
    taken = [number for number in numbers if number is not None]
    return f"{base} #{max(taken) + 1}" if taken else base


def _number(title: str, base: str) -> int | None:
    """1 for the base itself; ``None`` for a title that only looks alike (LIKE ignores case)."""
    if title == base:
        return 1
    found = _NUMBER.match(title)
    return int(found[2]) if found and found[1] == base else None


def title_holder(ask: Ask, session_id: str, title: str) -> str | None:
    """An older part of the same conversation that has the title, from which it moves; ``None``: it is free.

    Raises:
        TitleRefused: another conversation has it.
    """
    for (holder,) in ask("SELECT id FROM sessions WHERE title = ? AND id <> ?", (title, session_id)):
        if holder in _compressed_ancestors(ask, session_id):
            return str(holder)
        advice = f"Free is: {next_title(ask, title)}"
        raise TitleRefused(f"session {holder} has the title {title!r}", advice, str(holder))
    return None


def set_title(raw: apsw.Connection, session_id: str, title: str | None) -> bool:
    """Set a title; runs inside a transaction. False when the session is gone.

    Raises:
        TitleRefused: another conversation has it.
    """
    ask = ask_writer(raw)
    if title is not None and (holder := title_holder(ask, session_id, title)) is not None:
        raw.execute("UPDATE sessions SET title = NULL WHERE id = ?", (holder,))
    raw.execute("UPDATE sessions SET title = ? WHERE id = ?", (title, session_id))
    if not raw.changes():
        return False
    if ask("SELECT 1 FROM pragma_table_info('sessions') WHERE name = 'title_source'", ()):
        raw.execute("UPDATE sessions SET title_source = 'user' WHERE id = ?", (session_id,))
    return True


def _compressed_ancestors(ask: Ask, session_id: str) -> frozenset[str]:
    """The older parts of a conversation; UNION ends a ring."""
    found = ask(
        "WITH RECURSIVE up(id) AS (SELECT ? UNION SELECT p.id FROM up JOIN sessions s ON s.id = up.id"
        " JOIN sessions p ON p.id = s.parent_session_id WHERE p.end_reason = 'compression') SELECT id FROM up",
        (session_id,),
    )
    return frozenset(str(row[0]) for row in found) - {session_id}
