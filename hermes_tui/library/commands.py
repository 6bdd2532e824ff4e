"""Every command of the screen, once: palette, footer, help, the manual and ``hermes-tui keys`` read this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Screen = Literal[
    "everywhere", "sessions", "transcript", "recovery", "lineage", "search", "costs", "cache", "health"
]


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a person can ask of the screen."""

    id: str
    """Stable: the keymap of the settings file names it."""
    name: str
    """As the palette shows it; begins with its topic."""
    purpose: str
    """One sentence."""
    key: str
    """Textual key names, alternatives separated by commas; '' for palette only."""
    screen: Screen
    footer: bool = False
    """Whether the footer shows it."""


COMMANDS: Final[tuple[Command, ...]] = (
    # everywhere
    Command("screen-sessions", "go: sessions", "What is there: every conversation, newest first.", "1", "everywhere"),
    Command("screen-lineage", "go: lineage", "How this conversation came apart.", "2", "everywhere"),
    Command("screen-search", "go: search", "Where was it said.", "3", "everywhere"),
    Command("screen-costs", "go: costs", "What it cost, for each model and more.", "4", "everywhere"),
    Command("screen-cache", "go: cache", "Where the cache stopped hitting, and why.", "5", "everywhere"),
    Command("screen-health", "go: health", "Whether what is shown is true.", "6", "everywhere"),
    Command("help", "help: keys", "Show every key of this screen.", "question_mark,f1", "everywhere", footer=True),
    Command("palette", "help: palette", "Find a command by name.", "ctrl+p", "everywhere"),
    Command("back", "go: back", "One step back, or close what is open.", "escape", "everywhere"),
    Command("refresh", "view: refresh", "Look at the stores again now.", "ctrl+r", "everywhere"),
    Command("theme", "view: theme", "Choose the colours.", "", "everywhere"),
    Command("quit", "quit", "Leave; nothing is lost.", "q,ctrl+q", "everywhere", footer=True),
    # moving, in every list and text
    Command("down", "move: down", "One row down.", "j,down", "everywhere"),
    Command("up", "move: up", "One row up.", "k,up", "everywhere"),
    Command("first", "move: first", "To the first row.", "g,home", "everywhere"),
    Command("last", "move: last", "To the last row.", "G,end", "everywhere"),
    Command("page-down", "move: page down", "One page down.", "pagedown,ctrl+f", "everywhere"),
    Command("page-up", "move: page up", "One page up.", "pageup,ctrl+b", "everywhere"),
    # sessions
    Command("read", "session: read", "Open the transcript.", "enter", "sessions", footer=True),
    Command("filter", "list: filter", "Narrow the list as you type.", "slash", "sessions", footer=True),
    Command("lineage", "session: lineage", "Show the tree this session hangs in.", "l", "sessions", footer=True),
    Command("cache", "session: cache", "Show where its cache stopped hitting.", "c", "sessions", footer=True),
    Command("preview", "view: preview", "Show or hide the preview pane.", "p", "sessions"),
    Command("order", "list: next order", "Activity, start, tokens, cost, messages.", "o", "sessions"),
    Command("facet-agent", "list: agent", "Show one agent or store, or all.", "a", "sessions"),
    Command("facet-model", "list: model", "Show one model, or all.", "m", "sessions"),
    Command("facet-source", "list: source", "Show one source, or all.", "s", "sessions"),
    Command("facet-profile", "list: profile", "Show one profile, or all.", "P", "sessions"),
    Command("facet-channel", "list: channel", "Show one channel, or all.", "C", "sessions"),
    Command("toggle-archived", "list: archived", "Show or leave out archived conversations.", "A", "sessions"),
    Command("toggle-delegated", "list: delegated runs", "Show or leave out delegated runs.", "D", "sessions"),
    Command("toggle-automated", "list: automated runs", "Fold or unfold cron, webhook and tool runs.", "w", "sessions"),
    Command("select", "list: select", "Select this row for a change of several.", "space", "sessions"),
    Command("rename", "session: rename", "Give it another title.", "r", "sessions"),
    Command("archive", "session: archive", "Archive or unarchive the conversation.", "x", "sessions"),
    Command("end", "session: end", "Mark it as ended, so that prune can take it.", "e", "sessions"),
    Command("delete", "session: delete", "Delete it; what will go is shown first.", "d,delete", "sessions"),
    Command("clear", "session: clear messages", "Take its messages away and keep its row.", "", "sessions"),
    Command("prune", "list: prune", "Delete old sessions; why each goes or stays is shown first.", "", "sessions"),
    Command("restore", "list: restore", "Put back what was deleted within 30 days.", "", "sessions"),
    Command("pin", "session: pin", "Pin or unpin it.", "b", "sessions"),
    Command("tag", "session: tag", "Give it tags.", "t", "sessions"),
    Command("note", "session: note", "Write a note on it.", "n", "sessions"),
    Command("export", "session: export", "Write it to a file.", "E", "sessions"),
    Command("resume", "session: resume", "Go on with it in the agent itself.", "R", "sessions"),
    # transcript
    Command("find", "page: find", "Find in this conversation.", "slash", "transcript", footer=True),
    Command("find-next", "page: next match", "To the next match.", "n", "transcript"),
    Command("find-previous", "page: previous match", "To the match before.", "N", "transcript"),
    Command("prompt-next", "page: next prompt", "To the next prompt.", "d", "transcript"),
    Command("prompt-previous", "page: previous prompt", "To the prompt before.", "u", "transcript"),
    Command("compaction-next", "page: next compaction", "To the next compaction.", "right_square_bracket", "transcript"),
    Command(
        "compaction-previous", "page: previous compaction", "To the compaction before.", "left_square_bracket",
        "transcript",
    ),
    Command("fold", "page: fold", "Fold or unfold this entry.", "z", "transcript", footer=True),
    Command("fold-all", "page: fold all", "Fold or unfold all tools and reasoning.", "Z", "transcript"),
    Command("all-states", "page: all states", "Show rewound and dead-branch messages too.", "h", "transcript"),
    Command("sent", "page: sent bytes", "Shown text against what went to the model.", "x", "transcript"),
    Command("conversation", "page: whole conversation", "This session, or its whole chain.", "w", "transcript"),
    Command("recovery", "page: recovery", "What the model would be sent now.", "v", "transcript", footer=True),
    Command("copy", "page: copy", "Copy this message.", "y", "transcript"),
    Command("transcript-export", "page: export", "Write it to a file.", "E", "transcript"),
    Command("transcript-resume", "page: resume", "Go on with it in the agent itself.", "R", "transcript"),
    # recovery
    Command("cut-earlier", "recovery: cut earlier", "Move the power cut back.", "less_than_sign,left", "recovery"),
    Command("cut-later", "recovery: cut later", "Move the power cut on.", "greater_than_sign,right", "recovery"),
    # lineage
    Command("lineage-read", "session: read", "Open the transcript there.", "enter", "lineage", footer=True),
    Command("lineage-fold", "tree: fold", "Fold or unfold this branch.", "z", "lineage"),
    # search
    Command("search-query", "search: query", "Write another query.", "slash", "search", footer=True),
    Command("search-open", "search: open", "Open the hit in its conversation.", "enter", "search", footer=True),
    Command("search-sort", "search: next order", "Newest, oldest, rank.", "o", "search"),
    Command("search-agent", "search: agent", "Search one agent, or all.", "a", "search"),
    Command("search-kinds", "search: kinds", "Prompts and replies, or everything.", "m", "search"),
    Command("search-states", "search: all states", "Rewound and dead-branch messages too.", "h", "search"),
    # costs
    Command("costs-by", "costs: next grouping", "Model, task, day, source, folder, and more.", "b", "costs", footer=True),
    Command("costs-since", "costs: period", "30 days, 7 days, today, all.", "t", "costs"),
    # cache
    Command("cache-open", "cache: go there", "Open the transcript at the drop.", "enter", "cache", footer=True),
    Command("cache-scope", "cache: scope", "This conversation, or the last 30 days.", "s", "cache"),
    Command("cache-expected", "cache: expected ones", "Show or leave out expected drops.", "x", "cache"),
    # health
    Command("health-check", "health: check", "Run the long check again.", "r", "health", footer=True),
    Command("health-prune", "health: explain prune", "Why old sessions go or stay.", "p", "health"),
)


def commands_of(screen: Screen) -> tuple[Command, ...]:
    """The commands of one screen, those that work everywhere after its own."""
    return tuple(c for c in COMMANDS if c.screen == screen) + tuple(c for c in COMMANDS if c.screen == "everywhere")
