"""What every command gets: the open library, the clock, where to write, and whether somebody can be asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from hermes_tui.library.failures import ExitCode, Failure, Refused
from hermes_tui.library.json_output import dumps
from hermes_tui.library.sources import Library, SourceOptions, StoreFailure, nothing_there, open_library
from hermes_tui.library.times import first_instant, last_instant, local_zone, parse_time
from hermes_tui.model import StoreStatus
from hermes_tui.records import dataclass
from hermes_tui.text import clean, clean_line

if TYPE_CHECKING:
    from rich.console import RenderableType


def _with_mirror(library: Library) -> Library:
    """The library with the mirror beside it, if there is one."""
    try:
        if not library.locations.mirror.exists():
            return library
    except OSError:
        # Our own folder is shut: what the stores say needs nothing of it.
        return library
    # Imported late: 25 ms that stores of Hermes, which are not mirrored, need not wait for.
    from hermes_tui.library.mirroring import with_mirror

    return with_mirror(library)


@dataclass
class Context:
    """One run of one command. Not frozen: the library and the zone are found at first use."""

    options: SourceOptions
    json: bool
    now: float
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    here: str | None = None
    """The folder ``--here`` means; ``None``: every folder."""
    unreadable: bool = False
    """A store could not be read: the exit code says so at the end."""

    @cached_property
    def library(self) -> Library:
        """The open stores; places given by hand that are none are named, and are all that failed when nothing else is.

        Raises:
            StoreFailed: ``--store`` was given, and none of the places is a store.
        """
        library = open_library(self.options, self.environ)
        if library.missing and not library.stores:
            raise nothing_there(library.missing)
        for path in library.missing:
            self.unreadable = True
            self.failure(nothing_there((path,)))
        logs = any(store.ref.agent != "hermes" for store in library.stores)
        return _with_mirror(library) if logs else library

    @property
    def mirrored(self) -> Library:
        """The library with our mirror beside it whichever stores are open: annotations and its health lie there."""
        return self.library if self.library.mirror is not None else _with_mirror(self.library)

    @cached_property
    def _zone(self) -> tuple[tzinfo, str]:
        return local_zone(self.environ)

    @property
    def zone(self) -> tzinfo:
        """The local time zone."""
        return self._zone[0]

    @property
    def zone_name(self) -> str:
        """``Asia/Seoul``, or what TZ says."""
        return self._zone[1]

    def time(self, text: str | None) -> float | None:
        """A TIME argument, ``None`` where it was not given."""
        return None if text is None else parse_time(text, self.now, self.zone)

    def since(self, text: str | None) -> float | None:
        """A TIME from which on, with everything that is printed as this time."""
        moment = self.time(text)
        return None if moment is None else first_instant(moment)

    def until(self, text: str | None) -> float | None:
        """A TIME up to which, with everything that is printed as this time."""
        moment = self.time(text)
        return None if moment is None else last_instant(moment)

    @property
    def interactive(self) -> bool:
        """Whether somebody sits at a terminal and can answer."""
        return sys.stdin is not None and sys.stdin.isatty() and self.err.isatty() and not self.json

    def confirm(self, question: str, *, yes: bool) -> None:
        """Go on only when somebody says yes, here or by ``--yes``.

        Raises:
            Refused: no, or nobody can be asked.
        """
        if yes:
            return
        if not self.interactive:
            raise Refused("Nothing was changed: nobody can be asked", "Add --yes to do it, or --dry-run to see first.")
        self.err.write(f"{clean(question)} [y/N] ")
        self.err.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Refused("Nothing was changed")

    def write(self, document: object) -> None:
        """Write the one JSON document."""
        self.out.write(dumps(document) + "\n")

    def print(self, *renderables: RenderableType) -> None:
        """Write tables and texts for people; they must be made of clean text."""
        from hermes_tui.cli.tables import console

        terminal = console(self.out, self.environ)
        for renderable in renderables:
            terminal.print(renderable)

    def say(self, text: str) -> None:
        """A message to people, on stderr, whatever is printed."""
        self.err.write(clean(text) + "\n")

    def failure(self, failure: Failure) -> None:
        """Say what failed and what to try, on stderr."""
        self.say(f"hermes-tui: {clean_line(failure.message)}")
        if failure.advice:
            self.say(f"  {clean_line(failure.advice)}")
        for candidate in failure.candidates or ():
            self.say(f"  {clean_line(candidate)}")

    def note_stores(self, statuses: Sequence[StoreStatus], failures: Sequence[StoreFailure] = ()) -> None:
        """Say which stores could not be read; the exit code will be 3."""
        named = set()
        for failure in failures:
            named.add(failure.ref.name)
            self.say(f"hermes-tui: {failure.ref.name}: {clean_line(failure.reason)}")
            if failure.advice:
                self.say(f"  {clean_line(failure.advice)}")
        for status in statuses:
            if status.state == "unreadable" and status.ref.name not in named:
                named.add(status.ref.name)
                reasons = [one.detail for one in status.findings if one.severity == "error"]
                reason = f" ({clean_line(reasons[0])})" if reasons else ""
                self.say(f"hermes-tui: {status.ref.name}: {clean_line(status.ref.path)} cannot be read{reason}")
        self.unreadable = self.unreadable or bool(named)

    @property
    def ended(self) -> ExitCode:
        """The exit code of a command that did what it could."""
        return ExitCode.STORE_UNREADABLE if self.unreadable else ExitCode.DONE
