"""The messages of one session or conversation, and which of them are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from hermes_tui.library.sources import Found
from hermes_tui.model import SHOWN_STATES, Message, MessageHead, Problem
from hermes_tui.storage.errors import StorageError
from hermes_tui.stores.protocol import Transcript as Transcript

T = TypeVar("T")


def open_transcript(found: Found, *, conversation: bool) -> Transcript:
    """The transcript of a session, or of its whole chain, where messages stored again are shown once."""
    ids = found.store.chain(found.session_id) if conversation else (found.session_id,)
    return found.store.transcript(ids)


def is_shown(head: MessageHead, all_states: bool) -> bool:
    """Whether an entry is shown: live, compacted and inherited ones by default (contract.md, show)."""
    return all_states or head.state in SHOWN_STATES


def shown(heads: Iterable[MessageHead], all_states: bool) -> Iterator[MessageHead]:
    """The entries that are shown."""
    return (head for head in heads if is_shown(head, all_states))


def batches(transcript: Transcript, all_states: bool) -> Iterator[Sequence[MessageHead]]:
    """Every shown entry in the order of the store, in the store's batches; empty ones are left out."""
    for heads in transcript.heads():
        kept = list(shown(heads, all_states))
        if kept:
            yield kept


def pieces(transcript: Transcript, message: Message, length: int) -> Iterator[str]:
    """The whole text of a message whose ``text`` is cut, in pieces of ``length`` characters."""
    start = 0
    while piece := transcript.piece(message.head, start, length):
        yield piece
        start += len(piece)


def until_broken(parts: Iterable[T], broken: list[Problem]) -> Iterator[T]:
    """These up to where the store fails; the failure becomes a problem, for what is written has begun."""
    try:
        yield from parts
    except (StorageError, OSError) as error:
        broken.append(Problem(getattr(error, "path", None), None, None, str(error)))
