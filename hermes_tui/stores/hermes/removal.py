"""Which sessions a deletion takes with it, how much that is, and what stays behind without a parent."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hermes_tui.model import SessionId
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.stores.changing import Cause, Going
from hermes_tui.stores.hermes.cells import json_or_none, text_or_none
from hermes_tui.stores.hermes.dialects import TRIGRAM_TABLE
from hermes_tui.stores.hermes.links import Link, Links, batches
from hermes_tui.stores.hermes.schema import Schema

TEXTS: Final = ("content", "tool_calls", "reasoning", "reasoning_content", "reasoning_details", "api_content")
DELEGATE_MARK: Final = "_delegate_from"
"""Key of ``model_config`` that names the session a run was delegated by (facts/hermes.md section 7)."""
INLINE_FACTOR: Final = 3.6
"""Bytes a store shrinks by for each byte of text where both indexes hold a copy (schema 11 to 22)."""
EXTERNAL_FACTOR: Final = 2.2
"""The same where indexes hold no copy."""


class Size(NamedTuple):
    """What a session holds."""

    messages: int
    bytes: int


def read_delegated(connection: ReadConnection, schema: Schema) -> dict[str, list[str]]:
    """Delegated runs by the session their marker names, wherever they hang in the tree now."""
    if not schema.has("sessions", "model_config"):
        return {}
    found: dict[str, list[str]] = {}
    sql = "SELECT id, model_config FROM sessions WHERE instr(model_config, ?)"
    for identity, config in connection.rows(sql, (f'"{DELEGATE_MARK}"',)):
        marks = json_or_none(config)
        parent = marks.get(DELEGATE_MARK) if isinstance(marks, dict) else None
        if parent is not None:
            found.setdefault(str(parent), []).append(identity)
    return found


def with_descendants(delegated: Mapping[str, list[str]], ids: Sequence[str]) -> list[str]:
    """These sessions and all that they delegated, directly or not; each once."""
    found = dict.fromkeys(ids)
    waiting = list(found)
    while waiting:
        for child in delegated.get(waiting.pop(), ()):
            if child not in found:
                found[child] = None
                waiting.append(child)
    return list(found)


def cascade(
    links: Links, delegated: Mapping[str, list[str]], ids: Sequence[SessionId], *, whole: bool
) -> list[tuple[Link, Cause]]:
    """The sessions that go, each once, those named first; delegated runs go with whoever delegated them."""
    found: dict[str, tuple[Link, Cause]] = {}
    for identity in ids:
        named = links.by_id[identity]
        found.setdefault(named.id, (named, "asked"))
        for part in links.conversation(named) if whole else ():
            found.setdefault(part.id, (part, "conversation"))
    for one in with_descendants(delegated, list(found)):
        link = links.by_id.get(one)
        if link is not None:
            found.setdefault(one, (link, "delegated"))
    return list(found.values())


def orphaned(links: Links, going: set[str], link: Link) -> tuple[SessionId, ...]:
    """Children that stay and become roots."""
    return tuple(SessionId(child.id) for child in links.children.get(link.id, ()) if child.id not in going)


def read_sizes(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, Size]:
    """Messages and bytes of text of each session that has any."""
    if not schema.has("messages", "session_id"):
        return {}
    texts = [name for name in TEXTS if schema.has("messages", name)]
    total = " + ".join(f"coalesce(octet_length({name}), 0)" for name in texts) or "0"
    found: dict[str, Size] = {}
    for part in batches(ids):
        marks = ",".join("?" * len(part))
        sql = f"SELECT session_id, count(*), sum({total}) FROM messages WHERE session_id IN ({marks}) GROUP BY 1"
        found.update((row[0], Size(row[1], row[2] or 0)) for row in connection.rows(sql, part))
    return found


def read_titles(connection: ReadConnection, schema: Schema, ids: Sequence[str]) -> dict[str, str]:
    """Titles of those that have one."""
    if not schema.has("sessions", "title"):
        return {}
    found: dict[str, str] = {}
    for part in batches(ids):
        marks = ",".join("?" * len(part))
        for identity, title in connection.rows(f"SELECT id, title FROM sessions WHERE id IN ({marks})", part):
            text = text_or_none(title)
            if text:
                found[identity] = text
    return found


class SideFiles:
    """The files the product deletes with a session (facts/hermes.md section 10), looked up once for many sessions."""

    def __init__(self, store: str) -> None:
        self._folder = Path(store).resolve().parent / "sessions"
        try:
            self._names = sorted(path.name for path in self._folder.iterdir())
        except OSError:
            self._names = []
        self._known = frozenset(self._names)

    def of(self, session_id: str) -> tuple[str, ...]:
        """Paths of those that are there."""
        found = [name for name in (f"{session_id}.json", f"{session_id}.jsonl") if name in self._known]
        dump = f"request_dump_{session_id}_"
        for name in self._names[bisect_left(self._names, dump) :]:
            if not name.startswith(dump):
                break
            if name.endswith(".json"):
                found.append(name)
        return tuple(str(self._folder / name) for name in found if (self._folder / name).is_file())

    @staticmethod
    def unreadable(files: Sequence[str]) -> bool:
        """Whether one of these cannot be put into the trash; then its session stays."""
        return any(not os.access(path, os.R_OK) for path in files)


def reclaimable(schema: Schema, going: Sequence[Going]) -> int:
    """About how many bytes of pages become free."""
    sql = schema.objects.get(TRIGRAM_TABLE, "content=").replace(" ", "")
    factor = EXTERNAL_FACTOR if "content=" in sql else INLINE_FACTOR
    return int(sum(one.bytes for one in going) * factor)
