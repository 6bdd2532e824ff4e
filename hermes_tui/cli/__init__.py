"""The command line: commands, tables for people, JSON for programs. Nothing here imports Textual.

How a command is made. One module holds one command (or a family that shares its options) and offers two functions::

    def add_command(subparsers: Subparsers) -> None:
        parser = subparsers.add("search", "Search everything that was said")   # adds --json, --store, --agent, … itself
        parser.add_argument("query")
        parser.set_defaults(run=run)

    def run(args: argparse.Namespace, context: Context) -> int:
        with context.library() as … is not needed: ``context.library`` is opened at first use
        if context.json:
            context.write(document)          # one JSON document on stdout (json_output.py)
        else:
            context.print(table)             # a rich renderable made of CleanText only (tables.py)
        return ExitCode.DONE

It is then named in ``COMMANDS`` of :mod:`hermes_tui.cli.parser` (command name -> module name), which imports only the module
of the command that was asked for. ``run`` gets ``context`` (:mod:`hermes_tui.cli.context`) with ``library`` (the open
stores), ``now``, ``zone``, ``json``, ``interactive`` and ``confirm(question, yes=…)``. Failures are raised, not printed: any
:class:`hermes_tui.library.failures.Failure` (``UnknownId``, ``AmbiguousId``, ``Refused``, ``WrongUse``, ``StoreFailed`` …)
becomes ``{"error": …}`` under ``--json``, two lines on stderr otherwise, and the exit code its class names. Ids are found by
``context.library.find(text)``; times on the command line by ``parse_time(text, context.now, context.zone)``.
"""
