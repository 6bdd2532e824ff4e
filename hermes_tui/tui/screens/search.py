"""Screen 3: where was it said?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Final, get_args

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from hermes_tui.library.failures import WrongUse
from hermes_tui.library.search import SearchHit, SearchRequest, SearchRun, Sort, search
from hermes_tui.library.sources import Found
from hermes_tui.model import Agent, MessageKind
from hermes_tui.records import dataclass
from hermes_tui.text import clean, clean_line
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import counted
from hermes_tui.tui.heights import VariedHeights
from hermes_tui.tui.inks import Line, Run, spread
from hermes_tui.tui.messages import ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.hit_lines import Group, Item, add_hits, item_line, items_of
from hermes_tui.tui.views.search_marks import search_finder
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

SETTLE: Final = 0.12
"""Seconds after the last key before a search begins (issue 3)."""
POST_EVERY: Final = 0.1
"""Seconds between two batches of hits handed to the screen."""
STALE: Final = 0.5
"""Seconds the hits of the question before stay while a new one finds nothing; each letter would flicker otherwise."""
KINDS: Final[tuple[MessageKind | None, ...]] = (
    None,
    "prompt",
    "reply",
    "tool-call",
    "tool-result",
    "reasoning",
    "summary",
)


class HitList(VirtualList):
    """Hits under the headings of their conversations."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="list")
        self._desk = desk
        self.items: list[Item] = []

    def show_items(self, items: list[Item], *, keep: bool) -> None:
        """Show other hits; ``keep`` leaves the cursor on its hit."""
        kept = self.items[self.cursor].hit if keep and self.cursor < len(self.items) else None
        self.items = items
        at = next((n for n, item in enumerate(items) if item.hit is kept), 0) if kept is not None else 0
        self.set_items(VariedHeights(item.height for item in items), at, keep_place=kept is not None)

    def draw(self, item: int, part: int, width: int) -> Line:
        desk = self._desk
        return item_line(self.items[item], part, width, desk.moment, desk.glyphs, item == self.cursor)

    def pickable(self, item: int) -> bool:
        return self.items[item].hit is not None

    def lasting(self, item: int) -> bool:  # noqa: ARG002 - what was found does not change
        return True


class SearchScreen(Place):
    """Where was it said?"""

    PLACE = "search"
    TAB = "search"
    CSS_PATH = sheet("search.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("search")]

    @dataclass
    class HitsFound(Message):
        """More hits, or the end of a search."""

        number: int
        hits: Sequence[SearchHit]
        run: SearchRun
        done: bool

    @dataclass
    class Refused(Message):
        """The query cannot be read."""

        number: int
        text: str

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._request = SearchRequest("")
        self._number = 0
        self._run: SearchRun | None = None
        self._groups: list[Group] = []
        self._under_way = False
        self._settling: Timer | None = None
        self._clearing: Timer | None = None

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="asked"):
            yield StillLines(id="sign")
            yield FilterLine("what was said")
        yield StillLines(id="filters")
        yield HitList(self.desk)

    @property
    def hits(self) -> HitList:
        """The hits."""
        return self.query_one(HitList)

    def on_mount(self) -> None:
        self.query_one("#sign", StillLines).show(lambda _: [(("> ", "key"),)])
        self.query_one("#filters", StillLines).show(self._filters_line)
        self._say_how()
        self.query_one(FilterLine).focus()

    def library_ready(self) -> None:
        self._name_stores()
        if not self.nothing_found(self.hits):
            self._say_how()

    def _say_how(self) -> None:
        self.hits.say(
            ("Type a word that was said.", "strong"),
            ("", ""),
            ("All words must be in one message. In Korean, Chinese and Japanese any part of a word is found.", "muted"),
            ('"two words"  a phrase     one OR two     one NOT two     pre*  a beginning', "muted"),
        )
        self.say_status((("every store is searched, archived conversations too", "muted"),))

    # Searching.

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        # A search that nobody waits for any more must not hold up the keys.
        self._stop()
        self._settling = self.set_timer(SETTLE, self._settled)

    def _settled(self) -> None:
        query = self.query_one(FilterLine).value.strip()
        if query != self._request.query:
            self.ask(replace(self._request, query=query, after=None))

    @on(Input.Submitted)
    def _to_hits(self) -> None:
        self._settled()
        self.hits.focus()

    def _stop(self) -> None:
        if self._run is not None and self._under_way:
            self._run.cancel()
        if self._clearing is not None:
            self._clearing.stop()
        self.workers.cancel_group(self, "search")

    def ask(self, request: SearchRequest) -> None:
        """Search for something else, or otherwise."""
        self._stop()
        more = request.after is not None
        self._request = request
        self._number += 1
        if not more:
            self._groups = []
        self._under_way = bool(request.query)
        if not request.query or self.nothing_found(self.hits):
            self._under_way = False
            self.hits.show_items([], keep=False)
            if not request.query and not self.nothing_found(self.hits):
                self._say_how()
            self._show_filters()
            return
        if not more:
            self.hits.say(("Searching.", "muted"))
            self._clearing = self.set_timer(STALE, self._clear_stale)
        self._search(self._number, request)
        self._show_filters()

    def _clear_stale(self) -> None:
        """Hits of another question are no answer to this one."""
        if self._under_way and not self._groups:
            self.hits.show_items([], keep=False)
            self.say_status((("searching", "notice"),))

    @work(thread=True, exclusive=True, group="search", exit_on_error=False, description="Searching")
    def _search(self, number: int, request: SearchRequest) -> None:
        library = self.desk.library
        if library is None:
            return
        worker = get_current_worker()
        try:
            run = search(library, request)
        except WrongUse as failure:
            advice = "x searches for words." if request.regex else failure.advice or ""
            self.post_message(self.Refused(number, f"{failure.message}\n{advice}"))
            return
        self._run = run
        batch: list[SearchHit] = []
        posted = time.monotonic()
        for hit in run:
            if worker.is_cancelled:
                run.cancel()
                return
            batch.append(hit)
            if time.monotonic() - posted > POST_EVERY:
                self.post_message(self.HitsFound(number, batch, run, done=False))
                batch, posted = [], time.monotonic()
        if not run.cancelled:
            self.post_message(self.HitsFound(number, batch, run, done=True))

    @on(HitsFound)
    def _hits_found(self, event: HitsFound) -> None:
        if event.number != self._number:
            return
        first = not self._groups
        if first or event.hits:
            add_hits(self._groups, event.hits)
            self.hits.show_items(items_of(self._groups), keep=not first)
        if event.done:
            self._under_way = False
            if not self._groups:
                self._say_none()
        self._show_filters()
        self._show_status(event.run)

    @on(Refused)
    def _refused(self, event: Refused) -> None:
        if event.number == self._number:
            self._under_way = False
            self.hits.show_items([], keep=False)
            self._show_filters()
            self.say_status(())
            self.hits.say(
                *((line, "bad" if at == 0 else "muted") for at, line in enumerate(clean(event.text).split("\n")))
            )

    def _say_none(self) -> None:
        narrowed = self._request.agents or self._request.filters.kind
        self.hits.show_items([], keep=False)
        self.hits.say(
            (f"Nobody said {clean_line(self._request.query)}.", "strong"),
            ("", ""),
            (
                "a and f take away what narrows the search."
                if narrowed
                else "A word matches as a whole: try the beginning of it with *.",
                "muted",
            ),
            (
                "s searches rewound messages and dead branches too." if not self._request.filters.all_states else "",
                "muted",
            ),
        )

    # Lines.

    def _show_filters(self) -> None:
        self.query_one("#filters", StillLines).show(self._filters_line)

    def _filters_line(self, width: int) -> list[Line]:
        request = self._request
        dot = f" {self.desk.glyphs.middot} "
        words = [request.sort, f"agent {request.agents[0]}" if request.agents else "any agent"]
        words.append(f"only {request.filters.kind}" if request.filters.kind else "any kind")
        if request.regex:
            words.append("regular expression")
        if request.filters.all_states:
            words.append("rewound too")
        number = sum(len(group.hits) for group in self._groups)
        right = ""
        if request.query:
            more = "+" if self._under_way or (self._run is not None and self._run.next) else ""
            hits = f"{number:,}{more} hit{'' if number == 1 else 's'}"
            # Nothing yet is no number of hits: the list says that it is looking.
            looking = self._under_way and not number
            right = "" if looking else f"{hits} in {counted(len(self._groups), 'conversation')} "
        return [spread(((" ", ""), (dot.join(words), "muted")), ((right, "strong" if number else "muted"),), width)]

    def _show_status(self, run: SearchRun) -> None:
        dot = f" {self.desk.glyphs.middot} "
        via = dot.join(f"{clean_line(name)} {route}" for name, route in run.route.items())
        runs: list[Run] = [("via: ", "muted"), (via, "")]
        if self._under_way:
            runs.append(("  searching", "notice"))
        right: list[Run] = []
        if run.incomplete:
            right.append((f"! {clean_line(run.incomplete)} ", "warn"))
        elif run.ranked_of:
            right.append((f"ranked: the newest {run.ranked_of:,} ", "muted"))
        if not self._under_way and run.next:
            right += [("m", "key"), (" reads more", "muted")]
        self.say_status(tuple(runs), tuple(right))

    # Actions.

    def action_query(self) -> None:
        self.query_one(FilterLine).focus()

    def action_sort(self) -> None:
        sorts: tuple[Sort, ...] = get_args(Sort)
        self._again(replace(self._request, sort=sorts[(sorts.index(self._request.sort) + 1) % len(sorts)]))

    def action_agent(self) -> None:
        library = self.desk.library
        if library is None:
            return
        agents: list[Agent | None] = [None, *dict.fromkeys(store.ref.agent for store in library.stores)]
        now = self._request.agents[0] if self._request.agents else None
        following = agents[(agents.index(now) + 1) % len(agents)]
        self._again(replace(self._request, agents=(following,) if following else ()))

    def action_kind(self) -> None:
        filters = self._request.filters
        following = KINDS[(KINDS.index(filters.kind) + 1) % len(KINDS)]
        self._again(replace(self._request, filters=replace(filters, kind=following)))

    def action_regex(self) -> None:
        self._again(replace(self._request, regex=not self._request.regex))

    def action_states(self) -> None:
        filters = self._request.filters
        self._again(replace(self._request, filters=replace(filters, all_states=not filters.all_states)))

    def _again(self, request: SearchRequest) -> None:
        self.ask(replace(request, after=None))

    def action_more(self) -> None:
        following = self._run.next if self._run is not None and not self._under_way else None
        if following is None:
            self.toast("Still searching." if self._under_way else "That is all.")
        else:
            self.ask(replace(self._request, after=following))

    def _step_group(self, step: int) -> None:
        hits = self.hits
        if not hits.items:
            return
        group = hits.items[hits.cursor].group
        order = [one.key for one in self._groups]
        at = order.index(group.key) + step
        if 0 <= at < len(order):
            hits.move_to(next(n for n, item in enumerate(hits.items) if item.group.key == order[at]))

    def action_next_group(self) -> None:
        self._step_group(1)

    def action_previous_group(self) -> None:
        self._step_group(-1)

    @on(VirtualList.Moved)
    def _moved(self) -> None:
        item = self.hits.items[self.hits.cursor] if self.hits.items else None
        if item is not None and item.hit is not None:
            self.desk.subject = self._found(item.hit)

    def _found(self, hit: SearchHit) -> Found:
        assert self.desk.library is not None
        return Found(hit.store, hit.head.session_id, self.desk.library.prices)

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        hit = self.hits.items[self.hits.cursor].hit
        library = self.desk.library
        if hit is None or library is None:
            return
        request = self._request
        find = search_finder(library, request.query, request.regex)
        self.post_message(ShowTranscript(self._found(hit), hit.head.id, request.query, find, part=hit.head.part))

    def step_back(self) -> bool:
        """From the query to the hits, where there are some."""
        line = self.query_one(FilterLine)
        if line.has_focus and self.hits.items:
            self.hits.focus()
            return True
        return False

    def on_unmount(self) -> None:
        self._stop()
