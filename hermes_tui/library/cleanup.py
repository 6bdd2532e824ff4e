"""Changes a person makes while browsing: planned and shown first, then done, and undone from the trash."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from hermes_tui.library.failures import AmbiguousId, Refused, UnknownId
from hermes_tui.library.sources import Library
from hermes_tui.library.trash import (
    Deleted,
    Trash,
    TrashDamaged,
    TrashEntry,
    TrashWriter,
    mark_restored,
    put_file_back,
    read_rows,
    with_delegated,
)
from hermes_tui.model import SessionId
from hermes_tui.records import dataclass
from hermes_tui.stores.changing import (
    HINDRANCES,
    ChangeableStore,
    ChangeRefused,
    Going,
    Kept,
    Outcome,
    Progress,
    PruneRule,
    StoredFile,
    StoredRow,
    StorePlan,
)
from hermes_tui.stores.protocol import ChangeVerb, Store

WORDLESS: frozenset[str] = frozenset({"already-archived", "not-archived", "already-ended", "no-messages", "same-title"})
"""Reasons that mean it is already as it was asked for."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a change would do, store by store. Nothing has been touched."""

    verb: ChangeVerb
    parts: tuple[StorePlan, ...]
    title: str | None = None

    @property
    def going(self) -> tuple[Going, ...]:
        """Every session it concerns."""
        return tuple(one for part in self.parts for one in part.going)

    @property
    def kept(self) -> tuple[Kept, ...]:
        """Every session that stays, with the reason."""
        return tuple(one for part in self.parts for one in part.kept)

    @property
    def ending(self) -> tuple[SessionId, ...]:
        """Sessions that are only ended (``prune --end-idle``)."""
        return tuple(one for part in self.parts for one in part.ending)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What somebody should know before saying yes."""
        return tuple(one for part in self.parts for one in part.warnings)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan says in sums; with the store's raw name where several have something to say."""
        parts = [part for part in self.parts if part.notes]
        several = len(parts) > 1
        return tuple(f"{part.store.name}: {one}" if several else one for part in parts for one in part.notes)

    @property
    def summary(self) -> dict[str, int]:
        """How many stay for each reason."""
        return dict(Counter(one.reason for one in self.kept).most_common())

    @property
    def messages(self) -> int:
        """Messages that go."""
        return sum(one.messages for one in self.going)

    @property
    def bytes_reclaimable(self) -> int:
        """An estimate of what becomes free in the stores' files."""
        return sum(part.bytes_reclaimable for part in self.parts)


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """What a change did, or would do."""

    dry_run: bool
    done: tuple[SessionId, ...]
    kept: tuple[Kept, ...]
    messages: int
    bytes_reclaimable: int | None
    retries: int = 0
    """Tries a busy store cost beyond the first."""
    waited_s: float = 0.0
    ended: tuple[SessionId, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """What went wrong, for people."""

    @property
    def summary(self) -> dict[str, int]:
        """How many stay for each reason."""
        return dict(Counter(one.reason for one in self.kept).most_common())

    @property
    def refused(self) -> bool:
        """Nothing was done although something should have been."""
        return not self.done and any(one.reason not in WORDLESS for one in self.kept)

    @property
    def hindered(self) -> bool:
        """Nothing was done although prune's rules would have let something go."""
        return not self.done and any(one.reason in HINDRANCES for one in self.kept)


def plan(
    library: Library,
    verb: ChangeVerb,
    ids: Sequence[str],
    *,
    now: float,
    title: str | None = None,
    whole: bool = False,
    drop_cjk: bool = False,
) -> ChangePlan:
    """What a change to these sessions would do.

    Args:
        library: the open stores.
        verb: any but prune, which has :func:`plan_prune`.
        ids: as they are typed: whole, a prefix, or ``store:id``.
        now: Unix seconds.
        title: for rename.
        whole: delete or clear every session of the conversations named (archive always does).
        drop_cjk: give up a store's CJK index where rows cannot be deleted otherwise.

    Raises:
        UnknownId: an id means nothing.
        AmbiguousId: an id means several sessions.
        Refused: a session is in a store that is never written, or the title breaks a rule.
        StorageError: a store cannot be read.
    """
    chosen: dict[str, tuple[Store, list[SessionId]]] = {}
    for text in ids:
        found = library.find(text)
        chosen.setdefault(found.store.ref.name, (found.store, []))[1].append(found.session_id)
    _refuse_foreign(chosen.values(), verb, title)
    parts: list[StorePlan] = []
    for store, named in chosen.values():
        changes = _changeable(store).changes()
        try:
            parts.append(changes.plan(verb, named, now=now, title=title, whole=whole, drop_cjk=drop_cjk))
        except ChangeRefused as error:
            raise Refused(f"{error.title}: {error.detail}", error.advice) from error
    return ChangePlan(verb, tuple(parts), title)


def plan_prune(library: Library, rule: PruneRule, *, now: float, drop_cjk: bool = False) -> ChangePlan:
    """What prune would do, with the reason for every session.

    Raises:
        Refused: none of the stores is ever written.
        StorageError: a store cannot be read.
    """
    stores = [store for store in library.stores if isinstance(store, ChangeableStore)]
    if not stores and library.stores:
        agents = ", ".join(sorted({store.ref.agent for store in library.stores}))
        commands = [store.change_command("prune", SessionId("")) for store in library.stores]
        raise Refused(
            f"Nothing was pruned: stores of {agents} are never written by this program", _first_command(commands)
        )
    # A profile that has no store yet has nothing old either.
    filled = [store for store in library.stores if store.status().state != "empty"]
    parts = [
        store.changes().plan_prune(rule, now=now, drop_cjk=drop_cjk)
        for store in filled
        if isinstance(store, ChangeableStore)
    ]
    return ChangePlan("prune", tuple(parts))


def preview(planned: ChangePlan) -> ChangeResult:
    """The plan in the shape of a result: ``--dry-run``."""
    return ChangeResult(
        True,
        tuple(one.id for one in planned.going),
        planned.kept,
        planned.messages,
        planned.bytes_reclaimable,
        ended=planned.ending,
        warnings=planned.warnings,
        notes=planned.notes,
    )


def apply(library: Library, planned: ChangePlan, *, now: float, progress: Progress | None = None) -> ChangeResult:
    """Do what was planned; what is deleted is in the trash before.

    Raises:
        Refused: the title was taken meanwhile.
    """
    trash = Trash(library.locations.trash)
    if planned.verb in ("delete", "clear", "prune"):
        trash.expire(now)
    outcomes: list[Outcome] = []
    for part in planned.parts:
        store = library.store_named(part.store.name)
        if store is None:
            raise Refused(f"Nothing was changed: the store {part.store.name} is not open any more")
        asked = [one.id for one in part.going if one.cause != "delegated"]
        writer = TrashWriter(trash.folder, part.verb, part.store, asked, now)
        try:
            outcome = _changeable(store).changes().apply(part, now=now, keep=writer.keep, progress=progress)
        except ChangeRefused as error:
            raise Refused(f"{error.title}: {error.detail}", error.advice) from error
        writer.close(outcome.done)
        outcomes.append(outcome)
    done = tuple(one for outcome in outcomes for one in outcome.done)
    went = set(done)
    share = sum(one.messages for one in planned.going if one.id in went) / (planned.messages or 1)
    return ChangeResult(
        False,
        done,
        planned.kept + tuple(one for outcome in outcomes for one in outcome.kept),
        sum(outcome.messages for outcome in outcomes),
        int(planned.bytes_reclaimable * share),
        sum(outcome.tries for outcome in outcomes),
        sum(outcome.waited_s for outcome in outcomes),
        tuple(one for outcome in outcomes for one in outcome.ended),
        planned.warnings,
        planned.notes,
        tuple(one for outcome in outcomes for one in outcome.failures),
    )


def restore(library: Library, text: str, *, now: float, dry_run: bool = False) -> ChangeResult:
    """Put a deleted session back with its ids, and the runs that went with it.

    Raises:
        UnknownId: nothing in the trash has this id.
        AmbiguousId: several have.
        Refused: its store is not among those that are open.
        StorageError: the trash or the store cannot be read.
    """
    del now
    entry, session_id = _in_trash(library, text)
    store = next((one for one in library.stores if _same(one.ref.path, entry.store.path)), None)
    if store is None:
        raise Refused(
            f"Nothing was restored: {session_id} was deleted from {entry.store.path}, which is not open here",
            f"Try again with --store {entry.store.path}",
        )
    wanted = with_delegated(entry, session_id)
    rows: list[StoredRow] = []
    files = []
    for one in read_rows(entry, wanted):
        if isinstance(one, StoredRow):
            rows.append(one)
        else:
            files.append(one)
    messages = sum(row.table == "messages" for row in rows)
    if dry_run:
        return ChangeResult(True, tuple(sorted(wanted)), (), messages, None)
    links = Trash(library.locations.trash).links(entry.store.path)
    outcome = _changeable(store).changes().restore(rows, links)
    failures = list(outcome.failures)
    back = set(outcome.done)
    for file, content in files:
        if file.session_id in back and (trouble := _put_back(file, content)) is not None:
            failures.append(trouble)
    if outcome.done:
        mark_restored(entry, outcome.done)
    return ChangeResult(
        False,
        tuple(outcome.done),
        tuple(outcome.kept),
        outcome.messages,
        None,
        outcome.tries,
        outcome.waited_s,
        failures=tuple(failures),
    )


def restorable(library: Library) -> tuple[list[Deleted], ChangeResult]:
    """What of the open stores lies in the trash, and what bringing back all of it would give."""
    lying = [
        one
        for one in Trash(library.locations.trash).deleted()
        if any(_same(store.ref.path, one.entry.store.path) for store in library.stores)
    ]
    wanted: dict[Path, tuple[TrashEntry, set[SessionId]]] = {}
    for one in lying:
        wanted.setdefault(one.entry.path, (one.entry, set()))[1].add(one.id)
    messages, failures = 0, []
    for entry, ids in wanted.values():
        try:
            rows = read_rows(entry, frozenset(ids))
            messages += sum(isinstance(row, StoredRow) and row.table == "messages" for row in rows)
        except TrashDamaged as error:
            failures.append(f"{error.title}: {error.detail}")
    return lying, ChangeResult(True, tuple(one.id for one in lying), (), messages, None, failures=tuple(failures))


def _put_back(file: StoredFile, content: bytes) -> str | None:
    """Put back a file that lay beside the store; ``None``, or why it is not there, for people."""
    try:
        return None if put_file_back(file, content) else f"{file.path} is there already and was left as it is"
    except OSError as error:
        # The session itself is back: the file stays in the trash.
        return f"{file.path} could not be written: {error.strerror or error}"


def _in_trash(library: Library, text: str) -> tuple[TrashEntry, SessionId]:
    name, colon, rest = text.partition(":")
    found = Trash(library.locations.trash).find(text)
    if not found and colon and rest:
        found = [one for one in Trash(library.locations.trash).find(rest) if one[0].store.name == name]
    here = [one for one in found if any(_same(store.ref.path, one[0].store.path) for store in library.stores)]
    found = here or found
    if not found:
        raise UnknownId(f"Nothing in the trash has the id {text!r}", "Deleted sessions are kept for 30 days.", ())
    if len(found) > 1:
        names = [f"{entry.store.name}:{identity}" for entry, identity in found[:20]]
        raise AmbiguousId(f"{text!r} may mean {len(found)} deleted sessions", "Type more of the id.", names)
    return found[0]


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _changeable(store: Store) -> ChangeableStore:
    if not isinstance(store, ChangeableStore):
        raise Refused(f"Nothing was changed: stores of {store.ref.agent} are never written by this program")
    return store


def _refuse_foreign(chosen: Iterable[tuple[Store, Sequence[SessionId]]], verb: ChangeVerb, title: str | None) -> None:
    """Only Hermes stores are ever written (design.md, rule 3)."""
    foreign = [(store, named) for store, named in chosen if not isinstance(store, ChangeableStore)]
    if foreign:
        agents = ", ".join(sorted({store.ref.agent for store, _ in foreign}))
        commands = [store.change_command(verb, identity, title) for store, named in foreign for identity in named]
        raise Refused(
            f"Nothing was changed: stores of {agents} are never written by this program", _first_command(commands)
        )


def _first_command(commands: Sequence[str | None]) -> str:
    """The agent's own way, as it can be typed."""
    known = [command for command in dict.fromkeys(commands) if command is not None]
    if not known:
        return "The agent itself has no command for this."
    return "The agent's own command: " + " ; ".join(known)
