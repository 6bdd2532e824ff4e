"""The command line: commands, tables for people, JSON for programs. Nothing here imports Textual.

How a command is made. One module holds one command (or a family that shares its options) and offers two functions::

    def add_command(subparsers: Subparsers) -> None:
        parser = subparsers.add("search", "Search everything that was said")   # adds --json, --store, --agent, …
        parser.add_argument("query")
        parser.set_defaults(run=run)

    def run(args: argparse.Namespace, context: Context) -> int:
        if context.json:
            context.write(document)          # one JSON document on stdout
        else:
            context.print(table)             # rich renderables made of clean text only (tables.py)
        return context.ended                 # 0, or 3 when a store could not be read

It is then named in ``COMMANDS`` of :mod:`hermes_tui.cli.parser` (command -> module), which imports only the module of
the command that was asked for. ``run`` gets a :class:`hermes_tui.cli.context.Context` with ``library`` (the open
stores), ``now``, ``zone``, ``time(text)``, ``json``, ``interactive``, ``say(text)`` for stderr, and
``confirm(question, yes=…)``.

Failures are raised, not printed: a :class:`hermes_tui.library.failures.Failure` (``UnknownId``, ``AmbiguousId``,
``Refused``, ``WrongUse``, ``StoreFailed``) becomes ``{"error": …}`` under ``--json``, lines on stderr otherwise, and
the exit code of its class. Ids are found by ``context.library.find(text)``. JSON shapes are in ``library/shapes.py``,
large documents are streamed with ``library/json_output.ObjectWriter``.
"""
