"""``search``: where was it said?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers, folder, positive
from hermes_tui.library import search_shape
from hermes_tui.library.failures import ExitCode
from hermes_tui.library.search import LIMIT, SearchHit, SearchRequest, SearchRun, search
from hermes_tui.model import MessageKind
from hermes_tui.stores.protocol import SearchFilters
from hermes_tui.text import CleanText, clean_line, literal

if TYPE_CHECKING:
    from rich.console import RenderableType

NEAR = 100
"""Characters of a neighbouring message in a table."""
SYNTAX = """\
words: all of them in one message     "…": a phrase        word*: beginnings
OR, NOT in capitals, ( ) to group
Korean, Chinese and Japanese are found inside longer words"""


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("search", "Search everything that was said", epilog=SYNTAX)
    parser.add_argument("query", metavar="QUERY", help="words, all of which must be in one message; more below")
    parser.add_argument("--sort", choices=("newest", "oldest", "rank"), default="newest", help="default: newest")
    parser.add_argument("--limit", type=positive, default=LIMIT, metavar="N", help=f"hits, default {LIMIT}")
    parser.add_argument("--all", action="store_true", dest="everything", help="every hit")
    parser.add_argument("--after", metavar="CURSOR", help="go on where a page ended: its `next`")
    parser.add_argument("--regex", action="store_true", help="a regular expression, case counts; reads everything")
    parser.add_argument("--all-states", action="store_true", help="rewound messages and dead branches too")
    _add_filters(parser)
    parser.set_defaults(run=run)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filters")
    group.add_argument("--source", metavar="S", help="only this source (cli, telegram, cron, …)")
    group.add_argument("--exclude-source", metavar="S", help="not this source")
    group.add_argument("--role", metavar="R", help="only this role (user, assistant, tool, …)")
    group.add_argument("--kind", choices=get_args(MessageKind), metavar="K", help="only this kind of message")
    group.add_argument("--model", metavar="M", help="only this model, exactly")
    group.add_argument("--cwd", type=folder, metavar="P", help="only this folder and below")
    group.add_argument("--channel", metavar="KEY", help="only this session key, followed through compaction")
    group.add_argument("--since", metavar="T", help="said at or after: a date, a moment or an age (7d, 5h)")
    group.add_argument("--until", metavar="T", help="said at or before")


def run(args: argparse.Namespace, context: Context) -> int:
    request = SearchRequest(
        query=args.query,
        regex=args.regex,
        sort=args.sort,
        filters=_filters(args, context),
        limit=None if args.everything else args.limit,
        after=args.after,
    )
    running = search(context.library, request)
    count = _write(running, context) if context.json else _print(running, context)
    _explain(running, context, count)
    if count:
        return context.ended
    return context.ended or ExitCode.REFUSED


def _filters(args: argparse.Namespace, context: Context) -> SearchFilters:
    return SearchFilters(
        source=args.source,
        exclude_source=args.exclude_source,
        role=args.role,
        kind=args.kind,
        model=args.model,
        cwd=args.cwd or context.here,
        channel=args.channel,
        since=context.since(args.since),
        until=context.until(args.until),
        all_states=args.all_states,
    )


def _write(running: SearchRun, context: Context) -> int:
    from hermes_tui.library.json_output import ObjectWriter, dumps

    count = 0

    def hits() -> Iterator[Iterator[str]]:
        nonlocal count
        for hit in running:
            count += 1
            yield iter((dumps(search_shape.hit(hit)),))

    writer = ObjectWriter(context.out.write)
    writer.key("query", running.request.query)
    writer.items("hits", hits())
    for name, value in search_shape.ending(running).items():
        writer.key(name, value)
    writer.close()
    return count


def _print(running: SearchRun, context: Context) -> int:
    """Hits as they come; those of one conversation that follow each other stand under one head line."""
    from hermes_tui.cli import tables

    count = 0
    before: object = None
    for hit in running:
        group = (hit.store.ref.name, hit.root_id or hit.head.session_id)
        if group != before:
            context.print(*([tables.line(literal(""))] if count else []), tables.line(_heading(hit), "bold"))
            before = group
        count += 1
        when = tables.stamp(hit.head.at, context.zone)
        copies = f" (stored {hit.copies} times)" if hit.copies > 1 else ""
        state = "" if hit.head.state == "live" else f" {hit.head.state}"
        context.print(_line(2, f"{when} {hit.head.kind}{state}  #{hit.head.id}{copies}"))
        context.print(_line(4, hit.snippet.marked))
        for name, neighbour in (("before", hit.before), ("after", hit.after)):
            if neighbour is not None:
                context.print(_line(6, f"{name}: {neighbour.role or ''}  {neighbour.text[:NEAR]}", "dim"))
    if count:
        routes = " · ".join(f"{name} {route}" for name, route in running.route.items())
        more = f" · more: --after {running.next}" if running.next else ""
        context.print(tables.line(clean_line(f"{count:,} {'hit' if count == 1 else 'hits'} · via {routes}{more}")))
    return count


def _heading(hit: SearchHit) -> CleanText:
    title = hit.title or (hit.session.preview if hit.session else None) or "(untitled)"
    orphan = "" if hit.session is not None else " · its session is gone"
    source = hit.session.source if hit.session is not None and hit.session.source else ""
    parts = [title, hit.store.ref.name, source, hit.head.session_id]
    return clean_line(" · ".join(part for part in parts if part) + orphan)


def _line(indent: int, text: str, style: str = "") -> RenderableType:
    from rich.padding import Padding

    from hermes_tui.cli import tables

    return Padding(tables.line(clean_line(text), style), (0, 0, 0, indent), expand=False)


def _explain(running: SearchRun, context: Context, count: int) -> None:
    """Say what was done otherwise than usual, what may be missing, and why nothing was found."""
    context.note_stores((), running.failures)
    for name, notes in running.notes.items():
        for note in dict.fromkeys(notes):
            context.say(f"hermes-tui: {name}: {clean_line(note)}")
    if running.incomplete and not running.failures:
        context.say(f"hermes-tui: {clean_line(running.incomplete)}")
    if running.ranked_of is not None:
        context.say(f"hermes-tui: ranked are the newest {running.ranked_of:,} hits; there are more")
    if not count and not context.json and running.matcher.empty_reason is None:
        context.say("Nothing was found. Fewer words, word* or OR find more; --all-states finds rewound messages too.")
