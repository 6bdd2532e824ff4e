"""Pins, tags and notes as the front ends see them: first through the gate of their log, then into the mirror."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hermes_tui.annotations.book import AnnotationBook, Pages
from hermes_tui.annotations.facts import NO_ANNOTATION, Annotation, Fact, FactVerb, SessionKey
from hermes_tui.library.failures import WrongUse
from hermes_tui.library.sources import Found, Library
from hermes_tui.mirror.annotation_rows import read_annotations, write_annotations
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.model import SessionId, StoreRef
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError
from hermes_tui.text import RawText

MOST_TAG: Final = 60
"""Characters of a tag: it stands in a column."""
MOST_NOTE: Final = 20_000
_WHITE: Final = re.compile(r"\s+")

__all__ = ["NO_ANNOTATION", "Annotation", "AnnotationBook", "FactVerb", "Noted", "annotate", "annotation_of", "book"]


@dataclass(frozen=True, slots=True)
class Noted:
    """One session with what was said about it."""

    key: SessionKey
    annotation: Annotation
    store: StoreRef | None
    """``None``: its store is not open in this run."""


def book(library: Library) -> AnnotationBook:
    """The log of annotations, with what the mirror knows of it where that is not behind."""
    found = AnnotationBook(library.locations.annotations)
    known = _from_mirror(library.mirror)
    if known is not None:
        found.remember(known)
    return found


def key_of(store: StoreRef, session_id: SessionId) -> SessionKey:
    """How a session is named in the log."""
    return SessionKey(store.agent, store.path, session_id)


def annotation_of(pages: Pages, store: StoreRef, session_ids: Sequence[SessionId]) -> Annotation:
    """What was said about a conversation: about any of its sessions, the newest note first."""
    said = [pages.annotations.get(key_of(store, session_id), NO_ANNOTATION) for session_id in session_ids]
    tags = tuple(dict.fromkeys(tag for one in said for tag in one.tags))
    notes = [one.note for one in said if one.note is not None]
    return Annotation(any(one.pinned for one in said), tags, notes[-1] if notes else None)


def annotate(
    library: Library, found: Sequence[Found], verb: FactVerb, values: Sequence[str], now: float
) -> list[SessionId]:
    """Say something about sessions; it is on disk when this returns.

    Raises:
        WrongUse: a tag or note that can't be.
        WriteFailed: nothing of it counts.
    """
    checked = [_value(verb, value) for value in values] or [RawText("")]
    facts = [Fact(key_of(one.store.ref, one.session_id), verb, now, value) for one in found for value in checked]
    pages = AnnotationBook(library.locations.annotations)
    pages.add(facts)
    project_annotations(library.mirror, pages)
    return [one.session_id for one in found]


def _value(verb: FactVerb, value: str) -> RawText:
    text = value.encode("utf-8", "replace").decode()
    if verb in ("tag", "untag"):
        text = _WHITE.sub("-", text.strip())
        if not text or len(text) > MOST_TAG:
            raise WrongUse(f"{value!r} can't be a tag", f"A tag is a word of at most {MOST_TAG} characters.")
    if len(text) > MOST_NOTE:
        raise WrongUse(f"The note has {len(text):,} characters", f"A note has at most {MOST_NOTE:,}.")
    return RawText(text)


def all_noted(library: Library) -> list[Noted]:
    """Every session something was said about, pinned ones first.

    Raises:
        OSError: the log cannot be read.
    """
    stores: Mapping[tuple[str, str], StoreRef] = {
        (store.ref.agent, store.ref.path): store.ref for store in library.stores
    }
    noted = [
        Noted(key, annotation, stores.get((key.agent, key.store_path)))
        for key, annotation in book(library).pages().annotations.items()
    ]
    return sorted(noted, key=lambda one: (not one.annotation.pinned, one.key.agent, one.key.session_id))


def project_annotations(mirror: MirrorDatabase | None, pages: AnnotationBook) -> bool:
    """Tell the mirror what passed the gate; a mirror that cannot be written lags, which does no harm."""
    if mirror is None or mirror.state() != "ready":
        return False
    said = pages.pages()
    if said.checkpoint is None:
        return False
    rows = [
        (key.agent, key.store_path, key.session_id, one.pinned, tuple(one.tags), one.note)
        for key, one in said.annotations.items()
    ]
    checkpoint, damaged = said.checkpoint, said.damaged
    try:
        with mirror.writer() as writer:
            writer.write(lambda connection: write_annotations(connection, rows, checkpoint, damaged))
    except (StorageError, OSError):
        return False
    return True


def _from_mirror(mirror: MirrorDatabase | None) -> Pages | None:
    if mirror is None or mirror.state() != "ready":
        return None
    known = read_annotations(mirror)
    if known is None or len(known[1]) != 3:
        return None
    rows, (inode, size, mtime_ns), damaged = known
    annotations = {
        SessionKey(agent, store, session): Annotation(
            pinned, tuple(RawText(tag) for tag in tags), None if note is None else RawText(note)
        )
        for agent, store, session, pinned, tags, note in rows
    }
    return Pages(annotations, (inode, size, mtime_ns), damaged)
