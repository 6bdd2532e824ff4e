"""``list``: what is there, newest first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers, add_list_filters, positive
from hermes_tui.library import shapes
from hermes_tui.library.catalog import CatalogListing, listing, readable_rows
from hermes_tui.model import ListQuery, SessionRow
from hermes_tui.text import CleanText, clean_line, literal

DEFAULT_LIMIT = 50
ORDERS = ("activity", "started", "tokens", "cost", "messages")


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("list", "List conversations, newest activity first")
    parser.add_argument("--order", choices=ORDERS, default="activity", help="default: activity")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--limit", type=positive, metavar="N", help=f"so many rows (default {DEFAULT_LIMIT})")
    size.add_argument("--all", action="store_true", help="every row")
    parser.add_argument("--archived", action="store_true", help="archived ones too")
    parser.add_argument("--children", action="store_true", help="delegated runs too")
    parser.add_argument("--sessions", action="store_true", help="one row a session, nothing left out")
    add_list_filters(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    query = list_query(args, context)
    limit = None if args.all else (DEFAULT_LIMIT if args.limit is None else args.limit)
    found = listing(context.library, query, limit)
    shown, failures = readable_rows(found.entries, conversation=not query.sessions, order=query.order)
    context.note_stores(found.stores, (*found.failures, *failures))
    if context.json:
        context.write(
            {
                "sessions": [shapes.session(row) for row in shown],
                "total": found.total,
                "left_out": found.left_out,
                "stores": [shapes.store(status) for status in found.stores],
            }
        )
    else:
        _print(found, shown, context)
    if not context.library.stores and not context.library.missing:
        context.say(f"hermes-tui: no store was found. {context.library.where_looked()}")
    return context.ended


def list_query(args: argparse.Namespace, context: Context) -> ListQuery:
    """The query these options mean; shared with prune."""
    return ListQuery(
        order=getattr(args, "order", "activity"),
        source=args.source,
        model=args.model,
        cwd=args.cwd if args.cwd is not None else context.here,
        channel=args.channel,
        since=context.since(args.since),
        until=context.until(args.until),
        archived=getattr(args, "archived", False),
        children=getattr(args, "children", False),
        sessions=getattr(args, "sessions", False),
    )


def _print(found: CatalogListing, shown: Sequence[SessionRow], context: Context) -> None:
    from hermes_tui.cli import tables
    from hermes_tui.cli.tables import Column, Table

    several = len(found.stores) > 1
    made = Table(
        Column("title", wide=True),
        Column("parts", keep=5),
        Column("store" if several else "", keep=2 if several else 0),
        Column("model", keep=1),
        Column("msgs", right=True, keep=6),
        Column("tokens", right=True, keep=3),
        Column("cache", right=True, keep=2),
        Column("cost", right=True, keep=6),
        Column("active", keep=7),
        Column("id", keep=4),
    )
    for row in shown:
        made.add(
            clean_line(row.title or "") or clean_line(f"(untitled) {row.preview or ''}"),
            _marks(row),
            tables.cut(row.store.name if several else "", 16),
            tables.cut(row.model, 18),
            tables.count(row.message_count),
            tables.tokens(row.usage),
            tables.rate(None if row.usage is None else row.usage.hit_rate),
            tables.usd(row.cost),
            CleanText(tables.when(row.last_active_at, context.now, context.zone) + (" *" if row.running else "")),
            tables.cut(row.id, 24),
        )
    if shown:
        context.print(made)
    more = f"{len(shown):,} of {found.total:,}" if found.total > len(shown) else f"{found.total:,}"
    left = ", ".join(f"{count:,} {reason}" for reason, count in sorted(found.left_out.items()))
    context.print(tables.line(literal(f"{more} conversations" + (f" · left out: {left}" if left else ""))))
    where = " · ".join(f"{status.ref.name} {status.state} {status.sessions or 0}" for status in found.stores)
    if where:
        context.print(tables.line(clean_line(where)))


def _marks(row: SessionRow) -> CleanText:
    kinds = {"root": "", "compaction": ""}
    marks = [kinds.get(row.lineage_kind, row.lineage_kind)]
    marks += [f"c{row.compactions or row.parts - 1}"] if row.compactions or row.parts > 1 else []
    marks += [f"b{row.branches}"] if row.branches else []
    marks += [f"d{row.delegated}"] if row.delegated else []
    marks += ["archived"] if row.archived else []
    return literal(" ".join(mark for mark in marks if mark))
