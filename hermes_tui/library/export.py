"""Writes conversations to a file: streamed, under a temporary name, never over a file that is there.

One writer for each format; each gets sessions one after another and messages as they are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from hermes_tui.library.exported import FORMATS, Exported, ExportOptions, Format, Write
from hermes_tui.library.failures import Refused
from hermes_tui.library.sources import Found
from hermes_tui.model import Problem
from hermes_tui.storage.whole_file import whole_file

__all__ = ["FORMATS", "ExportOptions", "Format", "export", "export_to", "file_name", "file_names", "is_there"]

LONGEST_NAME: Final = 160
"""Bytes of a session's id in the name of a file; file systems take 255 for a name."""


def export(founds: Sequence[Found], options: ExportOptions, write: Write, broken: list[Problem] | None = None) -> None:
    """Write these sessions in one format; memory stays flat however long they are.

    Args:
        founds: the sessions.
        options: what is written and how.
        write: takes the text.
        broken: gets the places where a store fails in the middle: what came before stays written, and says so.

    Raises:
        StorageError, OSError: a store fails and ``broken`` is not given.
    """
    # Imported late: only the writer that is used.
    if options.format == "md":
        from hermes_tui.library.export_markdown import write_markdown as writer
    elif options.format == "html":
        from hermes_tui.library.export_html import write_html as writer
    elif options.format == "json":
        from hermes_tui.library.export_json import write_json as writer
    else:
        from hermes_tui.library.export_json import write_jsonl as writer
    writer([partial(Exported, found, options, broken) for found in founds], write)


def export_to(path: Path, founds: Sequence[Found], options: ExportOptions, *, replace: bool = False) -> Path:
    """Write them to a file of the user: under a temporary name beside it, then renamed; links stay and are followed.

    What is no file of its own (a pipe, a device) is written straight into.

    Raises:
        StorageError: a store fails in the middle: no half export stays behind.
        Refused: the file is there already and ``replace`` is not given, or it can't be written.
    """
    try:
        there = is_there(path)
        if there and not replace:
            raise Refused(f"{path} is there already", "Add --yes to write over it, or name another file.")
        target = Path(os.path.realpath(path))
        special = not there and target.exists() and not target.is_dir()
        with _straight(target) if special else whole_file(target) as file:
            export(founds, options, file.write)
        return path
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}", "Name another file.") from error


def is_there(path: Path) -> bool:
    """Whether writing there would write over a file.

    Raises:
        OSError: the place may not be looked into, or cannot be.
    """
    return path.is_file() if path.exists() else False


@contextmanager
def _straight(path: Path) -> Iterator[TextIO]:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        yield file


def file_name(found: Found, options: ExportOptions, ending: str = "") -> str:
    """A file name for one session, safe in every file system: its id has any characters its agent likes."""
    safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in found.session_id).lstrip(".")
    safe = safe.encode("utf-8", "replace")[:LONGEST_NAME].decode("utf-8", "ignore")
    return f"{safe or 'session'}{ending}.{options.format}"


def file_names(founds: Sequence[Found], options: ExportOptions) -> list[str]:
    """A file name for each session; no two are alike, whatever the file system thinks of upper and lower case."""
    taken: set[str] = set()
    names: list[str] = []
    for found in founds:
        name = file_name(found, options)
        number = 1
        while name.casefold() in taken:
            number += 1
            name = file_name(found, options, f"-{number}")
        taken.add(name.casefold())
        names.append(name)
    return names
