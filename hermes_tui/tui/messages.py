"""Messages that cross screens: requests to show something, and facts that concern more than one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from hermes_tui.records import dataclass

if TYPE_CHECKING:
    from hermes_tui.library.mirroring import Progress
    from hermes_tui.library.sources import Found, Library
    from hermes_tui.tui.views.blocks import Finder
    from hermes_tui.tui.views.facets import Facets


@dataclass
class LibraryOpened(Message):
    """The stores were found."""

    library: Library
    """What the screens may ask."""


@dataclass
class LookForStores(Message):
    """Nothing was found: the user wants us to look again."""


@dataclass
class ShowTranscript(Message):
    """The user wants to read a conversation."""

    found: Found
    """Which session, in which store."""
    message_id: str | None = None
    """Land on this message."""
    query: str = ""
    """What was searched for; raw."""
    find: Finder | None = None
    """Marks what matched there."""
    part: int | None = None
    """Which part of that message; ``None``: the first."""
    conversation: bool = True
    """Its whole conversation, or that session alone."""


@dataclass
class ShowPlace(Message):
    """The user wants another of the six places."""

    place: str
    """sessions, lineage, search, costs, cache or health."""
    subject: Found | None = None
    """The conversation it is about."""


@dataclass
class ShowSessions(Message):
    """The user wants the list, narrowed."""

    facets: Facets
    """To what; the order is the list's own."""


@dataclass
class StoresChanged(Message):
    """We changed something in a store, or found that somebody else did."""


@dataclass
class ListShown(Message):
    """The list is on screen: what can wait may begin."""


@dataclass
class MirrorMoved(Message):
    """The mirror got further, or cannot."""

    progress: Progress | None
    """How far it is."""
    trouble: str = ""
    """Why it can't be written; raw."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest is of interest."""
        return isinstance(message, MirrorMoved)
