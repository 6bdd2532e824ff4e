"""Runs one command: reads the options, calls it, and turns failures into messages and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from hermes_tui import __version__
from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import here, parse, source_options, wants_json
from hermes_tui.library.failures import ExitCode, Failure, StoreFailed, WrongUse
from hermes_tui.library.json_output import dumps
from hermes_tui.library.sources import SourceOptions
from hermes_tui.storage.errors import StorageError


def run_command(argv: Sequence[str], out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Run the command these arguments name; never raises for what a user can do wrong."""
    context = Context(
        SourceOptions(),
        json="--json" in argv,
        now=time.time(),
        out=sys.stdout if out is None else out,
        err=sys.stderr if err is None else err,
    )
    try:
        args = parse(argv)
        context.options = source_options(args)
        context.json = wants_json(args)
        context.here = here(args)
        code = _run(args, context)
        context.out.flush()
    except Failure as failure:
        return _failed(context, failure)
    except StorageError as error:
        return _failed(context, StoreFailed(f"{error.title}: {error.detail}", error.advice))
    except BrokenPipeError:
        return _nobody_reads()
    except KeyboardInterrupt:
        return 130
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


def _nobody_reads() -> int:
    """The reader of our output is gone (``| head``): end without a word, as other programs do."""
    # Python would complain when it flushes stdout at the end; give it something that swallows the rest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(ExitCode.DONE)
