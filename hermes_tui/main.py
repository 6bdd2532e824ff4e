"""Chooses: the version, a command without a screen, or the screen. Imports only what that needs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_tui.collector import collect_rarely

NO_SCREEN_TERMINALS = frozenset({"dumb", "unknown"})
"""TERM values of terminals that cannot place a cursor."""


def main(argv: Sequence[str] | None = None) -> int:
    """The program; answers the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments in (["--version"], ["-V"]):
        from hermes_tui import __version__

        sys.stdout.write(f"hermes-tui {__version__}\n")
        return 0
    collect_rarely()
    _open_closed_streams()
    _plain_output()
    if _wants_screen(arguments):
        return _screen(arguments)
    from hermes_tui.cli.run import run_command

    _end_in_order()
    return run_command(arguments)


def _open_closed_streams() -> None:
    """Where a stream was closed for us (``>&-``) Python has none, and a store we open would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  as long as we run


def _end_in_order() -> None:
    """Told to end, undo what is half done, as for an interrupt: half a file, or the private copy of a store, goes."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # What somebody had ignored (nohup) stays ignored.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def _plain_output() -> None:
    """Write UTF-8 whatever the locale says, and never fail on a sign that cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8" or not stream.isatty()
            stream.reconfigure(encoding="utf-8" if utf8 else stream.encoding, errors="backslashreplace")


def _wants_screen(arguments: Sequence[str]) -> bool:
    """Whether there is no command, or ``open``; options that take a value are skipped with it."""
    if any(word in ("-h", "--help", "--version") for word in arguments):
        return False
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in ("--store", "--agent", "--profile"):
            skip = True
        elif not word.startswith("-"):
            return word == "open"
    return "--json" not in arguments


def _screen(arguments: Sequence[str]) -> int:
    """Start the browser, or say why it cannot start here."""
    from hermes_tui.cli.opening import opening
    from hermes_tui.library.failures import ExitCode, Failure

    try:
        begin = opening(arguments)
        reason = no_screen_reason(os.environ)
        if reason is not None:
            sys.stderr.write(
                f"hermes-tui: {reason}\n  `hermes-tui list` and the other commands work here; see --help.\n"
            )
            return int(ExitCode.WRONG_USE)
        if begin.ascii:
            os.environ["HERMES_TUI_ASCII"] = "1"
        from hermes_tui.library.beginning import Beginning

        beginning = Beginning(begin.options, os.environ, mirrored=True)
        from hermes_tui.tui.app import run

        run(begin.options, begin.id, beginning)
        return int(ExitCode.DONE)
    except Failure as failure:
        from hermes_tui.text import clean_line

        sys.stderr.write(f"hermes-tui: {clean_line(failure.message)}\n")
        sys.stderr.write(f"  {clean_line(failure.advice)}\n" if failure.advice else "")
        return int(failure.exit_code)


def no_screen_reason(environ: Mapping[str, str]) -> str | None:
    """Why the screen cannot be shown here; ``None`` where it can."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        return "the screen needs a terminal, and input or output is none."
    term = environ.get("TERM", "")
    if sys.platform != "win32" and (not term or term in NO_SCREEN_TERMINALS):
        return f"the screen needs a terminal that can place a cursor, and TERM is {term or 'not set'!r}."
    return None


if __name__ == "__main__":
    sys.exit(main())
