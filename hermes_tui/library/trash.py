"""The trash: what was deleted, written down and on disk before it is deleted, so that it can be put back.

One append-only file for each deletion in one store. It is a sequence of takes: a ``take`` line, the rows and files,
an ``end`` line. Only what stands before an ``end`` was ever deleted; a ``done`` line names what really went. Texts too
long for one line are written in pieces before the row they belong to.
"""

from __future__ import annotations

import base64
import math
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from hermes_tui.model import Agent, SessionId, StoreRef
from hermes_tui.records import dataclass
from hermes_tui.storage.append_log import AppendLog
from hermes_tui.storage.errors import NotPossible, StorageError
from hermes_tui.storage.jsonl import read_records
from hermes_tui.stores.changing import BadText, StoredFile, StoredRow, Taken

KEPT_S: Final = 30 * 86_400.0
"""Seconds something stays in the trash (issue 4, Undo)."""
INLINE: Final = 16_000
"""Characters of a text that stands in its row; forty such cells stay under the reader's limit for a line."""
PIECE: Final = 500_000
"""Characters of one piece of a longer text; escaped they stay under the reader's limit for a line."""
FLUSH_LINES: Final = 200
"""Lines of one write and one fsync."""


class TrashDamaged(NotPossible):
    """What should be put back cannot be read."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        super().__init__("Nothing was restored", f"{path}, line {line}: {reason}", "Look at that file.")


@dataclass(slots=True)
class TrashEntry:
    """One deletion in one store, as its file tells it."""

    path: Path
    at: float
    verb: str
    store: StoreRef
    asked: tuple[SessionId, ...]
    takes: dict[SessionId, int] = field(default_factory=dict)
    """The last complete take of each session."""
    children: list[tuple[SessionId, SessionId]] = field(default_factory=list)
    done: set[SessionId] = field(default_factory=set)
    restored: set[SessionId] = field(default_factory=set)
    parents: list[tuple[SessionId, SessionId]] = field(default_factory=list)
    """(child, parent) as the rows of its sessions said it."""
    titles: dict[SessionId, str] = field(default_factory=dict)
    """Raw titles of the sessions that had one; for telling them apart."""
    closed: bool = False
    """The deletion was brought to its end; False after a crash, when all of it may have gone."""

    @property
    def holds(self) -> frozenset[SessionId]:
        """Sessions that can be put back."""
        went = self.done if self.closed else set(self.takes)
        return frozenset(went - self.restored)


@dataclass(frozen=True, slots=True)
class Deleted:
    """One session that can be put back, from the newest entry that holds it."""

    entry: TrashEntry
    id: SessionId

    @property
    def name(self) -> str:
        """``store:id`` as restore takes it."""
        return f"{self.entry.store.name}:{self.id}"

    @property
    def title(self) -> str:
        """As it was; raw; empty where it had none."""
        return self.entry.titles.get(self.id, "")


class TrashWriter:
    """Writes one entry. What :meth:`keep` returned from is on disk."""

    def __init__(self, folder: Path, verb: str, store: StoreRef, asked: Sequence[SessionId], now: float) -> None:
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
        self._log = AppendLog(folder / f"{stamp}-{secrets.token_hex(4)}.jsonl")
        self._takes = 0
        self._pieces = 0
        self._lines: list[object] = [
            {
                "kind": "header",
                "version": 1,
                "at": now,
                "verb": verb,
                "agent": store.agent,
                "store": store.name,
                "path": store.path,
                "profile": store.profile,
                "asked": list(asked),
            }
        ]

    def keep(self, taken: Taken) -> None:
        """Write everything that goes, flushed and fsynced.

        Raises:
            StorageError: it cannot be written or read; then nothing may be deleted.
        """
        self._takes += 1
        self._write({"kind": "take", "take": self._takes})
        for row in taken.rows():
            if isinstance(row, StoredFile):
                self._file(row)
            else:
                cells = {name: self._cell(value) for name, value in row.values.items()}
                self._write({"kind": "row", "table": row.table, "cells": cells, "dialect": row.dialect})
        self._write(
            {
                "kind": "end",
                "take": self._takes,
                "ids": list(taken.ids),
                "children": [list(pair) for pair in taken.children],
            }
        )
        self._flush()

    def close(self, done: Sequence[SessionId]) -> None:
        """Say what went. An entry nothing of which went is removed."""
        if not self._takes:
            return
        if done:
            self._write({"kind": "done", "ids": list(done)})
            self._flush()
        elif self._log.path.exists():
            self._log.path.unlink()

    def _write(self, line: object) -> None:
        self._lines.append(line)
        if len(self._lines) >= FLUSH_LINES:
            self._flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._log.append_all(lines)

    def _file(self, file: StoredFile) -> None:
        try:
            with Path(file.path).open("rb") as source:
                names = [
                    self._piece(base64.b64encode(block).decode()) for block in iter(partial(source.read, PIECE), b"")
                ]
        except OSError as error:
            reason = error.strerror or str(error)
            raise StorageError(f"{file.path} cannot be read", reason, "It goes with its session, and back.") from error
        self._write(
            {
                "kind": "file",
                "path": file.path,
                "session": file.session_id,
                "mode": file.mode,
                "modified_ns": file.modified_ns,
                "pieces": names,
            }
        )

    def _piece(self, text: str) -> int:
        self._pieces += 1
        self._write({"kind": "piece", "piece": self._pieces, "text": text})
        # A piece is large: it does not wait for others.
        self._flush()
        return self._pieces

    def _cell(self, value: Any) -> Any:
        """A cell as JSON: null, numbers and short texts as they are, the rest with its type."""
        if isinstance(value, bytes):
            kind = "bad-text" if isinstance(value, BadText) else "blob"
            return {"type": kind, **self._text(base64.b64encode(value).decode())}
        if isinstance(value, str):
            return value if len(value) <= INLINE else {"type": "text", **self._text(value)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"type": "float", "text": repr(value)}
        return value

    def _text(self, text: str) -> dict[str, Any]:
        if len(text) <= INLINE:
            return {"text": text}
        return {"pieces": [self._piece(text[start : start + PIECE]) for start in range(0, len(text), PIECE)]}


class Trash:
    """The folder of entries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> list[TrashEntry]:
        """Every entry, newest first. A file that is no entry is passed over, and counted by :meth:`strangers`."""
        found = (_read_entry(path) for path in self._files())
        return sorted((entry for entry in found if entry is not None), key=lambda entry: -entry.at)

    def strangers(self) -> tuple[Path, ...]:
        """Files in the folder that cannot be read as entries: nothing can be restored from them."""
        return tuple(path for path in self._files() if _read_entry(path) is None)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"), reverse=True) if self.folder.is_dir() else []

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.glob("*.jsonl")) if self.folder.is_dir() else 0

    def expire(self, now: float) -> int:
        """Remove entries that are too old.

        Returns:
            How many.
        """
        old = [entry for entry in self.entries() if now - entry.at > KEPT_S]
        for entry in old:
            entry.path.unlink(missing_ok=True)
        return len(old)

    def deleted(self) -> list[Deleted]:
        """Everything that can be put back, what was deleted last first."""
        found = [Deleted(entry, identity) for entry, identity in self.find("")]
        return sorted(found, key=lambda one: (-one.entry.at, one.id))

    def links(self, store: str) -> list[tuple[SessionId, SessionId]]:
        """(child, parent) of every session of a store that lost its parent or was deleted, the latest first.

        Whichever went first, and whichever is back first: what says who hung on whom may stand in either's entry.
        """
        real = os.path.realpath(store)
        found = (entry for entry in self.entries() if os.path.realpath(entry.store.path) == real)
        return list(dict.fromkeys(pair for entry in found for pair in (*entry.children, *entry.parents)))

    def find(self, prefix: str) -> list[tuple[TrashEntry, SessionId]]:
        """The newest entry of each session this id or prefix can mean."""
        found: dict[tuple[str, SessionId], TrashEntry] = {}
        for entry in self.entries():
            for identity in entry.holds:
                if identity.startswith(prefix):
                    found.setdefault((entry.store.path, identity), entry)
        whole = [(entry, identity) for (_, identity), entry in found.items() if identity == prefix]
        return whole or [(entry, identity) for (_, identity), entry in found.items()]


def mark_restored(entry: TrashEntry, ids: Sequence[SessionId]) -> None:
    """Note that sessions were put back.

    Raises:
        WriteFailed: it cannot be written.
    """
    AppendLog(entry.path).append({"kind": "restored", "ids": list(ids)})


def read_rows(entry: TrashEntry, wanted: frozenset[SessionId]) -> Iterator[StoredRow | tuple[StoredFile, bytes]]:
    """What the entry holds of some sessions: rows, and files with their content.

    Raises:
        TrashDamaged: a line cannot be read.
    """
    pieces: dict[int, str] = {}
    take = 0
    for record in read_records(entry.path):
        value = record.value
        if record.problem is not None or not isinstance(value, dict):
            raise TrashDamaged(str(entry.path), record.line, record.problem or "not an entry of the trash")
        kind = value.get("kind")
        if kind == "take":
            take, pieces = value["take"], {}
        elif kind == "piece":
            pieces[value["piece"]] = value["text"]
        elif kind == "row":
            values = {name: _value(cell, pieces) for name, cell in value["cells"].items()}
            pieces.clear()
            identity = values["id"] if value["table"] == "sessions" else values.get("session_id")
            if identity in wanted and entry.takes.get(identity) == take:
                yield StoredRow(value["table"], values, value.get("dialect"))
        elif kind == "file":
            content = b"".join(base64.b64decode(pieces.pop(name)) for name in value["pieces"])
            identity = SessionId(value["session"])
            if identity in wanted and entry.takes.get(identity) == take:
                yield StoredFile(value["path"], identity, value["mode"], value["modified_ns"]), content


def put_file_back(file: StoredFile, content: bytes) -> bool:
    """Write a file that was beside the store, unless one of its name is there by now. False: there is."""
    Path(file.path).parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(file.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, file.mode)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())
    os.utime(file.path, ns=(file.modified_ns, file.modified_ns))
    return True


def with_delegated(entry: TrashEntry, session_id: SessionId) -> frozenset[SessionId]:
    """A session and the runs that went because it did."""
    parents = dict(entry.children)
    chosen = {session_id}
    waiting = True
    while waiting:
        more = {
            child
            for child, parent in parents.items()
            if parent in chosen and child in entry.holds and child not in entry.asked and child not in chosen
        }
        chosen |= more
        waiting = bool(more)
    return frozenset(chosen)


def _value(cell: Any, pieces: dict[int, str]) -> Any:
    if not isinstance(cell, dict):
        return cell
    text = cell["text"] if "text" in cell else "".join(pieces[name] for name in cell["pieces"])
    kind = cell["type"]
    if kind == "float":
        return float(text)
    if kind == "text":
        return text
    data = base64.b64decode(text)
    return BadText(data) if kind == "bad-text" else data


def _read_entry(path: Path) -> TrashEntry | None:
    """The frame of an entry, rows and pieces passed over unread; ``None``: the file is none."""
    try:
        return _read_frame(path)
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _read_frame(path: Path) -> TrashEntry | None:
    entry: TrashEntry | None = None
    skipped = (b'{"kind":"row"', b'{"kind":"piece"')
    named = b'{"kind":"row","table":"sessions"'
    for record in read_records(path, wants=lambda line: line.startswith(named) or not line.startswith(skipped)):
        value = record.value
        if not isinstance(value, dict):
            continue
        kind = value.get("kind")
        if kind == "header" and entry is None:
            entry = _header(path, value)
        elif entry is None:
            return None
        elif kind == "row":
            _note_session(entry, value.get("cells"))
        elif kind == "end":
            entry.takes.update((SessionId(identity), value["take"]) for identity in value["ids"])
            entry.children += [(SessionId(child), SessionId(parent)) for child, parent in value["children"]]
        elif kind == "done":
            entry.closed = True
            entry.done.update(SessionId(identity) for identity in value["ids"])
        elif kind == "restored":
            entry.restored.update(SessionId(identity) for identity in value["ids"])
    return entry


def _note_session(entry: TrashEntry, cells: Any) -> None:
    """Title and parent of a session; a title that is long or no text is left out."""
    if not isinstance(cells, dict) or not isinstance(identity := cells.get("id"), str):
        return
    if isinstance(title := cells.get("title"), str) and title:
        entry.titles[SessionId(identity)] = title
    if isinstance(parent := cells.get("parent_session_id"), str):
        entry.parents.append((SessionId(identity), SessionId(parent)))


def _header(path: Path, value: dict[str, Any]) -> TrashEntry:
    agent: Agent = value["agent"]
    store = StoreRef(agent, value["store"], value["path"], value.get("profile"))
    return TrashEntry(path, float(value["at"]), value["verb"], store, tuple(SessionId(one) for one in value["asked"]))
