"""Where the contexts of two neighbouring parts of a conversation begin to differ: there the prompt cache ends.

A context is the system prompt, then the messages as they were sent: ``api_content`` where it differs from ``content``
(facts/hermes.md section 2). A compaction writes the protected first messages again, and such a copy may be sent with
other bytes, or have lost its ``api_content`` (section 7). What the compaction itself cut is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StoreDamaged
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.hermes.cells import filled_text
from hermes_tui.stores.hermes.content import HASHED_BYTES
from hermes_tui.stores.hermes.generations import MOST_PROTECTED
from hermes_tui.stores.hermes.links import batches
from hermes_tui.stores.hermes.salvage import salvaged
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.text import RawText

SHOWN: Final = 40
"""Characters of evidence on each side of a difference."""
_MARKING: Final = ("role", "content", "tool_calls", "tool_call_id")
"""What a copy of a message keeps (facts/hermes.md section 7)."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message with what was sent of it."""

    id: int
    same: tuple[Any, ...]
    """Equal for copies of one message."""
    text: str


def changed_contexts(
    connection: ReadConnection, schema: Schema, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], RawText]:
    """What differs between these pairs of sessions, the older first; pairs that were sent the same are left out."""
    prompts, _ = salvaged(partial(_prompts, connection, schema), list({one: None for pair in pairs for one in pair}))
    found: dict[tuple[str, str], RawText] = {}
    for pair in pairs:
        one, other = prompts.get(pair[0]), prompts.get(pair[1])
        if one and other and one != other:
            found[pair] = RawText(f"system prompt {difference(one, other)}")
        elif (changed := _changed_message(connection, schema, pair)) is not None:
            found[pair] = changed
    return found


def _changed_message(connection: ReadConnection, schema: Schema, pair: tuple[str, str]) -> RawText | None:
    """The first of the messages that both begin with whose sent text is another."""
    if not schema.has("messages", "id", "session_id", "role", "content", "api_content"):
        return None
    try:
        before, after = (list(_beginning(connection, schema, one)) for one in pair)
    except StoreDamaged:
        return None
    for one, other in zip(before, after, strict=False):
        if one.same != other.same:
            return None
        if one.text != other.text:
            return RawText(f"message {one.id}, stored again as {other.id}, as sent {difference(one.text, other.text)}")
    return None


def _beginning(connection: ReadConnection, schema: Schema, session_id: str) -> Iterable[_Sent]:
    """The first messages of a session that were not taken back, as sent."""
    active, compacted = (schema.column("messages", name, "m") for name in ("active", "compacted"))
    cells = ", ".join(
        f"substr(CAST({schema.column('messages', name, 'm')} AS BLOB), 1, {HASHED_BYTES})"
        for name in (*_MARKING, "api_content")
    )
    # The inner query is answered by the session's index alone.
    rows = connection.rows(
        f"SELECT m.id, {cells} FROM messages m WHERE m.id IN (SELECT id FROM messages WHERE session_id = ?"
        f" ORDER BY id LIMIT {MOST_PROTECTED}) AND (ifnull({active}, 1) <> 0 OR {compacted} = 1) ORDER BY m.id",
        (session_id,),
    )
    for identity, *same, sent in rows:
        raw = same[_MARKING.index("content")] if sent is None else sent
        yield _Sent(identity, tuple(same), (raw or b"").decode("utf-8", "surrogateescape"))


def difference(one: str, other: str) -> str:
    """Where two texts begin to differ, with a piece of each."""
    # Halving with whole slices: prompts have tens of thousands of characters and mostly differ late.
    place, after = 0, min(len(one), len(other)) + 1
    while after - place > 1:
        middle = (place + after) // 2
        place, after = (middle, after) if one[place:middle] == other[place:middle] else (place, middle)
    return f"differs at character {place:,}: {one[place : place + SHOWN]!r} / {other[place : place + SHOWN]!r}"


def _prompts(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, str]:
    """The system prompts of these sessions, from the row or by hash (facts/hermes.md section 2)."""
    prompt = schema.column("sessions", "system_prompt", "s")
    join = ""
    if schema.has("system_prompts", "hash", "prompt") and schema.has("sessions", "system_prompt_hash"):
        join = "LEFT JOIN system_prompts p ON p.hash = s.system_prompt_hash"
        prompt = f"coalesce({prompt}, p.prompt)"
    found: dict[str, str] = {}
    for some in batches(ids):
        sql = f"SELECT s.id, {prompt} FROM sessions s {join} WHERE s.id IN ({','.join('?' * len(some))})"
        found.update({str(row[0]): text for row in connection.rows(sql, some) if (text := filled_text(row[1]))})
    return found
