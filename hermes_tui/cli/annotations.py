"""``pin``, ``unpin``, ``tag``, ``untag``, ``note`` and ``pins``: our own data about sessions of every agent."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library.annotations import Noted, all_noted, annotate
from hermes_tui.library.failures import ExitCode, Refused
from hermes_tui.text import clean_line


def add_command(subparsers: Subparsers) -> None:
    for verb, purpose in (("pin", "Pin conversations"), ("unpin", "Take pins away")):
        parser = subparsers.add(verb, purpose)
        parser.add_argument("ids", nargs="+", metavar="ID", help=ID_HELP)
        parser.set_defaults(run=run, values=[])
    for verb, purpose in (("tag", "Give a conversation tags"), ("untag", "Take tags away")):
        parser = subparsers.add(verb, purpose)
        parser.add_argument("ids", nargs=1, metavar="ID", help=ID_HELP)
        parser.add_argument("values", nargs="+", metavar="NAME", help="a tag, up to 60 characters")
        parser.set_defaults(run=run)
    parser = subparsers.add("note", "Write a note on a conversation; an empty one takes it away")
    parser.add_argument("ids", nargs=1, metavar="ID", help=ID_HELP)
    parser.add_argument("values", nargs=1, metavar="TEXT", help="what to remember of it")
    parser.set_defaults(run=run)
    subparsers.add("pins", "List everything that is pinned, tagged or noted").set_defaults(run=run_pins)


def run(args: argparse.Namespace, context: Context) -> int:
    found = [context.library.find(text) for text in args.ids]
    done = annotate(context.mirrored, found, args.command, args.values, context.now)
    if context.json:
        context.write({"done": list(done)})
    else:
        context.say(f"{args.command}: {', '.join(clean_line(one) for one in done)}")
    return ExitCode.DONE


def run_pins(args: argparse.Namespace, context: Context) -> int:
    del args
    try:
        noted = all_noted(context.mirrored)
    except OSError as error:
        place = clean_line(str(context.library.locations.annotations))
        raise Refused(f"{place} cannot be read: {error.strerror or error}", "Mend it, or move it away.") from error
    if context.json:
        context.write({"pins": [_shape(one) for one in noted]})
    else:
        _print(noted, context)
    return ExitCode.DONE


def _shape(one: Noted) -> dict[str, object]:
    return {
        "agent": one.key.agent,
        "store": None if one.store is None else one.store.name,
        "path": one.key.store_path,
        "id": one.key.session_id,
        "pinned": one.annotation.pinned,
        "tags": list(one.annotation.tags),
        "note": one.annotation.note,
    }


def _print(noted: list[Noted], context: Context) -> None:
    from hermes_tui.cli import tables

    if not noted:
        context.say("Nothing is pinned, tagged or noted yet. `hermes-tui pin ID` pins a conversation.")
    for one in noted:
        store = one.key.agent if one.store is None else one.store.name
        tags = " ".join(f"#{tag}" for tag in one.annotation.tags)
        pin = "pinned" if one.annotation.pinned else ""
        words = "  ".join(part for part in (store, one.key.session_id, pin, tags, one.annotation.note or "") if part)
        context.print(tables.line(clean_line(words)))
