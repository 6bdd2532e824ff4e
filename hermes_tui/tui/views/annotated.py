"""What people said about their conversations, as the list needs it: by the row it stands in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_tui.model import SessionId
from hermes_tui.text import CleanText, clean_line

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation
    from hermes_tui.library.sources import Library
    from hermes_tui.stores.protocol import Store

Key = tuple[str, SessionId]
"""Store name and the id of a conversation's tip."""


def read_annotations(library: Library) -> dict[Key, Annotation]:
    """Every annotation by its conversation: what was said of any of its sessions; blocks.

    Raises:
        OSError: our log cannot be read.
    """
    # Imported late: it brings the mirror's modules, which the first list must not wait for.
    from hermes_tui.library.annotations import all_noted, annotation_of, book

    pages = book(library).pages()
    found: dict[Key, Annotation] = {}
    for noted in all_noted(library):
        store = library.store_named(noted.store.name) if noted.store is not None else None
        session = SessionId(noted.key.session_id)
        if store is None or not store.rows([session], conversation=False):
            continue
        chain = store.chain(session)
        found[store.ref.name, chain[-1]] = annotation_of(pages, store.ref, chain)
    return found


def read_annotation(library: Library, store: Store, chain: Sequence[SessionId]) -> Annotation:
    """What was said of the sessions of one conversation; blocks.

    Raises:
        OSError: our log cannot be read.
    """
    from hermes_tui.library.annotations import annotation_of, book

    return annotation_of(book(library).pages(), store.ref, chain)


def tags_text(annotation: Annotation | None) -> CleanText:
    """``#urgent #shop``; '' without any."""
    return (
        CleanText(" ".join(f"#{clean_line(tag)}" for tag in annotation.tags))
        if annotation is not None
        else CleanText("")
    )
