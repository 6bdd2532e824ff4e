"""``export``: conversations as files to keep or pass on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library.export import FORMATS, ExportOptions, Format, export, export_to, file_name
from hermes_tui.library.sources import Found
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
    founds = [context.library.find(text) for text in args.ids]
    options = ExportOptions(_format(args, context), args.redact, args.conversation, args.all_states)
    if args.output in (None, "-"):
        _to_stdout(founds, options, context)
        return context.ended
    done = _to_files(Path(args.output).expanduser(), founds, options, args.yes, context)
    if context.json:
        context.write({"done": [str(path) for path in done]})
    else:
        for path in done:
            context.say(f"wrote {clean_line(str(path))}")
    return context.ended


def _format(args: argparse.Namespace, context: Context) -> Format:
    suffix = args.format or Path(args.output or "").suffix.lstrip(".").lower()
    for known in FORMATS:
        if suffix == known:
            return known
    return "json" if context.json and args.output is None else "md"


def _to_stdout(founds: Sequence[Found], options: ExportOptions, context: Context) -> None:
    """JSON is safe as it is; a page for people goes to a terminal clean, and to a file as it was said."""
    if context.out.isatty() and options.format in ("md", "html"):
        export(founds, options, lambda text: context.out.write(clean(text)))
    else:
        export(founds, options, context.out.write)


def _to_files(target: Path, founds: Sequence[Found], options: ExportOptions, yes: bool, context: Context) -> list[Path]:
    if target.is_dir():
        plan = [(target / file_name(found, options), [found]) for found in founds]
    else:
        plan = [(target, list(founds))]
    there = [path for path, _ in plan if path.exists()]
    if there:
        context.confirm(f"Write over {', '.join(clean_line(str(path)) for path in there)}?", yes=yes)
    return [export_to(path, group, options, replace=path in there) for path, group in plan]
