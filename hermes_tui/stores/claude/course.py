"""Whether the lines of a transcript follow each other straight on, as most do: nothing needs to be walked then."""

from __future__ import annotations

from hermes_tui.stores.claude.lines import MESSAGE_TYPES, Entry


class Course:
    """What is seen of it while the lines come in."""

    def __init__(self, *, straight: bool = True) -> None:
        self._straight = straight
        self._turns = False
        """A prompt or reply was met: without one there is no chain."""
        self.sides: set[bool] = set()
        """The values of ``sidechain`` that were met; the skim adds those of usual lines."""
        self.speakers: list[str] = []
        """The message ids of its replies, without those that repeat the one before."""

    @property
    def straight(self) -> bool:
        """Whether each line follows the one before it, on the same side, and no compaction lies between.

        Of lines that were put away and taken up again it is not told.
        """
        return self._straight and self._turns and len(self.sides) == 1

    def take(self, entry: Entry, previous: str | None, *, known: bool) -> None:
        """Take in any line; ``previous`` is the message line before it, ``known`` whether its uuid was met before."""
        follows = entry.parent == previous and entry.type in MESSAGE_TYPES
        self._straight = self._straight and follows and not (known or entry.detached or entry.boundary)
        self._turns = self._turns or entry.turn
        self.sides.add(entry.sidechain)
        if entry.message_id is not None:
            self.speaks(entry.message_id)

    def take_usual(self, *, straight: bool) -> None:
        """Take in usual lines; sides and speakers were told before."""
        self._straight = self._straight and straight
        self._turns = True

    def speaks(self, message_id: str) -> None:
        """A line of this reply comes."""
        if not self.speakers or self.speakers[-1] != message_id:
            self.speakers.append(message_id)
