"""What a change would do to a store, and what it did: the words between the library and a store that can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final, Literal, Protocol, runtime_checkable

from hermes_tui.model import ListQuery, SessionId, StoreRef
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError
from hermes_tui.stores.protocol import ChangeVerb

Cause = Literal["asked", "conversation", "delegated", "old"]
"""Why a session goes: named, a part of a conversation that was named, a run a named one delegated, or old enough."""

REASONS: Final[dict[str, str]] = {
    "unknown": "is not in the store, or not any more",
    "leased": "an agent is working on it right now",
    "compressing": "it is being compacted right now",
    "running": "it has not ended and was active within the last minutes",
    "already-archived": "is archived already",
    "not-archived": "is not archived",
    "already-ended": "has ended already",
    "no-messages": "has no messages",
    "no-archive": "this store is too old to archive",
    "same-title": "has this title already",
    "never-ended": "never ended, and only ended sessions are pruned",
    "too-young": "was active too recently",
    "archived": "is archived",
    "pinned": "is pinned",
    "living-chain": "its conversation goes on in a session that stays",
    "future-schema": "the store was made by a newer version of the agent than this program knows",
    "other-owner": "the store belongs to another user",
    "cjk-index": "the store's index for Chinese, Japanese and Korean needs the agent's own extension",
    "unreadable-file": "a file that goes with it cannot be read, and so could not be brought back",
    "unclear-index": "its index entries cannot be told from another version's, and would break",
    "changed": "it changed while it was being deleted",
    "not-in-trash": "is not in the trash",
    "still-there": "is still in the store",
    "damaged-store": "the store or one of its indexes is damaged",
    "locked": "another program held the store through every try",
    "not-written": "the store could not be written",
}
"""Why a session is left as it is, for people."""
HINDRANCES: Final = frozenset(
    {
        "future-schema",
        "other-owner",
        "cjk-index",
        "unreadable-file",
        "unclear-index",
        "changed",
        "damaged-store",
        "locked",
        "not-written",
    }
)
"""Reasons that keep what prune's rules would let go."""


class ChangeRefused(StorageError):
    """A change breaks a rule of the store; the advice says what would not."""


@dataclass(frozen=True, slots=True)
class Going:
    """A session that a change concerns."""

    id: SessionId
    cause: Cause
    title: str | None = None
    messages: int = 0
    """Rows that go with it."""
    bytes: int = 0
    """Text that goes with it."""
    orphaned: tuple[SessionId, ...] = ()
    """Children that become roots."""
    files: tuple[str, ...] = ()
    """Files beside the store that go with it."""
    last_active: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A session that stays as it is."""

    id: SessionId
    reason: str
    """A key of :data:`REASONS`, hyphenated lower case: scripts test it."""
    title: str | None = None
    last_active: float | None = None


@dataclass(frozen=True, slots=True)
class StorePlan:
    """What a change would do to one store. Nothing has been touched."""

    verb: ChangeVerb
    store: StoreRef
    going: tuple[Going, ...]
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    """For people, before they say yes."""
    title: str | None = None
    """The new title of ``rename``."""
    drop_cjk: bool = False
    """Give up the store's CJK index so that rows can be deleted: asked for by name."""
    bytes_reclaimable: int = 0
    """An estimate of pages that become free."""
    ending: tuple[SessionId, ...] = ()
    """Sessions that ``--end-idle`` ends and prune keeps."""
    notes: tuple[str, ...] = ()
    """What the plan says in sums, e.g. why nothing of all that is old can go."""


@dataclass(frozen=True, slots=True)
class PruneRule:
    """Which sessions prune takes."""

    older_than: float
    """Seconds since the last activity."""
    query: ListQuery
    """Its filters narrow; times are tested on last activity."""
    end_idle: float | None = None
    """End sessions that never ended and are idle for so many seconds, first."""


@dataclass(slots=True)
class Outcome:
    """What a change did to one store."""

    done: list[SessionId] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    ended: list[SessionId] = field(default_factory=list)
    """Ended by ``--end-idle`` and kept."""
    messages: int = 0
    tries: int = 0
    """Tries beyond the first of each transaction."""
    waited_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    """Why what was planned could not be done, for people."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """One row that is taken away, with every column."""

    table: str
    values: dict[str, Any]
    """Cells as SQLite has them; a text that is not UTF-8 is :class:`BadText`."""
    dialect: str | None = None
    """How the trigram index had the row, where that matters (facts/hermes.md section 3)."""


class BadText(bytes):
    """The bytes of a TEXT cell that is not UTF-8."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file beside the store that is taken away."""

    path: str
    session_id: SessionId
    mode: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Everything that goes with some sessions, to be written to the trash before it is deleted."""

    ids: tuple[SessionId, ...]
    rows: Callable[[], Iterator[StoredRow | StoredFile]]
    children: tuple[tuple[SessionId, SessionId], ...]
    """(child, parent) for all that lose their parent, whether they stay or go."""


Keep = Callable[[Taken], None]
"""Puts rows into the trash; when it returns they are on disk."""
Progress = Callable[[int, int], None]
"""(sessions done, sessions in all)."""


class Changes(Protocol):
    """The changes a store can make; only Hermes stores have them (design.md, rule 3)."""

    def plan(
        self,
        verb: ChangeVerb,
        ids: Sequence[SessionId],
        *,
        now: float,
        title: str | None = None,
        whole: bool = False,
        drop_cjk: bool = False,
    ) -> StorePlan:
        """What the change would do; ``whole``: to every session of the conversations named."""
        ...

    def plan_prune(self, rule: PruneRule, *, now: float, drop_cjk: bool = False) -> StorePlan:
        """What prune would do to every session, with the reason."""
        ...

    def apply(self, plan: StorePlan, *, now: float, keep: Keep, progress: Progress | None = None) -> Outcome:
        """Do what was planned, as far as nothing changed meanwhile; ``keep`` is called before anything is deleted."""
        ...

    def restore(self, rows: Sequence[StoredRow], children: Sequence[tuple[SessionId, SessionId]]) -> Outcome:
        """Put back what the trash holds, with its ids; ``children``: (child, parent) of all that lost theirs."""
        ...


@runtime_checkable
class ChangeableStore(Protocol):
    """A store that can be changed."""

    def changes(self) -> Changes:
        """The changes it can make."""
        ...
