"""What every store answers, whichever agent wrote it.

The library speaks to stores only through :class:`Store`. A store opens its files for one question and closes them with
the answer (design.md, rule 3); every method may block, so front ends call them from threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from hermes_tui.model import (
    Agent,
    CostGrouping,
    Finding,
    Lineage,
    Listing,
    ListQuery,
    Message,
    MessageHead,
    MessageKind,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    Route,
    SessionId,
    SessionRow,
    StoreRef,
    StoreStatus,
    UsageReport,
)
from hermes_tui.records import dataclass
from hermes_tui.text import RawText

if TYPE_CHECKING:
    from hermes_tui.storage.fulltext import Matcher
    from hermes_tui.stores.kept_answers import Answers

ChangeVerb = Literal["rename", "archive", "unarchive", "end", "delete", "clear", "prune"]


class Transcript(Protocol):
    """The messages of one session, or of several that follow each other, read piece by piece."""

    def heads(self) -> Iterator[Sequence[MessageHead]]:
        """Every entry in the order of the store, all states, in batches of a few hundred; first batch at once."""
        ...

    def tail(self, count: int) -> Sequence[MessageHead]:
        """The last entries without reading the whole log where that can be done."""
        ...

    def load(self, heads: Sequence[MessageHead], *, sent: bool = False) -> list[Message]:
        """The same entries with their texts; texts over ``TEXT_PIECE`` bytes are cut (``Message.cut``)."""
        ...

    def piece(self, head: MessageHead, start: int, length: int) -> RawText:
        """A piece of one long text: ``length`` characters from character ``start``; '' past the end."""
        ...

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read so far; complete once :meth:`heads` is exhausted."""
        ...


TEXT_PIECE: int = 1 << 20
"""Texts over this many bytes are read in pieces, never as one string (issue 2)."""


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Which messages a search may return; ``None`` means any."""

    source: str | None = None
    exclude_source: str | None = None
    role: str | None = None
    kind: MessageKind | None = None
    model: str | None = None
    cwd: str | None = None
    channel: str | None = None
    since: float | None = None
    until: float | None = None
    all_states: bool = False
    """Rewound and dead-branch messages too."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A message an index or a scan proposes; the matcher decides."""

    message: Message
    """With its whole text up to ``TEXT_PIECE``."""
    order: tuple[float, ...]
    """Larger is newer within this store."""
    copies: int = 1
    """How often the store holds it, itself included."""
    text: str | None = None
    """What the matcher said yes to, where that is known: a tool call with its name, escapes read."""
    marks: tuple[tuple[int, int], ...] = ()
    """Start and length in ``text``."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The message before or after a hit, in short."""

    role: RawText | None
    text: RawText
    """At least its first few hundred characters."""


Neighbours = tuple[Neighbour | None, Neighbour | None]
"""Before and after."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The newest candidates of one store with the scores of its own index, where there are many."""

    scores: Sequence[tuple[float, int]]
    """Score, larger is better, and a key; newest first."""
    more: bool
    """There are older candidates."""
    read: Callable[[Sequence[int]], list[Proposed]]
    """The hits among these keys, in their order, which begins with the key: some candidates are none."""


@dataclass(slots=True)
class Proposal:
    """A stream of candidates from one store."""

    route: Route
    messages: Iterator[Proposed]
    incomplete: str | None = None
    """Why the answer may miss something; may be set while the stream is read."""
    notes: list[str] = field(default_factory=list)
    """What was done otherwise than usual, one sentence each: an index that was not believed. Nothing is lost by it."""
    ranked: Callable[[int], Ranked | None] | None = None
    """Scores at most so many candidates; ``None``: so few that they are better read and scored by the caller."""
    neighbours: Callable[[Sequence[Message]], list[Neighbours]] | None = None
    """The messages around some hits; ``None``: the transcript tells."""


class Store(Protocol):
    """One place where one agent keeps conversations."""

    ref: StoreRef
    answers: Answers
    """Where what was answered is kept for the next run."""

    def status(self) -> StoreStatus:
        """How the store is, where its list comes from, and its findings. Never raises for a damaged store."""
        ...

    def listing(self, query: ListQuery, limit: int | None = None) -> Listing:
        """Ids in order, cheaply: the price does not grow with the text stored."""
        ...

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        """Full rows for these ids in the same order (missing ones left out); folded to conversations or single."""
        ...

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        """The id itself when it exists, else every id with this prefix (at most 20)."""
        ...

    def chain(self, session_id: SessionId) -> tuple[SessionId, ...]:
        """The sessions of its conversation, root to tip."""
        ...

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """The messages of these sessions in a row; a message stored again is given once, at its first place."""
        ...

    def lineage(self, session_id: SessionId) -> Lineage:
        """The whole connected tree around this session."""
        ...

    def usage(self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo) -> UsageReport:
        """Usage by key, counted once over the store; keys of ``store`` and ``profile`` are the library's business."""
        ...

    def requests(self, ids: Sequence[SessionId] | None, since: float | None = None) -> Iterator[Request]:
        """Own requests in order within each chain, with what happened between them; ``None``: of every session.

        A chain without a request since ``since`` may be left out; one that has any is given from its beginning, for
        what a request could have found is told by those before it.
        """
        ...

    def propose(
        self,
        matcher: Matcher,
        filters: SearchFilters,
        order: Literal["newest", "oldest"],
        after: tuple[float, ...] | None = None,
    ) -> Proposal:
        """Messages that may match, in order, from the best index at hand or a scan."""
        ...

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """What the model would be sent if this session were resumed now; always from the log, never from a mirror."""
        ...

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """The agent's own command that continues it."""
        ...

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """The agent's own command for a change we do not make ourselves, as one shell line; ``None``: it has none."""
        ...

    def stamp(self) -> object:
        """Equal to an earlier stamp while nothing can have changed: stat only, nothing opened."""
        ...

    def findings(self) -> Sequence[Finding]:
        """The long health check: what :meth:`status` finds and what needs a pass over the store."""
        ...

    def interrupt(self) -> None:
        """End what runs in other threads; it raises ``Interrupted`` there."""
        ...


class AgentPackage(Protocol):
    """What the module ``hermes_tui.stores.<agent>.package`` offers the registry, as an object called ``PACKAGE``."""

    agent: Agent

    def default_homes(self, environ: Mapping[str, str], home: Path) -> Sequence[Path]:
        """Where this agent's stores lie by its own rules (environment, then platform default)."""
        ...

    def recognise(self, path: Path) -> bool:
        """Whether this file or folder is a store of this agent, by what lies there; opens no database."""
        ...

    def open(self, path: Path, environ: Mapping[str, str]) -> Sequence[Store]:
        """The stores at a recognised path: one, or one a profile. ``ref.name`` is set without ``#n``."""
        ...

    def write_demo(self, folder: Path, now: float) -> None:
        """Write our own example conversations in this agent's format (contract.md, demo)."""
        ...
