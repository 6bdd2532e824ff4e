"""``doctor``: whether what is shown is true."""

from __future__ import annotations

import argparse

from hermes_tui.cli.context import Context
from hermes_tui.cli.parser import Subparsers
from hermes_tui.library import shapes
from hermes_tui.library.health import Health, doctor
from hermes_tui.library.mirroring import mirror_health
from hermes_tui.model import Finding
from hermes_tui.text import CleanText, clean_line, literal


def add_command(subparsers: Subparsers) -> None:
    subparsers.add("doctor", "Check every store, the settings and the mirror").set_defaults(run=run)


def run(args: argparse.Namespace, context: Context) -> int:
    del args
    report = doctor(context.mirrored, mirror_health)
    if context.json:
        context.write(shapes.health(report))
    else:
        _print(report, context)
    context.note_stores(report.stores)
    return context.ended


def _print(report: Health, context: Context) -> None:
    from hermes_tui.cli import tables

    for status in report.stores:
        sessions = "?" if status.sessions is None else f"{status.sessions:,}"
        head = f"{status.ref.name}  {status.state}  {sessions} sessions  {status.ref.path}"
        context.print(tables.line(clean_line(head)))
        for finding in status.findings:
            _print_finding(finding, context)
    for finding in report.settings:
        _print_finding(finding, context)
    if not report.stores:
        context.print(tables.line(clean_line(f"no store was found. {context.library.where_looked()}")))
    mirror = report.mirror
    words = "none" if mirror.path is None else f"{mirror.path}, {tables.count(mirror.sessions)} sessions"
    context.print(tables.line(clean_line(f"mirror: {words}")))
    if mirror.fallbacks:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in mirror.fallbacks)
        context.print(tables.line(literal(f"  read past it: {reasons}")))
    if report.trash.path is not None:
        size = f"{report.trash.bytes / 1024:,.0f} KiB"
        words = f"{report.trash.path}, {tables.count(report.trash.sessions)} sessions, {size}"
        context.print(tables.line(clean_line(f"trash: {words}")))
        for path in report.trash.strangers:
            context.print(tables.line(clean_line(f"  cannot be read, so nothing comes back from it: {path}")))


def _print_finding(finding: Finding, context: Context) -> None:
    from hermes_tui.cli import tables

    times = f" ({finding.count:,})" if finding.count > 1 else ""
    head = clean_line(f"{finding.code}{times}: {finding.detail}")
    context.print(tables.line(CleanText(f"  {finding.severity:5} {head}")))
    if finding.advice:
        context.print(tables.line(CleanText(f"        {clean_line(finding.advice)}")))
