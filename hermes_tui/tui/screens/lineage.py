"""Screen 2: how a conversation came apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.drop_marks import marked_lineage
from hermes_tui.library.lineage import lineage_of
from hermes_tui.library.sources import Found
from hermes_tui.model import Lineage
from hermes_tui.records import dataclass
from hermes_tui.text import clean_line, literal
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.formats import counted
from hermes_tui.tui.inks import Line, Run
from hermes_tui.tui.messages import ShowPlace, ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.lineage_tree import TreeLine, heading, line_of, tree_lines
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList


class LineageScreen(Place):
    """How did this conversation come apart?"""

    PLACE = "lineage"
    TAB = "lineage"
    CSS_PATH = sheet("lineage.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("lineage")]

    @dataclass
    class TreeRead(Message):
        """The tree is here."""

        found: Found
        lineage: Lineage

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._shown: Found | None = None
        self._lineage: Lineage | None = None
        self._lines: list[TreeLine] = []

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="heading")
        yield LineList()

    @property
    def nodes(self) -> LineList:
        """The tree."""
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.nodes.say(
            ("No conversation is chosen.", "strong"),
            ("", ""),
            ("Press 1, put the cursor on one, and press l.", "muted"),
        )
        self.query_one("#heading", StillLines).show(self._heading)
        self.keys.offer_only()
        self.nodes.focus()

    def on_screen_resume(self) -> None:
        if self.desk.subject is not None and self.desk.subject != self._shown:
            self._shown = self.desk.subject
            self._lines, self._lineage = [], None
            self.nodes.show(0, self._draw)
            self.nodes.say(("Reading the tree.", "muted"))
            self._read(self._shown)

    def stores_changed(self) -> None:
        if self._shown is not None and self.app.screen is self:
            self._read(self._shown)

    @work(thread=True, exclusive=True, group="lineage", exit_on_error=False, description="Reading the lineage")
    def _read(self, found: Found) -> None:
        lineage = lineage_of(found)
        if self.desk.library is not None:
            lineage = marked_lineage(self.desk.library, found.store, lineage)
        if not get_current_worker().is_cancelled:
            self.post_message(self.TreeRead(found, lineage))

    @on(TreeRead)
    def _tree_read(self, event: TreeRead) -> None:
        if event.found != self._shown:
            return
        again = self._lineage is not None
        self._lineage = event.lineage
        self._lines = tree_lines(event.lineage, self.desk.glyphs)
        at = next((n for n, line in enumerate(self._lines) if line.node.id == event.found.session_id), 0)
        self.nodes.show(
            len(self._lines),
            self._draw,
            cursor=self.nodes.cursor if again else at,
            may_stand=lambda item: self._lines[item].compaction is None,
            keep=again,
        )
        self.query_one("#heading", StillLines).show(self._heading)
        self.keys.offer_usual()
        self._show_status()

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        return line_of(self._lines[item], width, self.desk.moment, self.desk.glyphs, cursor)

    def _heading(self, width: int) -> list[Line]:
        title = literal("Lineage")
        if self._lineage is not None:
            titles = {node.id: node.row.title for node in self._lineage.nodes}
            own = [titles.get(id_) for id_ in reversed(self._lineage.conversation)]
            title = clean_line(next((one for one in own if one), None) or "(untitled)")
        inner = self.nodes.scrollable_content_region.width or width
        return [heading(title, inner)]

    def _show_status(self) -> None:
        lineage = self._lineage
        if lineage is None:
            return
        glyphs = self.desk.glyphs
        found = [(node.id, finding) for node in lineage.nodes for finding in node.findings]
        runs: list[Run] = [("findings: ", "muted")]
        if found:
            runs.append((", ".join(f"{clean_line(what)} ({clean_line(id_)})" for id_, what in found[:3]), "bad"))
        else:
            runs.append(("none", ""))
        dot = f" {glyphs.middot} "
        runs += [
            (f"{dot}{counted(len(lineage.nodes), 'session')}{dot}", "muted"),
            (glyphs.own, "title"),
            (" this conversation  ", "muted"),
            (f"{glyphs.other} others", "muted"),
        ]
        self.say_status(tuple(runs))

    def _here(self) -> Found | None:
        if self._shown is None or not self._lines:
            return None
        return Found(self._shown.store, self._lines[self.nodes.cursor].node.id, self._shown.prices)

    @on(VirtualList.Chosen)
    def _chosen(self) -> None:
        if (found := self._here()) is not None:
            # It becomes the subject, but the tree around it is the one that is shown already.
            self._shown = found
            self.post_message(ShowTranscript(found, conversation=False))

    def action_cache(self) -> None:
        if (found := self._here()) is not None:
            self.post_message(ShowPlace("cache", found))

    def action_copy_id(self) -> None:
        if (found := self._here()) is not None:
            self.app.copy_to_clipboard(found.session_id)
            self.toast(f"Copied {found.session_id}")

    def action_findings(self) -> None:
        odd = [n for n, line in enumerate(self._lines) if line.node.findings and line.compaction is None]
        if not odd:
            self.toast("Nothing odd was found in this tree.")
            return
        self.nodes.move_to(next((n for n in odd if n > self.nodes.cursor), odd[0]))
