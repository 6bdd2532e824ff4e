"""``keys``: every key of the screen, and every command of its palette."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library.commands import COMMANDS, shown_keys
from hermes_tui.text import literal


def add_command(subparsers: Subparsers) -> None:
    subparsers.add("keys", "List every key and command of the screen").set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    del args
    if context.json:
        commands = [
            {
                "id": one.id,
                "name": one.name,
                "purpose": one.purpose,
                "keys": [key for key in one.key.split(",") if key],
                "screen": one.screen,
            }
            for one in COMMANDS
        ]
        context.write({"commands": commands})
        return context.ended
    from hermes_tui.cli.tables import Column, Table

    made = Table(
        Column("screen", keep=3),
        Column("keys", keep=4),
        Column("command", keep=5),
        Column("id", keep=1),
        Column("purpose", wide=True),
    )
    before = ""
    for one in COMMANDS:
        screen = "" if one.screen == before else one.screen
        before = one.screen
        made.add(literal(screen), literal(shown_keys(one)), literal(one.name), literal(one.id), literal(one.purpose))
    context.print(made)
    return context.ended
