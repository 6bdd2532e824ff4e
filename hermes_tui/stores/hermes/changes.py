"""Everything that changes a Hermes store after a person said yes: planned first, then done by the retrying writer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

from hermes_tui.model import SessionId, StoreRef
from hermes_tui.storage.errors import StorageError, StoreBusy, StoreDamaged, WriteFailed, WriteLost
from hermes_tui.storage.reading import ReadConnection
from hermes_tui.storage.writing import RetryingWriter, Written
from hermes_tui.stores.changing import (
    Going,
    Keep,
    Kept,
    Outcome,
    Progress,
    PruneRule,
    StoredRow,
    StorePlan,
    Taken,
)
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.cells import text_or_none
from hermes_tui.stores.hermes.deleting import clear_session, delete_sessions
from hermes_tui.stores.hermes.dialects import (
    CjkWay,
    Dialect,
    NulDialect,
    cjk_way,
    drop_cjk,
    has_cjk_triggers,
    register_cjk,
)
from hermes_tui.stores.hermes.guards import Held, read_held
from hermes_tui.stores.hermes.links import Link, Links, all_links, links_around
from hermes_tui.stores.hermes.pruning import idle_ones, summing_up, verdicts
from hermes_tui.stores.hermes.removal import (
    SideFiles,
    cascade,
    orphaned,
    read_delegated,
    read_sizes,
    read_titles,
    reclaimable,
    with_descendants,
)
from hermes_tui.stores.hermes.restoring import put_back
from hermes_tui.stores.hermes.schema import Schema
from hermes_tui.stores.hermes.taking import nul_rows, read_children, session_mark, stored_rows
from hermes_tui.stores.hermes.titles import Ask, TitleRefused, ask_writer, clean_title, set_title, title_holder
from hermes_tui.stores.protocol import ChangeVerb

END_REASON: Final = "ended_by_user"
"""What ``end`` writes; the first reason of a session stays for good."""
BATCH_SESSIONS: Final = 200
"""Sessions of one transaction; well under the 900 of an IN list."""
BATCH_MESSAGES: Final = 2000
"""Messages of one transaction, about: an agent's write waits for it."""
TAKES: Final = 3
"""How often a session that changes while it is taken is taken again."""
DESTRUCTIVE: Final[frozenset[ChangeVerb]] = frozenset({"delete", "clear", "prune"})
CJK_PRICE: Final = (
    "Deleting gives up the store's index for Chinese, Japanese and Korean: searches for them are slower until"
    " `hermes sessions optimize-storage` builds it again."
)


class _ChangedError(Exception):
    """A session is not any more what was put into the trash."""


class HermesChanges:
    """The changes of one store. Plans are made read-only; nothing is open between a plan and its execution."""

    def __init__(self, ref: StoreRef, asking: Asking, environ: Mapping[str, str]) -> None:
        self.ref = ref
        self._asking = asking
        self._environ = environ

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
        """What the change would do; ``whole``: to every session of the conversations named.

        Raises:
            TitleRefused: the title breaks the store's rules.
            StorageError: the store cannot be read.
        """
        unique = list(dict.fromkeys(ids))
        return self._asking.ask(self._plan, verb, unique, now, clean_title(title), whole, drop_cjk)

    def plan_prune(self, rule: PruneRule, *, now: float, drop_cjk: bool = False) -> StorePlan:
        """What prune would do to every session, with the reason.

        Raises:
            StorageError: the store cannot be read.
        """
        return self._asking.ask(self._plan_prune, rule, now, drop_cjk)

    def apply(self, plan: StorePlan, *, now: float, keep: Keep, progress: Progress | None = None) -> Outcome:
        """Do what was planned, as far as nothing changed meanwhile; what could not be done is in the outcome."""
        outcome = Outcome()
        try:
            if plan.ending:
                self._end_idle(plan, now, outcome)
            if not plan.going:
                return outcome
            if plan.verb in DESTRUCTIVE:
                self._apply_deletion(plan, now, keep, progress, outcome)
            else:
                self._apply_update(plan, now, outcome)
        except TitleRefused:
            raise
        except StorageError as error:
            done = set(outcome.done)
            _keep_all(outcome, error, {one.id: one.title for one in plan.going if one.id not in done})
        return outcome

    def restore(self, rows: Sequence[StoredRow], children: Sequence[tuple[SessionId, SessionId]]) -> Outcome:
        """Put back what the trash holds, with its ids; what could not be put back is in the outcome."""
        outcome = Outcome()
        try:
            self._restore(rows, children, outcome)
        except StorageError as error:
            lost = [row.values for row in rows if row.table == "sessions"]
            _keep_all(outcome, error, {values["id"]: text_or_none(values.get("title")) for values in lost})
        return outcome

    def _restore(
        self, rows: Sequence[StoredRow], children: Sequence[tuple[SessionId, SessionId]], outcome: Outcome
    ) -> None:
        has_messages = any(row.table == "messages" for row in rows)
        way: CjkWay = cjk_way(self.ref.path, self._environ) if has_messages else "none"
        if way == "blocked":
            ids = dict.fromkeys(row.values["id"] for row in rows if row.table == "sessions")
            outcome.kept += [Kept(SessionId(identity), "cjk-index") for identity in ids]
            return
        dialect = Dialect()
        with self._writer(way, dialect if any(row.dialect for row in rows) else None) as writer:
            written = writer.write(lambda raw: put_back(raw, rows, children, dialect))
        restored = written.value
        _count(outcome, written)
        outcome.done += restored.ids
        outcome.messages = restored.messages
        outcome.kept += [Kept(identity, "still-there") for identity in restored.still_there]
        outcome.failures += [
            f"{identity} is now called {title!r}: its own title is in use" for identity, title in restored.renamed
        ]

    # Planning

    def _plan(
        self,
        connection: ReadConnection,
        schema: Schema,
        verb: ChangeVerb,
        ids: Sequence[SessionId],
        now: float,
        title: str | None,
        whole: bool,
        drop: bool,
    ) -> StorePlan:
        if verb == "rename" and title is not None:
            for identity in ids:
                title_holder(connection.rows, identity, title)
        links = links_around(connection, schema, ids)
        delegated: dict[str, list[str]] = {}
        if verb == "delete":
            delegated = read_delegated(connection, schema)
            named = [links.by_id[one] for one in ids if one in links.by_id]
            first = [part.id for link in named for part in (links.conversation(link) if whole else (link,))]
            links = links_around(connection, schema, with_descendants(delegated, first))
        held = read_held(connection, schema, now)
        there = [identity for identity in ids if identity in links.by_id and not links.by_id[identity].gone]
        kept = [Kept(identity, "unknown") for identity in ids if identity not in there]
        if verb in ("archive", "unarchive"):
            whole = True
        if verb == "delete":
            chosen = cascade(links, delegated, there, whole=whole)
        elif whole:
            chosen = cascade(links, {}, there, whole=True)
        else:
            chosen = [(links.by_id[identity], "asked") for identity in there]
        blocked = self._store_reason(schema, verb)
        titles = read_titles(connection, schema, [link.id for link, _ in chosen])
        sizes = read_sizes(connection, schema, [link.id for link, _ in chosen]) if verb in DESTRUCTIVE else {}
        needs_cjk = verb in DESTRUCTIVE and bool(sizes) and has_cjk_triggers(connection)
        way = cjk_way(self.ref.path, self._environ, drop=drop) if needs_cjk else "none"
        going: list[Going] = []
        names = {link.id for link, _ in chosen}
        files = SideFiles(self.ref.path) if verb == "delete" else None
        for link, cause in chosen:
            identity = SessionId(link.id)
            size = sizes.get(link.id)
            reason = blocked or self._reason(verb, schema, links, held, link, title, titles, bool(size))
            if reason is None and size and way == "blocked":
                reason = "cjk-index"
            beside = files.of(link.id) if files else ()
            if reason is None and SideFiles.unreadable(beside):
                reason = "unreadable-file"
            if reason is not None:
                kept.append(Kept(identity, reason, titles.get(link.id), held.last_active(link)))
                continue
            going.append(
                Going(
                    identity,
                    cause,
                    titles.get(link.id),
                    size.messages if size else 0,
                    size.bytes if size else 0,
                    orphaned(links, names, link) if verb == "delete" else (),
                    beside,
                    last_active=held.last_active(link),
                )
            )
        warnings = self._warnings(verb, links, held, going, now, way)
        return StorePlan(
            verb,
            self.ref,
            tuple(going),
            tuple(kept),
            warnings,
            title,
            drop_cjk=way == "drop",
            bytes_reclaimable=reclaimable(schema, going) if verb in DESTRUCTIVE else 0,
        )

    def _plan_prune(
        self, connection: ReadConnection, schema: Schema, rule: PruneRule, now: float, drop: bool
    ) -> StorePlan:
        links = all_links(connection, schema)
        held = read_held(connection, schema, now)
        going, kept = verdicts(connection, schema, links, held, rule, now, self.ref.path)
        notes = summing_up(going, kept)
        ending = idle_ones(links, held, rule, kept, now)
        blocked = self._store_reason(schema, "prune")
        needs_cjk = any(one.messages for one in going) and has_cjk_triggers(connection)
        way = cjk_way(self.ref.path, self._environ, drop=drop) if needs_cjk and not blocked else "none"
        if blocked is not None:
            kept += tuple(Kept(one.id, blocked, one.title, one.last_active) for one in going)
            going = ()
        elif way == "blocked":
            stays = [one for one in going if one.messages]
            kept += tuple(Kept(one.id, "cjk-index", one.title, one.last_active) for one in stays)
            going = tuple(one for one in going if not one.messages)
        warnings = (CJK_PRICE,) if way == "drop" else ()
        return StorePlan(
            "prune",
            self.ref,
            going,
            kept,
            warnings,
            drop_cjk=way == "drop",
            bytes_reclaimable=reclaimable(schema, going),
            ending=() if blocked else ending,
            notes=notes,
        )

    def _store_reason(self, schema: Schema, verb: ChangeVerb) -> str | None:
        """What forbids the change for the whole store."""
        if hasattr(os, "geteuid") and Path(self.ref.path).stat().st_uid != os.geteuid():
            return "other-owner"
        if schema.from_the_future and verb not in ("rename", "archive", "unarchive"):
            return "future-schema"
        return None

    def _reason(
        self,
        verb: ChangeVerb,
        schema: Schema,
        links: Links,
        held: Held,
        link: Link,
        title: str | None,
        titles: Mapping[str, str],
        has_messages: bool,
    ) -> str | None:
        """What forbids the change for one session."""
        if verb in ("end", *DESTRUCTIVE) and (in_hands := held.reason(links, link)) is not None:
            return in_hands
        if verb in ("archive", "unarchive"):
            if not schema.has("sessions", "archived"):
                return "no-archive"
            if link.archived == (verb == "archive"):
                return "already-archived" if verb == "archive" else "not-archived"
        if verb == "end" and link.has_end:
            return "already-ended"
        if verb == "clear" and not has_messages:
            return "no-messages"
        if verb == "rename" and title == titles.get(link.id):
            return "same-title"
        return None

    def _warnings(
        self, verb: ChangeVerb, links: Links, held: Held, going: Sequence[Going], now: float, way: CjkWay
    ) -> tuple[str, ...]:
        """What somebody should know before saying yes."""
        warnings = [CJK_PRICE] if way == "drop" else []
        ids = {one.id for one in going}
        for one in going:
            link = links.by_id[one.id]
            if verb in ("end", *DESTRUCTIVE) and held.alive(link, now):
                warnings.append(f"{one.id} was active a moment ago: an agent that still writes to it will fail.")
            stay = [part.id for part in links.conversation(link) if part.id not in ids]
            if verb == "delete" and one.cause == "asked" and stay:
                warnings.append(f"{one.id} is a part of a conversation; its other {len(stay)} sessions stay.")
        return tuple(warnings)

    # Execution

    @contextmanager
    def _writer(self, way: CjkWay, dialect: Dialect | None) -> Iterator[RetryingWriter]:
        def prepare(raw: apsw.Connection) -> None:
            register_cjk(raw, way, self.ref.path, self._environ)
            if dialect is not None:
                dialect.register(raw)

        needed = dialect is not None or way in ("proven", "extension")
        with RetryingWriter(self.ref.path, prepare=prepare if needed else None) as writer:
            yield writer

    def _apply_update(self, plan: StorePlan, now: float, outcome: Outcome) -> None:
        ids = [one.id for one in plan.going]
        with self._writer("none", None) as writer:
            if plan.verb == "rename":
                written = writer.write(lambda raw: [i for i in ids if set_title(raw, i, plan.title)])
            elif plan.verb == "end":
                written = writer.write(lambda raw: [i for i in ids if _end(raw, i, now)])
            else:
                archived = int(plan.verb == "archive")
                written = writer.write(lambda raw: [i for i in ids if _archive(raw, i, archived)])
        _count(outcome, written)
        outcome.done += written.value
        done = set(written.value)
        outcome.kept += [Kept(one.id, "changed", one.title) for one in plan.going if one.id not in done]

    def _end_idle(self, plan: StorePlan, now: float, outcome: Outcome) -> None:
        with self._writer("none", None) as writer:
            written = writer.write(lambda raw: [i for i in plan.ending if _end(raw, i, now)])
        _count(outcome, written)
        outcome.ended += written.value

    def _apply_deletion(
        self, plan: StorePlan, now: float, keep: Keep, progress: Progress | None, outcome: Outcome
    ) -> None:
        way: CjkWay = "none"
        if any(one.messages for one in plan.going):
            way = cjk_way(self.ref.path, self._environ, drop=plan.drop_cjk)
        if way == "blocked":
            # The index came after the plan was made.
            outcome.kept += [Kept(one.id, "cjk-index", one.title) for one in plan.going]
            return
        done = 0
        for batch in _batches(plan):
            self._delete_batch(plan, batch, way, now, keep, outcome)
            done += len(batch)
            if progress is not None:
                progress(done, len(plan.going))

    def _delete_batch(
        self, plan: StorePlan, batch: Sequence[Going], way: CjkWay, now: float, keep: Keep, outcome: Outcome
    ) -> None:
        """One transaction: taken into the trash, checked to be the same still, deleted."""
        unclear: list[Going] = []
        for _ in range(TAKES):
            nul, marks, schema = self._asking.ask(_look, batch)
            unclear = [one for one in batch if "unclear" in nul[one.id].values()]
            ids = [one.id for one in batch if one not in unclear and marks[one.id] is not None]
            if not ids:
                break
            ways = {row: dialect for one in ids for row, dialect in nul[one].items()}
            keep(self._taken(plan, batch, ids, schema))
            dialect = Dialect()
            try:
                with self._writer(way, dialect if ways else None) as writer:
                    written = writer.write(
                        lambda raw, ids=ids, dialect=dialect, ways=ways, marks=marks, schema=schema: _delete(  # type: ignore[misc]
                            raw, schema, plan, ids, dialect, ways, marks, now
                        )
                    )
            except _ChangedError:
                continue
            _count(outcome, written)
            outcome.done += ids
            outcome.messages += written.value
            outcome.failures += _unlink([path for one in batch if one.id in ids for path in one.files])
            gone = [one for one in batch if marks[one.id] is None]
            outcome.kept += [Kept(one.id, "unknown", one.title) for one in gone]
            outcome.kept += [Kept(one.id, "unclear-index", one.title) for one in unclear]
            return
        outcome.kept += [Kept(one.id, "unclear-index" if one in unclear else "changed", one.title) for one in batch]

    def _taken(self, plan: StorePlan, batch: Sequence[Going], ids: Sequence[SessionId], schema: Schema) -> Taken:
        chosen = set(ids)
        files = [(one.id, path) for one in batch if one.id in chosen for path in one.files]
        only = plan.verb == "clear"
        children = () if only else tuple(self._asking.ask(read_children, ids))
        return Taken(tuple(ids), lambda: stored_rows(self.ref.path, schema, ids, files, messages_only=only), children)


def _look(
    connection: ReadConnection, schema: Schema, batch: Sequence[Going]
) -> tuple[dict[SessionId, dict[int, NulDialect]], dict[SessionId, object], Schema]:
    """What must be known of the sessions before they are taken."""
    nul = {one.id: nul_rows(connection, schema, (one.id,)) if one.messages else {} for one in batch}
    marks: dict[SessionId, object] = {one.id: session_mark(connection.rows, schema, one.id) for one in batch}
    return nul, marks, schema


def _delete(
    raw: apsw.Connection,
    schema: Schema,
    plan: StorePlan,
    ids: Sequence[SessionId],
    dialect: Dialect,
    nul: Mapping[int, NulDialect],
    marks: Mapping[SessionId, object],
    now: float,
) -> int:
    """The transaction: nothing in it when anything changed since the trash has it."""
    ask = ask_writer(raw)
    if any(session_mark(ask, schema, identity) != marks[identity] for identity in ids) or _held_now(
        ask, schema, ids, now
    ):
        raise _ChangedError
    if plan.drop_cjk:
        drop_cjk(raw)
    if plan.verb == "clear":
        return sum(clear_session(raw, schema, identity, dialect, nul) for identity in ids)
    return delete_sessions(raw, schema, ids, dialect, nul)


def _held_now(ask: Ask, schema: Schema, ids: Sequence[SessionId], now: float) -> bool:
    """Whether an agent took one of them since the plan was made."""
    marks = ",".join("?" * len(ids))
    for table, column in (("compression_locks", "session_id"), ("session_turn_leases", "conversation_id")):
        if schema.has(table, column, "expires_at") and ask(
            f"SELECT 1 FROM {table} WHERE {column} IN ({marks}) AND typeof(expires_at) IN ('integer', 'real')"
            " AND expires_at > ? LIMIT 1",
            (*ids, now),
        ):
            return True
    return False


def _end(raw: apsw.Connection, session_id: str, now: float) -> bool:
    """The product's own rule: the first reason stays."""
    raw.execute(
        "UPDATE sessions SET ended_at = ?, end_reason = ? WHERE id = ? AND ended_at IS NULL",
        (now, END_REASON, session_id),
    )
    return raw.changes() > 0


def _archive(raw: apsw.Connection, session_id: str, archived: int) -> bool:
    raw.execute("UPDATE sessions SET archived = ? WHERE id = ?", (archived, session_id))
    return raw.changes() > 0


def _batches(plan: StorePlan) -> Iterator[list[Going]]:
    """Sessions in pieces a transaction is short with."""
    batch: list[Going] = []
    messages = 0
    for one in plan.going:
        if batch and (len(batch) >= BATCH_SESSIONS or messages + one.messages > BATCH_MESSAGES):
            yield batch
            batch, messages = [], 0
        batch.append(one)
        messages += one.messages
    if batch:
        yield batch


def _failed(error: StorageError) -> str:
    """The reason a session was kept, of an error that met the writer."""
    if isinstance(error, WriteLost | StoreBusy):
        return "locked"
    damaged = isinstance(error, StoreDamaged) or (
        # FTS5 meets a broken structure record when its next segment gets a number that is taken.
        isinstance(error, WriteFailed)
        and (error.code & 0xFF == apsw.SQLITE_CORRUPT or error.code == apsw.SQLITE_CONSTRAINT_PRIMARYKEY)
    )
    return "damaged-store" if damaged else "not-written"


def _keep_all(outcome: Outcome, error: StorageError, titles: Mapping[SessionId, str | None]) -> None:
    """Name the sessions an error kept from being changed, with the reason."""
    reason = _failed(error)
    outcome.kept += [Kept(identity, reason, title) for identity, title in titles.items()]
    outcome.failures.append(f"{error.title}: {error.detail}")


def _count(outcome: Outcome, written: Written[Any]) -> None:
    outcome.tries += written.tries - 1
    outcome.waited_s += written.waited_s


def _unlink(paths: Sequence[str]) -> list[str]:
    """Remove side files, which are in the trash by now."""
    failures: list[str] = []
    for path in paths:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            failures.append(f"{path} could not be removed: {error.strerror or error}")
    return failures
