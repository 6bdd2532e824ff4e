"""One Codex home as a store: its own mirror first, the rollouts for the truth (facts/codex.md sections 1, 8)."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from hermes_tui.model import (
    COUNTED_KINDS,
    Finding,
    Lineage,
    LineageNode,
    MessageKind,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
    StoreStatus,
)
from hermes_tui.storage.jsonl import Record, read_records
from hermes_tui.storage.reading import Interrupts
from hermes_tui.storage.stamps import stat_of
from hermes_tui.stores.codex import recovery
from hermes_tui.stores.codex.agent_mirror import (
    AgentMirror,
    MirrorRow,
    indexed_names,
    is_behind,
    matched_rows,
    mirror_files,
    preference,
    read_mirror,
)
from hermes_tui.stores.codex.discovery import LOCKS, NAMES, held_locks, walk
from hermes_tui.stores.codex.findings import agent_findings, stale_findings
from hermes_tui.stores.codex.fold import CodexFold
from hermes_tui.stores.codex.index_texts import CodexTexts
from hermes_tui.stores.codex.oldest import is_oldest
from hermes_tui.stores.codex.peek import forked_from, peek
from hermes_tui.stores.codex.picture import PASSING, Picture, dump_picture, load_picture
from hermes_tui.stores.codex.rollout import ABSURD_TIME, raw, read_name, source_word
from hermes_tui.stores.codex.skim import CodexSkim, misread
from hermes_tui.stores.codex.spans import Span, ThreadFiles, first_meta
from hermes_tui.stores.codex.transcript import CodexTranscript, span_records
from hermes_tui.stores.conversation import RUNNING_SECONDS
from hermes_tui.stores.log_findings import ABSURD_TIMES
from hermes_tui.stores.log_source import PULSE_EVERY, LineTaker, LogFile, LogFold, LogSummary, Say
from hermes_tui.stores.log_texts import LogTexts
from hermes_tui.stores.logs import PEEKS_KEPT, LogIndex, LogStore, Peeked, with_requests
from hermes_tui.stores.protocol import ChangeVerb, Transcript
from hermes_tui.text import RawText

VARIABLE: Final = "CODEX_HOME"
_VERBS: Final[frozenset[ChangeVerb]] = frozenset({"archive", "unarchive", "delete"})
"""Changes the program itself has a command for, of the same name."""


class CodexStore(LogStore):
    """See :class:`hermes_tui.stores.protocol.Store`."""

    def __init__(
        self,
        ref: StoreRef,
        *,
        databases: Sequence[str] = (),
        default_home: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(ref, clock=clock)
        self._databases = tuple(databases) or (ref.path,)
        self._default_home = default_home
        self._interrupts = Interrupts()
        self._codex_lock = threading.Lock()
        self._picture = Picture()
        self._forks: dict[LogFile, SessionId | None] = {}
        self._locks: tuple[float, frozenset[str]] = (-1.0, frozenset())

    # ------------------------------------------------------------------------------------------ what lies there

    def logs(self) -> Sequence[LogFile]:
        """Every rollout; see :func:`hermes_tui.stores.codex.discovery.walk`."""
        found = walk(self.ref.path)
        with self._codex_lock:
            self._picture = replace(self._picture, found=found)
        return found.logs

    def peek(self, log: LogFile) -> SessionRow:
        """See :meth:`LogStore.peek`."""
        return peek(self.ref, log, self.clock())

    def log_texts(self, log: LogFile) -> LogTexts | None:
        """See :meth:`LogStore.log_texts`; the oldest files are one document and have no lines."""
        return None if is_oldest(log.path) else CodexTexts()

    def fold(self, log: LogFile, state: bytes | None = None) -> CodexFold:
        """See :meth:`LogStore.fold`."""
        return CodexFold(self.ref, log, state)

    def skim(self, fold: LogFold, texts: LogTexts | None = None, say: Say | None = None) -> LineTaker | None:
        """See :meth:`LogStore.skim`; the oldest files are one document and have no lines."""
        if not isinstance(fold, CodexFold) or fold.document:
            return None
        return CodexSkim(fold, texts if isinstance(texts, CodexTexts) else None, say)

    walks_first: ClassVar[bool] = False
    passes_over: ClassVar[bool] = True

    def misread(self, record: Record) -> bool:
        """See :meth:`LogStore.misread`."""
        return misread(record)

    def extra_stamp(self) -> object:
        """The mirror's files and the names."""
        return tuple(map(stat_of, (*self.also_read(), f"{self.ref.path}/{LOCKS}")))

    def also_read(self) -> Iterable[str]:
        """See :meth:`LogStore.also_read`: the mirror's files and the names."""
        files = (f"{path}{end}" for _, path in mirror_files(self._databases) for end in ("", "-wal", "-journal"))
        return (*files, f"{self.ref.path}/{NAMES}")

    def index_extra(self) -> object | None:
        """See :meth:`LogStore.index_extra`."""
        return dump_picture(self._now())

    def take_index_extra(self, extra: Any) -> None:
        """See :meth:`LogStore.take_index_extra`."""
        with self._codex_lock:
            self._picture = load_picture(extra, self._picture.found)

    # --------------------------------------------------------------------------------------------- reconciling

    def peeks(self, logs: Sequence[LogFile]) -> Iterator[Peeked]:
        """A row for each rollout: from the mirror where that knows it as it is now, else from head and tail."""
        mirror = read_mirror(self._databases, self._interrupts)
        indexed = indexed_names(self.ref.path)
        self.unsure = self.unsure or mirror.fallback in PASSING or bool(indexed.unreadable)
        names = {**indexed.names}
        names.update({row.id: row.name for row in mirror.rows.values() if row.name is not None})
        rows = mirror.rows if mirror.usable else {}
        matched, moved = matched_rows(logs, rows)
        behind: list[SessionId] = []
        groups: dict[SessionId, list[tuple[LogFile, SessionRow]]] = {}
        for log in logs:
            row = self._first_look(log, matched.get(log.path), behind)
            groups.setdefault(row.id, []).append((log, row))
        copies: list[str] = []
        peeked: list[Peeked] = []
        for thread, group in groups.items():
            kept = self._segments(group, rows.get(thread), copies)
            peeked.extend((log, self._named(row, names, mirror)) for log, row in kept)
        missing = [row for thread, row in rows.items() if thread not in groups]
        peeked.extend((None, self._named(self._missing_row(row), names, mirror)) for row in missing)
        with self._codex_lock:
            self._picture = replace(
                self._picture,
                mirror=mirror,
                names=names,
                indexed=indexed,
                copies=tuple(copies),
                missing=tuple(row.id for row in missing),
                unlisted=tuple(thread for thread in groups if mirror.usable and thread not in rows),
                behind=tuple(behind),
                moved=moved,
            )
        yield from self._with_sources(peeked)

    def _first_look(self, log: LogFile, row: MirrorRow | None, behind: list[SessionId]) -> SessionRow:
        """The mirror's row when nothing was written since, else a peek that keeps what only the mirror knows."""
        if row is None:
            return self.peeked(log)
        if row.updated is not None and not is_behind(row, log.mtime):
            return self._mirror_row(row, log)
        peeked = self.peeked(log)
        if is_behind(row, peeked.last_active_at):
            behind.append(row.id)
        return replace(peeked, origin="agent-mirror", pinned=row.pinned)

    def _mirror_row(self, row: MirrorRow, log: LogFile | None) -> SessionRow:
        source, delegated = source_word(row.source)
        fork = None if log is None or delegated else self._fork_of(log)
        archived = row.archived if log is None else log.archived
        return SessionRow(
            store=self.ref,
            id=row.id,
            root_id=row.id,
            tip_id=row.id,
            parent_id=fork,
            lineage_kind="delegation" if delegated else "root" if fork is None else "fork",
            title=raw(row.title),
            preview=raw(row.preview),
            source=source,
            display_name=raw(row.nickname),
            model=raw(row.model),
            provider=raw(row.provider),
            cwd=raw(row.cwd),
            git_branch=raw(row.branch),
            started_at=row.created,
            last_active_at=row.updated,
            archived=archived,
            resumable=not archived,
            origin="agent-mirror",
            pinned=row.pinned,
        )

    def _fork_of(self, log: LogFile) -> SessionId | None:
        """The thread this one was forked from, which the mirror does not tell."""
        with self._codex_lock:
            known = log in self._forks
            found = self._forks.get(log)
        if known:
            return found
        try:
            source = forked_from(log.path)
        except OSError:
            source = None  # the row's own reading will say that the file cannot be read
        found = None if source is None else SessionId(source)
        with self._codex_lock:
            self._forks[log] = found
            while len(self._forks) > PEEKS_KEPT:
                del self._forks[next(iter(self._forks))]
        return found

    def _missing_row(self, row: MirrorRow) -> SessionRow:
        return replace(self._mirror_row(row, None), resumable=False, problems=1)

    def _named(self, row: SessionRow, names: Mapping[SessionId, str], mirror: AgentMirror) -> SessionRow:
        name = names.get(row.id)
        parent = mirror.parents.get(row.id)
        if parent is not None and row.parent_id is None:
            row = replace(row, parent_id=parent, lineage_kind="delegation")
        return replace(row, title=RawText(name)) if name else row

    def _segments(
        self, group: list[tuple[LogFile, SessionRow]], row: MirrorRow | None, copies: list[str]
    ) -> list[tuple[LogFile, SessionRow]]:
        """The files that make up one thread; of two that hold the same, the one the program would take."""
        if len(group) == 1:
            return group
        reverts: list[LogFile] = []
        plain: list[LogFile] = []
        for log, _ in group:
            (reverts if self._is_revert(log) else plain).append(log)
        chosen = sorted(plain, key=lambda log: preference(log, row), reverse=True)
        copies.extend(log.path for log in chosen[1:])
        kept = [*chosen[:1], *self._distinct(reverts, copies)]
        return self._one_thread([(log, self.peeked(log)) for log in kept], row)

    @staticmethod
    def _one_thread(kept: list[tuple[LogFile, SessionRow]], row: MirrorRow | None) -> list[tuple[LogFile, SessionRow]]:
        """Title and preview are the first segment's: a later one begins in the middle of the talk."""
        kept.sort(key=lambda pair: (pair[1].started_at or 0.0, pair[0].path))
        found = []
        for number, (log, peeked) in enumerate(kept):
            if row is not None:
                peeked = replace(peeked, origin="agent-mirror")
            if number:
                peeked = replace(peeked, title=None, preview=None)
            found.append((log, peeked))
        return found

    @staticmethod
    def _is_revert(log: LogFile) -> bool:
        if read_name(log.path.rpartition("/")[2]).segment is not None:
            return True
        try:
            meta = first_meta(log.path)[0]
        except OSError:
            return False  # it cannot be read: the peek says so
        return meta is not None and meta.is_revert

    @staticmethod
    def _distinct(reverts: Sequence[LogFile], copies: list[str]) -> Iterator[LogFile]:
        seen: set[str] = set()
        for log in sorted(reverts, key=lambda log: (log.archived, log.path)):
            name = read_name(log.path.rpartition("/")[2]).segment or log.path
            if name in seen:
                copies.append(log.path)
            else:
                seen.add(name)
                yield log

    def _with_sources(self, peeked: Sequence[Peeked]) -> Iterator[Peeked]:
        """Forks show the first prompt of the thread they came from (facts/codex.md section 8, preview)."""
        by_id: dict[SessionId, SessionRow] = {}
        for _, row in peeked:
            by_id.setdefault(row.id, row)
        for log, row in peeked:
            yield log, self._with_parent(row, by_id)

    def _with_parent(self, row: SessionRow, by_id: Mapping[SessionId, SessionRow]) -> SessionRow:
        if row.lineage_kind != "fork" or row.parent_id is None:
            return row
        seen = {row.id}
        source = by_id.get(row.parent_id)
        while source is not None and source.lineage_kind == "fork" and source.parent_id and source.id not in seen:
            seen.add(source.id)
            source = by_id.get(source.parent_id, None)
        return row if source is None else replace(row, preview=source.preview or row.preview)

    # ------------------------------------------------------------------------------------------------ whole rows

    def own_requests(self, summaries: Iterable[tuple[LogFile, LogSummary]]) -> Iterator[tuple[LogFile, LogSummary]]:
        """Each response once in a thread, whatever its files repeat (facts/codex.md section 5)."""
        earlier: dict[SessionId, list[Sequence[Request]]] = {}
        for log, summary in summaries:
            # Most threads are one log, whose requests need not be looked into.
            before = earlier.setdefault(summary.row.id, [])
            known = {request.request_id for requests in before for request in requests} - {None}
            before.append(summary.requests)
            fresh = [r for r in summary.requests if r.request_id not in known] if known else summary.requests
            yield log, summary if len(fresh) == len(summary.requests) else replace(summary, requests=tuple(fresh))

    def complete(self, peeked: SessionRow, folded: SessionRow) -> SessionRow:
        """The log wins, but names stand in the mirror alone, and a thread of several files begins with the first."""
        row = super().complete(peeked, folded)
        first = peeked if folded.parts > 1 else folded
        name = self._now().names.get(peeked.id)
        return replace(
            row,
            title=RawText(name) if name else first.title or peeked.title,
            preview=first.preview or peeked.preview,
            parent_id=folded.parent_id or peeked.parent_id,
            lineage_kind=peeked.lineage_kind if folded.lineage_kind == "root" else folded.lineage_kind,
            display_name=folded.display_name or peeked.display_name,
            archived=peeked.archived and folded.archived if folded.parts > 1 else folded.archived,
            resumable=folded.resumable,
            origin="agent-mirror" if peeked.origin == "agent-mirror" else self.source.origin,
            pinned=peeked.pinned,
        )

    def _row(self, peeked: SessionRow, summaries: Sequence[LogSummary], now: float) -> SessionRow:
        return self._row_until(peeked, summaries, now, {})

    def _row_until(
        self, peeked: SessionRow, summaries: Sequence[LogSummary], now: float, ends: Mapping[str, int]
    ) -> SessionRow:
        """The row where some files end after so many bytes."""
        row = super()._row(peeked, summaries, now)
        if not summaries:
            return row
        if row.lineage_kind == "fork" and row.parent_id is not None:
            row = replace(row, preview=self._source_prompt(row.parent_id) or row.preview)
        if row.lineage_kind == "fork" or row.parts > 1 or self._is_segment(row.id):
            row = self._over_files(row, summaries, ends)
        return row

    def _is_segment(self, thread: SessionId) -> bool:
        """Whether a later segment is all that is left of a reverted thread; by the index at hand, for rows are many."""
        logs = () if self._index is None else self._index[1].logs_of.get(thread, ())
        return any(read_name(log.path.rpartition("/")[2]).segment for log in logs)

    def _source_prompt(self, thread: SessionId) -> RawText | None:
        """The first prompt of the thread a fork came from, up to where that began."""
        index = self.index()
        found: RawText | None = None
        for here in index.ancestors(thread):
            logs = index.logs_of.get(here, ())
            row = self.peeked(logs[0]) if logs else index.rows.get(here)
            if row is None:
                break
            found = row.preview or found
            if row.lineage_kind != "fork":
                break
        return found

    def _over_files(self, row: SessionRow, summaries: Sequence[LogSummary], ends: Mapping[str, int]) -> SessionRow:
        """What only all files of a thread tell: whether its history is whole, and which messages are live."""
        files = self._files(ends)
        spans = files.spans(row.id)
        if files.problems:
            fresh = set(files.problems).difference(*(summary.problems for summary in summaries))
            row = replace(row, resumable=False, problems=row.problems + len(fresh))
        if row.parts == 1:
            return row
        try:
            whole = self._across(spans[0].path, spans, ends)
        except OSError:
            return row  # a file cannot be read any more: its own summary counts that as a problem
        return replace(row, message_count=whole.message_count, tool_call_count=whole.tool_call_count)

    def _across(self, path: str, spans: Iterable[Span], ends: Mapping[str, int]) -> SessionRow:
        """The own, living ones of these stretches of a thread folded as if they were one file, that of this path."""
        logs = {log.path: log for log in self.index().logs}
        fold = CodexFold(self.ref, logs[path], precise=True)
        pulse = self.pulse()
        for span in spans:
            if span.inherited or span.rewound:
                continue
            for number, record in enumerate(span_records(span, end=ends.get(span.path))):
                if number % PULSE_EVERY == 0:
                    pulse()
                fold.feed_safely(record)
        return fold.summary().row

    def running(self, row: SessionRow, now: float) -> bool:
        """A writer lock that a process holds, or a turn without an end and active within five minutes."""
        if row.id in self._held(now):
            return True
        return row.running and row.last_active_at is not None and abs(now - row.last_active_at) < RUNNING_SECONDS

    def _held(self, now: float) -> frozenset[str]:
        """Threads whose writer lock is held; asked at most once a second, for many rows ask."""
        with self._codex_lock:
            asked, held = self._locks
        if not 0 <= now - asked < 1.0:
            held = held_locks(self.ref.path)
            with self._codex_lock:
                self._locks = (now, held)
        return held

    def _now(self) -> Picture:
        with self._codex_lock:
            return self._picture

    def _files(self, ends: Mapping[str, int] | None = None) -> ThreadFiles:
        index = self.index()
        return ThreadFiles(lambda thread: index.logs_of.get(thread, ()), ends)

    # ------------------------------------------------------------------------------------------------ questions

    def status(self) -> StoreStatus:
        """See :meth:`Store.status`: the list comes from the agent's mirror where that can be used."""
        status = super().status()
        if status.state == "unreadable":
            return status
        picture = self._now()
        fallback = picture.mirror.fallback
        if fallback is not None:
            # By the name of its finding: a mirror of the agent's that is missing is not ours.
            return replace(status, lag=None, fallbacks=((f"agent-mirror-{fallback}", 1), *status.fallbacks))
        return replace(status, origin="agent-mirror", lag=len(picture.unlisted))

    def problem_code(self, problem: Problem) -> str:
        """See :meth:`LogStore.problem_code`."""
        return ABSURD_TIMES if problem.reason.startswith(ABSURD_TIME) else super().problem_code(problem)

    def own_findings(self, index: LogIndex) -> Sequence[Finding]:
        """See :meth:`LogStore.own_findings`."""
        del index
        return agent_findings(self._now())

    def findings(self) -> Sequence[Finding]:
        """See :meth:`Store.findings`; also what the mirror says that the rollouts deny."""
        found = list(super().findings())
        mirror = self._now().mirror
        if mirror.usable and not mirror.rows:
            # The rows of a mirror are not kept with the index.
            mirror = read_mirror(self._databases, self._interrupts)
        if mirror.usable:
            found.extend(stale_findings(mirror, self.index(), self.peeked))
        return tuple(found)

    def resolve(self, prefix: str) -> Sequence[SessionId]:
        """See :meth:`Store.resolve`; the uuid of a segment means its thread."""
        if found := super().resolve(prefix):
            return found
        wanted = prefix.lower()
        index = self.index()
        threads = {
            index.session_of[log.path]
            for log in index.logs
            if (read_name(log.path.rpartition("/")[2]).segment or "").startswith(wanted or "-")
        }
        return sorted(threads) or super().resolve(wanted)

    def lineage(self, session_id: SessionId) -> Lineage:
        """See :meth:`Store.lineage`; a segment made by a revert is a node below its thread."""
        index = self.index()
        tree = index.tree(session_id)
        folded = self.folded(index, tree)
        nodes: list[LineageNode] = []
        for here in tree:
            row, summaries = folded[here]
            if len(summaries) > 1:
                nodes.extend(self._segment_nodes(index, row, summaries))
            else:
                nodes.append(self._node(index, here, row, summaries))
        return Lineage(session_id, tree[0], self.chain(session_id), tuple(nodes))

    def _segment_nodes(
        self, index: LogIndex, row: SessionRow, summaries: Sequence[LogSummary]
    ) -> Iterator[LineageNode]:
        """A reverted thread: a node for each of its files, with its own part, so that they sum up to the thread."""
        living = self._living(row.id)
        for number, (log, summary) in enumerate(zip(index.logs_of[row.id], summaries, strict=True)):
            kinds = [kind for path, kind in living if path == log.path]
            own = replace(with_requests(summary), message_count=len(kinds), tool_call_count=kinds.count("tool-call"))
            if number == 0:
                first = replace(own, id=row.id, title=row.title, parent_id=row.parent_id, lineage_kind=row.lineage_kind)
                yield self._node(index, row.id, first, (summary,))
                continue
            name = log.path.rpartition("/")[2]
            segment = SessionId(read_name(name).segment or name)
            reverted = replace(own, id=segment, parent_id=row.id, lineage_kind="revert")
            yield LineageNode(segment, row.id, "revert", reverted, summary.compactions)

    def _living(self, thread: SessionId) -> list[tuple[str | None, MessageKind]]:
        """File and kind of each counted entry that is live: what a segment compacted is gone from those before it."""
        heads = (head for batch in self.transcript([thread]).heads() for head in batch)
        return [(head.path, head.kind) for head in heads if head.state == "live" and head.kind in COUNTED_KINDS]

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """See :meth:`Store.transcript`."""
        index = self.recent_index(ids)
        files = ThreadFiles(lambda thread: index.logs_of.get(thread, ()), None)
        spans = [span for thread in dict.fromkeys(ids) for span in files.spans(thread)]
        problems = [*files.problems, *self._gone(index, ids)]
        return CodexTranscript(ids[-1] if ids else SessionId(""), list(dict.fromkeys(spans)), problems, self.pulse())

    def _gone(self, index: LogIndex, ids: Sequence[SessionId]) -> Iterator[Problem]:
        """Why a thread that only the mirror knows has no messages."""
        for thread in ids:
            if thread in index.rows and not index.logs_of.get(thread):
                # The index may have been kept from an earlier run, which looked into the mirror.
                row = (self._now().mirror.rows or read_mirror(self._databases, self._interrupts).rows).get(thread)
                path = None if row is None else row.path
                yield Problem(path, None, None, "the rollout is gone: only its row in Codex' own mirror is left")

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """See :meth:`Store.recovery`; from the rollouts alone.

        Raises:
            KeyError: there is no such thread.
            OSError: a rollout cannot be read.
        """
        head = self._files().live(session_id)[-1:]
        ends: dict[str, int] = {}
        if cut is not None:
            ends = {span.path: end for span in head if (end := recovery.cut_offset(span.path, cut)) is not None}
        files = self._files(ends)
        rebuilt = recovery.rebuild(files.live(session_id), ends)
        base = rebuilt.base
        gone = self._gone(self.index(), (session_id,))
        missing = tuple(recovery.ignored_of(problem) for problem in (*files.problems, *gone))
        return Recovery(
            session_id=session_id,
            base_kind="start" if base is None else "compaction",
            base_at=None if base is None else base.line.at,
            base_path=None if base is None else base.span.path,
            base_line=None if base is None else base.record.line,
            messages=recovery.messages(rebuilt, session_id),
            baseline=rebuilt.baseline,
            window=rebuilt.window,
            reinjects_context=rebuilt.baseline is None,
            ignored=(*missing, *rebuilt.ignored),
            row=self._row_after(session_id, ends),
        )

    def _row_after(self, session_id: SessionId, ends: Mapping[str, int]) -> SessionRow:
        """The list row as it would be if these files ended there."""
        index = self.index()
        peeked = index.rows[session_id]
        if not ends:
            return next(iter(self.rows([session_id])), peeked)
        summaries: list[LogSummary] = []
        for log in index.logs_of[session_id]:
            if log.path in ends:
                summaries.append(self._cut_summary(log, ends[log.path]))
            else:
                summaries.extend(summary for _, summary in self.summaries([log]))
        if peeked.origin != "agent-mirror" and len(summaries) == 1:
            # Without a mirror the list knows only what is left.
            peeked = replace(peeked, title=None, preview=None)
        return self._row_until(peeked, summaries, self.clock(), ends)

    def _cut_summary(self, log: LogFile, end: int) -> LogSummary:
        fold = CodexFold(self.ref, log, precise=True)
        for record in read_records(log.path, end=end):
            fold.feed_safely(record)
        return fold.summary()

    # ------------------------------------------------------------------------------------------------- commands

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """``codex resume ID`` in the thread's folder (facts/codex.md section 10)."""
        environment = () if self._default_home else ((VARIABLE, self.ref.path),)
        return ResumeCommand(("codex", "resume", row.id), row.cwd, environment)

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """See :meth:`Store.change_command`; a thread is renamed inside the program only."""
        del title
        if verb not in _VERBS:
            return None
        home = "" if self._default_home else f"{VARIABLE}={shlex.quote(self.ref.path)} "
        return f"{home}codex {verb} {shlex.quote(session_id)}"

    def interrupt(self) -> None:
        """See :meth:`Store.interrupt`."""
        super().interrupt()
        self._interrupts.interrupt()
