"""What the screens have in common: the frame around them, workers that fail aloud, Escape one step back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from hermes_tui.text import clean, literal
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.inks import Line, spread
from hermes_tui.tui.messages import MirrorMoved
from hermes_tui.tui.widgets.furniture import KeyLine, TabLine
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from hermes_tui.tui.views.facets import Facets


DRAW_EVERY: Final = 1 / 120
"""Seconds between two pictures at least."""


class Place(Screen[None]):
    """A full screen: tabs, a body, a status line, a key line."""

    PLACE: ClassVar[str] = ""
    """Its name in the list of commands."""
    TAB: ClassVar[str] = ""
    """Which of the six places it belongs to; '' for the mode it was opened in."""
    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = ""
    """Each screen focuses its list itself: what is typed early must not land in a line of text."""

    def __init__(self, desk: Desk, tab: str = "") -> None:
        super().__init__()
        self.desk = desk
        self._tab = tab or self.TAB
        self._started_with: object = None

    def compose(self) -> ComposeResult:
        yield TabLine(self._tab)
        yield from self.body()
        yield StillLines(id="status")
        yield KeyLine(self.PLACE, self.desk)

    def body(self) -> Iterable[Widget]:
        """The widgets between tabs and status line."""
        raise NotImplementedError

    # Drawing.

    _ticks: Timer | None = None

    @property
    def _update_timer(self) -> Timer:
        # Textual draws 60 times a second: a key right behind a picture waited up to 17 ms for its own.
        if self._ticks is None:
            self._ticks = self.set_interval(DRAW_EVERY, self._on_timer_update, name="screen_update", pause=True)
        return self._ticks

    _held_back = False
    """Whether there is a picture that was not drawn yet."""

    def _compositor_refresh(self) -> None:
        # Textual draws all of the first screen while the app is still being built, and throws that picture away: 15 ms.
        self._held_back = bool(self.app._batch_count)
        if not self._held_back:
            super()._compositor_refresh()

    def draw_held_back(self) -> None:
        """Draw what was not drawn while several changes were made at once."""
        if self._held_back:
            self._compositor_refresh()

    # What the app tells. Textual calls a handler of every class from the screen's own up to this one: none calls super.

    def on_mount(self) -> None:
        if self.desk.library is not None:
            self.library_ready()

    def library_ready(self) -> None:
        """The library is open: begin to load."""

    def stores_changed(self) -> None:
        """A store is not what it was; a screen that shows it live reads again."""

    def asked_about(self) -> None:
        """Another screen sends the user here to look at one conversation, the subject of the desk."""

    def asked_for(self, facets: Facets) -> None:
        """Another screen sends the user here to see the list narrowed."""

    def mirror_moved(self, moved: MirrorMoved) -> None:
        """The mirror got further; a screen whose list comes from it says so."""

    def on_screen_resume(self) -> None:
        """Shown again: see whether the stores or the subject are others now."""
        self._name_stores()

    def on_screen_suspend(self) -> None:
        """Left, or covered: what was said in passing was said here, and would lie over what comes."""
        self.app.clear_notifications()

    def _name_stores(self) -> None:
        library = self.desk.library
        if library is None or not self.is_mounted:
            return
        agents: dict[str, int] = {}
        for store in library.stores:
            agents[store.ref.agent] = agents.get(store.ref.agent, 0) + 1
        names = (agent if number == 1 else f"{agent} {number}" for agent, number in agents.items())
        dot = f" {self.desk.glyphs.middot} "
        self.query_one(TabLine).show_stores(literal(dot.join(names)))

    def nothing_found(self, rows: VirtualList) -> bool:
        """Whether no store was found; then the list says so, and the key line offers nothing to do with it."""
        library = self.desk.library
        if library is None or library.stores:
            self.keys.offer_usual()
            return False
        rows.say(
            ("No conversations were found on this machine.", "strong"), ("", ""), ("1 says where we looked.", "muted")
        )
        self.keys.offer_only()
        return True

    # Going back.

    def step_back(self) -> bool:
        """Undo the last step inside this screen; false when there is none left."""
        return False

    @property
    def keys(self) -> KeyLine:
        """The key line."""
        return self.query_one(KeyLine)

    def action_choose(self) -> None:
        """Enter, by the mouse on the key line."""
        self.query_one(VirtualList).action_choose()

    # Saying something.

    def say_status(self, left: Line, right: Line = ()) -> None:
        """Write the status line."""
        self.query_one("#status", StillLines).show(
            lambda width: [spread(((" ", ""), *left), (*right, (" ", "")), width)]
        )

    def toast(self, text: str, *, bad: bool = False) -> None:
        """Say something small in passing; raw text is cleaned, markup is off. What was said before goes."""
        self.app.clear_notifications()
        self.notify(clean(text), severity="error" if bad else "information", markup=False, timeout=5)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show an unexpected failure of a worker; expected ones are answers, not failures."""
        if event.state is not WorkerState.ERROR:
            return
        event.stop()
        error = event.worker.error
        self.failed(event.worker.description or "Reading", error)

    def failed(self, doing: str, error: BaseException | None) -> None:
        """Tell what failed, on what, why, what to try; where it is shown is the screen's business."""
        from hermes_tui.tui.dialogs.panel import ErrorPanel

        library = self.desk.library
        self.app.push_screen(ErrorPanel(doing, error, library.locations.log if library is not None else None))
