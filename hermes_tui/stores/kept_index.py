"""The index of a store of logs as it was kept: rows are decoded when somebody looks at them, for most are never shown.

It holds what an index of ours holds of the logs anyway, so it is kept only beside one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from hermes_tui.model import NO_COST, Cost, SessionId, SessionRow, StoreRef, Usage
from hermes_tui.storage.any_json import dump_json, load_json
from hermes_tui.stores.kept_answers import Evidence
from hermes_tui.stores.kept_values import dump_spend, dump_usage, load_spend
from hermes_tui.stores.log_index import LogIndex
from hermes_tui.stores.log_source import LogFile

_NAMES: Final = tuple(field.name for field in fields(SessionRow))
_GET: Final = attrgetter(*_NAMES)
_PLACE: Final = {name: place for place, name in enumerate(_NAMES)}


def logs_evidence(logs: Sequence[LogFile], also_read: Iterable[str], taken_ns: int) -> Evidence:
    """What tells that these logs, and files that are read beside them, are what they were.

    Args:
        logs: every log of the store, as the walk of its folders found them.
        also_read: paths of other files, which need not be there.
        taken_ns: when the walk began, Unix nanoseconds.
    """
    # Imported late: 2 to 10 ms that a store of Hermes does not need.
    import hashlib

    told = hashlib.blake2b(digest_size=32)
    newest = max((log.mtime_ns for log in logs), default=0)
    for log in logs:
        line = f"{log.path}\0{log.session_id}\0{log.size} {log.mtime_ns} {log.device} {log.inode} {log.archived}\n"
        told.update(line.encode("utf-8", "surrogatepass"))
    for path in also_read:
        try:
            stat = os.stat(path)  # noqa: PTH116 - as many as there are sub-agents
        except OSError:
            line = f"{path}\0-\n"
        else:
            newest = max(newest, stat.st_mtime_ns, stat.st_ctime_ns)
            line = f"{path}\0{stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"
        told.update(line.encode("utf-8", "surrogatepass"))
    return Evidence(f"{len(logs)} {told.hexdigest()}", newest, taken_ns)


class KeptRows(Mapping[SessionId, SessionRow]):
    """Rows by id, each decoded when it is asked for."""

    def __init__(self, kept: dict[SessionId, str], store: StoreRef) -> None:
        self._kept = kept
        self._store = store
        self._rows: dict[SessionId, SessionRow] = {}

    def __getitem__(self, session_id: SessionId) -> SessionRow:
        row = self._rows.get(session_id)
        if row is None:
            row = self._rows[session_id] = _load_row(self._kept[session_id], self._store)
        return row

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._kept

    def __iter__(self) -> Iterator[SessionId]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


def dump_index(index: LogIndex, logs: Sequence[LogFile]) -> list[object]:
    """An index as JSON values; logs are named by their place among those the walk found."""
    place = {log.path: number for number, log in enumerate(logs)}
    rows = [
        [session_id, _dump_row(row), [place[log.path] for log in index.logs_of[session_id]]]
        for session_id, row in index.rows.items()
    ]
    return [[place[log.path] for log in index.logs], rows, list(index.children.items()), index.odd]


def load_index(values: Sequence[Any], logs: Sequence[LogFile], store: StoreRef) -> LogIndex:
    """What :func:`dump_index` gave, over the same logs."""
    order, rows, children, odd = values
    return LogIndex(
        logs=tuple(logs[number] for number in order),
        rows=KeptRows({session_id: row for session_id, row, _ in rows}, store),
        logs_of={session_id: tuple(logs[number] for number in numbers) for session_id, _, numbers in rows},
        session_of={logs[number].path: session_id for session_id, _, numbers in rows for number in numbers},
        children={parent: tuple(ids) for parent, ids in children},
        odd=tuple(odd),
    )


def _dump_row(row: SessionRow) -> str:
    values = list(_GET(row))
    values[_PLACE["store"]] = None
    values[_PLACE["usage"]] = None if row.usage is None else dump_usage(row.usage)
    values[_PLACE["spend"]] = [dump_spend(spend) for spend in row.spend]
    values[_PLACE["cost"]] = None if row.cost == NO_COST else [row.cost.usd, row.cost.status]
    return dump_json(values).decode()


def _load_row(data: str, store: StoreRef) -> SessionRow:
    values = load_json(data)
    usage, cost = values[_PLACE["usage"]], values[_PLACE["cost"]]
    values[_PLACE["store"]] = store
    values[_PLACE["models"]] = tuple(values[_PLACE["models"]])
    values[_PLACE["hit_rates"]] = tuple(values[_PLACE["hit_rates"]])
    values[_PLACE["usage"]] = None if usage is None else Usage(*usage)
    values[_PLACE["spend"]] = tuple(map(load_spend, values[_PLACE["spend"]]))
    values[_PLACE["cost"]] = NO_COST if cost is None else Cost(*cost)
    return SessionRow(*values)
