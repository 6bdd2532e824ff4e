"""The app: composes nothing itself, opens the library, switches between the places."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import work
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen
from textual.scrollbar import ScrollBar, ScrollBarRender

from hermes_tui.collector import collect_at_rest, collect_if_due
from hermes_tui.library.commands import COMMANDS, shown_keys
from hermes_tui.text import literal
from hermes_tui.tui.commands import Commands, bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.encoding import keep_cells, lend_stderr
from hermes_tui.tui.glyphs import ASCII
from hermes_tui.tui.messages import (
    LibraryOpened,
    LookForStores,
    MirrorMoved,
    ShowPlace,
    ShowSessions,
    ShowTranscript,
    StoresChanged,
)
from hermes_tui.tui.places import places
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import ParsedOnce, sheet
from hermes_tui.tui.typeahead import KeysInOrder
from hermes_tui.tui.widgets.scroll_bar import PlainScrollBar

if TYPE_CHECKING:
    from hermes_tui.library.beginning import Beginning
    from hermes_tui.library.live import Live
    from hermes_tui.library.mirroring import Progress
    from hermes_tui.library.sources import Library, SourceOptions

DARK: Final = "textual-dark"
LIGHT: Final = "textual-light"
LIGHT_BACKGROUNDS: Final = ("7", "15")
"""Numbers of light grey and white, as terminals that tell their colours put them last in COLORFGBG."""
AT_REST: Final = 1.0
"""Seconds without a key or the mouse after which there is time to look for unused memory."""
SWITCH_EVERY: Final = 0.001
"""Seconds a thread that computes keeps the interpreter from the keys; Python's own 0.005 added up to whole pictures."""
COLOURLESS: Final = "ansi-dark"
"""NO_COLOR: the ansi themes send no colours of ours (facts/textual.md, section 6)."""


def _usual_theme(environ: Mapping[str, str]) -> str:
    """Dark, unless the terminal says that its background is light."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT if background in LIGHT_BACKGROUNDS else DARK


class HermesTui(KeysInOrder):
    """A terminal browser for the conversations that AI agents leave on disk."""

    TITLE = "hermes-tui"
    # That of the first screen is read with it: read later, every rule would be parsed again before the first list.
    CSS_PATH = [sheet("app.tcss"), sheet("sessions.tcss")]  # noqa: RUF012 - Textual's own form
    DEFAULT_MODE = "sessions"
    COMMANDS = {Commands}  # noqa: RUF012 - Textual's own form
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("app")]
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = ""

    def __init__(
        self,
        options: SourceOptions,
        open_id: str | None = None,
        *,
        desk: Desk | None = None,
        environ: Mapping[str, str] | None = None,
        ascii_only: bool = False,
        follow: bool = False,
        beginning: Beginning | None = None,
    ) -> None:
        """Nothing is read yet.

        Args:
            options: Which stores to open.
            open_id: Begin in this conversation.
            desk: What the screens share; with a library in it no store is looked for.
            environ: The variables of this process.
            ascii_only: Draw with ASCII signs.
            follow: Follow file events and fill the mirror while the screen is open.
            beginning: Reads the first page since before this was imported.
        """
        self.desk = desk or Desk()
        self._options = options
        self._open_id = open_id
        self._environ = os.environ if environ is None else environ
        self._follow = follow
        self._beginning = beginning
        self._live: Live | None = None
        self._trail: list[str] = []
        """Places we came from, for Escape."""
        colourless = bool(self._environ.get("NO_COLOR"))
        # Said before the theme: Textual chooses here how it drops colours. For a theme of its own it takes greys, which
        # turned the terminal's own colours into black on black.
        super().__init__(ansi_color=True if colourless else None)
        self.stylesheet = ParsedOnce(variables=self.get_css_variables())
        ScrollBar.renderer = ScrollBarRender
        if ascii_only:
            self._draw_plainly()
        self.animation_level = "none"
        self.theme = COLOURLESS if colourless else _usual_theme(self._environ)
        for place, build in places(self.desk).items():
            self.add_mode(place, build)

    def _draw_plainly(self) -> None:
        """ASCII signs only, in the frames of dialogs and of the palette and in scroll bars too."""
        self.desk.glyphs = ASCII
        self.add_class("plain")
        ScrollBar.renderer = PlainScrollBar

    # Opening.

    def on_load(self) -> None:
        """Let threads give way to the keys, and tasks begin in turn, on every Python.

        From Python 3.12 on Textual runs the beginning of a task where it is made. The first screen's line of text is
        then built before the app knows that screen, which ends the program (measured: textual 8.2.8, Python 3.12.1 and
        3.13.0). Tests run without that, and so does the program.
        """
        asyncio.get_running_loop().set_task_factory(None)
        sys.setswitchinterval(SWITCH_EVERY)
        collect_at_rest()
        if self._beginning is not None and self._beginning.opened:
            # The first screen begins with its list.
            self._use_library(self._take_library(self._beginning))

    def _end_batch(self) -> None:
        super()._end_batch()
        if not self._batch_count and self._screen_stack and isinstance(self.screen, Place):
            self.screen.draw_held_back()

    def on_mount(self) -> None:
        # Back from the shell the terminal is empty, and Textual draws only what changes from then on.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.set_interval(AT_REST, self._collect)
        if self.desk.library is not None:
            self._begin()
        else:
            self.open_stores()

    def _collect(self) -> None:
        if self.rests(AT_REST):
            collect_if_due()

    @work(thread=True, exclusive=True, group="open", exit_on_error=False, description="Looking for stores")
    def open_stores(self) -> None:
        """Find the stores; nothing of theirs is opened yet."""
        from hermes_tui.library.beginning import open_for_screen

        beginning = self._beginning
        library = (
            self._take_library(beginning)
            if beginning is not None
            else open_for_screen(self._options, self._environ, mirrored=self._follow)
        )
        self.post_message(LibraryOpened(library))

    def _take_library(self, beginning: Beginning) -> Library:
        """Once: who looks again wants to see what is there by then."""
        self._beginning = None
        library = beginning.library()
        self.desk.beginning = beginning
        return library

    def on_look_for_stores(self, _event: LookForStores) -> None:
        """Look once more: an agent may have been started meanwhile."""
        self.open_stores()

    def on_list_shown(self) -> None:
        """Begin what would have held up the first list."""
        if self._follow and self._live is None and self.desk.library is not None:
            # What was imported stays: looking through it again for rings took 30 ms in the middle of held down keys.
            gc.freeze()
            self.follow_stores(self.desk.library)

    @work(thread=True, exclusive=True, group="live", exit_on_error=False, description="Following the stores")
    def follow_stores(self, library: Library) -> None:
        """Listen for file events and keep the mirror up."""
        from hermes_tui.library.live import Live

        lend_stderr()
        self._live = Live(
            library,
            on_progress=self._tell_progress,
            on_trouble=self._tell_trouble,
        )
        followed = self._live.start()
        if self.desk.library is library:
            # The same stores, and the mirror beside them: the health screen asks it.
            self.desk.library = followed

    def _tell_progress(self, progress: Progress) -> None:
        self.post_message(MirrorMoved(progress))

    def _tell_trouble(self, trouble: str) -> None:
        self.post_message(MirrorMoved(None, trouble))

    def on_mirror_moved(self, event: MirrorMoved) -> None:
        """Let the places say how far it is."""
        for place in self._open_places():
            place.mirror_moved(event)

    def _open_places(self) -> list[Place]:
        screens = [screen for stack in self._screen_stacks.values() for screen in stack]
        return [screen for screen in screens if isinstance(screen, Place) and screen.is_mounted]

    def on_library_opened(self, event: LibraryOpened) -> None:
        """Let every screen begin."""
        self._use_library(event.library)
        for place in self._open_places():
            place.library_ready()
        self._begin()

    def _use_library(self, library: Library) -> None:
        self.desk.library = library
        self.desk.subject = None
        settings = library.settings
        if settings.ascii:
            self._draw_plainly()
        if settings.theme in self.available_themes and not self._environ.get("NO_COLOR"):
            self.theme = settings.theme
        ids = {command.id for command in COMMANDS}
        self.desk.keymap = {name: keys for name, keys in settings.keymap if name in ids}
        self.set_keymap(self.desk.keymap)

    def _begin(self) -> None:
        if self._open_id is not None:
            self.find_and_show(self._open_id)
            self._open_id = None

    @work(thread=True, exclusive=True, group="open", exit_on_error=False, description="Opening the conversation")
    def find_and_show(self, text: str) -> None:
        """Open the session that an id means."""
        assert self.desk.library is not None
        self.post_message(ShowTranscript(self.desk.library.find(text)))

    # Going somewhere.

    def on_show_place(self, event: ShowPlace) -> None:
        """Go to one of the six places."""
        if event.subject is not None:
            self.desk.subject = event.subject
            for place in self._open_places():
                if event.place == place.PLACE:
                    place.asked_about()
        self.go(event.place)
        if event.subject is not None:
            self._close_opened()

    def on_show_sessions(self, event: ShowSessions) -> None:
        """Go to the list, narrowed."""
        for place in self._open_places():
            if place.PLACE == "sessions":
                place.asked_for(event.facets)
        self.go("sessions")
        self._close_opened()

    def go(self, place: str) -> None:
        """Switch to a place and remember where we came from."""
        if place == self.current_mode:
            self._close_opened()
            return
        self._trail = [*(step for step in self._trail if step != place), self.current_mode][-8:]
        self.switch_mode(place)

    def _close_opened(self) -> None:
        """Show the place itself, not what was opened in it."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def on_show_transcript(self, event: ShowTranscript) -> None:
        """Read a conversation, on top of where we are."""
        from hermes_tui.tui.screens.transcript import TranscriptScreen

        self.desk.subject = event.found
        self.push_screen(TranscriptScreen(self.desk, event, tab=self.current_mode))

    def on_stores_changed(self, _event: StoresChanged) -> None:
        """Let the places know."""
        for place in self._open_places():
            place.stores_changed()

    async def action_back(self) -> None:
        """One step back: inside the screen, then to the screen below, then to the place before."""
        screen = self.screen
        if isinstance(screen, Place) and screen.step_back():
            return
        if len(self.screen_stack) > 1:
            self.pop_screen()
        elif self._trail:
            self.switch_mode(self._trail.pop())

    def action_sessions(self) -> None:
        self.go("sessions")

    def action_lineage(self) -> None:
        self.go("lineage")

    def action_search(self) -> None:
        self.go("search")

    def action_costs(self) -> None:
        self.go("costs")

    def action_cache(self) -> None:
        self.go("cache")

    def action_health(self) -> None:
        self.go("health")

    # Everywhere.

    def action_help(self) -> None:
        from hermes_tui.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.desk, getattr(self.screen, "PLACE", "")))

    def action_palette(self) -> None:
        self.action_command_palette()

    def action_theme(self) -> None:
        self.search_themes()

    def action_suspend(self) -> None:
        """Stop as a job of the shell; nothing where there are no jobs."""
        self.action_suspend_process()

    def action_help_quit(self) -> None:
        """Ctrl+C: it copies in a line of text and must not end the program; say what does."""
        quit_ = next(command for command in COMMANDS if command.id == "app.quit")
        self.clear_notifications()
        self.notify(literal(f"{shown_keys(quit_, self.desk.keys_of(quit_))} leaves."), markup=False, timeout=5)

    async def action_quit(self) -> None:
        """Leave; what runs in threads is interrupted, or it would hold the exit."""
        self._interrupt()
        self.exit()

    def on_unmount(self) -> None:
        self._interrupt()

    def _interrupt(self) -> None:
        self.workers.cancel_all()
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self.desk.library is not None:
            for store in self.desk.library.stores:
                store.interrupt()

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:  # noqa: ARG002
        """None of Textual's own: the palette offers ours."""
        return ()


def run(options: SourceOptions, open_id: str | None = None, beginning: Beginning | None = None) -> None:
    """Start the browser; with an id, in that conversation. The beginning reads its first page already."""
    keep_cells()
    ascii_only = _ascii_wanted(os.environ)
    HermesTui(options, open_id, ascii_only=ascii_only, follow=True, beginning=beginning).run()
    # The process ends: without this the interpreter looks through every object once more, 0.3 s the user waits for.
    gc.freeze()


def _ascii_wanted(environ: Mapping[str, str]) -> bool:
    """By option, or because without UTF-8 our signs would be lost (facts/textual.md, section 6)."""
    return bool(environ.get("HERMES_TUI_ASCII")) or "utf" not in (sys.stdout.encoding or "").lower()
