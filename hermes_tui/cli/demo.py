"""``demo``: write example homes of every agent, to look around in."""

from __future__ import annotations

import argparse
from pathlib import Path

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library.demo import write_demo
from hermes_tui.text import clean_line


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("demo", "Write example conversations of every agent into a folder")
    parser.add_argument("dir", metavar="DIR", help="a folder that does not exist yet, or is empty")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    folder = Path(args.dir).expanduser().absolute()
    written = write_demo(folder, context.now, context.options.agents)
    if context.json:
        context.write({"done": [str(path) for path in written]})
    else:
        for path in written:
            context.say(f"wrote {clean_line(str(path))}")
        context.say(f"Look around with: hermes-tui --store {clean_line(str(folder))}")
    return context.ended
