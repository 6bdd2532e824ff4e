"""Answers of stores kept for the next run: one small file each, in our cache folder, thrown away at any time.

A file holds a line about itself (which question, from what it was answered, a checksum) and the answer as JSON. One
that is damaged, of another question or made from something else is as good as none.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from hermes_tui.locations import FILE_MODE, private_folder

MOST_FILES: Final = 96
"""So many answers are kept, the oldest go first."""
MOST_BYTES: Final = 48 << 20
"""So large may they be together; one alone half of that."""
USED_SECONDS: Final = 3_600.0
"""An answer used again is as good as new; that is noted once an hour."""
_SUFFIX: Final = ".json"


class KeptAnswers:
    """Implements :class:`hermes_tui.stores.kept_answers.Answers`; may be used from any thread and process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counted: Counter[str] = Counter()

    @property
    def troubles(self) -> Mapping[str, int]:
        """Why a kept answer could not be read, or one not be kept: reason and how often."""
        return dict(self._counted)

    def find(self, question: str, seen: str) -> Any | None:
        """See :meth:`hermes_tui.stores.kept_answers.Answers.find`."""
        path = self._path(question)
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - read at every start
                about, _, body = file.read().partition(b"\n")
                changed = os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError:
            self._counted["unreadable"] += 1
            return None
        try:
            asked, made_from, checksum = orjson.loads(about)
            if zlib.crc32(body) != checksum:
                raise ValueError("another checksum")
            if (asked, made_from) != (question, seen):
                return None
            answer = orjson.loads(body)
        except (ValueError, TypeError):
            self._counted["damaged"] += 1
            return None
        if not 0 <= time.time() - changed < USED_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return answer

    def keep(self, question: str, seen: str, answer: object) -> None:
        """See :meth:`hermes_tui.stores.kept_answers.Answers.keep`; the file is replaced in one step."""
        try:
            body = orjson.dumps(answer)
            about = orjson.dumps([question, seen, zlib.crc32(body)])
        except TypeError:
            # A name that no JSON can hold: half a character, a number without end.
            self._counted["no-json"] += 1
            return
        if len(body) > MOST_BYTES // 2:
            self._counted["too-large"] += 1
            return
        path = self._path(question)
        half = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            private_folder(self._folder)
            try:
                with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as file:
                    file.write(b"%b\n%b" % (about, body))
                os.replace(half, path)  # noqa: PTH105
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(half)  # noqa: PTH108
                raise
            self._make_room()
        except OSError:
            # A full or read-only disk: the next run works it out again.
            self._counted["not-kept"] += 1

    def drop(self) -> bool:
        """Forget every answer; whether there were any.

        Raises:
            OSError: one cannot be deleted.
        """
        files = self._files()
        for _, _, path in files:
            Path(path).unlink(missing_ok=True)
        return bool(files)

    def _make_room(self) -> None:
        """Throw the oldest away, and what a process that was killed left half written."""
        room, count = MOST_BYTES, MOST_FILES
        for _, size, path in sorted(self._files(), reverse=True):
            room, count = room - size, count - 1
            if room < 0 or count < 0:
                Path(path).unlink(missing_ok=True)

    def _files(self) -> list[tuple[float, int, str]]:
        """Last use, size and path of each file in our folder."""
        try:
            with os.scandir(self._folder) as entries:
                stats = [(entry.path, entry.stat()) for entry in entries if _SUFFIX in entry.name]
        except FileNotFoundError:
            return []
        return [(stat.st_mtime, stat.st_size, path) for path, stat in stats]

    def _path(self, question: str) -> str:
        number = zlib.crc32(question.encode("utf-8", "surrogatepass"))
        return f"{self._folder}/{number:08x}{_SUFFIX}"
