"""Reading a transcript piece by piece: heads, texts in view, growth on disk. What is done with it is another's."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from textual import on, work
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from hermes_tui.library.catalog import row_of
from hermes_tui.library.transcript import is_shown, open_transcript
from hermes_tui.model import MessageHead, SessionRow
from hermes_tui.records import dataclass
from hermes_tui.tui.desk import Desk
from hermes_tui.tui.inks import Line
from hermes_tui.tui.messages import ShowTranscript
from hermes_tui.tui.screens.place import Place
from hermes_tui.tui.views.annotated import read_annotation
from hermes_tui.tui.views.blocks import PIECE, Block, Finder, make_block
from hermes_tui.tui.views.transcript_head import head_lines
from hermes_tui.tui.widgets.filter_line import FilterLine
from hermes_tui.tui.widgets.lines import StillLines
from hermes_tui.tui.widgets.transcript_view import TranscriptView

if TYPE_CHECKING:
    from hermes_tui.library.annotations import Annotation
    from hermes_tui.library.transcript import Transcript

LOOK_EVERY: Final = 1.0
"""Seconds between looks at the store's stamp."""
POST_EVERY: Final = 0.05
"""Seconds of reading between two batches handed to the screen."""
TAIL: Final = 400
"""Messages shown at once when the end is asked for while the beginning is still being read."""
Identity = tuple[str, int]
"""What stays the same of a message when it is read again: id and part."""


def identity(head: MessageHead) -> Identity:
    """Id and part."""
    return head.id, head.part


class ReadingScreen(Place):
    """Reads a conversation into its view."""

    @dataclass
    class HeadsRead(Message):
        """More messages are known."""

        number: int
        heads: Sequence[MessageHead]
        done: bool

    @dataclass
    class TailRead(Message):
        """The last messages are known before the rest is."""

        number: int
        heads: Sequence[MessageHead]

    @dataclass
    class GrowthRead(Message):
        """The end of a transcript that changed on disk; ``None``: read all of it again."""

        heads: Sequence[MessageHead] | None
        stamp: object

    @dataclass
    class RowRead(Message):
        """What the list knows of the conversation."""

        row: SessionRow | None
        chain: int
        said: Annotation | None
        """What people said about it."""

    @dataclass
    class TextsRead(Message):
        """Texts are ready to draw."""

        number: int
        blocks: dict[int, Block]
        version: int

    def __init__(self, desk: Desk, asked: ShowTranscript, tab: str) -> None:
        super().__init__(desk, tab)
        self.found = asked.found
        self._conversation = asked.conversation
        self._landing = asked.message_id
        self._landing_part = asked.part
        self._landing_line = False
        self._transcript: Transcript | None = None
        self._number = 0
        """Counts readings, so that what a former one found is not mixed in."""
        self._reading = True
        self._waiting: list[MessageHead] | None = None
        """Messages read while only the end is shown; ``None``: everything read is shown."""
        self._row: SessionRow | None = None
        self._chain = 1
        self._said: Annotation | None = None
        self._sent = False
        self._stamp: object = None
        self._looking = False
        self._find: Finder | None = asked.find

    # Building.

    def body(self) -> Iterable[Widget]:
        yield StillLines(id="head")
        yield TranscriptView(self.desk)
        yield FilterLine("find in this transcript, Enter, then n and N", id="find")

    @property
    def view(self) -> TranscriptView:
        """The messages."""
        return self.query_one(TranscriptView)

    def on_mount(self) -> None:
        self.query_one("#find").display = False
        self.query_one("#head", StillLines).show(self._head)
        self.view.focus()
        self.view.say("Reading.")
        self.set_interval(LOOK_EVERY, self._look)

    def library_ready(self) -> None:
        self._name_stores()
        self.read_again()

    def _head(self, width: int) -> list[Line]:
        parts = f"{self._chain} parts" if self._chain > 1 and self._conversation else ""
        if not self._conversation and self._chain > 1:
            parts = f"one of {self._chain} parts"
        return head_lines(self._row, parts, "record", width, self.desk.glyphs, self._said)

    # Reading.

    def read_again(self) -> None:
        """Read it from the beginning."""
        self._number += 1
        self._reading = True
        self._waiting = None
        self._read_heads(self._number)
        self._read_row()

    @work(thread=True, exclusive=True, group="heads", exit_on_error=False, description="Reading the conversation")
    def _read_heads(self, number: int) -> None:
        worker = get_current_worker()
        self._stamp = self.found.store.stamp()
        transcript = open_transcript(self.found, conversation=self._conversation)
        self._transcript = transcript
        gathered: list[MessageHead] = []
        posted = 0.0
        for batch in transcript.heads():
            if worker.is_cancelled:
                return
            gathered += batch
            if time.monotonic() - posted >= POST_EVERY:
                self.post_message(self.HeadsRead(number, gathered, done=False))
                gathered, posted = [], time.monotonic()
        self.post_message(self.HeadsRead(number, gathered, done=True))

    @work(thread=True, exclusive=True, group="row", exit_on_error=False, description="Reading what the list knows")
    def _read_row(self) -> None:
        row = row_of(self.found, conversation=self._conversation)
        chain = self.found.store.chain(self.found.session_id)
        library = self.desk.library
        said = read_annotation(library, self.found.store, chain) if library is not None else None
        self.post_message(self.RowRead(row, len(chain), said))

    @on(RowRead)
    def _row_read(self, event: RowRead) -> None:
        self._row, self._chain, self._said = event.row, event.chain, event.said
        self.query_one("#head", StillLines).show(self._head)

    @on(HeadsRead)
    def _heads_read(self, event: HeadsRead) -> None:
        if event.number != self._number:
            return
        if self._waiting is not None:
            self._waiting += event.heads
        else:
            known = len(self.view.heads)
            self.view.add(event.heads)
            self._land(known)
        if event.done:
            self._reading = False
            if self._waiting is not None:
                self._show_all(self._waiting)
                self._waiting = None
            if not self.view.heads:
                self.view.say("This conversation has no messages.")
            self._landing = None
            self.all_read()
        self.show_status()

    def _land(self, first: int) -> None:
        """Go to the message that was asked for, once it is read; looks from ``first`` on."""
        if self._landing is None:
            return
        for item in range(first, len(self.view.heads)):
            head = self.view.heads[item]
            if head.id != self._landing or (self._landing_part is not None and head.part != self._landing_part):
                continue
            if not is_shown(head, self.view.all_states):
                self.view.show_states(all_states=True)
            self._landing = None
            self._landing_line = True
            self.view.unfold(item)
            self.view.go_to(item)
            return

    def _show_all(self, heads: Sequence[MessageHead]) -> None:
        """Show a newer reading; the current message stays where it is on the screen."""
        view = self.view
        kept = identity(view.heads[view.cursor]) if view.heads else None
        row = view.heights.top(view.cursor) - view.scroll_offset.y if view.heads else 0
        view.clear()
        view.numbered = True
        view.add(heads)
        if kept is not None:
            at = next((item for item, head in enumerate(view.heads) if identity(head) == kept), None)
            if at is not None:
                view.go_to(at, row=row)

    # Texts.

    @on(TranscriptView.Wanted)
    def _wanted(self, event: TranscriptView.Wanted) -> None:
        if self._transcript is not None and event.version == self.view.version:
            heads = [self.view.heads[item] for item in event.items]
            pieces = {item: self.view.pieces[item] for item in event.items if self.view.pieces.get(item)}
            self._read_texts(
                self._transcript, self._number, event.items, heads, pieces, self.view.text_width, self.view.version
            )

    @work(thread=True, group="texts", exit_on_error=False, description="Reading texts")
    def _read_texts(
        self,
        transcript: Transcript,
        number: int,
        items: Sequence[int],
        heads: Sequence[MessageHead],
        pieces: dict[int, int],
        width: int,
        version: int,
    ) -> None:
        known = {identity(message.head): message for message in transcript.load(heads, sent=True)}
        blocks: dict[int, Block] = {}
        since = time.monotonic()
        for item, head in zip(items, heads, strict=True):
            message = known.get(identity(head))
            if message is None:
                continue
            piece = pieces.get(item, 0)
            text = transcript.piece(head, piece * PIECE, PIECE) if message.cut or piece else None
            blocks[item] = make_block(message, width, sent=self._sent, find=self._find, piece=piece, piece_text=text)
            if time.monotonic() - since > POST_EVERY:
                # Long texts do not hold up short ones.
                self.post_message(self.TextsRead(number, blocks, version))
                blocks, since = {}, time.monotonic()
        self.post_message(self.TextsRead(number, blocks, version))

    @on(TextsRead)
    def _texts_read(self, event: TextsRead) -> None:
        if event.number != self._number or event.version != self.view.version:
            return
        view = self.view
        view.put(event.blocks)
        self.texts_ready(event.blocks)

    # Live.

    def _look(self) -> None:
        if self._transcript is None or self._reading or self._looking or self.app.screen is not self:
            return
        self._looking = True
        self._read_growth(self.view.heads[-TAIL:])

    @work(thread=True, exclusive=True, group="growth", exit_on_error=False, description="Looking for new messages")
    def _read_growth(self, known: Sequence[MessageHead]) -> None:
        try:
            stamp = self.found.store.stamp()
            if stamp == self._stamp:
                return
            transcript = open_transcript(self.found, conversation=self._conversation)
            tail = list(transcript.tail(TAIL))
            self._transcript = transcript
            self.post_message(self.GrowthRead(_grown(known, tail), stamp))
        finally:
            self._looking = False

    @on(GrowthRead)
    def _growth_read(self, event: GrowthRead) -> None:
        self._stamp = event.stamp
        if event.heads is None:
            self._reread()
        elif event.heads:
            self.view.add(event.heads)
            self.view.stay_at_end()
        self._read_row()
        self.show_status()

    def _reread(self) -> None:
        """Something before the end is not what it was: read all, show it when all is here."""
        self._number += 1
        self._reading = True
        self._waiting = []
        self._read_heads(self._number)

    # The end at once.

    def read_end(self) -> None:
        """Show the last messages now, if the beginning is still being read."""
        if self._reading and self._waiting is None and self._transcript is not None:
            self._read_tail(self._transcript, self._number)

    @work(thread=True, exclusive=True, group="tail", exit_on_error=False, description="Reading the end")
    def _read_tail(self, transcript: Transcript, number: int) -> None:
        self.post_message(self.TailRead(number, list(transcript.tail(TAIL))))

    @on(TailRead)
    def _tail_read(self, event: TailRead) -> None:
        if event.number != self._number or not self._reading or self._waiting is not None:
            return
        self._waiting = list(self.view.heads)
        self.view.clear()
        self.view.numbered = False
        self.view.add(event.heads)
        self.view.go_to_end()

    # What a screen made of this does.

    def show_status(self) -> None:
        """Say where we are."""
        raise NotImplementedError

    def all_read(self) -> None:
        """Every message is known."""

    def texts_ready(self, items: Iterable[int]) -> None:
        """These texts can be drawn now."""


def _grown(known: Sequence[MessageHead], tail: Sequence[MessageHead]) -> Sequence[MessageHead] | None:
    """What is new at the end; ``None`` where something before the end changed or cannot be told."""
    if not known:
        return None
    states = {identity(head): (head.state, head.size) for head in known}
    last = identity(known[-1])
    at = next((place for place, head in enumerate(tail) if identity(head) == last), None)
    if at is None:
        return None
    same = all(
        states.get(identity(head), (head.state, head.size)) == (head.state, head.size) for head in tail[: at + 1]
    )
    return tail[at + 1 :] if same else None
