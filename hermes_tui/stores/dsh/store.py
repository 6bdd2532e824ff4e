"""A DSH home or session root of log files, as a store."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_tui.model import (
    Finding,
    PowerCut,
    Problem,
    Recovery,
    ResumeCommand,
    SessionId,
    SessionRow,
    Severity,
    StoreRef,
)
from hermes_tui.storage.errors import StorageError
from hermes_tui.stores.dsh import peek
from hermes_tui.stores.dsh.backend import Backend, JsonlBackend
from hermes_tui.stores.dsh.discovery import SESSIONS, Walk, session_root, walk
from hermes_tui.stores.dsh.fold import UNSUPPORTED
from hermes_tui.stores.dsh.format import ABSURD_TIME
from hermes_tui.stores.dsh.index_texts import DshTexts
from hermes_tui.stores.dsh.recovery import recover
from hermes_tui.stores.dsh.transcript import DshTranscript
from hermes_tui.stores.log_findings import ABSURD_TIMES, NAMED_PATHS
from hermes_tui.stores.log_texts import LogTexts
from hermes_tui.stores.logs import LogFile, LogFold, LogIndex, LogStore, SummarySource, with_requests
from hermes_tui.stores.protocol import ChangeVerb, Transcript


class SessionNotDrivable(StorageError):
    """The agent's own program does not go on with this session."""


class DshStore(LogStore):
    """Sessions in log files under ``<root>/<project>/<session>/``."""

    def __init__(
        self, ref: StoreRef, source: SummarySource | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._jsonl = JsonlBackend(ref)
        super().__init__(ref, source, clock)
        self._root = session_root(Path(ref.path))
        self._met = Walk()

    @property
    def backend(self) -> Backend:
        """Where events come from."""
        return self._jsonl

    def walk(self) -> Walk:
        """What lies under the session root now.

        Raises:
            OSError: the root cannot be read.
        """
        if not self._root.exists() and Path(self.ref.path).is_dir():
            return Walk()
        return walk(self._root)

    def logs(self) -> Sequence[LogFile]:
        """See :meth:`LogStore.logs`: one log a session, the highest generation."""
        self._met = self.walk()
        return self._met.logs

    def peek(self, log: LogFile) -> SessionRow:
        """See :meth:`LogStore.peek`."""
        return peek.peek(self._jsonl, log)

    def fold(self, log: LogFile, state: bytes | None = None) -> LogFold:
        """See :meth:`LogStore.fold`."""
        return self._jsonl.fold(log, state)

    def log_texts(self, log: LogFile) -> LogTexts:
        """See :meth:`LogStore.log_texts`."""
        return DshTexts(log)

    def transcript(self, ids: Sequence[SessionId]) -> Transcript:
        """See :meth:`Store.transcript`."""
        return DshTranscript(self.backend, list(self._places(ids)))

    def _places(self, ids: Sequence[SessionId]) -> Iterator[tuple[SessionId, LogFile]]:
        index = self.recent_index(ids)
        for session_id in ids:
            for log in index.logs_of.get(session_id, ()):
                yield session_id, log

    def recovery(self, session_id: SessionId, cut: PowerCut | None = None) -> Recovery:
        """See :meth:`Store.recovery`.

        Raises:
            KeyError: there is no such session.
            SessionFormatUnsupportedError: its format is not read.
            SessionCorruptError: its own program would not open it.
        """
        index = self.index()
        log = index.logs_of[session_id][-1]
        fold = self.backend.read(log, cut)
        if cut is None:
            row = self.rows([session_id])[0]
        else:
            row = self.complete(index.rows[session_id], with_requests(fold.summary()))
            row = replace(row, store=self.ref, running=self.running(row, self.clock()))
        return recover(self.backend, session_id, log, fold, row, cut)

    def resume_command(self, row: SessionRow) -> ResumeCommand:
        """The headless profile with the session's id, from its folder (facts/dsh.md section 6).

        Raises:
            SessionNotDrivable: its own program refuses to go on with it.
        """
        if not row.resumable:
            why = "sub-agents and forks cannot be driven directly"
            if row.lineage_kind == "root":
                why = "its log is not read by its own program"
            advice = None if row.parent_id is None else f"Resume the session it came from: {row.parent_id}."
            raise SessionNotDrivable(f"{row.id} cannot be resumed", why, advice)
        argv = ("dsh", "--profile", "headless", "--session-id", row.id)
        # The dsh of the wheel insists on DSH_HOME even where it is the default (facts/dsh.md section 1).
        return ResumeCommand(argv, row.cwd, (("DSH_HOME", self._home()),))

    def _home(self) -> str:
        path = Path(self.ref.path)
        return str(path.parent if path.name == SESSIONS else path)

    def change_command(self, verb: ChangeVerb, session_id: SessionId, title: str | None = None) -> str | None:
        """DSH has no command that changes or deletes a session; its web screen renames."""
        del session_id, title
        return f"DSH_HOME={shlex.quote(self._home())} dsh web" if verb == "rename" else None

    def problem_code(self, problem: Problem) -> str:
        """See :meth:`LogStore.problem_code`."""
        if problem.reason.startswith(ABSURD_TIME):
            return ABSURD_TIMES
        refused = problem.reason.startswith(UNSUPPORTED)
        return "session-format-unsupported" if refused else super().problem_code(problem)

    def own_findings(self, index: LogIndex) -> Sequence[Finding]:
        """What lies in the session root that its own program would stumble over."""
        del index
        found = self._met
        findings: list[Finding] = []
        if len(found.encodings) > 1 or found.twins:
            rare = min(found.encodings, key=lambda zipped: found.encodings[zipped])
            odd = found.twins or [log.path for log in found.logs if log.path.endswith(".zstd") is rare]
            findings.append(
                _finding(
                    "mixed-encoding",
                    "warn",
                    "plain and compressed logs lie in one root: DSH refuses all of it; here each session is read once",
                    odd,
                    "Move these away or set `compression` so that all are alike.",
                )
            )
        told: tuple[tuple[str, str, list[str]], ...] = (
            ("flat-log", "a log lies in a project folder without a folder of its own and is not read", found.flat),
            ("duplicate-session", "another project folder has a newer log of the same session", found.copies),
        )
        findings += [_finding(code, "warn", detail, paths) for code, detail, paths in told if paths]
        if found.unreadable:
            place, reason = next(iter(found.unreadable.items()))
            detail = f"cannot be looked into: {place} ({reason})"
            advice = "Check that you may read them; sessions in them are not listed."
            findings.append(_finding("unreadable-folder", "warn", detail, list(found.unreadable), advice))
        if found.older:
            detail = "an earlier generation of a log that was migrated is kept; only the newest is counted"
            findings.append(_finding("older-generation", "info", detail, found.older))
        return findings


def _finding(code: str, severity: Severity, detail: str, paths: Sequence[str], advice: str | None = None) -> Finding:
    return Finding(code, severity, detail, len(paths), advice, tuple(sorted(paths)[:NAMED_PATHS]))
