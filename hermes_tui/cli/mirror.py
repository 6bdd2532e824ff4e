"""``mirror``: how our index over the logs is, and bringing it up to date."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library.failures import ExitCode, Refused
from hermes_tui.library.mirroring import (
    Progress,
    drop_mirror,
    log_stores,
    mirror_health,
    update_mirror,
    with_mirror,
)
from hermes_tui.library.sources import Library
from hermes_tui.text import clean_line

ACTIONS = ("status", "update", "rebuild", "drop")


def add_command(subparsers: Subparsers) -> None:
    parser = subparsers.add("mirror", "Show, fill, rebuild or delete the index over the logs")
    parser.add_argument("action", choices=ACTIONS, nargs="?", default="status", help="default: status")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    done: list[str] = []
    library = with_mirror(context.library)
    if args.action in ("rebuild", "drop"):
        done = drop_mirror(library)
    if args.action in ("update", "rebuild"):
        done = _update(library, context)
    health = mirror_health(library)
    status = {
        "path": health.path,
        "bytes": health.bytes,
        "sessions": health.sessions,
        "lag": health.lag,
        "lead": health.lead,
        "fallbacks": dict(health.fallbacks),
    }
    if context.json:
        context.write({"done": done, "mirror": status})
    else:
        _print(status, context)
    return ExitCode.DONE


def _update(library: Library, context: Context) -> list[str]:
    """The names of the stores it was made for.

    Raises:
        Refused: another process is at it.
    """
    update = update_mirror(library, lambda progress: _tell(progress, context))
    if context.err.isatty():
        context.err.write("\n")
    if update.set_aside is not None:
        context.say(f"The old mirror could not be used and was put aside: {clean_line(update.set_aside)}")
    if update.progress.phase == "waiting":
        raise Refused("Another process is filling the mirror", "Wait until it is done; the list works meanwhile.")
    return [store.ref.name for store in log_stores(library.stores)]


def _tell(progress: Progress, context: Context) -> None:
    """A line that replaces itself on a terminal; nothing elsewhere."""
    if context.err.isatty():
        rate = progress.bytes_per_second / 1e6
        context.err.write(f"\r{progress.phase:8} {progress.share:4.0%}  {progress.logs_done:,} logs  {rate:,.0f} MB/s ")
        context.err.flush()


def _print(status: Mapping[str, object], context: Context) -> None:
    from hermes_tui.cli import tables

    for name, value in status.items():
        said = ", ".join(f"{reason} {count:,}" for reason, count in value.items()) if isinstance(value, dict) else value
        context.print(tables.line(clean_line(f"{name:10} {'-' if said in (None, '') else said}")))
