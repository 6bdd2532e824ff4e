"""``cost``: what it cost, by model and more."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library import shapes
from hermes_tui.library.cost import CostReport, CostRow, cost_report
from hermes_tui.text import CleanText, clean_line, literal

if TYPE_CHECKING:
    from hermes_tui.cli.tables import Table

GROUPINGS = ("model", "task", "day", "source", "cwd", "store", "profile", "channel", "provider", "session")


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("cost", "Show what it cost")
    parser.add_argument("--by", choices=GROUPINGS, default="model", help="default: model")
    parser.add_argument("--since", metavar="T", help="only from then on: a date, a moment or an age (7d, 5h)")
    parser.add_argument("--until", metavar="T", help="only up to then")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    since, until = context.since(args.since), context.until(args.until)
    report = cost_report(context.library, args.by, since, until, context.zone, context.zone_name, here=context.here)
    context.note_stores((), report.failures)
    if context.json:
        context.write(
            {
                "rows": [shapes.cost_row(row) for row in report.rows],
                "totals": shapes.cost_totals(report.totals),
                "time_zone": report.zone_name,
                "apart": [shapes.cost_row(row) for row in report.apart],
            }
        )
    else:
        _print(report, args.by, context)
    return context.ended


def _print(report: CostReport, by: str, context: Context) -> None:
    from hermes_tui.cli import tables
    from hermes_tui.cli.tables import Column, Table

    made = Table(
        Column(by, wide=True),
        Column("sessions", right=True, keep=3),
        Column("requests", right=True, keep=1),
        Column("input", right=True, keep=4),
        Column("read", right=True, keep=4),
        Column("write", right=True, keep=2),
        Column("output", right=True, keep=4),
        Column("hit", right=True, keep=5),
        Column("cost", right=True, keep=6),
    )
    for row in report.rows:
        _add(made, clean_line(row.key) if row.key else literal("(none)"), row)
    _add(made, literal("total"), report.totals)
    for row in report.apart:
        _add(made, clean_line(f"not in the total: {row.key or '(none)'}"), row)
    context.print(made)
    parts = [f"{status} {'?' if usd is None else tables.amount(usd)}" for status, usd in report.totals.parts]
    context.print(tables.line(literal(" · ".join([*parts, f"local days: {clean_line(report.zone_name)}"]))))
    if report.totals.priced_by:
        signs = "~ is an estimate, ± a sum of several kinds, ? not known"
        context.print(tables.line(clean_line(f"priced by {report.totals.priced_by}; {signs}")))


def _add(made: Table, name: CleanText, row: CostRow) -> None:
    from hermes_tui.cli import tables

    usage = row.usage
    made.add(
        name,
        tables.count(row.sessions),
        tables.count(row.requests),
        tables.short(usage.input),
        tables.short(usage.cache_read),
        tables.short(usage.cache_write),
        tables.short(usage.output),
        tables.rate(usage.hit_rate),
        tables.usd(row.cost),
    )
