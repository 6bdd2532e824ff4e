"""Screen 1: every conversation, newest activity first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on, work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from hermes_tui.library.beginning import PAGE
from hermes_tui.library.catalog import CatalogEntry, CatalogListing, behind, keys_of
from hermes_tui.library.commands import commands_of
from hermes_tui.library.sources import Found, Library
from hermes_tui.model import ListOrder, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line
from hermes_tui.tui.cells import fit, width_of
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import counted
from hermes_tui.tui.inks import Line, Run, spread
from hermes_tui.tui.messages import LibraryOpened, ListShown, LookForStores, MirrorMoved, ShowPlace, ShowTranscript
from hermes_tui.tui.screens.session_loading import LOOK_EVERY, ROWS_FIRST, LoadingList
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.annotated import read_annotations
from hermes_tui.tui.views.facets import ORDERS, Facets, left_out_text, origins_text, summary
from hermes_tui.tui.views.session_columns import heading
from hermes_tui.tui.views.session_preview import Preview, preview_lines, read_preview
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.session_list import Key, SessionList, found_at, key_of
from hermes_tui.tui.widgets.virtual_list import VirtualList

AGE_EVERY: Final = 30.0
"""Seconds between redrawings of the ages."""
if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation
    from hermes_tui.tui.widgets.filter_line import FilterLine

FILTER: Final = "filter"
"""Stands in the line of the filter while nothing is typed."""
WITHOUT_STORES: Final = ("sessions.demo", "sessions.reload")
"""Commands that make sense where no store was found."""
REST: Final = 0.05
"""Seconds after the last key before the pane says what is known of another conversation: longer than keys repeat."""
SETTLE: Final = 0.12
"""Seconds after the last key before the list is filtered or a preview read."""


class SessionsScreen(LoadingList):
    """What is there?"""

    PLACE = "sessions"
    TAB = "sessions"
    CSS_PATH = sheet("sessions.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("sessions")]

    @dataclass
    class AnnotationsRead(Message):
        """What people said about their conversations."""

        annotations: dict[Key, Annotation]

    @dataclass
    class PreviewRead(Message):
        """What is said in the conversation under the cursor."""

        preview: Preview

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._listing: CatalogListing | None = None
        self._listed_facets: Facets | None = None
        self._unmarked: Sequence[SessionRow | None] = ()
        """Rows of the first page whose marks of bad cache drops are looked for once they are on the screen."""
        self._settling: Timer | None = None
        self._filter_line: FilterLine | None = None
        self._resting: Timer | None = None
        self._peeking: Timer | None = None
        self._preview: Preview | None = None
        self._mirror = ""
        """How far the mirror is; '' where there is nothing to say."""
        self._preview_shown: bool | None = None
        self._facets_before: Facets | None = None
        """What the list was narrowed to before another screen narrowed it: Escape goes back to both."""

    # Building.

    def body(self) -> Iterable[Widget]:
        with Horizontal(id="filter"):
            yield StillLines(id="sign")
            yield StillLines(id="untyped")
            yield StillLines(id="facets")
        yield StillLines(id="heading")
        yield SessionList(self.desk)
        yield StillLines(id="preview")

    def on_mount(self) -> None:
        self.rows.say(("Looking for conversations.", "muted"))
        self.rows.focus()
        self.query_one("#sign", StillLines).show(lambda _: [(("/ ", "key"),)])
        self.query_one("#untyped", StillLines).show(lambda _: [((FILTER, "faint"),)])
        self.query_one("#heading", StillLines).show(self._heading)
        self._show_facets()
        self.set_interval(LOOK_EVERY, self.look_for_changes)
        self.set_interval(AGE_EVERY, self.rows.refresh)

    def on_resize(self) -> None:
        self._lay_out_preview()

    def library_ready(self) -> None:
        library = self.desk.library
        assert library is not None
        filters = library.settings.filters
        self.facets = Facets(
            archived=filters.archived,
            delegated=filters.children,
            automated=filters.automated,
            order=cast(ListOrder, filters.order),
        )
        self._name_stores()
        if not library.stores:
            self._say_empty_home(library)
            return
        self.keys.offer_usual()
        self._show_facets()
        self.load_list()

    def _say_empty_home(self, library: Library) -> None:
        places = dict.fromkeys(clean_line(looked.path) for looked in library.looked_at)
        self.rows.say(
            ("No conversations were found on this machine.", "strong"),
            ("", ""),
            ("Looked in:", "muted"),
            *((f"  {place}", "") for place in places),
            ("", ""),
            ("Press d to write example conversations into our own cache folder and open them, F5 to look again.", ""),
            ("Or start with --store PATH, where PATH holds a store of Hermes, Codex, Claude Code or DSH.", "muted"),
        )
        self.say_status((("nothing to show", "muted"),))
        self.keys.offer_only(*WITHOUT_STORES)
        self.query_one("#facets", StillLines).show(lambda _: [()])
        self.query_one("#heading", StillLines).show(lambda _: [()])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Where there is nothing to list, only what makes sense then."""
        library = self.desk.library
        if library is None or library.stores:
            return True
        ours = {command.action for command in commands_of("sessions") if command.id not in WITHOUT_STORES}
        return action not in ours

    # The list.

    @on(LoadingList.Listed)
    def _listed(self, event: LoadingList.Listed) -> None:
        if event.facets != self.facets:
            return
        rows = self.rows
        keep = key_of(rows.entry) if rows.entry is not None else None
        first = self._listing is None
        entries = event.listing.entries
        if not event.whole and self._listed_facets == event.facets:
            # The newest rows stand before what was known; all ids are read now and then.
            entries = behind(entries, rows.entries)
        entries = self._annotated(entries)
        another = self._listed_facets is not None and event.facets != self._listed_facets
        self._listing, self._stamps, self._listed_facets = event.listing, event.stamps, event.facets
        self._number += 1
        self._say_none()
        rows.show_entries(entries, keep=keep, another=another)
        self._unmarked = event.rows if entries is event.listing.entries else ()
        if self._unmarked:
            rows.fill(0, self._unmarked)
        if not entries or event.rows:
            self._show_preview()
        if first:
            self.set_timer(ROWS_FIRST, self._first_shown)
        if not entries:
            self._first_shown()
        self._show_facets()
        self.show_status()

    @on(SessionList.Drawn)
    def _rows_drawn(self) -> None:
        self._first_shown()
        if self._unmarked:
            rows, self._unmarked = self._unmarked, ()
            self._read_marks(self._number, rows)
            self._peek_soon()

    def _first_shown(self) -> None:
        """Begin what would have held up the first rows."""
        if not self._rows_seen.is_set():
            self._rows_seen.set()
            self._line_to_type()
            self.read_annotations()
            self.app.post_message(ListShown())

    def on_unmount(self) -> None:
        # A thread that waits for the first rows would hold the exit.
        self._rows_seen.set()

    def _say_none(self) -> None:
        assert self._listing is not None
        left_out = left_out_text(self._listing.left_out)
        if self.facets.narrowed:
            self.rows.say(
                ("Nothing matches.", "strong"),
                ("", ""),
                ("Esc takes the filter away, f shows what narrows the list.", ""),
            )
        else:
            self.rows.say(
                ("The stores hold no conversations yet.", "strong"),
                ("", ""),
                (f"Left out: {left_out}. f shows them, 6 shows how the stores are.", "muted"),
            )

    @on(SessionList.Wanted)
    def _wanted(self, event: SessionList.Wanted) -> None:
        for page in event.pages:
            self._read_page(self._number, page, self.rows.entries[page * PAGE : (page + 1) * PAGE])

    @on(LoadingList.PageRead)
    def _page_read(self, event: LoadingList.PageRead) -> None:
        if event.listing != self._number:
            return
        self.rows.fill(event.page, event.rows)
        if self.rows.cursor // PAGE == event.page:
            self._show_preview()
            self._peek_soon()

    # Pins, tags, notes.

    @work(thread=True, exclusive=True, group="annotations", exit_on_error=False, description="Reading pins and tags")
    def read_annotations(self) -> None:
        """Read what people said about their conversations."""
        if self.desk.library is not None:
            self.post_message(self.AnnotationsRead(read_annotations(self.desk.library)))

    @on(AnnotationsRead)
    def _annotations_read(self, event: AnnotationsRead) -> None:
        self.rows.annotations = event.annotations
        self.rows.refresh()
        self._show_preview()
        if self.facets.pinned or self.facets.tag:
            self.load_list()

    def _annotated(self, entries: Sequence[CatalogEntry]) -> Sequence[CatalogEntry]:
        """The entries that a facet of ours leaves."""
        pinned, tag = self.facets.pinned, self.facets.tag
        if not pinned and tag is None:
            return entries
        said = self.rows.annotations
        return tuple(
            entry
            for entry, key in zip(entries, keys_of(entries), strict=True)
            if (one := said.get(key)) is not None and (one.pinned or not pinned) and (tag is None or tag in one.tags)
        )

    # Filter and facets.

    def _line_to_type(self) -> FilterLine:
        """The line the filter is typed into. Until the first rows are there its picture stands for it: 6 ms earlier."""
        if self._filter_line is None:
            from hermes_tui.tui.widgets.filter_line import FilterLine

            self._filter_line = FilterLine(FILTER)
            picture = self.query_one("#untyped")
            self.query_one("#filter").mount(self._filter_line, before=picture)
            picture.display = False
            picture.remove()
        return self._filter_line

    @on(Input.Changed)
    def _typed(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE, self._settled)

    def _settled(self) -> None:
        text = self._line_to_type().value.strip()
        if text != self.facets.text:
            self.narrow(dataclasses.replace(self.facets, text=text))

    @on(Input.Submitted)
    def _to_list(self) -> None:
        self._settled()
        self.rows.focus()

    def narrow(self, facets: Facets) -> None:
        """Show another list."""
        self.facets = facets
        self._show_facets()
        self.load_list()

    def asked_for(self, facets: Facets) -> None:
        if self._facets_before is None:
            self._facets_before = self.facets
        self.rows.picked = set()
        # Before the list is narrowed: a line that is emptied narrows by itself.
        self.facets = dataclasses.replace(self.facets, text="")
        self._line_to_type().value = ""
        # Rows of another question are no answer to this one: until it is here, Enter would read one of them.
        self.rows.show_entries((), keep=None)
        self.rows.say(("Looking for conversations.", "muted"))
        self._show_preview()
        own = facets.order != Facets().order
        self.narrow(facets if own else dataclasses.replace(facets, order=self.facets.order))

    def _show_facets(self) -> None:
        self.query_one("#facets", StillLines).show(self._facets_line)
        self.query_one("#heading", StillLines).refresh()
        self.query_one("#heading", StillLines).show(self._heading)

    def _facets_line(self, width: int) -> list[Line]:
        left: str = summary(self.facets, self.desk.glyphs)
        right = ""
        if self._listing is not None and self._listed_facets != self.facets:
            # The number of another list says nothing about this one.
            right = "looking"
        elif self._listing is not None:
            ours = self.facets.pinned or self.facets.tag
            total = self.rows.count if ours else self._listing.total
            right = counted(total, *(("match", "matches") if self.facets.narrowed else ("conversation",)))
        if width_of(left) + len(right) + 3 > width:
            left = fit(
                summary(self.facets, self.desk.glyphs, short=True),
                max(0, width - len(right) - 3),
                ellipsis=self.desk.glyphs.ellipsis,
            )
        return [spread(((left, "muted"),), ((f"{right} ", "strong" if self.facets.narrowed else "muted"),), width)]

    def _heading(self, width: int) -> list[Line]:
        # The list has a scroll bar where it is longer than the screen: same columns for both.
        inner = self.rows.scrollable_content_region.width or width
        return [heading(self.rows.columns(inner), inner, self.facets.order, self.desk.glyphs)]

    # Preview.

    def _lay_out_preview(self) -> None:
        height = self.size.height
        shown = self._preview_shown if self._preview_shown is not None else height >= 30
        pane = self.query_one("#preview", StillLines)
        pane.display = shown
        pane.styles.height = 9 if height >= 40 else 7 if height >= 30 else 6
        self.query_one("#heading", StillLines).show(self._heading)
        self._show_preview()

    def _show_preview(self) -> None:
        pane = self.query_one("#preview", StillLines)
        row = self.rows.row(self.rows.cursor) if self.rows.count else None
        said = self.rows.annotation
        pane.show(
            lambda width: preview_lines(
                row, self._preview, width, pane.size.height, self.desk.moment, self.desk.glyphs, said
            )
        )

    @on(VirtualList.Moved)
    def _moved(self) -> None:
        entry = self.rows.entry
        self.desk.subject = found_at(entry) if entry is not None else None
        # Not for every row that a held key runs over.
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST, self._rested)

    def _rested(self) -> None:
        self._show_preview()
        self._peek_soon(SETTLE - REST)

    def _peek_soon(self, seconds: float = SETTLE) -> None:
        if self._peeking is not None:
            self._peeking.stop()
        if self.query_one("#preview").display:
            self._peeking = self.set_timer(seconds, self._peek)

    def _peek(self) -> None:
        if (entry := self.rows.entry) is not None:
            self._read_preview(found_at(entry))

    @work(thread=True, exclusive=True, group="preview", exit_on_error=False, description="Reading the preview")
    def _read_preview(self, found: Found) -> None:
        preview = read_preview(found)
        if not get_current_worker().is_cancelled:
            self.post_message(self.PreviewRead(preview))

    @on(PreviewRead)
    def _preview_read(self, event: PreviewRead) -> None:
        self._preview = event.preview
        self._show_preview()

    # Status.

    def mirror_moved(self, moved: MirrorMoved) -> None:
        progress = moved.progress
        todo = progress.logs_todo - progress.logs_done if progress is not None else 0
        if moved.trouble:
            self._mirror = clean_line(moved.trouble)
        elif progress is not None and todo > 0:
            self._mirror = f"mirror {progress.share * 100:.0f} % built, {todo:,} logs to go"
        else:
            self._mirror = ""
        if progress is not None and progress.phase == "done" and self._listing is not None:
            lagging = any(status.lag for status in self._listing.stores)
            if lagging:
                # What the list said of the mirror is not so any more.
                self.load_list(whole=False)
        self.show_status()

    def show_status(self) -> None:
        if self._listing is None:
            return
        picked = len(self.rows.picked)
        if picked:
            self.say_status(_picked_bar(picked, self.rows.away))
            return
        listing = self._listing
        dot = f" {self.desk.glyphs.middot} "
        runs: list[Run] = []
        origins = origins_text(
            [(status.origin, status.lag) for status in listing.stores if status.origin is not None and status.sessions]
        )
        runs = [
            ("from: ", "muted"),
            (origins, ""),
            (f", {self._mirror}" if self._mirror else "", "notice"),
            (f"{dot}left out: ", "muted"),
            (left_out_text(listing.left_out), ""),
        ]
        warnings: list[Run] = []
        unwell = [status for status in listing.stores if status.state in {"degraded", "unreadable"}]
        if unwell:
            names = ", ".join(clean_line(status.ref.name) for status in unwell[:2])
            more = f" + {len(unwell) - 2}" if len(unwell) > 2 else ""
            warnings.append((f"! {names}{more} not well: 6 says why", "warn"))
        problems = self.desk.library.settings.problems if self.desk.library is not None else ()
        if problems:
            runs += [(dot, "muted"), (f"! settings: {clean_line(problems[0])}", "warn")]
        # On the right, where it is never cut for the sake of what is left out.
        self.say_status(tuple(runs), tuple(warnings))

    # Actions.

    def action_filter(self) -> None:
        self._line_to_type().focus()
        self.ready_filter()

    def action_order(self) -> None:
        at = ORDERS.index(self.facets.order)
        self.narrow(dataclasses.replace(self.facets, order=ORDERS[(at + 1) % len(ORDERS)]))

    def action_automated(self) -> None:
        self.narrow(dataclasses.replace(self.facets, automated=not self.facets.automated))

    def action_preview(self) -> None:
        self._preview_shown = not self.query_one("#preview").display
        self._lay_out_preview()
        self._peek_soon()

    def action_pick(self) -> None:
        self.rows.toggle_picked()
        self.show_status()

    def action_pick_all(self) -> None:
        rows = self.rows
        everything = set(keys_of(rows.entries))
        rows.picked = set() if rows.picked == everything else everything
        rows.away = 0
        rows.refresh()
        self.show_status()

    def action_reload(self) -> None:
        if self.desk.library is not None and not self.desk.library.stores:
            self.post_message(LookForStores())
        else:
            self.load_list()

    def action_copy_id(self) -> None:
        if (entry := self.rows.entry) is not None:
            self.app.copy_to_clipboard(entry.id)
            self.toast(f"Copied {entry.id}")

    def action_lineage(self) -> None:
        self.post_message(ShowPlace("lineage", self.desk.subject))

    def action_cache(self) -> None:
        self.post_message(ShowPlace("cache", self.desk.subject))

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        if (entry := self.rows.entry) is not None:
            self.post_message(ShowTranscript(found_at(entry)))

    def action_facets(self) -> None:
        from hermes_tui.tui.dialogs.facets import FacetsDialog

        tags = sorted({tag for said in self.rows.annotations.values() for tag in said.tags})
        self.app.push_screen(FacetsDialog(self.desk, self.facets, tags), self._narrowed_by_hand)

    def _narrowed_by_hand(self, facets: Facets | None) -> None:
        if facets is not None and facets != self.facets:
            self.narrow(facets)

    def action_demo(self) -> None:
        library = self.desk.library
        if library is None or library.stores:
            self.toast("There are stores already: `hermes-tui demo DIR` writes examples elsewhere.")
            return
        self.rows.say(("Writing example conversations.", "muted"))
        self._write_demo(library)

    @work(thread=True, exclusive=True, group="demo", exit_on_error=False, description="Writing the examples")
    def _write_demo(self, library: Library) -> None:
        from hermes_tui.library.demo import write_demo
        from hermes_tui.library.sources import SourceOptions, open_library
        from hermes_tui.locations import private_folder

        folder = private_folder(library.locations.cache) / "demo"
        if not folder.exists():
            write_demo(folder, self.desk.clock())
        self.app.post_message(LibraryOpened(open_library(SourceOptions(paths=(str(folder),)))))

    def step_back(self) -> bool:
        """Leave the filter line, then empty it, then drop the selection, then the facets."""
        line = self._filter_line
        if line is not None and line.has_focus:
            self.rows.focus()
        elif line is not None and line.value:
            line.value = ""
            self._settled()
        elif self.rows.picked:
            self.rows.picked = set()
            self.rows.away = 0
            self.rows.refresh()
            self.show_status()
        elif self._facets_before is not None:
            before, self._facets_before = self._facets_before, None
            self._line_to_type().value = before.text
            self.narrow(before)
            return False
        elif self.facets.narrowed:
            self.narrow(Facets(order=self.facets.order, archived=self.facets.archived, delegated=self.facets.delegated))
        else:
            return False
        return True


def _picked_bar(picked: int, away: int) -> tuple[Run, ...]:
    """What can be done with what is selected."""
    runs: list[Run] = [(f"{picked:,} selected  ", "picked strong")]
    if away:
        runs.append((f"{away:,} not shown  ", "warn"))
    for key, name in (("a", "archive"), ("e", "end"), ("D", "delete"), ("E", "export"), ("Esc", "select none")):
        runs += [(key, "key"), (f" {name}  ", "muted")]
    return tuple(runs)
