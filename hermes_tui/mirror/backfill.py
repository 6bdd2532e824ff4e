"""Fills the mirror: newest logs first, prompts and replies before tool outputs, in batches that can be stopped.

Logs are read in processes of their own (reading is Python's work, and two cores are better than one), and written by
this one. What is small is done here without starting any.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

import apsw

from hermes_tui.collector import collect_rarely
from hermes_tui.mirror.database import MirrorDatabase
from hermes_tui.mirror.lease import Lease
from hermes_tui.mirror.ledger import (
    forget_logs,
    is_current,
    known_log,
    known_logs,
    start_over_when_stale,
    write_projections,
    write_tools,
)
from hermes_tui.mirror.projector import Known, Projection, ToolsProjection, project, project_tools
from hermes_tui.model import Agent
from hermes_tui.records import dataclass
from hermes_tui.storage.errors import StorageError, StoreUnreadable
from hermes_tui.storage.writing import RetryingWriter
from hermes_tui.stores import registry
from hermes_tui.stores.log_source import LogFile
from hermes_tui.stores.logs import LogStore

BATCH_BYTES: Final = 24 << 20
"""Bytes of log read for one transaction: about a quarter of a second of work."""
TOOLS_BYTES: Final = 8 << 20
"""The same for tool calls and results, all of whose words are indexed."""
LAST_BYTES: Final = 4 << 20
"""Of the last batches: who has read the last one waits for nobody long."""
SMALL_BYTES: Final = 16 << 20
"""Less than this is read in this process: starting others takes longer."""
WORKERS: Final = 2

Phase = Literal["idle", "talk", "tools", "done", "waiting", "stopped"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the mirror is, for a status line."""

    phase: Phase
    logs_done: int = 0
    logs_todo: int = 0
    bytes_done: int = 0
    bytes_todo: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """Done / all, 0..1."""
        return self.bytes_done / self.bytes_todo if self.bytes_todo else 1.0

    @property
    def bytes_per_second(self) -> float:
        """Since the start of the phase; 0 before anything is done."""
        return self.bytes_done / self.seconds if self.seconds > 0 else 0.0


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Job:
    store: LogStore
    log: LogFile
    known: Known | None


@dataclass(frozen=True, slots=True)
class _Order:
    """A job as it goes to another process, which opens the store for itself."""

    agent: Agent
    store_path: str
    log: LogFile
    known: Known | None


_Walked = tuple[LogStore, Sequence[LogFile]]
Result = Projection | ToolsProjection | None
"""``None``: the log went away meanwhile."""
Work = Callable[[LogStore, LogFile, Known | None], Result]


@dataclass(slots=True)
class Backfill:
    """One run over some stores; ``stop`` may be set from any thread and ends it after the batch in hand."""

    database: MirrorDatabase
    stores: Sequence[LogStore]
    on_progress: OnProgress | None = None
    stop: threading.Event | None = None
    workers: int = WORKERS
    tools: bool = True
    """Index what tools were given and gave as well."""
    clock: Callable[[], float] = time.time

    def run(self) -> Progress:
        """Bring the mirror up to its logs.

        Raises:
            StorageError: the mirror cannot be read or written, or a process that reads logs was ended from outside.
        """
        with self.database.writer() as writer:
            lease = Lease(self.clock)
            if not lease.take(writer):
                return self._tell(Progress("waiting"))
            try:
                return self._run(writer, lease)
            except apsw.Error as error:
                raise StoreUnreadable(str(self.database.path), str(error), "Try again, or drop the mirror.") from error
            except BrokenExecutor as error:
                raise StorageError("The mirror was not filled", f"a reading process ended: {error}") from error
            finally:
                lease.give_back(writer)

    def pending(self) -> list[tuple[LogStore, LogFile]]:
        """Logs that are not in the mirror as they are now, newest first."""
        return [(job.store, job.log) for job in self._jobs(self._walked())]

    def _run(self, writer: RetryingWriter, lease: Lease) -> Progress:
        walked = self._walked()
        self._forget(writer, walked)
        paths = [store.ref.path for store, _ in walked]
        writer.write(lambda connection: start_over_when_stale(connection, paths))
        jobs = self._jobs(walked)
        with _Readers(self.workers) as readers:
            done = self._talk(writer, lease, jobs, readers.for_bytes(sum(map(_unread, jobs))))
            if done.phase == "stopped" or not self.tools:
                return self._tell(done if done.phase == "stopped" else replace(done, phase="done"))
            behind = self._tool_jobs()
            todo = sum(
                job.known.place.offset - job.known.tools_offset for job in behind if job.known and job.known.place
            )
            return self._tell(self._tool_words(writer, lease, behind, todo, readers.for_bytes(todo)))

    # ------------------------------------------------------------------------------------------ what is to do

    def _walked(self) -> list[_Walked]:
        """The logs of each store whose folder can be read; the store's own status tells when it cannot."""
        walked: list[_Walked] = []
        for store in self.stores:
            try:
                walked.append((store, store.logs()))
            except OSError:
                continue
        return walked

    def _jobs(self, walked: Iterable[_Walked]) -> list[_Job]:
        jobs: list[_Job] = []
        for store, logs in walked:
            known = known_logs(self.database, store.ref.path)
            for log in logs:
                before = known.get(log.path)
                if before is None or not is_current(before, log):
                    jobs.append(_Job(store, log, before))
        jobs.sort(key=lambda job: -job.log.mtime_ns)
        return jobs

    def _tool_jobs(self) -> list[_Job]:
        jobs: list[_Job] = []
        for store, logs in self._walked():
            here = {log.path: log for log in logs}
            rows = self.database.rows(
                "SELECT path FROM logs WHERE store = ? AND tools_offset BETWEEN 0 AND offset - 1"
                " ORDER BY mtime_ns DESC",
                (store.ref.path,),
            )
            for (path,) in rows:
                known = known_log(self.database, path, state=False) if path in here else None
                if known is not None:
                    jobs.append(_Job(store, here[path], known))
        return jobs

    def _forget(self, writer: RetryingWriter, walked: Iterable[_Walked]) -> None:
        """The mirror never leads: logs that are gone go from it, those of folders that cannot be read stay."""
        for store, logs in walked:
            here = {log.path for log in logs}
            known = known_logs(self.database, store.ref.path)
            gone = [log.id for path, log in known.items() if path not in here and not Path(path).exists()]
            if gone:
                writer.write(lambda connection, gone=gone: forget_logs(connection, gone))  # type: ignore[misc]

    # ----------------------------------------------------------------------------------------------- the work

    def _talk(
        self, writer: RetryingWriter, lease: Lease, jobs: Sequence[_Job], pool: ProcessPoolExecutor | None
    ) -> Progress:
        begun = time.monotonic()
        progress = Progress("talk", 0, len(jobs), 0, sum(job.log.size for job in jobs))
        self._tell(progress)
        for batch, results in self._worked(jobs, BATCH_BYTES, pool, _read_talk, self._known_places):
            by_store: dict[str, list[Projection]] = {}
            for job, result in zip(batch, results, strict=True):
                if isinstance(result, Projection):
                    by_store.setdefault(job.store.ref.path, []).append(result)
            agents = {job.store.ref.path: job.store.ref.agent for job in batch}

            def put(
                connection: apsw.Connection,
                by_store: dict[str, list[Projection]] = by_store,
                agents: dict[str, Agent] = agents,
            ) -> bool:
                if not lease.renew(connection):
                    return False
                for path, projections in by_store.items():
                    write_projections(connection, agents[path], path, projections)
                return True

            kept = writer.write(put).value
            progress = replace(
                progress,
                logs_done=progress.logs_done + len(batch),
                bytes_done=progress.bytes_done + sum(job.log.size for job in batch),
                seconds=time.monotonic() - begun,
            )
            self._tell(progress)
            if not kept or self._stopped():
                return replace(progress, phase="stopped")
        return progress

    def _tool_words(
        self,
        writer: RetryingWriter,
        lease: Lease,
        jobs: Sequence[_Job],
        todo: int,
        pool: ProcessPoolExecutor | None,
    ) -> Progress:
        begun = time.monotonic()
        progress = Progress("tools", 0, len(jobs), 0, todo)
        self._tell(progress)
        waiting = list(jobs)
        while waiting and not self._stopped():
            again: list[_Job] = []
            for batch, results in self._worked(waiting, TOOLS_BYTES, pool, _read_tools, lambda jobs: jobs):
                pairs = [
                    (job.known, result)
                    for job, result in zip(batch, results, strict=True)
                    if isinstance(result, ToolsProjection) and job.known is not None
                ]

                def put(connection: apsw.Connection, pairs: list[tuple[Known, ToolsProjection]] = pairs) -> bool:
                    held = lease.renew(connection)
                    if held:
                        write_tools(connection, pairs)
                    return held

                kept = writer.write(put).value
                for (known, result), job in zip(pairs, (job for job in batch if job.known), strict=False):
                    if known.place is not None and result.offset < known.place.offset:
                        further = replace(known, tools_offset=result.offset, tools_line=result.line)
                        again.append(replace(job, known=further))
                moved = sum(result.offset - known.tools_offset for known, result in pairs)
                progress = replace(
                    progress,
                    logs_done=progress.logs_done + len(batch),
                    bytes_done=progress.bytes_done + moved,
                    seconds=time.monotonic() - begun,
                )
                self._tell(progress)
                if not kept or self._stopped():
                    return replace(progress, phase="stopped")
            waiting = again
        return replace(progress, phase="stopped" if self._stopped() else "done")

    def _known_places(self, batch: Sequence[_Job]) -> list[_Job]:
        """The states of folds are read batch by batch: together they may be large."""
        return [
            job if job.known is None else replace(job, known=known_log(self.database, job.log.path)) for job in batch
        ]

    def _worked(
        self,
        jobs: Sequence[_Job],
        most: int,
        pool: ProcessPoolExecutor | None,
        work: Work,
        ready: Callable[[Sequence[_Job]], Sequence[_Job]],
    ) -> Iterator[tuple[list[_Job], list[Result]]]:
        """Each batch of so many bytes with its results, in the order they are done; at most a few are under way."""
        if pool is None:
            for batch in _batches(jobs, most, most, 1):
                yield batch, [work(job.store, job.log, job.known) for job in ready(batch)]
            return
        under_way: dict[Future[list[Result]], list[_Job]] = {}
        for batch in _batches(jobs, most, LAST_BYTES, self.workers):
            orders = [_Order(job.store.ref.agent, job.store.ref.path, job.log, job.known) for job in ready(batch)]
            under_way[pool.submit(_carry_out, work, orders)] = batch
            if len(under_way) > self.workers:
                yield from _finished(under_way)
        while under_way:
            yield from _finished(under_way)

    def _stopped(self) -> bool:
        return self.stop is not None and self.stop.is_set()

    def _tell(self, progress: Progress) -> Progress:
        if self.on_progress is not None:
            self.on_progress(progress)
        return progress


def _unread(job: _Job) -> int:
    """Bytes of a log that are new, if it only grew; of a packed one about so many."""
    known = job.known
    return job.log.size if known is None or known.offset > job.log.size else job.log.size - known.offset


def _batches(jobs: Sequence[_Job], most: int, least: int, readers: int) -> Iterator[list[_Job]]:
    """Jobs in batches of ``most`` bytes; the last ones are smaller, so that all readers end together."""
    left = sum(job.log.size for job in jobs)
    batch: list[_Job] = []
    size = 0
    for job in jobs:
        enough = max(least, min(most, left // (2 * readers)))
        if batch and size + job.log.size > enough:
            yield batch
            left -= size
            batch, size = [], 0
        batch.append(job)
        size += job.log.size
    if batch:
        yield batch


def _read_talk(store: LogStore, log: LogFile, known: Known | None) -> Result:
    try:
        return project(store, log, known)
    except (OSError, StorageError):
        return None


def _read_tools(store: LogStore, log: LogFile, known: Known | None) -> Result:
    try:
        return None if known is None else project_tools(store, log, known, TOOLS_BYTES)
    except (OSError, StorageError):
        return None


@functools.lru_cache(maxsize=16)
def _opened(agent: Agent, path: str) -> LogStore | None:
    for store in registry.open_places([registry.Place(agent, Path(path))], os.environ):
        if isinstance(store, LogStore) and store.ref.path == path:
            if store.walks_first:
                with contextlib.suppress(OSError):  # its own status tells that its folder cannot be read
                    store.logs()
            return store
    return None


def _carry_out(work: Work, orders: Sequence[_Order]) -> list[Result]:
    """In a process of its own."""
    results: list[Result] = []
    for order in orders:
        store = _opened(order.agent, order.store_path)
        results.append(None if store is None else work(store, order.log, order.known))
    return results


def _finished(under_way: dict[Future[list[Result]], list[_Job]]) -> Iterator[tuple[list[_Job], list[Result]]]:
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        yield under_way.pop(future), future.result()


class _Readers:
    """Processes that read logs, started when there is enough to read; they end with the run."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Readers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def for_bytes(self, size: int) -> ProcessPoolExecutor | None:
        """Where to read so many bytes; ``None``: here. They import the readers anew: a fork would take locks along."""
        if self._pool is None and self._workers > 1 and size > SMALL_BYTES:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, mp_context=spawn, initializer=collect_rarely)
        return self._pool if size > SMALL_BYTES else None
