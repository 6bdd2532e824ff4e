"""``resume``: go on with a session in the agent itself."""

from __future__ import annotations

import argparse
import os

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library.failures import Refused
from hermes_tui.library.resume import folder_is_gone, resume_command, shell_line


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("resume", "Go on with a session in the agent itself")
    parser.add_argument("id", metavar="ID", help=ID_HELP)
    parser.add_argument("--print", action="store_true", dest="print_only", help="print the command, do not run it")
    parser.add_argument("--yes", action="store_true", help="run it without asking")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    command = resume_command(context.library.find(args.id))
    line = shell_line(command)
    if context.json:
        context.write(
            {
                "argv": list(command.argv),
                "cwd": command.cwd,
                "environment": dict(command.environment),
                "command": line,
            }
        )
        return context.ended
    if args.print_only:
        context.out.write(printable(line) + "\n")
        return context.ended
    if folder_is_gone(command):
        raise Refused(f"The session's folder {command.cwd} is gone", f"From another folder, run: {line}")
    context.say(line)
    context.confirm("Run this now?", yes=args.yes)
    try:
        os.chdir(command.cwd or ".")
        os.execvpe(command.argv[0], list(command.argv), {**context.environ, **dict(command.environment)})
    except OSError as error:
        raise Refused(
            f"{command.argv[0]} cannot be started: {error.strerror or error}", f"Install it, then: {line}"
        ) from error


def printable(line: str) -> str:
    """The line as it may go to a terminal: a control in a folder's name would be an escape of its own."""
    from hermes_tui.text import clean_line

    return line if line.isprintable() else clean_line(line)
