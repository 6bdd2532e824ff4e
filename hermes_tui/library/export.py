"""Writes conversations to a file: streamed, under a temporary name, never over a file that is there.

One writer for each format; each gets sessions one after another and messages as they are read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from hermes_tui.library.exported import FORMATS, Exported, ExportOptions, Format, Write
from hermes_tui.library.failures import Refused
from hermes_tui.library.sources import Found
from hermes_tui.locations import FILE_MODE

__all__ = ["FORMATS", "ExportOptions", "Format", "export", "export_to", "file_name"]


def export(founds: Sequence[Found], options: ExportOptions, write: Write) -> None:
    """Write these sessions in one format; memory stays flat however long they are."""
    # Imported late: only the writer that is used.
    if options.format == "md":
        from hermes_tui.library.export_markdown import write_markdown as writer
    elif options.format == "html":
        from hermes_tui.library.export_html import write_html as writer
    elif options.format == "json":
        from hermes_tui.library.export_json import write_json as writer
    else:
        from hermes_tui.library.export_json import write_jsonl as writer
    writer([partial(Exported, found, options) for found in founds], write)


def export_to(path: Path, founds: Sequence[Found], options: ExportOptions, *, replace: bool = False) -> Path:
    """Write them to a file of the user: under a temporary name beside it, then renamed.

    Raises:
        Refused: the file is there already and ``replace`` is not given, or it can't be written.
    """
    if path.exists() and not replace:
        raise Refused(f"{path} is there already", "Add --yes to write over it, or name another file.")
    try:
        with _temporary(path) as file:
            export(founds, options, file.write)
        return path
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}", "Name another file.") from error


@contextmanager
def _temporary(path: Path) -> Iterator[TextIO]:
    """A file beside ``path`` that takes its name when all is written, and vanishes when something fails."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        # Lone surrogates of a store cannot be UTF-8: they are written as their escape.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(FILE_MODE)
        Path(name).replace(path)
    except BaseException:
        # An interrupt and a caller that stops half way too: half an export must not stay behind.
        Path(name).unlink(missing_ok=True)
        raise


def file_name(found: Found, options: ExportOptions) -> str:
    """A file name for one session, safe in every file system: its id has any characters its agent likes."""
    safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in found.session_id).lstrip(".")
    return f"{safe[:120] or 'session'}.{options.format}"
