"""``lineage``: how a conversation came apart."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import ID_HELP, Subparsers
from hermes_tui.library import shapes
from hermes_tui.library.lineage import lineage_of
from hermes_tui.model import Compaction, Lineage, LineageNode, SessionId
from hermes_tui.text import CleanText, clean_line, literal


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("lineage", "Show the tree of sessions a session hangs in")
    parser.add_argument("id", metavar="ID", help=ID_HELP)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    tree = lineage_of(context.library.find(args.id))
    if context.json:
        context.write(
            {
                "root_id": tree.root_id,
                "tree_root_id": tree.tree_root_id,
                "conversation": list(tree.conversation),
                "nodes": [shapes.node(one) for one in tree.nodes],
            }
        )
    else:
        _print(tree, context)
    return context.ended


def _print(tree: Lineage, context: Context) -> None:
    from hermes_tui.cli import tables
    from hermes_tui.cli.tables import Column, Table

    made = Table(
        Column("session", wide=True),
        Column("id", keep=2),
        Column("tokens", right=True, keep=3),
        Column("hit", right=True, keep=5),
        Column("cost", right=True, keep=4),
        Column("msgs", right=True, keep=1),
        Column("started", keep=3),
        Column("ended"),
    )
    for node, indent in ordered(tree):
        row = node.row
        mark = "*" if node.id in tree.conversation else "o"
        made.add(
            CleanText(f"{'  ' * indent}{mark} {node.kind}  {clean_line(row.title or row.preview or '')}"),
            tables.cut(node.id, 26),
            tables.tokens(row.usage),
            tables.rate(None if row.usage is None else row.usage.hit_rate),
            tables.usd(row.cost),
            tables.count(row.message_count),
            tables.when(row.started_at, context.now, context.zone),
            tables.cut(row.end_reason, 14),
        )
        for event in node.compactions:
            made.add(
                CleanText(f"{'  ' * indent}  = {clean_line(_compacted(event))}"),
                *[literal("")] * 5,
                tables.when(event.at, context.now, context.zone),
                literal(""),
            )
    context.print(made, tables.line(literal("* this conversation   o others")))
    findings = [f"{node.id}: {finding}" for node in tree.nodes for finding in node.findings]
    context.print(tables.line(clean_line("findings: " + ("; ".join(findings) or "none"))))


def _compacted(event: Compaction) -> str:
    """What a compaction did, as far as the store tells."""
    from hermes_tui.cli import tables

    told = ["compaction" + (f" {event.trigger}" if event.trigger else "")]
    if event.before_tokens is not None or event.after_tokens is not None:
        told.append(f"{tables.short(event.before_tokens)} -> {tables.short(event.after_tokens)} tokens")
    if event.dropped is not None:
        told.append(f"{tables.count(event.dropped)} messages dropped")
    if event.kept is not None:
        told.append(f"{tables.count(event.kept)} kept")
    return ", ".join(told)


def ordered(tree: Lineage) -> list[tuple[LineageNode, int]]:
    """Every node under its parent with its depth; those no walk reaches (rings) at the end."""
    children: dict[SessionId | None, list[LineageNode]] = {}
    known = {node.id for node in tree.nodes}
    for node in tree.nodes:
        parent = node.parent_id if node.parent_id in known and node.id != tree.tree_root_id else None
        children.setdefault(parent, []).append(node)
    lines: list[tuple[LineageNode, int]] = []
    seen: set[SessionId] = set()
    stack = [(node, 0) for node in reversed(children.get(None, []))]
    while stack:
        node, depth = stack.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        lines.append((node, depth))
        stack += [(child, depth + 1) for child in reversed(children.get(node.id, []))]
    return lines + [(node, 0) for node in tree.nodes if node.id not in seen]
