"""Answers of a store of logs as they were kept, where no log changed since: list, usage, requests of the last days."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from hermes_tui.model import CostGrouping, Listing, ListQuery, Request, SessionId, SessionRow, StoreRef, UsageReport
from hermes_tui.stores.conversation import fold_conversation
from hermes_tui.stores.kept_answers import (
    Answers,
    Asked,
    DatedReport,
    Evidence,
    NothingKept,
    ask,
    kept_listing,
    kept_points,
    kept_usage,
    lasting,
    usage_question,
)
from hermes_tui.stores.kept_index import logs_evidence
from hermes_tui.stores.log_source import LogFile, SummarySource


class Look(NamedTuple):
    """Every log of a store as one walk of its folders found it."""

    logs: tuple[LogFile, ...]
    taken_ns: int
    """When the walk began, Unix nanoseconds; of a walk that was remembered: when it was asked for."""


class KeptLogs(ABC):
    """The part of a store of logs that answers from what was kept."""

    source: SummarySource
    """Where the summaries of its logs come from."""
    files: bool = True
    """Whether its logs are files, which an index may project; rows of a database are not."""

    def __init__(self, ref: StoreRef) -> None:
        self.ref = ref
        self.answers: Answers = NothingKept()
        self.unsure = False
        """Something could not be read that perhaps can be the next time: no answer is kept any more."""
        self._lock = threading.Lock()
        self._evidence_of: tuple[Look, Evidence] | None = None

    @abstractmethod
    def current_logs(self) -> tuple[LogFile, ...]:
        """Every log of the store by a walk of its folders.

        Raises:
            OSError: the store's own folder cannot be read.
        """

    def joined(self, rows: Sequence[SessionRow]) -> SessionRow:
        """The row of a session from those of its logs, oldest first."""
        return fold_conversation(rows)

    @abstractmethod
    def list_now(self, look: Look, query: ListQuery, limit: int | None) -> Listing:
        """The list of these logs."""

    @abstractmethod
    def usage_now(
        self, look: Look, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo
    ) -> DatedReport:
        """Usage of these logs by key."""

    @abstractmethod
    def requests_now(self, look: Look, ids: Sequence[SessionId] | None, since: float | None) -> Iterator[Request]:
        """The requests of these logs."""

    def listing(self, query: ListQuery, limit: int | None = None) -> Listing:
        """See :meth:`Store.listing`; as it was kept where nothing changed since."""
        look = self.walked()
        if not lasting(query):
            return self.list_now(look, query, limit)
        return kept_listing(
            lambda which: self.ask_kept(look, "listing", which, query),
            limit,
            lambda: self.list_now(look, query, limit),
        )

    def usage(self, grouping: CostGrouping, since: float | None, until: float | None, zone: tzinfo) -> UsageReport:
        """See :meth:`Store.usage`; what an agent's own totals leave out stands apart, so that all groupings agree."""
        look = self.walked()
        asked = self.ask_kept(look, *usage_question(grouping, since, until, zone))
        return kept_usage(asked, since, lambda: self.usage_now(look, grouping, since, until, zone))

    def requests(self, ids: Sequence[SessionId] | None, since: float | None = None) -> Iterator[Request]:
        """See :meth:`Store.requests`; a chain never leaves its session."""
        look = self.walked()
        if ids is not None or since is None:
            return self.requests_now(look, ids, since)
        asked = self.ask_kept(look, "requests")
        return iter(kept_points(asked, since, lambda: self.requests_now(look, None, since)))

    def index_extra(self) -> object | None:
        """What :meth:`peeks` left behind besides the rows, as JSON values; ``None``: the index must not be kept."""
        return []

    def take_index_extra(self, extra: Any) -> None:
        """Take what :meth:`index_extra` gave for the same logs."""
        del extra

    def also_read(self) -> Iterable[str]:
        """Paths of files that answers are made from besides the logs of the last walk."""
        return ()

    def walked(self) -> Look:
        """Every log as it is now.

        Raises:
            OSError: as :meth:`index`.
        """
        taken = time.time_ns()
        return Look(self.current_logs(), taken)

    def _evidence(self, look: Look | None = None) -> Evidence | None:
        """What tells that the store is what it was; ``None`` where its sessions are no files."""
        if self.unsure or not self.files:
            return None
        try:
            look = look or self.walked()
        except OSError:
            return None
        with self._lock:
            known = self._evidence_of
        if known is None or known[0] is not look:
            known = (look, logs_evidence(look.logs, self.also_read(), look.taken_ns))
            with self._lock:
                self._evidence_of = known
        return known[1]

    def _evidence_after(self) -> Evidence | None:
        """The same when the question was answered; ``None`` where the next phase of an index may answer otherwise."""
        return self._evidence() if self.source.parsed else None

    def ask_kept(self, look: Look, *question: object) -> Asked:
        """Begin a question about the logs as they were looked at."""
        before = None if isinstance(self.answers, NothingKept) else self._evidence(look)
        return ask(self.answers, self.ref, self._evidence_after, *question, before=before)
