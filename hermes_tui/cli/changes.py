"""``rename archive unarchive end delete clear prune restore``: say what will happen, ask, do it, say what happened."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hermes_tui.cli.context import Context
from hermes_tui.cli.listing import list_query
from hermes_tui.cli.parser import ID_HELP, Subparsers, add_list_filters
from hermes_tui.library.cleanup import ChangePlan, ChangeResult, apply, plan, plan_prune, preview, restorable, restore
from hermes_tui.library.failures import ExitCode, WrongUse
from hermes_tui.stores.changing import REASONS, Kept, PruneRule
from hermes_tui.text import CleanText, clean_line, literal

DEFAULT_AGE = "90d"
"""As the product's own prune (facts/hermes.md section 10)."""
SHOWN = 20
"""Sessions named on a terminal before they are only counted."""
PURPOSES = {
    "rename": "Give a session another title",
    "archive": "Archive whole conversations",
    "unarchive": "Take whole conversations out of the archive",
    "end": "Mark sessions as ended",
    "delete": "Delete sessions with the runs they delegated; they can be restored",
    "clear": "Delete the messages of a session and keep the session; they can be restored",
    "prune": "Delete old sessions, after saying of each why it goes or stays; they can be restored",
    "restore": "Bring back a deleted session; without an ID, list those that can be",
}
PAST = {
    "rename": "renamed",
    "archive": "archived",
    "unarchive": "taken out of the archive",
    "end": "ended",
    "delete": "deleted",
    "clear": "emptied",
    "prune": "deleted",
    "restore": "restored",
}


def add_command(subparsers: Subparsers) -> None:
    for verb, purpose in PURPOSES.items():
        parser = subparsers.add(verb, purpose)
        if verb == "restore":
            parser.add_argument("ids", nargs="?", metavar="ID", help=f"{ID_HELP}; none: list what can be restored")
        elif verb in ("rename", "clear"):
            parser.add_argument("ids", nargs=1, metavar="ID", help=ID_HELP)
        elif verb != "prune":
            parser.add_argument("ids", nargs="+", metavar="ID", help=ID_HELP)
        if verb == "rename":
            parser.add_argument("title", metavar="TITLE", help="at most 100 characters; empty: no title")
        if verb in ("delete", "clear"):
            parser.add_argument("--conversation", action="store_true", help="every session of the conversation")
        if verb in ("delete", "clear", "prune"):
            parser.add_argument(
                "--drop-cjk-index",
                action="store_true",
                help="where rows cannot be deleted otherwise: give up the store's index for Chinese, Japanese and"
                " Korean until the agent builds it again",
            )
        if verb == "prune":
            _add_prune_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only say what would happen")
        parser.add_argument("--yes", action="store_true", help="do not ask")
        parser.set_defaults(run={"prune": run_prune, "restore": run_restore}.get(verb, run))


def _add_prune_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        default=DEFAULT_AGE,
        help=f"by last activity; default {DEFAULT_AGE} (Hermes 0.19 itself goes by the start, newer by activity)",
    )
    parser.add_argument(
        "--end-idle",
        metavar="AGE",
        help="first end sessions that never ended and are idle that long; only ended ones go",
    )
    parser.add_argument("--archived", action="store_true", help="archived ones too")
    add_list_filters(parser)


def run(args: argparse.Namespace, context: Context) -> int:
    planned = plan(
        context.library,
        args.command,
        args.ids,
        now=context.now,
        title=getattr(args, "title", None),
        whole=getattr(args, "conversation", False),
        drop_cjk=getattr(args, "drop_cjk_index", False),
    )
    return _carry_out(args, context, planned)


def run_prune(args: argparse.Namespace, context: Context) -> int:
    rule = PruneRule(
        _age(context, args.older_than, "--older-than"),
        list_query(args, context),
        None if args.end_idle is None else _age(context, args.end_idle, "--end-idle"),
    )
    planned = plan_prune(context.library, rule, now=context.now, drop_cjk=args.drop_cjk_index)
    return _carry_out(args, context, planned)


def run_restore(args: argparse.Namespace, context: Context) -> int:
    if args.ids is None:
        return _list_trash(args, context)
    result = restore(context.library, args.ids, now=context.now, dry_run=True)
    if not args.dry_run:
        count = f"{len(result.done)} sessions with {result.messages} messages"
        context.confirm(f"Restore {count}?", yes=args.yes)
        result = restore(context.library, args.ids, now=context.now)
    return _report(args, context, result)


def _list_trash(args: argparse.Namespace, context: Context) -> int:
    """What can be brought back, what was deleted last first; as JSON a dry run that would bring back all."""
    from hermes_tui.cli import tables

    lying, result = restorable(context.library)
    if context.json:
        return _report(args, context, result)
    made = tables.Table(
        tables.Column("title", wide=True), tables.Column("by"), tables.Column("deleted"), tables.Column("id")
    )
    for one in lying:
        when = CleanText(tables.when(one.entry.at, context.now, context.zone))
        made.add(clean_line(one.title or "(untitled)"), clean_line(one.entry.verb), when, clean_line(one.name))
    if lying:
        context.print(made)
    for failure in result.failures:
        context.say(f"hermes-tui: {clean_line(failure)}")
    context.print(tables.line(literal(f"{len(lying):,} can be restored; `hermes-tui restore ID`")))
    return context.ended


def _carry_out(args: argparse.Namespace, context: Context, planned: ChangePlan) -> int:
    """Show the plan, ask, do it."""
    if args.dry_run:
        return _report(args, context, preview(planned))
    if not planned.going and not planned.ending:
        # Nothing to ask about: say why.
        return _report(args, context, apply(context.library, planned, now=context.now))
    if not args.yes and context.interactive:
        _announce(context, planned)
    context.confirm(_question(planned), yes=args.yes)
    shown = sys.stderr.isatty() and not context.json

    def progress(done: int, total: int) -> None:
        if shown and total > 1:
            context.err.write(f"\r{done} of {total}" + ("\n" if done == total else ""))
            context.err.flush()

    return _report(args, context, apply(context.library, planned, now=context.now, progress=progress))


def _question(planned: ChangePlan) -> str:
    count = len(planned.going)
    sessions = "1 session" if count == 1 else f"{count} sessions"
    if planned.verb == "rename":
        return f"Call it {planned.title or '(no title)'}?"
    if planned.verb in ("delete", "clear", "prune"):
        what = "messages of " if planned.verb == "clear" else ""
        return f"Delete {what}{sessions} ({planned.messages} messages)?"
    return f"{planned.verb.capitalize()} {sessions}?"


def _announce(context: Context, planned: ChangePlan) -> None:
    """What will happen, before the question."""
    for one in planned.going[:SHOWN]:
        parts = [one.id, one.title or "", f"{one.messages} messages" if one.messages else ""]
        if one.cause == "delegated":
            parts.append("delegated by one of these")
        if one.orphaned:
            parts.append(f"{len(one.orphaned)} children become roots")
        if one.files:
            parts.append(f"{len(one.files)} files go too")
        context.say("  " + clean_line("  ".join(part for part in parts if part)))
    if len(planned.going) > SHOWN:
        context.say(f"  and {len(planned.going) - SHOWN} more")
    if planned.ending:
        context.say(f"  {len(planned.ending)} idle sessions will be marked as ended and stay")
    if planned.bytes_reclaimable:
        context.say(f"  about {_size(planned.bytes_reclaimable)} become free for the agent to use again")
    _say_all(context, (*planned.warnings, *planned.notes))


def _report(args: argparse.Namespace, context: Context, result: ChangeResult) -> int:
    for failure in result.failures:
        context.say(f"hermes-tui: {clean_line(failure)}")
    if context.json:
        context.write(_document(result))
    else:
        _print(args, context, result)
    if result.hindered if args.command == "prune" else result.refused:
        return ExitCode.REFUSED
    if result.failures and not result.done:
        return ExitCode.REFUSED
    return context.ended


def _document(result: ChangeResult) -> dict[str, object]:
    """contract.md, change; ended, warnings and notes are ours."""
    return {
        "dry_run": result.dry_run,
        "done": list(result.done),
        "kept": [{"id": one.id, "reason": one.reason} for one in result.kept],
        "summary": result.summary,
        "messages": result.messages,
        "bytes_reclaimable": result.bytes_reclaimable,
        "retries": result.retries,
        "ended": list(result.ended),
        "warnings": list(result.warnings),
        "notes": list(result.notes),
        "failures": list(result.failures),
    }


def _print(args: argparse.Namespace, context: Context, result: ChangeResult) -> None:
    verb = PAST[args.command]
    would = "would be " if result.dry_run else ""
    ids = ", ".join(clean_line(one) for one in result.done[:SHOWN])
    more = f" and {len(result.done) - SHOWN} more" if len(result.done) > SHOWN else ""
    context.out.write(f"{len(result.done)} {would}{verb}{': ' if ids else ''}{ids}{more}\n")
    if result.messages:
        done = "restored" if args.command == "restore" else "deleted"
        context.out.write(f"{result.messages} messages {would or 'were '}{done}\n")
    if result.bytes_reclaimable:
        context.out.write(
            f"about {_size(result.bytes_reclaimable)} {'would be' if result.dry_run else 'are'} free again\n"
        )
    if result.ended:
        context.out.write(f"{len(result.ended)} idle sessions {would or 'were '}marked as ended\n")
    _print_kept(context, result.kept, result.summary, args.command == "prune")
    _say_all(context, (*result.warnings, *result.notes))
    if result.retries:
        context.say(f"The store was busy: {result.retries} more tries, {result.waited_s:.1f} s of waiting.")
    if args.command in ("delete", "clear", "prune") and result.done and not result.dry_run:
        context.say("`hermes-tui restore ID` brings them back within 30 days.")


def _print_kept(context: Context, kept: Sequence[Kept], summary: dict[str, int], many: bool) -> None:
    if many:
        for reason, count in summary.items():
            context.out.write(f"{count:>7} kept: {REASONS.get(reason, reason)}\n")
    shown = [one for one in kept if one.reason != "too-young"][:SHOWN] if many else kept
    for one in shown:
        title = f"  {clean_line(one.title)}" if one.title else ""
        context.out.write(f"  {clean_line(one.id)}{title}: {REASONS.get(one.reason, one.reason)}\n")


def _say_all(context: Context, lines: Sequence[str]) -> None:
    for line in lines:
        context.say(clean_line(line))


def _age(context: Context, text: str, option: str) -> float:
    """Seconds an AGE means.

    Raises:
        WrongUse: it is none, or lies in the future.
    """
    moment = context.time(text)
    seconds = context.now - (context.now if moment is None else moment)
    if seconds < 0:
        raise WrongUse(f"{option} {text} is no age", "Give something like 90d or 12h.")
    return seconds


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
