"""One Claude config folder as a store: listing, rows, lineage, transcripts and the commands people can use on it."""

from __future__ import annotations

import math
import os
import shlex
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final

from hermes_tui.model import (
    Finding,
    PowerCut,
    Problem,
    Recovery,
    Request,
    ResumeCommand,
    SessionId,
    SessionRow,
    StoreRef,
)
from hermes_tui.storage.jsonl import read_records
from hermes_tui.stores.claude.agent_meta import described, meta_path
from hermes_tui.stores.claude.discovery import Walk, walk
from hermes_tui.stores.claude.fold import TranscriptFold
from hermes_tui.stores.claude.index_texts import ClaudeTexts
from hermes_tui.stores.claude.inline import Inline, holds, inline_agents, may_hold
from hermes_tui.stores.claude.lines import ABSURD_TIME
from hermes_tui.stores.claude.peek import Ends, Peek, ends_of, peek, whole_ends
from hermes_tui.stores.claude.processes import running_sessions
from hermes_tui.stores.claude.recovery import recover
from hermes_tui.stores.claude.relations import (
    NO_RELATION,
    Relation,
    dump_relations,
    families,
    in_one_order,
    load_relations,
    relations,
    without_copies,
)
from hermes_tui.stores.claude.search_copies import holder_of
from hermes_tui.stores.claude.skim import ClaudeSkim
from hermes_tui.stores.claude.traces import Trace, mark_of
from hermes_tui.stores.claude.transcript import ClaudeTranscript, LogView
from hermes_tui.stores.conversation import is_running
from hermes_tui.stores.kept_answers import SETTLED_NS, code_of
from hermes_tui.stores.kept_logs import Look
from hermes_tui.stores.log_findings import ABSURD_TIMES, NAMED_PATHS
from hermes_tui.stores.log_source import MALFORMED, LineTaker, LogFold, Say, fold_log
from hermes_tui.stores.log_texts import LogTexts
from hermes_tui.stores.logs import PEEKS_KEPT, LogFile, LogIndex, LogStore, LogSummary, Peeked
from hermes_tui.stores.protocol import ChangeVerb, Transcript
from hermes_tui.text import RawText

Family = tuple[LogFile, ...]
"""Logs that have lines in common."""
_GET_LOG: Final = attrgetter(*(field.name for field in fields(LogFile)))
VARIABLE: Final = "CLAUDE_CONFIG_DIR"
CLEANUP_ADVICE: Final = "Claude Code deletes transcripts after cleanupPeriodDays (30 unless settings.json says more)."


class ClaudeStore(LogStore):
    """The store of one config folder; see :class:`hermes_tui.stores.protocol.Store`."""

    def __init__(self, ref: StoreRef, *, default_home: bool = False) -> None:
        super().__init__(ref)
        self._default_home = default_home
        self._met = Walk()
        self._relations: dict[str, Relation] = {}
        self._ends: dict[str, tuple[LogFile, Ends]] = {}
        self._families: dict[Family, dict[str, Relation]] = {}
        self._recalled = False
        self._inside: dict[str, tuple[LogFile, tuple[Inline, ...]]] = {}
        self._inside_of: dict[SessionId, tuple[LogFile, Inline]] = {}
        self._holders: dict[str, tuple[LogFile, str | None]] = {}
        self._marked_alive: tuple[float, frozenset[str]] = (-1.0, frozenset())
        self._claude_lock = threading.Lock()

    # ------------------------------------------------------------------------------------------ what lies there

    def logs(self) -> Sequence[LogFile]:
        """Sessions and sub-agents; see :func:`hermes_tui.stores.claude.discovery.walk`."""
        found = walk(self.ref.path)
        with self._claude_lock:
            self._met = found
        return found.logs

    def peek(self, log: LogFile) -> SessionRow:
        """The row the two ends of a log give, without its relations; of a damaged log, what all of it gives."""
        row, ends = self._looked_at(log)
        self._remember_ends(log, ends)
        return row

    def _looked_at(self, log: LogFile) -> tuple[SessionRow, Ends]:
        found = self._both_ends(log)
        row, ends = self._peeked_row(log, found), ends_of(found)
        if not found.damaged or not log.size:
            return row, ends
        folds: list[TranscriptFold] = []

        def make(log: LogFile, state: bytes | None) -> TranscriptFold:
            folds.append(self.fold(log, state))
            return folds[0]

        whole = fold_log(log, make, pulse=self.pulse()).summary.row
        row = replace(
            row,
            title=whole.title if row.title is None or row.title == row.preview else row.title,
            preview=whole.preview,
            source=whole.source,
            cwd=whole.cwd,
            git_branch=whole.git_branch,
            started_at=whole.started_at,
            last_active_at=whole.last_active_at,
            resumable=whole.resumable,
        )
        return row, whole_ends(ends, folds[0].entries)

    def _both_ends(self, log: LogFile) -> Peek:
        return peek(log.path, log.size, inside=log.path not in self._met.agents)

    def _ends_of(self, log: LogFile) -> Ends:
        known = self._ends.get(log.path)
        if known is not None and (known[0] is log or known[0] == log):
            return known[1]
        _, found = self._looked_at(log)
        self._remember_ends(log, found)
        return found

    def _remember_ends(self, log: LogFile, ends: Ends) -> None:
        with self._claude_lock:
            self._ends[log.path] = (log, ends)
            while len(self._ends) > PEEKS_KEPT:
                del self._ends[next(iter(self._ends))]

    def peek_extra(self, log: LogFile) -> object:
        """See :meth:`LogStore.peek_extra`: what tells copies and old titles."""
        return list(self._ends_of(log))

    def take_peek_extra(self, log: LogFile, extra: object) -> None:
        """See :meth:`LogStore.take_peek_extra`."""
        if isinstance(extra, list):
            self._remember_ends(log, Ends(*extra))

    def _peeked_row(self, log: LogFile, ends: Peek) -> SessionRow:
        header = ends.header
        prompt = ends.first_prompt or ends.command
        agent = self._met.agents.get(log.path)
        delegated = agent is not None or ends.sidechain is True
        parent = (agent.session if agent is not None else None) or header.session_id if delegated else None
        title = header.title(_own_summary(ends), prompt)
        if agent is not None:
            title = described(log.path) or title
        return SessionRow(
            store=self.ref,
            id=log.session_id,
            root_id=log.session_id,
            tip_id=log.session_id,
            parent_id=SessionId(parent) if parent and parent != log.session_id else None,
            lineage_kind="delegation" if delegated else "root",
            title=RawText(title) if title else None,
            preview=RawText(prompt) if prompt else None,
            source=RawText(header.entrypoint) if header.entrypoint else None,
            cwd=RawText(header.folder) if header.folder else None,
            git_branch=RawText(header.git_branch) if header.git_branch else None,
            started_at=header.first_at,
            last_active_at=header.last_at,
            resumable=ends.messages > 0 and not delegated,
            origin=self.origin,
            problems=ends.problems,
        )

    def peeks(self, logs: Sequence[LogFile]) -> Iterator[Peeked]:
        """Peeked rows with parents and kinds: copies are told apart by the lines they share."""
        rows = [(log, self.peeked(log)) for log in logs]
        found = self._related(logs)
        with self._claude_lock:
            self._relations = found
        titles = self._old_titles(logs)
        for log, peeked in rows:
            row = peeked
            if log.path in titles and row.title == row.preview:
                row = replace(row, title=RawText(titles[log.path]))
            relation = found.get(log.path, NO_RELATION)
            if row.lineage_kind == "delegation":
                yield log, row
                continue
            marked = self._marked_parent(log)
            parent = marked or relation.parent
            kind = "branch" if marked else relation.kind
            same = parent is None or parent == row.id
            yield log, row if same else replace(row, parent_id=parent, lineage_kind=kind)
            for agent in self._agents_inside(log):
                # A fork copies them with the rest: they are those of the file that held them first.
                if relation.marks.isdisjoint(map(mark_of, agent.uuids)):
                    with self._claude_lock:
                        self._inside_of[agent.id] = (log, agent)
                    yield None, self._inside_row(log, row, agent)

    def _old_titles(self, logs: Sequence[LogFile]) -> dict[str, str]:
        """By path: titles that old builds wrote into another session's file (facts/claude-code.md section 3)."""
        said: dict[str, str] = {}
        ends = [(log, self._ends[log.path][1]) for log in logs if log.path in self._ends]
        for _, end in ends:
            said.update((leaf, text) for leaf, text in end.summaries.items() if leaf)
        if not said:
            return {}
        return {log.path: said[uuid] for log, end in ends for uuid in end.last_uuids if uuid in said}

    def _agents_inside(self, log: LogFile) -> tuple[Inline, ...]:
        """Sub-agents whose lines stand in this session's file; looked for in small files and those of old builds."""
        ends = self._ends.get(log.path)
        if (
            ends is None
            or (ends[0] is not log and ends[0] != log)
            or not log.size
            or not may_hold(ends[1].version, log.size)
        ):
            return ()
        known = self._inside.get(log.path)
        if known is not None and (known[0] is log or known[0] == log):
            return known[1]
        try:
            inside = ends[1].agents if ends[1].agents is not None else holds(log.path)
            fold = self._whole(log) if inside else None
        except (OSError, ValueError) as error:
            self.unsure = self.unsure or isinstance(error, OSError)
            return ()  # its own row tells why
        agents = tuple(inline_agents(fold.entries)) if fold is not None else ()
        with self._claude_lock:
            self._inside[log.path] = (log, agents)
        return agents

    def _inside_row(self, log: LogFile, row: SessionRow, agent: Inline) -> SessionRow:
        fold = self._whole(log)
        fold.only = agent.uuids
        bare = replace(
            row,
            id=agent.id,
            root_id=agent.id,
            tip_id=agent.id,
            parent_id=row.id,
            lineage_kind="delegation",
            resumable=False,
        )
        return _with_inside(bare, fold.summary().row)

    def _whole(self, log: LogFile) -> TranscriptFold:
        """A log folded now, all of it.

        Raises:
            OSError: it cannot be read.
        """
        fold = self.fold(log)
        for record in read_records(log.path):
            fold.feed(record)
        return fold

    def _marked_parent(self, log: LogFile) -> SessionId | None:
        ends = self._ends.get(log.path)
        said = ends[1].forked_from if ends is not None else None
        return SessionId(said) if said else None

    def also_read(self) -> Iterable[str]:
        """See :meth:`LogStore.also_read`: what stands beside sub-agents' logs."""
        return map(meta_path, self._met.agents)

    def index_extra(self) -> object | None:
        """See :meth:`LogStore.index_extra`; sub-agents inside a session's file are looked for again."""
        if any(agents for _, agents in self._inside.values()):
            return None
        return dump_relations(self._relations)

    def take_index_extra(self, extra: Any) -> None:
        """See :meth:`LogStore.take_index_extra`."""
        with self._claude_lock:
            self._relations = load_relations(extra)

    def _related(self, logs: Sequence[LogFile]) -> dict[str, Relation]:
        """By path: what each log copied from earlier ones."""
        begun = time.time_ns()
        roots: dict[str, list[str]] = {}
        late: dict[tuple[str, SessionId | None], list[LogFile]] = {}
        for log in logs:
            try:
                ends = self._ends_of(log)
            except (OSError, *MALFORMED) as error:
                self.unsure = self.unsure or isinstance(error, OSError)
                continue  # it is listed with a problem; what it copied is not known
            roots[log.path] = list(ends.roots)
            if ends.begins_late is not None:
                agent = self._met.agents.get(log.path)
                late.setdefault((ends.begins_late, agent.session if agent else None), []).append(log)
        headless = {log.path for alike in late.values() for log in alike}
        for (uuid, session), alike in late.items():
            others = self._searched(logs, alike, session)
            # Two that lost their heads may hold each other's first line, and a third one all of it.
            whole = [log for log in others if log.path not in headless]
            self._join_holder(uuid, alike, (whole, [log for log in others if log.path in headless]), roots)
        by_path = {log.path: log for log in logs}
        groups = [tuple(by_path[path] for path in family) for family in families(roots)]
        strange = self._recall_families(groups)
        found: dict[str, Relation] = {}
        for family in groups:
            found.update(self._family_relations(family))
        with self._claude_lock:
            # A family that grows is another one each time.
            self._families = {family: self._families[family] for family in groups if family in self._families}
        settled = [family for family in groups if all(log.mtime_ns + SETTLED_NS <= begun for log in family)]
        if not strange.isdisjoint(settled) and not self.unsure:
            self._keep_families(settled)
        return found

    def _recall_families(self, groups: Sequence[Family]) -> set[Family]:
        """Take what an earlier run worked out of these families; those that are new or of which a file changed."""
        with self._claude_lock:
            strange = {family for family in groups if family not in self._families}
            # Once: what changes while this process runs no earlier run worked out.
            ask = bool(strange) and not self._recalled
            self._recalled = self._recalled or ask
        kept = self.answers.find(self._families_kept, code_of("claude")) if ask else None
        with self._claude_lock:
            for files, told in kept or ():
                self._families.setdefault(tuple(LogFile(*file) for file in files), load_relations(told))
            return strange - self._families.keys()

    def _keep_families(self, settled: Sequence[Family]) -> None:
        """Keep what was worked out of each family, with its files as they were."""
        with self._claude_lock:
            known = [(family, self._families.get(family)) for family in settled]
        kept = [[list(map(_GET_LOG, one)), dump_relations(found)] for one, found in known if found is not None]
        self.answers.keep(self._families_kept, code_of("claude"), kept)

    @property
    def _families_kept(self) -> str:
        return repr(("claude", self.ref.path, "families"))

    def _family_relations(self, family: Family) -> dict[str, Relation]:
        """Worked out again only when one of the files changed."""
        with self._claude_lock:
            known = self._families.get(family)
        if known is None:
            known = relations(self._traced(family))
            with self._claude_lock:
                self._families[family] = known
        return known

    def _searched(
        self, logs: Sequence[LogFile], alike: Sequence[LogFile], session: SessionId | None
    ) -> Sequence[LogFile]:
        """Where the line these logs begin with may stand: in other sessions; of a sub-agent, in its own one."""
        if session is not None or alike[0].path in self._met.agents:
            names = {session, *(log.session_id for log in alike)}
            return [log for log in logs if log.session_id in names and log not in alike]
        begun_so = {log.path for log in alike}
        return [log for log in logs if log.path not in self._met.agents and log.path not in begun_so]

    def _join_holder(
        self, uuid: str, alike: Sequence[LogFile], others: Sequence[Sequence[LogFile]], roots: dict[str, list[str]]
    ) -> None:
        """Logs that begin with the same compaction, or whose head is lost: find the file that holds that line too."""
        log = alike[0]
        with self._claude_lock:
            searched, holder = self._holders.get(log.path, (None, None))
        # Where it was found stands while the log grows, and goes with that file.
        if holder not in roots if holder is not None else searched != log:
            holder = next((found for some in others if (found := holder_of(uuid, log, some))), None)
            with self._claude_lock:
                self._holders[log.path] = (log, holder)
        for path in [one.path for one in alike] + ([] if holder is None else [holder]):
            roots.setdefault(path, []).append(uuid)

    def _traced(self, logs: Iterable[LogFile]) -> Iterator[tuple[LogFile, Trace]]:
        pulse = self.pulse()
        for log in logs:
            pulse()
            try:
                yield log, self._whole(log).trace()
            except (OSError, *MALFORMED) as error:
                self.unsure = self.unsure or isinstance(error, OSError)
                continue  # its own row tells why; what it copied is not known

    def fold(self, log: LogFile, state: bytes | None = None) -> TranscriptFold:
        """See :meth:`LogStore.fold`."""
        agent = log.path in self._met.agents
        made = TranscriptFold(self.ref, log.path, log.session_id, agent=agent)
        if state is not None and not made.restore(state):
            raise ValueError("the state was put away by another version")
        return made

    def skim(self, fold: LogFold, texts: LogTexts | None = None, say: Say | None = None) -> LineTaker | None:
        """See :meth:`LogStore.skim`."""
        del texts
        return ClaudeSkim(fold, say) if type(fold) is TranscriptFold else None

    def log_texts(self, log: LogFile) -> LogTexts:
        """See :meth:`LogStore.log_texts`."""
        del log
        return ClaudeTexts()

    # ------------------------------------------------------------------------------------------------- own parts

    def own_requests(self, summaries: Iterable[tuple[LogFile, LogSummary]]) -> Iterator[tuple[LogFile, LogSummary]]:
        """Take away what a log copied: those requests and messages belong to the earliest file that holds them."""
        with self._claude_lock:
            found = self._relations
        for log, summary in summaries:
            relation = found.get(log.path)
            yield log, summary if relation is None else without_copies(summary, relation)

    def complete(self, peeked: SessionRow, folded: SessionRow) -> SessionRow:
        """Join peek and whole log: relations and a sub-agent's description are the peek's."""
        row = super().complete(peeked, folded)
        delegated = peeked.lineage_kind == "delegation" or row.lineage_kind == "delegation"
        # Where the log has no title: what stands beside it, or what another log says of it.
        told = delegated or (row.title == row.preview and peeked.title != peeked.preview)
        return replace(
            row,
            parent_id=peeked.parent_id or (row.parent_id if delegated else None),
            lineage_kind="delegation" if delegated else peeked.lineage_kind,
            title=(peeked.title or row.title) if told else row.title,
            branches=peeked.branches + folded.branches,
        )

    def running(self, row: SessionRow, now: float) -> bool:
        """A live process says so in ``sessions/<pid>.json``, or it was active just now."""
        return row.id in self._alive(now) or is_running(row, now)

    def _alive(self, now: float) -> frozenset[str]:
        """Sessions of live processes; looked up once for all rows of one answer."""
        with self._claude_lock:
            asked, found = self._marked_alive
        if asked != now:
            found = running_sessions(self.ref.path)
            with self._claude_lock:
                self._marked_alive = (now, found)
        return found

    def extra_stamp(self) -> object:
        """The running marks, by name and time."""
        try:
            with os.scandir(os.path.join(self.ref.path, "sessions")) as marks:  # noqa: PTH118
                return tuple(sorted((mark.name, mark.stat().st_mtime_ns) for mark in marks))
        except OSError:
            return ()

    def problem_code(self, problem: Problem) -> str:
        """See :meth:`LogStore.problem_code`."""
        return ABSURD_TIMES if problem.reason.startswith(ABSURD_TIME) else super().problem_code(problem)

    def own_findings(self, index: LogIndex) -> Sequence[Finding]:
        """What the walk met that is no session."""
        del index
        return tuple(_walk_findings(self._met))

    # ------------------------------------------------------------------------------------------------- questions

    def requests_now(self, look: Look, ids: Sequence[SessionId] | None, since: float | None) -> Iterator[Request]:
        """See :meth:`LogStore.requests_now`; what copies of a session tell is put in one order."""
        several = {session_id for session_id, logs in self._index_of(look).logs_of.items() if len(logs) > 1}
        told = super().requests_now(look, ids, since)
        return in_one_order(told, several) if several else told

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """See :meth:`Store.transcript`."""
        return ClaudeTranscript(self.ref, self._views(self.recent_index(ids), ids), self.pulse())

    def _views(self, index: LogIndex, ids: Sequence[SessionId]) -> list[LogView]:
        with self._claude_lock:
            found = self._relations
        inside = [
            LogView(self._inside_of[session_id][0], session_id, only=self._inside_of[session_id][1].uuids)
            for session_id in ids
            if session_id in index.rows and not index.logs_of.get(session_id) and session_id in self._inside_of
        ]
        return inside + [
            LogView(
                log,
                session_id,
                agent=log.path in self._met.agents,
                inherited=found.get(log.path, NO_RELATION).marks,
            )
            for session_id in ids
            for log in self._newest_first(index.logs_of.get(session_id, ()))
        ]

    def _newest_first(self, logs: Sequence[LogFile]) -> Sequence[LogFile]:
        """By when their lines say that they were written to last: who copies a file may give it another time."""
        if len(logs) < 2:
            return logs
        found = self._relations

        def rank(log: LogFile) -> tuple[bool, float, int, int]:
            return (found.get(log.path, NO_RELATION).again is None, *_last_active(self.peeked(log)), log.size)

        return sorted(logs, key=rank, reverse=True)

    def joined(self, rows: Sequence[SessionRow]) -> SessionRow:
        """Copies of one session, which a moved folder leaves behind: the one written to last speaks for them."""
        if len(rows) < 2:
            return super().joined(rows)
        begun = [row.started_at for row in rows if row.started_at is not None]
        return replace(super().joined(sorted(rows, key=_last_active)), started_at=min(begun, default=None))

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """See :meth:`Store.recovery`.

        Raises:
            KeyError: there is no such session.
        """
        index = self.index()
        row = index.rows[session_id]
        view = self._views(index, [session_id])[0]
        relation = self._relations.get(view.log.path, NO_RELATION)
        if cut is not None and row.lineage_kind != "delegation":
            # The title may have been given after the cut: only what stands before it counts.
            row = replace(row, title=row.preview)
        now = self.clock()

        def complete(found: SessionRow) -> SessionRow:
            whole = _with_inside(row, found) if view.only is not None else self.complete(row, found)
            return replace(whole, store=self.ref, running=self.running(whole, now))

        return recover(self.ref, view, complete, cut, relation)

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """``claude --resume ID`` in the session's folder (facts/claude-code.md section 8)."""
        environment = () if self._default_home else ((VARIABLE, self.ref.path),)
        return ResumeCommand(("claude", "--resume", row.id), row.cwd, environment)

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """Claude Code can only rename, from within the session; it has no command that deletes or archives one."""
        if verb != "rename":
            return None
        row = self.index().rows.get(session_id)
        if row is not None and not row.resumable:
            return None
        there = f"cd {shlex.quote(row.cwd)} && " if row is not None and row.cwd else ""
        typed = shlex.quote(f"/rename {title or 'TITLE'}")
        home = "" if self._default_home else f"{VARIABLE}={shlex.quote(self.ref.path)} "
        return f"{there}{home}claude --resume {shlex.quote(session_id)} {typed}"


def _last_active(row: SessionRow) -> tuple[float, int]:
    return (-math.inf if row.last_active_at is None else row.last_active_at, row.message_count or 0)


def _with_inside(row: SessionRow, found: SessionRow) -> SessionRow:
    """The row of a sub-agent inside its session's file; its tokens are counted with the session."""
    return replace(
        row,
        title=found.preview,
        preview=found.preview,
        message_count=found.message_count,
        tool_call_count=found.tool_call_count,
        branches=found.branches,
        problems=found.problems,
    )


def _own_summary(ends: Peek) -> str | None:
    """The last old title that names no line, or one of this file as far as it was looked at."""
    own = [text for leaf, text in ends.header.summaries.items() if not leaf]
    return own[-1] if own else None


def _walk_findings(found: Walk) -> Iterator[Finding]:
    if found.unreadable:
        detail = "; ".join(f"{path}: {reason}" for path, reason in list(found.unreadable.items())[:3])
        yield Finding(
            "unreadable-folder", "warn", f"cannot be looked into: {detail}", len(found.unreadable),
            "Check the permissions and links.", tuple(found.unreadable)[:NAMED_PATHS],
        )  # fmt: skip
    if found.strangers:
        yield Finding(
            "not-a-session", "info", "logs whose names are neither a session's nor a sub-agent's",
            len(found.strangers), "Claude Code itself lists only files named by a UUID.",
            tuple(found.strangers)[:NAMED_PATHS],
        )  # fmt: skip
    if found.twice:
        yield Finding(
            "same-file-twice", "info", "paths that lead to a log already found", len(found.twice), None,
            tuple(found.twice)[:NAMED_PATHS],
        )  # fmt: skip
    if found.stale_indexes:
        yield Finding(
            "sessions-index-ignored", "info", "sessions-index.json files, which are often stale and never used",
            len(found.stale_indexes), CLEANUP_ADVICE, tuple(found.stale_indexes)[:NAMED_PATHS],
        )  # fmt: skip
