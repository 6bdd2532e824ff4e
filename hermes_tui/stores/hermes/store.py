"""One Hermes profile's store, behind the protocol every store answers.

Modules that only some questions need are imported with the question: the list is most of what a command costs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from hermes_tui.model import (
    CostGrouping,
    Finding,
    Lineage,
    LineageNode,
    ListEntry,
    Listing,
    ListQuery,
    PowerCut,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
    StoreStatus,
    UsageReport,
)
from hermes_tui.storage.errors import NotPossible, StorageError, StoreBusy, StoreDamaged, StoreUnreadable
from hermes_tui.storage.stamps import database_evidence, file_stamp
from hermes_tui.stores.conversation import within
from hermes_tui.stores.hermes.asking import Asking
from hermes_tui.stores.hermes.discovery import DEFAULT_PROFILE, Home, default_root
from hermes_tui.stores.hermes.findings import QuickLook, quick_look, quick_status
from hermes_tui.stores.kept_answers import (
    FIRST_ROWS,
    UNKNOWN,
    Answers,
    Asked,
    DatedRows,
    Evidence,
    NothingKept,
    ask,
    kept_listing,
    kept_points,
    kept_rows,
    kept_usage,
    lasting,
    usage_question,
)

if TYPE_CHECKING:
    from hermes_tui.storage.fulltext import Matcher
    from hermes_tui.storage.reading import ReadConnection
    from hermes_tui.stores.hermes.changes import HermesChanges
    from hermes_tui.stores.hermes.legacy_logs import LegacyLog
    from hermes_tui.stores.hermes.overview import Overviews
    from hermes_tui.stores.hermes.schema import Schema
    from hermes_tui.stores.hermes.transcript import HermesTranscript
    from hermes_tui.stores.protocol import ChangeVerb, Proposal, SearchFilters, Transcript

MOST_CANDIDATES: Final = 20
"""Ids a prefix is answered with."""
LAST_CHARACTER: Final = "\U0010ffff"
"""Sorts after every character an id can have."""


class HermesStore:
    """Implements :class:`hermes_tui.stores.protocol.Store` for one state.db and the logs beside it."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self.home = home
        self.ref = StoreRef("hermes", f"hermes/{home.profile}", str(home.store), home.profile)
        self.answers: Answers = NothingKept()
        self._asking = Asking(str(home.store))
        self._environ = environ
        self._lock = threading.Lock()
        self._overviews: Overviews | None = None
        self._top: tuple[ListQuery, tuple[SessionId, ...]] = (ListQuery(), ())
        """The list that was asked for last, and its first ids."""
        self._legacy: tuple[object, dict[str, LegacyLog]] | None = None

    @property
    def asking(self) -> Asking:
        """How this store is asked, for the search over it."""
        return self._asking

    def status(self) -> StoreStatus:
        """How the store is, by what can be told quickly."""
        return quick_status(self.ref, self.home, self._quick_look, len(self.only_in_logs()))

    def _quick_look(self) -> QuickLook:
        asked = self._ask_kept("quick look")
        kept = asked.found()
        if kept is not None:
            return kept, []
        sessions, found = self._asking.ask(quick_look)
        if sessions is not None and not found:
            asked.keep(sessions)
        return sessions, found

    def _ask_kept(self, *question: object) -> Asked:
        """Begin a question whose answer hangs on the database alone."""
        return ask(self.answers, self.ref, self._evidence, *question)

    def _evidence(self) -> Evidence | None:
        now = time.time_ns()
        found = database_evidence(self.home.store)
        return found and Evidence(*found, now)

    def findings(self) -> Sequence[Finding]:
        """Everything, with a pass over the store."""
        from hermes_tui.stores.hermes.checks import full_findings

        logs_only = len(self.only_in_logs())
        return full_findings(self.ref, self.home, self._asking, self._logs(), logs_only, time.time())

    def listing(self, query: ListQuery, limit: int | None = None) -> Listing:
        """Ids in order: the store's, and those of logs it does not have."""
        found = Listing((), 0)
        if self._readable():
            try:
                found = self._kept_listing(query, limit)
            except StoreBusy:
                raise
            except StoreUnreadable:
                # The logs are all there is then; the status says that the store could not be read.
                if not self._logs():
                    raise
        logs = self.only_in_logs()
        return self._with_logs(found, logs, query, limit) if logs else found

    def _kept_listing(self, query: ListQuery, limit: int | None) -> Listing:
        """The store's own rows as they were last answered, if nothing was written since."""
        if not lasting(query):
            return self._listing(query, limit)
        found = kept_listing(
            lambda which: self._ask_kept("listing", which, query), limit, lambda: self._listing(query, limit)
        )
        self._top = query, tuple(entry.id for entry in found.entries[:FIRST_ROWS])
        return found

    def _listing(self, query: ListQuery, limit: int | None) -> Listing:
        """The store's own rows: the usual list of a large store by a short way."""
        from hermes_tui.stores.hermes.newest_first import answers, read_newest_first

        if limit is not None and answers(query):
            short = read_newest_first(self._asking, query, limit)
            if short is not None:
                return short
        from hermes_tui.stores.hermes.listing import read_listing
        from hermes_tui.stores.hermes.overview import Overviews
        from hermes_tui.stores.hermes.overview import answers as in_overview

        if in_overview(query):
            with self._lock:
                overviews = self._overviews = self._overviews or Overviews(self._asking)
            try:
                found = overviews.listing(query, limit, file_stamp(self.home.store))
            except StoreDamaged:
                # The general way asks for what lies on other pages.
                found = None
            if found is not None:
                return found
        return self._asking.ask(read_listing, query, limit)

    def _with_logs(self, found: Listing, logs: Mapping[str, LegacyLog], query: ListQuery, limit: int | None) -> Listing:
        from hermes_tui.stores.hermes.legacy_logs import legacy_row

        rows = [row for row in (legacy_row(self.ref, log) for log in logs.values()) if _row_matches(row, query)]
        entries = [*found.entries, *(ListEntry(row.id, _order_of(row, query)) for row in rows)]
        entries.sort(key=lambda entry: (entry.order, entry.id), reverse=True)
        return Listing(tuple(entries[:limit]), found.total + len(rows), found.left_out)

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        """Rows of sessions in the store and of those that are only logs."""
        found: dict[str, SessionRow] = {}
        if self._readable():
            try:
                found.update(self._own_rows(ids, conversation).by_id)
            except StoreBusy:
                raise
            except StoreUnreadable:
                if not self._logs():
                    raise
        missing = [identity for identity in ids if identity not in found]
        if missing and (logs := self.only_in_logs()):
            from hermes_tui.stores.hermes.legacy_logs import legacy_row

            found.update({one: legacy_row(self.ref, logs[one]) for one in missing if one in logs})
        return [found[identity] for identity in ids if identity in found]

    def _own_rows(self, ids: Sequence[SessionId], conversation: bool) -> DatedRows:
        """The store's own rows; those at the top of a list as they were last answered, if nothing was written since."""

        def read() -> DatedRows:
            from hermes_tui.stores.hermes.rows import read_rows

            return self._asking.ask(read_rows, self.ref, ids, conversation=conversation, now=time.time())

        query, first = self._top
        if not ids or tuple(ids) != first[: len(ids)]:
            return read()
        return kept_rows(self._ask_kept("rows", query, len(ids), conversation), self.ref, ids, read)

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        """The id itself, else every id with this prefix."""
        found: list[str] = []
        if self._readable():
            try:
                found = self._asking.ask(_resolved, prefix)
            except StoreBusy:
                raise
            except StoreUnreadable:
                if not any(identity.startswith(prefix) for identity in self._logs()):
                    raise
        if found == [prefix]:
            return [SessionId(prefix)]
        logs = self.only_in_logs()
        if prefix in logs:
            return [SessionId(prefix)]
        found += sorted(identity for identity in logs if identity.startswith(prefix))
        return [SessionId(identity) for identity in found[:MOST_CANDIDATES]]

    def chain(self, session_id: SessionId) -> tuple[SessionId, ...]:
        """Root to tip; a session that is only a log is its own conversation."""
        if not self._readable() or session_id in self.only_in_logs():
            return (session_id,)

        from hermes_tui.stores.hermes.links import links_around

        def question(connection: ReadConnection, schema: Schema) -> tuple[SessionId, ...]:
            links = links_around(connection, schema, [session_id])
            link = links.by_id.get(session_id)
            parts = [] if link is None else links.conversation(link)
            return tuple(SessionId(part.id) for part in parts) or (session_id,)

        return self._asking.ask(question)

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """The messages of these sessions."""
        logs = self.only_in_logs()
        if ids and all(identity in logs for identity in ids):
            from hermes_tui.stores.hermes.legacy_logs import LegacyTranscript

            return LegacyTranscript([logs[identity] for identity in ids])
        return self._transcript(ids)

    def _transcript(self, ids: Sequence[str], *, every_row: bool = False) -> HermesTranscript:
        from hermes_tui.stores.hermes.lineage import part_of
        from hermes_tui.stores.hermes.links import links_around
        from hermes_tui.stores.hermes.transcript import HermesTranscript

        def question(connection: ReadConnection, schema: Schema) -> HermesTranscript:
            links = links_around(connection, schema, ids)
            parts = [part_of(links, links.by_id[identity]) for identity in ids if identity in links.by_id]
            return HermesTranscript(self._asking, parts, every_row=every_row)

        return self._asking.ask(question)

    def lineage(self, session_id: SessionId) -> Lineage:
        """The whole tree."""
        from hermes_tui.stores.hermes.lineage import read_lineage

        logs = self.only_in_logs()
        if session_id in logs:
            from hermes_tui.stores.hermes.legacy_logs import legacy_row

            row = legacy_row(self.ref, logs[session_id])
            node = LineageNode(session_id, None, "root", row)
            return Lineage(session_id, session_id, (session_id,), (node,))
        return read_lineage(self._asking, self.ref, session_id, time.time())

    def usage(self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo) -> UsageReport:
        """Usage by key; logs tell none."""
        from hermes_tui.stores.hermes.usage import read_usage

        if not self._readable():
            return UsageReport((), {}, distinct=0)
        asked = self._ask_kept(*usage_question(grouping, since, until, zone))
        try:
            return kept_usage(asked, since, lambda: self._asking.ask(read_usage, grouping, since, until, zone))
        except StoreDamaged:
            return self._salvaged_usage(grouping, since, until, zone)

    def _salvaged_usage(
        self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
    ) -> UsageReport:
        """Usage by way of the rows of the list, which go around broken pages; `doctor` tells of those."""
        from hermes_tui.stores.log_usage import UsageLedger

        ledger = UsageLedger(grouping, since, until, zone)
        ids = [entry.id for entry in self.listing(ListQuery(sessions=True)).entries]
        for row in self.rows(ids, conversation=False):
            ledger.add_sums(row)
        return ledger.report()

    def requests(self, ids: Sequence[SessionId] | None, since: float | None = None) -> Iterator[Request]:
        """Usage rows as points."""
        from hermes_tui.stores.hermes.requests import read_requests

        if not self._readable():
            return iter(())
        if ids is not None or since is None:
            return read_requests(self._asking, ids, since)
        asked = self._ask_kept("requests")
        return iter(kept_points(asked, since, lambda: read_requests(self._asking, None, since)))

    def propose(
        self,
        matcher: Matcher,
        filters: SearchFilters,
        order: Literal["newest", "oldest"],
        after: tuple[float, ...] | None = None,
    ) -> Proposal:
        """Messages that may match, from the store's own indexes or a scan."""
        from hermes_tui.stores.hermes.search import propose

        return propose(self, matcher, filters, order, after)

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """The live rows of the conversation's tip.

        Raises:
            NotPossible: a cut was asked for (a database has no lines), or the session is only a log.
        """
        from hermes_tui.stores.hermes.recovery import build_recovery

        if cut is not None:
            raise NotPossible(
                "A Hermes store cannot be cut at a line",
                "it is a database: what was committed is there, what was not is gone",
                "Leave out --cut.",
            )
        tip = self.chain(session_id)[-1]
        row = self.rows([tip], conversation=True)[0]
        logs = self.only_in_logs()
        if tip in logs:
            raise NotPossible(
                f"{tip} cannot be resumed", "it is only a log that the store does not have", "Read it with show."
            )
        return build_recovery(self._transcript([tip], every_row=True), row, continues=row.parts > 1)

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """``hermes -r ID``, with the profile and the home it is in."""
        return ResumeCommand(("hermes", *self._profile_words(), "-r", row.tip_id), row.cwd, self._home_variable())

    def _profile_words(self) -> tuple[str, ...]:
        """The profile, unless the command takes it by itself: ``active_profile`` counts where none is named."""
        usual = self.home.profile == DEFAULT_PROFILE and self.home.active
        return () if usual else ("-p", self.home.profile)

    def _home_variable(self) -> tuple[tuple[str, str], ...]:
        """HERMES_HOME where the home is not the one the command would take by itself."""
        root = self.home.root or self.home.folder
        usual = default_root(self._environ, Path(self._environ.get("HOME") or Path.home()))
        return () if root.absolute() == usual.absolute() else (("HERMES_HOME", str(root)),)

    def changes(self) -> HermesChanges:
        """The changes a person can make to this store."""
        from hermes_tui.stores.hermes.changes import HermesChanges

        return HermesChanges(self.ref, self._asking, self._environ)

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """The product's own command; it has none for ending a session or emptying one."""
        import shlex

        words = {
            "rename": ["rename", session_id, title or ""],
            "delete": ["delete", session_id, "--yes"],
            "prune": ["prune"],
        }.get(verb)
        if words is None:
            return None
        return shlex.join(["hermes", *self._profile_words(), "sessions", *words])

    def stamp(self) -> object:
        """Stat of the store, of what lies beside it, and of the logs, which grow without their folder changing."""
        return (
            file_stamp(self.home.store),
            _log_stamps(self.home.legacy_sessions),
            _log_stamps(self.home.pending),
        )

    def interrupt(self) -> None:
        """End what runs in other threads."""
        self._asking.interrupts.interrupt()

    def _readable(self) -> bool:
        """Whether there is a file to ask; one that is damaged still raises when it is asked."""
        return self.home.store.exists()

    def _logs(self) -> dict[str, LegacyLog]:
        """Every log of this home, found again when a folder changed."""
        stamp = (_folder_stamp(self.home.legacy_sessions), _folder_stamp(self.home.pending))
        with self._lock:
            if self._legacy is not None and self._legacy[0] == stamp:
                return self._legacy[1]
        found: dict[str, LegacyLog] = {}
        if stamp != (None, None):
            from hermes_tui.stores.hermes.legacy_logs import find_logs

            found = {log.session_id: log for log in find_logs(self.home)}
        with self._lock:
            self._legacy = (stamp, found)
        return found

    def only_in_logs(self) -> dict[str, LegacyLog]:
        """Logs of sessions the store does not have, or cannot say."""
        logs = self._logs()
        if not logs or not self._readable():
            return logs
        try:
            known = self._asking.ask(_known, list(logs))
        except StorageError:
            # The store cannot be read: its status says so, and the logs are all there is.
            return logs
        return {identity: log for identity, log in logs.items() if identity not in known}


def _known(connection: ReadConnection, _: Schema, ids: Sequence[str]) -> frozenset[str]:
    """Which of these sessions the store has."""
    from hermes_tui.stores.hermes.links import json_ids

    rows = connection.rows("SELECT id FROM sessions WHERE id IN (SELECT value FROM json_each(?))", (json_ids(ids),))
    return frozenset(str(row[0]) for row in rows)


def _resolved(connection: ReadConnection, schema: Schema, prefix: str) -> list[str]:
    """The id itself, else ids with this prefix; where no session has one, those that only messages name."""
    places = [("sessions", "id")]
    if schema.has("messages", "session_id"):
        places.append(("messages", "session_id"))
    for table, column in places:
        if connection.one(f"SELECT 1 FROM {table} WHERE {column} = ?", (prefix,)):
            return [prefix]
    for table, column in places:
        # A range instead of LIKE: it uses the index, and % and _ in an id mean themselves.
        rows = connection.rows(
            f"SELECT DISTINCT {column} FROM {table} WHERE {column} >= ? AND {column} < ? ORDER BY {column} LIMIT ?",
            (prefix, prefix + LAST_CHARACTER, MOST_CANDIDATES),
        )
        if rows:
            return [str(row[0]) for row in rows]
    return []


def _row_matches(row: SessionRow, query: ListQuery) -> bool:
    """Whether a session that is only a log passes the filters; it has no source, model, folder or channel."""
    if query.source is not None or query.model is not None or query.channel is not None or query.cwd is not None:
        return False
    if query.text and query.text.casefold() not in f"{row.preview or ''}\n{row.id}".casefold():
        return False
    return within(row.last_active_at, query.since, query.until)


def _order_of(row: SessionRow, query: ListQuery) -> float:
    """The value a log is ordered by."""
    if query.order == "messages":
        return float(row.message_count or 0)
    if query.order in ("tokens", "cost"):
        return 0.0
    value = row.started_at if query.order == "started" else row.last_active_at
    return UNKNOWN if value is None else value


def _log_stamps(folder: Path) -> tuple[tuple[str, int, int, int], ...] | None:
    """Name, inode, size and time of each log in a folder."""
    try:
        with os.scandir(folder) as entries:
            logs = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".jsonl")]
    except OSError:
        return None
    return tuple(sorted((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in logs))


def _folder_stamp(folder: Path) -> tuple[int, int] | None:
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
