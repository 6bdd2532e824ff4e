"""v: what the model would be sent if this session were resumed now, beside the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual import on, work
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.recovery import recover
from hermes_tui.library.transcript import open_transcript
from hermes_tui.model import MessageHead, PowerCut, Recovery
from hermes_tui.records import dataclass
from hermes_tui.text import CleanText, clean_line
from hermes_tui.tui.commands import bindings_for
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.inks import Line, clip
from hermes_tui.tui.messages import ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.stylesheets import sheet
from hermes_tui.tui.views.recovery_rows import Pair, Shown, facts, filtered, headings, list_words, pair_line, pairs
from hermes_tui.tui.widgets.line_list import LineList
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from hermes_tui.library.sources import Found
    from hermes_tui.library.transcript import Transcript

PEEK: Final = 300
"""Characters of a text that may be seen in a row."""
MOST_PEEKS: Final = 4_000
MOST_PROMPTS: Final = 2_000
"""Prompts compared by text with what a compaction kept."""
LARGEST: Final = 100_000
"""Texts over this many bytes are not read for one line of them."""


class RecoveryScreen(Place):
    """What comes back?"""

    PLACE = "recovery"
    CSS_PATH = sheet("recovery.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("recovery")]

    @dataclass
    class Recovered(Message):
        """The recovery for a cut."""

        cut: PowerCut | None
        recovery: Recovery
        heads: Sequence[MessageHead] | None

    @dataclass
    class Peeked(Message):
        """The beginnings of some texts."""

        texts: dict[tuple[str, int], CleanText]

    def __init__(self, desk: Desk, found: Found, tab: str) -> None:
        super().__init__(desk, tab)
        self._found = found
        self._cut: PowerCut | None = None
        self._recovery: Recovery | None = None
        self._heads: Sequence[MessageHead] = ()
        self._transcript: Transcript | None = None
        self._prompts: dict[tuple[str, int], str] = {}
        self._pairs: list[Pair] = []
        self._rows: list[Pair] = []
        self._shown: Shown = "both"
        self._peeks: dict[tuple[str, int], CleanText] = {}
        self._asked: set[tuple[str, int]] = set()
        self._wanted: list[MessageHead] = []

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="row")
        yield StillLines(id="heading")
        yield LineList()

    @property
    def list(self) -> LineList:
        """The rows."""
        return self.query_one(LineList)

    def on_mount(self) -> None:
        self.list.say(("Working out what would be sent.", "muted"))
        self.list.focus()

    def library_ready(self) -> None:
        self._name_stores()
        self._read(None)

    @work(thread=True, exclusive=True, group="recovery", exit_on_error=False, description="Working out the recovery")
    def _read(self, cut: PowerCut | None) -> None:
        worker = get_current_worker()
        heads: list[MessageHead] | None = None
        if self._transcript is None:
            transcript = open_transcript(self._found, conversation=False)
            heads = []
            for batch in transcript.heads():
                if worker.is_cancelled:
                    return
                heads += batch
            prompts = [head for head in heads if head.kind == "prompt" and head.size <= LARGEST][-MOST_PROMPTS:]
            self._prompts = {
                (message.head.id, message.head.part): message.text or "" for message in transcript.load(prompts)
            }
            self._transcript = transcript
        recovery = recover(self._found, cut)
        if not worker.is_cancelled:
            self.post_message(self.Recovered(cut, recovery, heads))

    @on(Recovered)
    def _recovered(self, event: Recovered) -> None:
        if event.heads is not None:
            self._heads = event.heads
        if event.cut != self._cut:
            return
        self._recovery = event.recovery
        self._pairs = pairs(self._heads, event.recovery, event.cut, self._prompts)
        self._show(at_end=True)

    def _show(self, *, at_end: bool = False) -> None:
        recovery = self._recovery
        if recovery is None:
            return
        self._rows = filtered(self._pairs, self._shown)
        self.list.say(("Nothing would be sent.", "strong"))
        self.list.show(len(self._rows), self._draw, cursor=len(self._rows) - 1 if at_end else 0)
        record = sum(pair.head is not None for pair in self._pairs)
        glyphs = self.desk.glyphs
        self.query_one("#row", StillLines).show(
            lambda width: [clip(list_words(recovery.row, self.desk.moment, glyphs), width, glyphs.ellipsis)]
        )
        self.query_one("#heading", StillLines).show(
            lambda width: [
                headings(record, recovery, self._shown, self.list.scrollable_content_region.width or width, glyphs)
            ]
        )
        self.say_status(facts(recovery, self._cut))

    def _draw(self, item: int, width: int, cursor: bool) -> Line:
        pair = self._rows[item]
        peek = self._peek(pair) if pair.head is not None else None
        return pair_line(pair, peek, self._shown, width, self.desk.glyphs, cursor)

    def _peek(self, pair: Pair) -> CleanText | None:
        head = pair.head
        assert head is not None
        if pair.message is not None:
            return clean_line((pair.message.text or "")[:PEEK])
        key = (head.id, head.part)
        if key not in self._peeks and key not in self._asked and head.size <= LARGEST:
            self._asked.add(key)
            if not self._wanted:
                self.call_after_refresh(self._ask)
            self._wanted.append(head)
        return self._peeks.get(key)

    def _ask(self) -> None:
        wanted, self._wanted = self._wanted, []
        if wanted and self._transcript is not None:
            self._read_peeks(self._transcript, wanted)

    @work(thread=True, group="peeks", exit_on_error=False, description="Reading texts")
    def _read_peeks(self, transcript: Transcript, heads: Sequence[MessageHead]) -> None:
        texts = {
            (message.head.id, message.head.part): clean_line((message.text or "")[:PEEK])
            for message in transcript.load(heads)
        }
        self.post_message(self.Peeked(texts))

    @on(Peeked)
    def _peeked(self, event: Peeked) -> None:
        if len(self._peeks) > MOST_PEEKS:
            self._peeks.clear()
            self._asked.clear()
        self._peeks.update(event.texts)
        self.list.refresh()

    @on(VirtualList.Chosen)
    def _chosen(self, event: VirtualList.Chosen) -> None:
        head = self._rows[event.item].head
        if head is None:
            self.toast("This is made for the model when the session is resumed: the record does not hold it.")
            return
        self.post_message(ShowTranscript(self._found, head.id, part=head.part, conversation=False))

    # The power cut.

    def _last_line(self) -> int:
        """The last line of the log that is a message of ours."""
        path = self._heads[-1].path if self._heads else None
        return max((head.line for head in self._heads if head.line is not None and head.path == path), default=0)

    def _move(self, lines: int) -> None:
        last = self._last_line()
        if not last:
            self.toast("This store keeps no log, so there is no line at which the power could go.")
            return
        at = self._cut.line if self._cut is not None else last + 1
        line = max(1, at + lines)
        cut = None if line > last else PowerCut(line)
        if cut != self._cut:
            self._cut = cut
            self._read(cut)

    def action_cut_earlier(self) -> None:
        self._move(-1)

    def action_cut_later(self) -> None:
        self._move(1)

    def action_cut_back(self) -> None:
        self._move(-10)

    def action_cut_forward(self) -> None:
        self._move(10)

    def action_cut_end(self) -> None:
        if self._cut is not None:
            self._cut = None
            self._read(None)

    def action_switch(self) -> None:
        order: tuple[Shown, ...] = ("both", "recovery", "record")
        self._shown = order[(order.index(self._shown) + 1) % len(order)]
        self._show()

    def action_ignored(self) -> None:
        from hermes_tui.tui.dialogs.reader import Reader

        recovery = self._recovery
        if recovery is None or not recovery.ignored:
            self.toast("No record was passed over.")
            return
        lines = [f"{one.path or ''}:{one.line or ''}  {one.reason}" for one in recovery.ignored]
        self.app.push_screen(Reader("Records that are passed over", lines))
