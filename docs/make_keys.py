"""Writes docs/keys.md from the commands of the screen: ``python docs/make_keys.py``."""

from __future__ import annotations

from pathlib import Path

from hermes_tui.library.commands import COMMANDS, Command, shown_key

PAGE = Path(__file__).resolve().parent / "keys.md"
PLACES = {
    "app": "Everywhere",
    "list": "In every list",
    "sessions": "Sessions",
    "transcript": "Transcript",
    "recovery": "Recovery",
    "lineage": "Lineage",
    "search": "Search",
    "costs": "Costs",
    "cache": "Cache",
    "health": "Health",
}
BOXES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "base": ("any box", (("escape", "close it; nothing was done"),)),
    "facets": ("what the list shows (`f`)", (("space,enter", "switch a value on or off"), ("x", "show all"))),
    "change": (
        "a change (`r` `a` `e` `C` `D`)",
        (
            ("enter", "do it"),
            ("w", "take in whole conversations, or only what was named"),
            ("y", "copy the agent's own command"),
            ("j,down", "scroll down"),
            ("k,up", "scroll up"),
        ),
    ),
    "prune": (
        "prune (`P`)",
        (
            ("plus,greater_than_sign,right", "older"),
            ("minus,less_than_sign,left", "younger"),
            ("e", "end idle ones first, or not"),
        ),
    ),
    "restore": ("restore (`U`)", (("enter", "bring this one back"),)),
    "export": ("export (`E`)", (("ctrl+f", "next format"), ("ctrl+r", "redact, or not"))),
    "resume": ("resume (`R`)", (("enter", "run the command"), ("y", "copy it"))),
    "panel": ("a message to read", (("escape,enter,q", "close it"), ("y", "copy it"))),
}
"""By module of tui/dialogs: the name of the box and its keys; the test of the manual holds them against the program."""
HEAD = """\
# Every key

Made by `python docs/make_keys.py` from the commands of the program; `?` on the screen and `hermes-tui keys` say the
same. Every command is in the palette (`^p`) too; `^` is Ctrl. The last column is the id for the
[`[keymap]`](settings.md#keymap) of the settings file.
"""


def page() -> str:
    """The page as it must be."""
    places = dict.fromkeys((*PLACES, *(command.screen for command in COMMANDS)))
    parts = [HEAD]
    for place in places:
        rows = [row(command) for command in COMMANDS if command.screen == place]
        if rows:
            heading = f"## {PLACES.get(place, place.capitalize())}\n\n| key | command | what it does | id |"
            parts.append("\n".join((heading, "|---|---|---|---|", *rows)) + "\n")
    return "\n".join((*parts, boxes()))


def boxes() -> str:
    """The table of keys that work inside a box."""
    lines = ["## In boxes", "", "| box | key | what it does |", "|---|---|---|"]
    for name, keys in BOXES.values():
        lines += [f"| {name} | {signs(key)} | {what} |" for key, what in keys]
    return "\n".join(lines) + "\n"


def signs(keys: str) -> str:
    """Keys as people write them."""
    return " ".join(f"`{shown_key(key)}`" for key in keys.split(",") if key)


def row(command: Command) -> str:
    """A line of a table."""
    return f"| {signs(command.key) or 'palette'} | {command.name} | {command.purpose} | `{command.id}` |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
