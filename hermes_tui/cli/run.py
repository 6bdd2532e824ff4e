"""Runs one command: reads the options, calls it, and turns failures into messages and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from hermes_tui import __version__
from hermes_tui.cli.context import Context
from hermes_tui.cli.output import OutputLost, guarded
from hermes_tui.cli.parser import here, parse, source_options, wants_json
from hermes_tui.library.failures import ExitCode, Failure, Refused, StoreFailed, Unexpected, WrongUse
from hermes_tui.library.json_output import dumps
from hermes_tui.library.sources import SourceOptions
from hermes_tui.storage.errors import NotPossible, StorageError, WriteFailed, WriteLost


def run_command(argv: Sequence[str], out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Run the command these arguments name; never raises for what a user can do wrong."""
    context = Context(
        SourceOptions(),
        json="--json" in argv,
        now=time.time(),
        out=guarded(sys.stdout if out is None else out),
        err=sys.stderr if err is None else err,
    )
    try:
        return _answer(argv, context)
    except BrokenPipeError:
        return _nobody_reads()
    except KeyboardInterrupt:
        return 130
    except OutputLost as lost:
        return _not_written(context, lost)


def _answer(argv: Sequence[str], context: Context) -> int:
    """Run it and print what it gives, its failure too.

    Raises:
        OutputLost: the answer cannot be written.
        BrokenPipeError: nobody reads it any more.
    """
    try:
        args = parse(argv)
        context.options = source_options(args)
        context.json = wants_json(args)
        context.here = here(args)
        code = _run(args, context)
        context.out.flush()
    except Failure as failure:
        return _failed(context, failure)
    except (NotPossible, WriteFailed, WriteLost) as error:
        return _failed(context, Refused(f"{error.title}: {error.detail}", error.advice))
    except StorageError as error:
        return _failed(context, StoreFailed(f"{error.title}: {error.detail}", error.advice))
    except (OutputLost, BrokenPipeError):
        raise
    except OSError as error:
        return _failed(context, _ours_is_shut(error) or _logged(error, argv))
    except Exception as error:  # noqa: BLE001  the last place: whatever a store holds, nobody gets a traceback
        return _failed(context, _logged(error, argv))
    return code


def _run(args: argparse.Namespace, context: Context) -> int:
    if args.version:
        context.out.write(f"hermes-tui {__version__}\n")
        return int(ExitCode.DONE)
    if args.command is None or "run" not in args:
        what = "No command was given" if args.command is None else f"{args.command} starts the screen"
        raise WrongUse(f"{what}, which prints no JSON", "See `hermes-tui --help` for the commands.")
    return int(args.run(args, context))


def _failed(context: Context, failure: Failure) -> int:
    """Print a failure the way it was asked for."""
    if context.json:
        document = {
            "error": {
                "code": failure.code,
                "message": failure.message,
                "candidates": None if failure.candidates is None else list(failure.candidates),
                "advice": failure.advice,
            }
        }
        context.out.write(dumps(document) + "\n")
        context.out.flush()
    else:
        context.failure(failure)
    return int(failure.exit_code)


def _ours_is_shut(error: OSError) -> Failure | None:
    """The failure where a file of our own cannot be used; ``None``: the error is about something else."""
    from hermes_tui.locations import own_locations

    ours = own_locations()
    folders = {path.parent for path in (ours.mirror, ours.log, ours.trash, ours.settings)}
    place = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if place is None or not any(folder in (place, *place.parents) for folder in folders):
        return None
    return Refused(f"{place} of our own cannot be used: {error.strerror}", "Mend that folder, or set HERMES_TUI_HOME.")


def _logged(error: Exception, argv: Sequence[str]) -> Failure:
    """Write an unexpected error to our log, and say where it is."""
    # Imported late: only for a fault of ours.
    import traceback

    from hermes_tui.locations import FILE_MODE, own_locations, private_folder

    log = own_locations().log
    advice = f"The details are in {log}; please report them."
    try:
        private_folder(log.parent)
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE), "a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} hermes-tui {__version__} {list(argv)!a}\n")
            file.write(ascii_only("".join(traceback.format_exception(error))) + "\n")
    except OSError as reason:
        advice = f"The log {log} cannot be written either: {reason.strerror or reason}"
    return Unexpected(f"This is a fault of hermes-tui: {type(error).__name__}: {error}", advice)


def ascii_only(text: str) -> str:
    """Text that any editor and terminal can show."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


def _nobody_reads() -> int:
    """The reader of our output is gone (``| head``): end without a word, as other programs do."""
    _swallow_the_rest()
    return int(ExitCode.DONE)


def _not_written(context: Context, lost: OutputLost) -> int:
    """The disk our output goes to is full: no JSON can be printed there either, so it is said on stderr."""
    _swallow_the_rest()
    context.say(f"hermes-tui: The answer could not be written: {lost}")
    return int(ExitCode.REFUSED)


def _swallow_the_rest() -> None:
    """Python would complain when it flushes stdout at the end: give it something that takes everything."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
