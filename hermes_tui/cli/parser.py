"""The options of the command line. Only the module of the command that was asked for is imported."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from hermes_tui.library.failures import WrongUse
from hermes_tui.library.sources import SourceOptions
from hermes_tui.model import AGENTS

COMMANDS: Final[dict[str, str]] = {
    "list": "listing",
    "show": "show",
    "lineage": "lineage",
    "search": "search",
    "cost": "cost",
    "cache": "cache",
    "recover": "recover",
    "export": "export",
    "resume": "resume",
    "doctor": "doctor",
    "demo": "demo",
    "keys": "keys",
    "mirror": "mirror",
    "rename": "changes",
    "archive": "changes",
    "unarchive": "changes",
    "end": "changes",
    "delete": "changes",
    "clear": "changes",
    "prune": "changes",
    "restore": "changes",
    "pin": "annotations",
    "unpin": "annotations",
    "tag": "annotations",
    "untag": "annotations",
    "note": "annotations",
    "pins": "annotations",
}
"""Command -> module of this package that holds it."""
ID_HELP: Final = "whole, a prefix only one session has, or store:id"
"""How a session is named (contract.md, Common forms)."""
SCREEN_COMMANDS: Final = ("open",)
"""Commands that start the screen; main.py answers them, here they are only parsed."""
COMMON_ARGUMENTS_WITH_VALUE: Final = ("--store", "--agent", "--profile")


SCREENS: Final = {"sessions": "list", "costs": "cost", "health": "doctor", "transcript": "show", "recovery": "recover"}
"""Commands by the names of the screens that show the same."""


class Parser(argparse.ArgumentParser):
    """Raises our own error instead of leaving the process, so that --json holds for wrong use too."""

    def error(self, message: str) -> NoReturn:
        raise WrongUse(message[:1].upper() + message[1:], f"{_meant(message)}See `{self.prog} --help`.")


def _meant(message: str) -> str:
    """The command a wrong one stands for, where that can be told: a slip of a letter, or what a screen is called."""
    found = re.match(r"argument COMMAND: invalid choice: '([^']*)' \(choose from (.*)\)", message)
    if found is None:
        return ""
    from difflib import get_close_matches

    wrong, commands = found[1], [name.strip("' ") for name in found[2].split(",")]
    near = [SCREENS[wrong]] if wrong in SCREENS else get_close_matches(wrong, commands, 1)
    return f"Did you mean `hermes-tui {near[0]}`? " if near else ""


class Subparsers:
    """Where commands are added; gives each the options that all share."""

    def __init__(self, action: Any) -> None:
        self._action = action

    def add(self, name: str, purpose: str, **more: Any) -> argparse.ArgumentParser:
        """A parser for one command, with --json, --store, --agent, --profile and --here already there."""
        parser: argparse.ArgumentParser = self._action.add_parser(
            name,
            help=purpose,
            description=purpose + ".",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **more,
        )
        _add_common(parser, "after")
        return parser


def _add_common(parser: argparse.ArgumentParser, place: str) -> None:
    """The options all commands share; ``place`` keeps those before the command apart from those after it."""
    group = parser.add_argument_group("stores and output")
    group.add_argument("--json", action="store_true", dest=f"json_{place}", help="print one JSON document")
    group.add_argument(
        "--store", action="append", default=[], type=place_named, metavar="PATH", dest=f"store_{place}",
        help="look only there; may be given again",
    )  # fmt: skip
    group.add_argument(
        "--agent", action="append", default=[], choices=AGENTS, dest=f"agent_{place}",
        help="only stores of this agent; may be given again",
    )  # fmt: skip
    group.add_argument(
        "--profile", action="append", default=[], metavar="NAME", dest=f"profile_{place}",
        help="only stores of this profile; may be given again",
    )  # fmt: skip
    group.add_argument(
        "--here", action="store_true", dest=f"here_{place}", help="only sessions of the current folder and below"
    )


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; ``run`` in the answer is the command's function, ``command`` its name or ``None``.

    Raises:
        WrongUse: it can't be understood.
    """
    return build_parser(_asked_for(argv)).parse_args(argv)


def _asked_for(argv: Sequence[str]) -> str | None:
    """The command among the arguments, '' where there is none; ``None`` where all must be known: for help, or an error.

    The screen imports no command: all of them are 60 ms before its first list.
    """
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in COMMON_ARGUMENTS_WITH_VALUE:
            skip = True
        elif word in ("-h", "--help"):
            return None
        elif not word.startswith("-"):
            return word if word in COMMANDS or word in SCREEN_COMMANDS else None
    return ""


def build_parser(command: str | None = None) -> Parser:
    """The parser with one command, with ``open`` alone (''), or with all of them."""
    parser = Parser(
        prog="hermes-tui",
        description="A terminal browser for the conversations that AI agents leave on disk. "
        "Without a command it starts the screen.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    parser.add_argument("--ascii", action="store_true", help="draw the screen with ASCII signs only")
    _add_common(parser, "before")
    action = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    subparsers = Subparsers(action)
    wanted = COMMANDS if command is None else {command} & COMMANDS.keys()
    for module in dict.fromkeys(COMMANDS[name] for name in wanted):
        import_module(f"hermes_tui.cli.{module}").add_command(subparsers)
    opener = subparsers.add("open", "Start the screen at one conversation")
    opener.add_argument("id", metavar="ID", help=ID_HELP)
    return parser


def source_options(args: argparse.Namespace) -> SourceOptions:
    """Which stores the options name."""
    return SourceOptions(
        paths=(*args.store_before, *getattr(args, "store_after", ())),
        agents=tuple(dict.fromkeys((*args.agent_before, *getattr(args, "agent_after", ())))),
        profiles=(*args.profile_before, *getattr(args, "profile_after", ())),
    )


def wants_json(args: argparse.Namespace) -> bool:
    """Whether --json stands before or after the command."""
    return bool(args.json_before or getattr(args, "json_after", False))


def here(args: argparse.Namespace) -> str | None:
    """The folder --here means."""
    return os.getcwd() if args.here_before or getattr(args, "here_after", False) else None  # noqa: PTH109  raw text


def add_list_filters(parser: argparse.ArgumentParser) -> None:
    """The filters of ``list``, which prune shares (contract.md)."""
    group = parser.add_argument_group("filters")
    group.add_argument("--source", metavar="S", help="only this source (cli, telegram, cron, …)")
    group.add_argument("--model", metavar="M", help="only this model, exactly")
    group.add_argument("--cwd", type=folder, metavar="P", help="only this folder and below")
    group.add_argument("--channel", metavar="KEY", help="only this session key, followed through compaction")
    group.add_argument("--since", metavar="T", help="last active at or after: a date, a moment or an age (7d, 5h)")
    group.add_argument("--until", metavar="T", help="last active at or before")


def place_named(text: str) -> str:
    """A path that names something: an empty one is a variable somebody forgot to set, not the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an empty path names no place")
    return text


def folder(text: str) -> str:
    """A folder sessions ran in: as stores write it, or from the current one (``.``, ``../x``) or the home (``~/x``)."""
    if not re.match(r"\.{1,2}(/|$)|~", place_named(text)):
        return text
    return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100,PTH111  raw text


MOST_ROWS: Final = 1 << 40
"""A larger number of rows is as good as this one, which SQLite can still count beyond."""


def positive(text: str) -> int:
    """A number of rows, 0 or more."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return min(number, MOST_ROWS)
