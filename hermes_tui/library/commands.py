"""Every command of the screen, once: the palette, the key line, the help screen and ``keys`` all read this list."""

from __future__ import annotations

from typing import Final

from hermes_tui.records import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a person can do."""

    id: str
    """``screen.verb``: stable, for a keymap in the settings file; the verb is the action of the screen."""
    name: str
    """As the palette and the key line show it."""
    purpose: str
    """One sentence for the help screen."""
    key: str
    """Keys as Textual names them, comma separated; the first is the one shown."""
    screen: str
    """Where it works: ``app`` everywhere, ``list`` in every list, else a screen."""
    footer: bool = False
    """Whether the key line at the bottom names it."""

    @property
    def action(self) -> str:
        """The action's name in the screen."""
        return self.id.split(".", 1)[1].replace("-", "_")


KEY_SIGNS: Final = {
    "slash": "/", "question_mark": "?",
    "number_sign": "#", "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<",
    "greater_than_sign": ">", "comma": ",", "full_stop": ".", "space": "Space", "enter": "Enter", "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "S-Tab", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "pageup": "PgUp", "pagedown": "PgDn", "f1": "F1", "left_curly_bracket": "{",
    "right_curly_bracket": "}", "plus": "+", "minus": "-", "f5": "F5",
}  # fmt: skip
"""How a key is written for people."""


def shown_key(key: str) -> str:
    """``slash`` as ``/``, ``ctrl+p`` as ``^p``."""
    if key.startswith("ctrl+"):
        return "^" + shown_key(key.removeprefix("ctrl+"))
    return KEY_SIGNS.get(key, key)


def shown_keys(command: Command, keys: str | None = None) -> str:
    """All keys of a command, as people write them; ``keys`` are those it was given instead."""
    return " ".join(shown_key(key.strip()) for key in (command.key if keys is None else keys).split(","))


COMMANDS: Final[tuple[Command, ...]] = (
    # Everywhere.
    Command("app.sessions", "Sessions", "Show the list of conversations.", "1", "app"),
    Command("app.lineage", "Lineage", "Show how the conversation under the cursor came apart.", "2", "app"),
    Command("app.search", "Search", "Search everything that was said.", "3", "app"),
    Command("app.costs", "Costs", "Show what it cost.", "4", "app"),
    Command("app.cache", "Cache", "Show where the prompt cache stopped hitting.", "5", "app"),
    Command("app.health", "Health", "Show whether what is shown is all there is.", "6", "app"),
    Command("app.help", "Keys", "Show every key.", "question_mark,f1", "app"),
    Command("app.palette", "Palette", "Find a command by its name.", "ctrl+p", "app"),
    Command("app.back", "Back", "Go back one step.", "escape", "app"),
    Command("app.theme", "Theme", "Choose colours: light, dark or the terminal's own.", "", "app"),
    Command("app.quit", "Quit", "Leave.", "q,ctrl+q", "app"),
    Command("app.suspend", "Suspend", "Go to the shell for a while; fg comes back.", "ctrl+z", "app"),
    # Every list.
    Command("list.down", "Down", "Move down.", "down,j", "list"),
    Command("list.up", "Up", "Move up.", "up,k", "list"),
    Command("list.page-down", "Page down", "Move down a page.", "pagedown", "list"),
    Command("list.page-up", "Page up", "Move up a page.", "pageup", "list"),
    Command("list.first", "First", "Go to the first row.", "home,g", "list"),
    Command("list.last", "Last", "Go to the last row.", "end,G", "list"),
    Command("list.choose", "Open", "Open what is under the cursor.", "enter", "list"),
    # Sessions.
    Command(
        "sessions.filter", "Filter", "Filter by title, preview, id, source, model or folder.", "slash", "sessions", True
    ),
    Command(
        "sessions.facets",
        "Facets",
        "Narrow by agent, profile, source, model, channel, or show what is left out.",
        "f",
        "sessions",
        True,
    ),
    Command("sessions.order", "Order", "Order by activity, start, tokens, cost or messages.", "o", "sessions", True),
    Command("sessions.preview", "Preview", "Show or hide the preview.", "p", "sessions", True),
    Command("sessions.lineage", "Lineage", "Show its lineage.", "l", "sessions"),
    Command("sessions.cache", "Cache", "Show its cache hits.", "c", "sessions"),
    Command(
        "sessions.pick",
        "Select",
        "Select this row; what can be done with selected rows appears.",
        "space",
        "sessions",
        True,
    ),
    Command("sessions.pick-all", "Select all", "Select every row that matches, or none.", "A", "sessions"),
    Command("sessions.resume", "Resume", "Continue it in its agent: shows the command first.", "R", "sessions"),
    Command("sessions.export", "Export", "Write it to a file.", "E", "sessions"),
    Command("sessions.rename", "Rename", "Give it another title.", "r", "sessions"),
    Command("sessions.archive", "Archive", "Archive it, or take it out of the archive.", "a", "sessions"),
    Command("sessions.end", "End", "Mark it as ended.", "e", "sessions"),
    Command("sessions.clear", "Clear", "Delete its messages and keep the session.", "C", "sessions"),
    Command("sessions.delete", "Delete", "Delete it; it can be restored.", "D", "sessions"),
    Command(
        "sessions.prune", "Prune", "Delete old conversations, after a table that says which and why.", "P", "sessions"
    ),
    Command("sessions.restore", "Restore", "Bring back what was deleted.", "U", "sessions"),
    Command("sessions.pin", "Pin", "Pin it, or unpin it: kept by this program alone.", "b", "sessions"),
    Command("sessions.tags", "Tags", "Give it tags: kept by this program alone.", "number_sign", "sessions"),
    Command("sessions.note", "Note", "Write a note on it: kept by this program alone.", "N", "sessions"),
    Command("sessions.copy-id", "Copy id", "Copy its id.", "y", "sessions"),
    Command(
        "sessions.automated", "Automated", "Fold away or show runs started by cron, webhook or tool.", "t", "sessions"
    ),
    Command("sessions.reload", "Reload", "Read the list again.", "f5", "sessions"),
    Command(
        "sessions.demo", "Demo", "Where no store is found: write example conversations and open them.", "d", "sessions"
    ),
    # Transcript.
    Command("transcript.line-down", "Line down", "Scroll one line down.", "down,j", "transcript"),
    Command("transcript.line-up", "Line up", "Scroll one line up.", "up,k", "transcript"),
    Command("transcript.page-down", "Page down", "Scroll a page down.", "pagedown,space", "transcript"),
    Command("transcript.page-up", "Page up", "Scroll a page up.", "pageup", "transcript"),
    Command("transcript.first", "First", "Go to the first message.", "home,g", "transcript"),
    Command("transcript.last", "Last", "Go to the last message.", "end,G", "transcript"),
    Command(
        "transcript.next-message", "Next message", "Go to the next message.", "J,right_curly_bracket", "transcript"
    ),
    Command(
        "transcript.previous-message",
        "Previous message",
        "Go to the message before.",
        "K,left_curly_bracket",
        "transcript",
    ),
    Command("transcript.next-prompt", "Next prompt", "Go to the next prompt.", "d", "transcript", True),
    Command("transcript.previous-prompt", "Previous prompt", "Go to the prompt before.", "u", "transcript"),
    Command(
        "transcript.next-compaction",
        "Next compaction",
        "Go to the next compaction.",
        "right_square_bracket",
        "transcript",
        True,
    ),
    Command(
        "transcript.previous-compaction",
        "Previous compaction",
        "Go to the compaction before.",
        "left_square_bracket",
        "transcript",
    ),
    Command("transcript.find", "Find", "Find in this transcript.", "slash", "transcript", True),
    Command("transcript.next-match", "Next match", "Go to the next match.", "n", "transcript"),
    Command("transcript.previous-match", "Previous match", "Go to the match before.", "N", "transcript"),
    Command("transcript.fold", "Fold", "Fold or unfold this message.", "z,enter", "transcript", True),
    Command("transcript.fold-all", "Fold all", "Fold or unfold all tools and reasoning.", "Z", "transcript"),
    Command(
        "transcript.sent",
        "Sent bytes",
        "Show what was sent where it differs from what is shown.",
        "x",
        "transcript",
        True,
    ),
    Command("transcript.next-piece", "Next piece", "Show the next piece of a text over 1 MiB.", "m", "transcript"),
    Command("transcript.previous-piece", "Piece before", "Show the piece before.", "M", "transcript"),
    Command("transcript.states", "States", "Show or hide rewound messages and dead branches.", "s", "transcript"),
    Command("transcript.whole", "Whole", "Switch between this session and its whole conversation.", "w", "transcript"),
    Command(
        "transcript.recovery",
        "Recovery",
        "Show what the model would be sent if it were resumed now.",
        "v",
        "transcript",
        True,
    ),
    Command("transcript.lineage", "Lineage", "Show its lineage.", "l", "transcript"),
    Command("transcript.cache", "Cache", "Show its cache hits.", "c", "transcript"),
    Command("transcript.copy", "Copy", "Copy what the mouse selected, else this message.", "y", "transcript", True),
    Command("transcript.export", "Export", "Write it to a file.", "E", "transcript", True),
    Command(
        "transcript.resume", "Resume", "Continue it in its agent: shows the command first.", "R", "transcript", True
    ),
    # Recovery.
    Command(
        "recovery.cut-earlier",
        "Cut earlier",
        "Move the power cut one line towards the beginning.",
        "less_than_sign,left",
        "recovery",
        True,
    ),
    Command(
        "recovery.cut-later",
        "Cut later",
        "Move the power cut one line towards the end.",
        "greater_than_sign,right",
        "recovery",
        True,
    ),
    Command(
        "recovery.cut-back",
        "Cut ten earlier",
        "Move the power cut ten lines towards the beginning.",
        "left_curly_bracket",
        "recovery",
    ),
    Command(
        "recovery.cut-forward",
        "Cut ten later",
        "Move the power cut ten lines towards the end.",
        "right_curly_bracket",
        "recovery",
    ),
    Command("recovery.cut-end", "Cut at the end", "Take the power cut away.", "0", "recovery", True),
    Command("recovery.switch", "Switch", "Show the record, the recovery, or both.", "v", "recovery", True),
    Command(
        "recovery.ignored", "Ignored", "Show the records that are passed over, with the reason.", "i", "recovery", True
    ),
    # Lineage.
    Command("lineage.cache", "Cache", "Show its cache hits.", "c", "lineage", True),
    Command("lineage.findings", "Findings", "Go to the next finding.", "n", "lineage", True),
    Command("lineage.copy-id", "Copy id", "Copy its id.", "y", "lineage", True),
    # Search.
    Command("search.query", "Query", "Type another query.", "slash", "search", True),
    Command("search.sort", "Sort", "Order by newest, oldest or rank.", "o", "search", True),
    Command("search.agent", "Agent", "Search one agent's stores, or all.", "a", "search", True),
    Command("search.kind", "Kind", "Search prompts, replies, tools, or all.", "f", "search", True),
    Command("search.regex", "Regex", "Take the query as a regular expression.", "x", "search", True),
    Command("search.states", "States", "Find rewound messages and dead branches too.", "s", "search"),
    Command("search.more", "More", "Read the next hits.", "m", "search", True),
    Command("search.next-group", "Next conversation", "Go to the next conversation.", "right_square_bracket", "search"),
    Command(
        "search.previous-group",
        "Previous conversation",
        "Go to the conversation before.",
        "left_square_bracket",
        "search",
    ),
    # Costs.
    Command(
        "costs.next-group",
        "Group by",
        "Group by the next thing: model, task, day, source, folder …",
        "tab,right",
        "costs",
        True,
    ),
    Command("costs.previous-group", "Group back", "Group by the thing before.", "shift+tab,left", "costs"),
    Command("costs.model", "By model", "Group by model.", "m", "costs"),
    Command("costs.task", "By task", "Group by task.", "t", "costs"),
    Command("costs.day", "By day", "Group by local day.", "d", "costs"),
    Command("costs.source", "By source", "Group by source.", "s", "costs"),
    Command("costs.cwd", "By folder", "Group by folder.", "f", "costs"),
    Command("costs.profile", "By profile", "Group by profile.", "p", "costs"),
    Command("costs.channel", "By channel", "Group by channel.", "h", "costs"),
    Command("costs.store", "By store", "Group by store.", "a", "costs"),
    Command("costs.period", "Period", "Count 7, 30 or 90 days, or all.", "o", "costs", True),
    # Cache.
    Command(
        "cache.scope", "Scope", "Switch between this conversation and all of the last 30 days.", "a", "cache", True
    ),
    Command("cache.expected", "Expected", "Show or hide drops that are expected.", "e", "cache", True),
    Command("cache.sort", "Sort", "Order drops by what they cost or by time.", "o", "cache", True),
    # Health.
    Command("health.reload", "Check again", "Check again.", "f5,r", "health", True),
    Command("health.prune", "Prune", "Explain what prune would delete and what it would keep.", "P", "health", True),
    Command("health.copy", "Copy", "Copy this finding.", "y", "health", True),
)


ENTER_DOES: Final = {
    "sessions": "read",
    "recovery": "read it",
    "lineage": "read",
    "search": "go there",
    "costs": "its sessions",
    "cache": "go there",
    "health": "its sessions",
}
"""What Enter does with the row under the cursor, by screen; the key line says it."""


def commands_of(screen: str) -> tuple[Command, ...]:
    """The commands of one screen, in the order of the list."""
    return tuple(command for command in COMMANDS if command.screen == screen)
