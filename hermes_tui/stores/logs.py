"""What stores made of log files have in common: listing, rows, lineage and usage over many logs.

Codex, Claude Code and DSH keep one log a session, or a few. Each package says how one line is read
(:class:`LogFold`) and how a log is peeked at; everything that spans logs is worked out here, once.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from hermes_tui.model import (
    Compaction,
    CostGrouping,
    Finding,
    Lineage,
    LineageNode,
    ListEntry,
    Listing,
    ListQuery,
    Origin,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
    StoreState,
    StoreStatus,
)
from hermes_tui.storage.errors import Interrupted, StorageError, advice_for
from hermes_tui.storage.events import FileEvents
from hermes_tui.storage.jsonl import Record
from hermes_tui.stores.conversation import (
    is_running,
    left_out_reason,
    matches,
    merged_spend,
    order_value,
    spend_of_requests,
    usage_of,
)
from hermes_tui.stores.kept_answers import DatedReport
from hermes_tui.stores.kept_index import dump_index, load_index
from hermes_tui.stores.kept_logs import KeptLogs, Look
from hermes_tui.stores.kept_requests import KeptRequests, spends_of
from hermes_tui.stores.log_findings import NAMED_PATHS, UNREADABLE_LINES, ProblemTally, counted, lineage_findings
from hermes_tui.stores.log_index import LogIndex, Peeked, build_index, logs_of
from hermes_tui.stores.log_source import (
    MALFORMED,
    FoldPlace,
    LineTaker,
    LogFile,
    LogFold,
    LogSummary,
    Pulse,
    Say,
    ScanSource,
    SummarySource,
    fold_log,
    no_pulse,
    problem_of,
    soon_read,
)
from hermes_tui.stores.log_texts import LogTexts
from hermes_tui.stores.log_usage import UsageLedger
from hermes_tui.stores.protocol import ChangeVerb, Proposal, SearchFilters, Transcript
from hermes_tui.stores.scan import LineIndex, scan_proposal

if TYPE_CHECKING:
    from hermes_tui.storage.fulltext import Matcher

__all__ = [
    "FoldPlace",
    "LogFile",
    "LogFold",
    "LogIndex",
    "LogStore",
    "LogSummary",
    "Peeked",
    "Pulse",
    "ScanSource",
    "SummarySource",
    "fold_log",
    "no_pulse",
    "problem_of",
]

PEEKS_KEPT: Final = 20_000
"""Peeked rows remembered: about 20 MB."""
WALK_AGAIN_SECONDS: Final = 15.0
"""The folders are walked so often even where file events work: some file systems tell only part of them."""
RECENT_SECONDS: Final = 1.0
"""A page of hits opens many transcripts: the folders are walked once for all of them."""
MOST_CANDIDATES: Final = 20
"""Ids given for a prefix (stores/protocol.py, resolve)."""
NEEDS_WHOLE_READ: Final = frozenset({"tokens", "cost", "messages"})
"""Orders a peek cannot answer."""


class LogStore(KeptLogs):
    """A store of many logs. Subclasses know one agent's format; nothing stays open between two calls."""

    def __init__(
        self, ref: StoreRef, source: SummarySource | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(ref)
        self.source: SummarySource = ScanSource(self.fold) if source is None else source
        self.clock = clock
        self._peeked: OrderedDict[LogFile, SessionRow] = OrderedDict()
        self._index: tuple[object, LogIndex] | None = None
        self._index_at = 0.0
        self._stops = 0
        self.line_index: Callable[[Matcher], LineIndex | None] | None = None
        """Set where an index of ours can be asked; ``None`` from it: not for this query."""
        self.events: FileEvents | None = None
        """Set while somebody watches the folders; then they are not walked at every question."""
        self._walk: tuple[int, float, tuple[LogFile, ...]] | None = None

    origin: Origin = "scan"
    """What a row says that was made of its log."""

    # ------------------------------------------------------------------------------------- what subclasses say

    @abstractmethod
    def logs(self) -> Sequence[LogFile]:
        """Every log of the store by a walk of its folders, sorted by path; nothing is opened.

        Raises:
            OSError: the store's own folder cannot be read.
        """

    @abstractmethod
    def peek(self, log: LogFile) -> SessionRow:
        """What head and tail of a log tell: id, parent, kind, title, folder, start and last activity.

        Raises:
            OSError: the log cannot be read; it is listed with a problem then.
        """

    @abstractmethod
    def fold(self, log: LogFile, state: bytes | None = None) -> LogFold:
        """The fold of a log, empty or from the bytes :meth:`LogFold.dump` gave."""

    @abstractmethod
    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """See :meth:`Store.transcript`."""

    @abstractmethod
    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """See :meth:`Store.recovery`."""

    @abstractmethod
    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """See :meth:`Store.resume_command`."""

    @abstractmethod
    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """See :meth:`Store.change_command`."""

    def peeks(self, logs: Sequence[LogFile]) -> Iterator[Peeked]:
        """A row for each log; overridden where the agent keeps a list of its own (which may know more sessions)."""
        for log in logs:
            yield log, self.peeked(log)

    def family(self, index: LogIndex, ids: Sequence[SessionId]) -> Iterable[LogFile]:
        """The logs that must be folded for the rows of these sessions to be right; more where logs share requests."""
        return logs_of(index, ids)

    def own_requests(self, summaries: Iterable[tuple[LogFile, LogSummary]]) -> Iterator[tuple[LogFile, LogSummary]]:
        """Take away what a log copied from an earlier one; logs come in order of their sessions' starts."""
        yield from summaries

    def complete(self, peeked: SessionRow, folded: SessionRow) -> SessionRow:
        """Join what a peek (or the agent's list) and the whole log say of a session; the log wins."""
        return replace(
            folded,
            id=peeked.id,
            root_id=peeked.root_id,
            tip_id=peeked.tip_id,
            archived=peeked.archived or folded.archived,
            branches=peeked.branches,
            delegated=peeked.delegated,
            origin="mirror" if folded.origin == "mirror" else self.origin,
        )

    def hidden(self, row: SessionRow) -> bool:
        """Whether the list leaves this session out unless every session is asked for."""
        del row
        return False

    def running(self, row: SessionRow, now: float) -> bool:
        """Whether its agent is at work on it; never found out by taking a lock."""
        return is_running(row, now)

    def log_texts(self, log: LogFile) -> LogTexts | None:
        """How a full-text index reads this log; ``None``: it is only scanned."""
        del log
        return None

    def skim(self, fold: LogFold, texts: LogTexts | None = None, say: Say | None = None) -> LineTaker | None:
        """What takes in lines for a fold of this store quicker than one by one; ``None``: each must be fed.

        ``texts`` cuts the texts out of lines that are fed; ``say`` is told those of prompts and replies that are not.
        """
        del fold, texts, say
        return None

    walks_first: ClassVar[bool] = True
    """Whether its folders tell what a log is: they are walked before one is folded elsewhere."""
    passes_over: ClassVar[bool] = False
    """Whether :meth:`skim` takes in lines that it does not parse."""

    def misread(self, record: Record) -> bool:
        """Whether a line that :meth:`skim` may have taken in by its first bytes alone says something else."""
        del record
        return False

    def problem_code(self, problem: Problem) -> str:
        """The code of the finding that counts this problem."""
        del problem
        return UNREADABLE_LINES

    def own_findings(self, index: LogIndex) -> Sequence[Finding]:
        """What the status of this agent's store says beyond :meth:`status`; cheap, from the index."""
        del index
        return ()

    def extra_stamp(self) -> object:
        """What else than the logs tells that something changed: stat only."""
        return None

    # ------------------------------------------------------------------------------------------ index and rows

    def index(self) -> LogIndex:
        """Every session as peeked; made anew when a log came, went or changed.

        Raises:
            OSError: the store's own folder cannot be read.
        """
        return self._index_of(self.walked())

    def _index_of(self, look: Look) -> LogIndex:
        key = (look.logs, self.extra_stamp())
        with self._lock:
            if self._index is not None and self._index[0] == key:
                self._index_at = time.monotonic()
                return self._index[1]
        index = self._kept_index(look)
        with self._lock:
            self._index = (key, index)
            self._index_at = time.monotonic()
        return index

    def _kept_index(self, look: Look) -> LogIndex:
        """The index as it was kept, where nothing changed since; kept only where peeks are kept as well."""
        asked = self.ask_kept(look, "index") if self.source.origin == "mirror" else None
        kept = None if asked is None else asked.found()
        if kept is not None:
            index, others = kept
            self.take_index_extra(others)
            return load_index(index, look.logs, self.ref)
        with self._lock:
            unknown = [log for log in look.logs if log not in self._peeked]
        self.remember_peeks(self.source.peeks(unknown))
        index = build_index(self.peeks(look.logs), self.joined)
        if asked is not None and (extra := self.index_extra()) is not None:
            asked.keep([dump_index(index, look.logs), extra])
        return index

    def recent_index(self, ids: Iterable[SessionId]) -> LogIndex:
        """The index for reading sessions that are known: the folders are not walked again within a second.

        Raises:
            OSError: as :meth:`index`.
        """
        with self._lock:
            known, at = self._index, self._index_at
        if known is not None and time.monotonic() - at < RECENT_SECONDS and all(one in known[1].rows for one in ids):
            return known[1]
        return self.index()

    def current_logs(self) -> tuple[LogFile, ...]:
        """:meth:`logs`, remembered while file events say that nothing changed.

        Raises:
            OSError: the store's own folder cannot be read.
        """
        events = self.events
        if events is None or not events.working:
            return tuple(self.logs())
        count, now = events.count, time.monotonic()
        with self._lock:
            walk = self._walk
        if walk is not None and walk[0] == count and now - walk[1] < WALK_AGAIN_SECONDS:
            return walk[2]
        logs = tuple(self.logs())
        with self._lock:
            self._walk = (count, now, logs)
        return logs

    def watched_folders(self) -> Sequence[Path]:
        """The folders in which logs come, grow and go."""
        return (Path(self.ref.path),)

    def peeked(self, log: LogFile) -> SessionRow:
        """The remembered or a fresh peek; a log that cannot be read gives a bare row with a problem."""
        with self._lock:
            row = self._peeked.get(log)
        if row is not None:
            return row
        try:
            row = self.peek(log)
        except (OSError, StorageError, *MALFORMED) as error:
            self.unsure = self.unsure or isinstance(error, OSError)
            row = self.bare_row(log)
        with self._lock:
            self._peeked[log] = row
            while len(self._peeked) > PEEKS_KEPT:
                self._peeked.popitem(last=False)
        return row

    def remember_peeks(self, peeks: Iterable[tuple[LogFile, SessionRow]]) -> None:
        """Take peeks an index kept: each counts only while its log has the same size and time."""
        # Read before the lock is taken: an index on a slow disk must not hold up those who ask for something else.
        kept = list(peeks)
        with self._lock:
            for log, row in kept:
                self._peeked[log] = row
            while len(self._peeked) > PEEKS_KEPT:
                self._peeked.popitem(last=False)

    def peek_extra(self, log: LogFile) -> object:
        """What of a peek an index keeps besides the row, as a JSON value; asked right after :meth:`peeked`.

        Raises:
            OSError: the log cannot be read.
        """
        del log
        return None

    def take_peek_extra(self, log: LogFile, extra: object) -> None:
        """Take what an index kept of :meth:`peek_extra`; the log is as it was then."""
        del log, extra

    def bare_row(self, log: LogFile) -> SessionRow:
        """What the folder alone tells of a log that cannot be read."""
        return SessionRow(
            store=self.ref,
            id=log.session_id,
            root_id=log.session_id,
            tip_id=log.session_id,
            last_active_at=log.mtime,
            archived=log.archived,
            resumable=False,
            origin="scan",
            problems=1,
        )

    def pulse(self) -> Pulse:
        """A pulse for one call: raises ``Interrupted`` once :meth:`interrupt` is called after this."""
        begun = self._stops

        def look() -> None:
            if self._stops != begun:
                raise Interrupted

        return look

    def summaries(self, logs: Iterable[LogFile], pulse: Pulse | None = None) -> Iterator[tuple[LogFile, LogSummary]]:
        """Summaries of these logs with own requests only; ``logs`` must be in the index's order and complete."""
        yield from self.own_requests(self._sure(self.source.summaries(logs, pulse or self.pulse())))

    def _sure(self, summaries: Iterable[tuple[LogFile, LogSummary]]) -> Iterator[tuple[LogFile, LogSummary]]:
        """Notice logs that could not be read to their end."""
        for log, summary in summaries:
            if summary.problems and any(problem.line is None for problem in summary.problems):
                self.unsure = True
            yield log, summary

    def folded(self, index: LogIndex, ids: Sequence[SessionId]) -> dict[SessionId, tuple[SessionRow, list[LogSummary]]]:
        """The single-session rows and the summaries of these sessions."""
        wanted = {session_id for session_id in ids if session_id in index.rows}
        family = {log.path for log in self.family(index, tuple(wanted))}
        found: dict[SessionId, list[tuple[LogFile, LogSummary]]] = {}
        for log, summary in self.summaries(log for log in index.logs if log.path in family):
            session_id = index.session_of[log.path]
            if session_id in wanted:
                found.setdefault(session_id, []).append((log, summary))
        now = self.clock()
        return {
            session_id: (
                self._row(index.rows[session_id], [summary for _, summary in found.get(session_id, ())], now),
                [summary for _, summary in found.get(session_id, ())],
            )
            for session_id in wanted
        }

    def _row(self, peeked: SessionRow, summaries: Sequence[LogSummary], now: float) -> SessionRow:
        row = peeked
        if summaries:
            parts = self.joined([with_requests(summary) for summary in summaries])
            row = self.complete(peeked, parts)
        return replace(row, store=self.ref, running=self.running(row, now))

    # ----------------------------------------------------------------------------------------------- questions

    def status(self) -> StoreStatus:
        """How the store is; a folder that cannot be read is a finding, not an error."""
        try:
            index = self.index()
            findings = (*self._problem_findings(index), *self.own_findings(index))
        except (OSError, StorageError) as error:
            advice = advice_for(error) if isinstance(error, OSError) else error.advice
            detail = str(error) if isinstance(error, OSError) else f"{error.title}: {error.detail}"
            finding = Finding("store-unreadable", "error", detail, advice=advice, paths=(self.ref.path,))
            return StoreStatus(self.ref, "unreadable", None, None, findings=(finding,))
        state: StoreState = "ok" if index.rows else "empty"
        if any(finding.severity != "info" for finding in findings):
            state = "degraded"
        lag = self.source.lag(index.logs)
        origin: Origin = "mirror" if lag is not None and lag < len(index.logs) else self.origin
        fallbacks = tuple(self.source.fallbacks.items())
        return StoreStatus(self.ref, state, origin, len(index.rows), lag=lag, findings=findings, fallbacks=fallbacks)

    def _problem_findings(self, index: LogIndex) -> Iterator[Finding]:
        """Logs whose head or tail already shows that something cannot be read."""
        odd = index.odd
        if odd:
            paths = [log.path for session_id in odd for log in index.logs_of[session_id]]
            detail = f"{counted(len(odd), 'session')} with lines or files that cannot be read"
            yield Finding(
                "unreadable-logs",
                "warn",
                detail,
                len(odd),
                "Open one and look at its problems.",
                tuple(paths[:NAMED_PATHS]),
            )

    def list_now(self, look: Look, query: ListQuery, limit: int | None) -> Listing:
        """Whole logs are read only for what a peek cannot tell (model, sums), or where that costs little."""
        index = self._index_of(look)
        unsure = query.model is not None or query.order in NEEDS_WHOLE_READ
        if unsure or soon_read(self.source, index.logs, query):
            rows = [row for row, _ in self.folded(index, tuple(index.rows)).values()]
        else:
            rows = list(index.rows.values())
        entries: list[ListEntry] = []
        left_out: dict[str, int] = {}
        for row in rows:
            if not matches(row, query):
                continue
            reason = left_out_reason(row, query, hidden=self.hidden(row))
            if reason is None:
                entries.append(ListEntry(row.id, order_value(row, query.order)))
            else:
                left_out[reason] = left_out.get(reason, 0) + 1
        entries.sort(key=lambda entry: (-entry.order if entry.order > -math.inf else math.inf, entry.id))
        return Listing(tuple(entries if limit is None else entries[:limit]), len(entries), left_out)

    def rows(self, ids: Sequence[SessionId], *, conversation: bool = True) -> list[SessionRow]:
        """See :meth:`Store.rows`; a log store's conversation is a session, with its segments counted in ``parts``."""
        del conversation
        folded = self.folded(self.index(), ids)
        return [folded[session_id][0] for session_id in ids if session_id in folded]

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        """See :meth:`Store.resolve`."""
        rows = self.index().rows
        if prefix in rows:
            return (SessionId(prefix),)
        return sorted(session_id for session_id in rows if session_id.startswith(prefix))[:MOST_CANDIDATES]

    def chain(self, session_id: SessionId) -> tuple[SessionId, ...]:
        """The session alone: forks, branches and sub-agents are conversations of their own."""
        return (session_id,)

    def lineage(self, session_id: SessionId) -> Lineage:
        """See :meth:`Store.lineage`.

        Raises:
            KeyError: there is no such session.
        """
        index = self.index()
        tree = index.tree(session_id)
        folded = self.folded(index, tree)
        nodes = tuple(self._node(index, here, *folded[here]) for here in tree)
        return Lineage(session_id, tree[0], self.chain(session_id), nodes)

    def _node(
        self, index: LogIndex, session_id: SessionId, row: SessionRow, summaries: Sequence[LogSummary]
    ) -> LineageNode:
        compactions: tuple[Compaction, ...] = tuple(item for summary in summaries for item in summary.compactions)
        findings = []
        if index.is_orphan(session_id):
            findings.append("orphan")
        if index.in_cycle(session_id):
            findings.append("cycle")
        return LineageNode(session_id, row.parent_id, row.lineage_kind, row, compactions, tuple(findings))

    def usage_now(
        self, look: Look, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
    ) -> DatedReport:
        index = self._index_of(look)
        ledger = UsageLedger(grouping, since, until, zone)
        apart = UsageLedger(grouping, since, until, zone)
        for log, summary in self.summaries(index.logs):
            row = index.rows[index.session_of[log.path]]
            whole = partial(self.complete, row, summary.row)
            ledger.add(row, summary.requests, whole)
            apart.add(row, summary.apart, whole)
        oldest = min((one for one in (ledger.oldest, apart.oldest) if one is not None), default=None)
        return DatedReport(replace(ledger.report(), apart=apart.report().sums), oldest)

    def requests_now(self, look: Look, ids: Sequence[SessionId] | None, since: float | None) -> Iterator[Request]:
        index = self._index_of(look)
        wanted = None if ids is None else set(ids)
        if wanted is None and since is not None:
            wanted = {
                index.session_of[log.path]
                for log, summary in self.summaries(index.logs)
                if _any_since(summary.requests, since)
            }
        logs: Iterable[LogFile] = index.logs
        if wanted is not None:
            family = {log.path for log in self.family(index, tuple(wanted))}
            logs = (log for log in index.logs if log.path in family)
        for log, summary in self.summaries(logs):
            if wanted is None or index.session_of[log.path] in wanted:
                yield from summary.requests

    def propose(
        self,
        matcher: Matcher,
        filters: SearchFilters,
        order: Literal["newest", "oldest"],
        after: tuple[float, ...] | None = None,
    ) -> Proposal:
        """See :meth:`Store.propose`: a scan, which an index over the lines of the logs may shorten."""
        lines = None if self.line_index is None else self.line_index(matcher)
        return scan_proposal(self, matcher, filters, order, after, lines)

    def stamp(self) -> object:
        """Every log with size and time, by stat alone."""
        try:
            return (self.current_logs(), self.extra_stamp())
        except OSError as error:
            return (error.errno, str(error))

    def findings(self) -> Sequence[Finding]:
        """See :meth:`Store.findings`: a pass over every log."""
        status = self.status()
        if status.state == "unreadable":
            return status.findings
        index = self.index()
        tally = ProblemTally(self.problem_code)
        half_read, pulse = self.source.half_read(), self.pulse()
        for log, summary in self.summaries(index.logs):
            whole = fold_log(log, self.fold, pulse=pulse).summary if log.path in half_read else summary
            tally.add(log.path, whole.problems)
        told = [finding for finding in status.findings if finding.code != "unreadable-logs"]
        told.extend(tally.findings())
        told.extend(lineage_findings(index))
        return tuple(told)

    def interrupt(self) -> None:
        """End what runs in other threads at its next record or log."""
        with self._lock:
            self._stops += 1


def _any_since(requests: Sequence[Request], since: float) -> bool:
    if isinstance(requests, KeptRequests):
        return not requests.none_since(since)
    return any(request.at is not None and request.at >= since for request in requests)


def with_requests(summary: LogSummary) -> SessionRow:
    """The row of a summary with usage, spend and count worked out from its own requests.

    A row without a count of messages is of a log that was not read: nothing is known then, which is not zero.
    """
    requests = summary.requests
    if summary.row.message_count is None and not requests:
        return summary.row
    spends = spends_of(requests)
    spend = spend_of_requests(requests) if spends is None else merged_spend(spends)
    return replace(summary.row, usage=usage_of(spend), spend=spend, request_count=len(requests))
