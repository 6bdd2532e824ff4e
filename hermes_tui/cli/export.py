"""``export``: conversations as files to keep or pass on."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library.export import FORMATS, ExportOptions, Format, export, export_to, file_names, is_there
from hermes_tui.library.failures import Refused, WrongUse
from hermes_tui.library.sources import Found
from hermes_tui.model import Problem
from hermes_tui.text import clean, clean_line


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("export", "Write conversations to a file, or to standard output")
    parser.add_argument("ids", metavar="ID", nargs="+", help=ID_HELP)
    parser.add_argument("--format", choices=FORMATS, help="default: by the name of --output, else md")
    parser.add_argument("--output", metavar="PATH", help="a file, or a folder that gets one file a session")
    parser.add_argument("--redact", action="store_true", help="take out keys, tokens, e-mail addresses, home folders")
    parser.add_argument("--conversation", action="store_true", help="the whole chain, repeated messages once")
    parser.add_argument("--all-states", action="store_true", help="rewound and dead-branch messages too")
    parser.add_argument("--yes", action="store_true", help="write over files that are there")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    founds = _each_once([context.library.find(text) for text in args.ids])
    options = ExportOptions(_format(args, context), args.redact, args.conversation, args.all_states)
    if args.output in (None, "-"):
        _to_stdout(founds, options, context)
        return context.ended
    done = _to_files(args.output, founds, options, args.yes, context)
    if context.json:
        context.write({"done": [str(path) for path in done]})
    else:
        for path in done:
            context.say(f"wrote {clean_line(str(path))}")
    return context.ended


def _each_once(founds: Sequence[Found]) -> list[Found]:
    """Named twice is written once."""
    return list({(found.store.ref.name, found.session_id): found for found in founds}.values())


def _format(args: argparse.Namespace, context: Context) -> Format:
    """The format asked for, by its name or by that of the file.

    Raises:
        WrongUse: one JSON document is to be printed, and a format that is none.
    """
    printed = args.output in (None, "-")
    if context.json and printed and args.format not in (None, "json"):
        raise WrongUse(
            f"--json prints one JSON document, and {args.format} is none", "Leave --json out, or add --output."
        )
    suffix = args.format or Path(args.output or "").suffix.lstrip(".").lower()
    for known in FORMATS:
        if suffix == known:
            return known
    return "json" if context.json and printed else "html" if suffix == "htm" else "md"


def _to_stdout(founds: Sequence[Found], options: ExportOptions, context: Context) -> None:
    """JSON is safe as it is; a page for people goes to a terminal clean, and to a file as it was said.

    Where a store fails in the middle, what came before is printed whole, so that JSON stays JSON.
    """
    broken: list[Problem] = []
    if context.out.isatty() and options.format in ("md", "html"):
        export(founds, options, lambda text: context.out.write(clean(text)), broken)
    else:
        export(founds, options, context.out.write, broken)
    for one in broken:
        context.unreadable = True
        context.say(f"hermes-tui: the transcript broke off: {clean_line(one.reason)}")


def _to_files(output: str, founds: Sequence[Found], options: ExportOptions, yes: bool, context: Context) -> list[Path]:
    target = Path(output).expanduser()
    try:
        if target.is_dir():
            names = file_names(founds, options)
            plan = [(target / name, [found]) for name, found in zip(names, founds, strict=True)]
        elif output.endswith(("/", os.sep)):
            raise Refused(f"{output} is no folder", "Make it first, or name a file.")
        else:
            plan = [(target, list(founds))]
        there = [path for path, _ in plan if is_there(path)]
    except OSError as error:
        raise Refused(f"{output} cannot be written: {error.strerror or error}", "Name another file.") from error
    if there:
        context.confirm(f"Write over {', '.join(clean_line(str(path)) for path in there)}?", yes=yes)
    return [export_to(path, group, options, replace=path in there) for path, group in plan]
