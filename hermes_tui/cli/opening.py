"""What the screen is started with. Plain words are read here: argparse takes 6 ms, before the first list."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_tui.library.sources import SourceOptions
from hermes_tui.model import AGENTS
from hermes_tui.records import dataclass


@dataclass(frozen=True, slots=True)
class Opening:
    """How the screen begins."""

    options: SourceOptions
    id: str | None = None
    """The conversation to begin in."""
    ascii: bool = False


def opening(arguments: Sequence[str]) -> Opening:
    """What these arguments mean for the screen.

    Raises:
        WrongUse: they can't be understood.
    """
    return plain_opening(arguments) or parsed_opening(arguments)


def plain_opening(arguments: Sequence[str]) -> Opening | None:
    """Options that are written out, each value a word of its own; ``None`` where there is anything else."""
    values: dict[str, list[str]] = {"--store": [], "--agent": [], "--profile": []}
    plainly_ascii = False
    words = iter(arguments)
    for word in words:
        if word in values:
            value = next(words, "-")
            if value.startswith("-"):
                return None
            values[word].append(value)
        elif word == "--ascii":
            plainly_ascii = True
        else:
            return None
    agents = {name: agent for name in values["--agent"] for agent in AGENTS if agent == name}
    if len(agents) < len(set(values["--agent"])):
        return None
    options = SourceOptions(tuple(values["--store"]), tuple(agents.values()), tuple(values["--profile"]))
    return Opening(options, ascii=plainly_ascii)


def parsed_opening(arguments: Sequence[str]) -> Opening:
    """The same of any arguments."""
    from hermes_tui.cli.parser import parse, source_options

    args = parse(arguments)
    return Opening(source_options(args), getattr(args, "id", None), bool(args.ascii))
