"""``recover``: what the model would be sent if a session were resumed now."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library import shapes
from hermes_tui.library.json_output import ObjectWriter, dumps
from hermes_tui.library.recovery import parse_cut, recover
from hermes_tui.model import Recovery
from hermes_tui.text import clean_line, literal


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("recover", "Show what the model would be sent if a session were resumed now")
    parser.add_argument("id", metavar="ID", help=ID_HELP)
    parser.add_argument(
        "--cut", metavar="LINE[:BYTE]", help="as if the log ended behind this line, or behind so many bytes of it"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    cut = None if args.cut is None else parse_cut(args.cut)
    answer = recover(context.library.find(args.id), cut)
    if context.json:
        writer = ObjectWriter(context.out.write)
        writer.key("session_id", answer.session_id)
        writer.key("base", shapes.recovery_base(answer))
        writer.items("messages", (iter((dumps(shapes.message(one)),)) for one in answer.messages))
        for name, value in shapes.recovery_tail(answer).items():
            writer.key(name, value)
        writer.close()
    else:
        _print(answer, context)
    return context.ended


def _print(answer: Recovery, context: Context) -> None:
    from hermes_tui.cli import tables
    from hermes_tui.cli.page import print_messages

    where = "" if answer.base_line is None else f", line {answer.base_line:,}"
    base = "the start of the log" if answer.base_kind == "start" else f"a compaction{where}"
    baseline = "none, the context is sent again" if answer.baseline is None else "kept"
    context.print(
        tables.line(clean_line(f"{answer.row.title or answer.session_id}: {len(answer.messages):,} messages")),
        tables.line(literal(f"base: {base} · baseline: {baseline} · window {tables.count(answer.window)}")),
    )
    print_messages(answer.messages, None, context)
    for one in answer.ignored:
        context.say(f"passed over: {one.path or ''}:{one.line or ''} {one.reason}")
