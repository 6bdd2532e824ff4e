"""``cache``: where the prompt cache stopped hitting, and why."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library import shapes
from hermes_tui.library.cache import CacheReport, cache_report
from hermes_tui.library.json_output import ObjectWriter, dumps
from hermes_tui.text import clean_line, literal


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("cache", "Show where the prompt cache stopped hitting, and why")
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="the conversation of this session; without it every session"
    )
    parser.add_argument("--since", metavar="T", help="only from then on: a date, a moment or an age (7d, 5h)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    since = context.since(args.since)
    found = None if args.id is None else context.library.find(args.id)
    report = cache_report(context.library, found, since, here=context.here)
    context.note_stores((), report.failures)
    if context.json:
        writer = ObjectWriter(context.out.write)
        writer.items("points", (iter((dumps(shapes.point(one)),)) for one in report.points))
        writer.items("drops", (iter((dumps(shapes.drop(one)),)) for one in report.drops))
        writer.key("unknown_share", report.unknown_share)
        writer.close()
    else:
        _print(report, context)
    return context.ended


def _print(report: CacheReport, context: Context) -> None:
    from hermes_tui.cli import tables
    from hermes_tui.cli.tables import Column, Table

    made = Table(
        Column("at", keep=4),
        Column("session", keep=1),
        Column("from", right=True, keep=3),
        Column("to", right=True, keep=3),
        Column("lost", right=True, keep=5),
        Column("cost", right=True, keep=2),
        Column("cause", keep=6),
        Column("evidence", wide=True),
    )
    # What calls for a look comes first; within each, the order of the report.
    for drop in sorted(report.drops, key=lambda one: one.expected):
        made.add(
            tables.stamp(drop.request.at, context.zone),
            tables.cut(drop.request.session_id, 12),
            tables.rate(drop.from_rate),
            tables.rate(drop.to_rate),
            literal("-") if drop.cause == "first-request" else tables.short(drop.lost_tokens),
            literal("-" if drop.cost_usd is None else tables.amount(drop.cost_usd)),
            literal(drop.cause),
            clean_line(("expected; " if drop.expected else "") + drop.evidence),
        )
    if report.drops:
        context.print(made)
    bad = [drop for drop in report.drops if not drop.expected]
    lost = sum(drop.lost_tokens for drop in bad)
    money = sum(drop.cost_usd or 0.0 for drop in bad)
    words = f"{len(report.points):,} requests, {len(bad):,} drops, lost {tables.short(lost)} tokens"
    if money:
        words += f", about {tables.amount(money)} USD"
    context.print(tables.line(literal(f"{words}, cause unknown for {report.unknown_share:.0%}")))
